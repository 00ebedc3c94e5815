//! Histograms of the Hamming distances of pairs of fingerprints, by brute force.

use crate::threads;

/// The greatest distance that is recorded.
pub const MAX_DISTANCE: u32 = 16;

/// The number of pairs at each distance, from 0 to 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distances([u64; 65]);

impl Default for Distances {
    fn default() -> Self {
        Self([0; 65])
    }
}

/// Number of fingerprints in a block, which a thread compares with all others before it takes the
/// next block.
const BLOCK: usize = 512;

impl Distances {
    /// Compares each fingerprint of `xs` with each of `ys`.
    pub fn between(xs: &[u64], ys: &[u64]) -> Self {
        on_threads(xs.len().div_ceil(BLOCK), |block, tally| {
            let rest = &xs[block * BLOCK..];
            tally.compare(&rest[..BLOCK.min(rest.len())], ys);
        })
    }

    /// Compares each two fingerprints of `xs`.
    pub fn within(xs: &[u64]) -> Self {
        on_threads(xs.len().div_ceil(BLOCK), |block, tally| {
            let rest = &xs[block * BLOCK..];
            let (block, rest) = rest.split_at(BLOCK.min(rest.len()));
            for (at, x) in block.iter().enumerate() {
                tally.compare(std::slice::from_ref(x), &block[at + 1..]);
            }
            tally.compare(block, rest);
        })
    }

    /// Adds one pair.
    pub fn add(&mut self, distance: u32) {
        self.0[distance as usize] += 1;
    }

    /// Adds all pairs of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// Returns the number of pairs within `k` bits.
    pub fn at_most(&self, k: u32) -> u64 {
        self.0.iter().take(k as usize + 1).sum()
    }

    /// Returns the number of pairs within each distance.
    pub fn cumulative(&self) -> [u64; 65] {
        std::array::from_fn(|k| self.at_most(k as u32))
    }

    /// Returns the number of pairs.
    pub fn total(&self) -> u64 {
        self.at_most(64)
    }
}

/// Distributes the blocks over threads; `count` counts the pairs of one block. Returns the sum.
fn on_threads(blocks: usize, count: impl Fn(usize, &mut Tally) + Sync) -> Distances {
    let threads = threads::cores();
    let tallies = threads::run(threads, |first| {
        let mut tally = Tally::default();
        for block in (first..blocks).step_by(threads) {
            count(block, &mut tally);
        }
        tally
    });
    let mut distances = Distances::default();
    for lane in tallies.iter().flat_map(|tally| &tally.0) {
        for (count, more) in distances.0.iter_mut().zip(lane) {
            *count += more;
        }
    }
    distances
}

/// Counters of a thread: one array for each of four neighbouring pairs, so that pairs at the same distance do not wait
/// for each other's addition.
struct Tally([[u64; 256]; 4]);

impl Default for Tally {
    fn default() -> Self {
        Self([[0; 256]; 4])
    }
}

impl Tally {
    /// Compares each of `xs` with each of `ys`.
    fn compare(&mut self, xs: &[u64], ys: &[u64]) {
        let mut distances = [0u8; BLOCK];
        for ys in ys.chunks(BLOCK) {
            let distances = &mut distances[..ys.len()];
            for x in xs {
                // A loop of its own, which the compiler vectorizes.
                for (distance, y) in distances.iter_mut().zip(ys) {
                    *distance = (x ^ y).count_ones() as u8;
                }
                let (fours, rest) = distances.as_chunks::<4>();
                for four in fours {
                    for (lane, &distance) in self.0.iter_mut().zip(four) {
                        lane[usize::from(distance)] += 1;
                    }
                }
                for &distance in rest {
                    self.0[0][usize::from(distance)] += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    fn naive(pairs: impl Iterator<Item = (u64, u64)>) -> Distances {
        let mut distances = Distances::default();
        pairs.for_each(|(x, y)| distances.add((x ^ y).count_ones()));
        distances
    }

    #[test]
    fn histograms_equal_those_of_a_naive_loop() {
        let all = data::random_batch(3 * BLOCK + 7);
        for (xs, ys) in [(0, 5), (5, 0), (1, 1), (BLOCK, BLOCK + 3), (BLOCK + 2, 9)] {
            let (xs, ys) = (&all[..xs], &all[all.len() - ys..]);
            let pairs = xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y)));
            assert_eq!(Distances::between(xs, ys), naive(pairs));
        }
        for count in [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, all.len()] {
            let xs = &all[..count];
            let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (xs[a], xs[b])));
            let (found, expected) = (Distances::within(xs), naive(pairs));
            assert_eq!(found, expected);
            assert_eq!(found.total(), (count * count.saturating_sub(1) / 2) as u64);
        }
    }

    #[test]
    fn distances_of_0_and_64_bits() {
        let mut distances = Distances::between(&[0], &[0, !0, 7]);
        assert_eq!(
            [0, 2, 3, 63, 64].map(|k| distances.at_most(k)),
            [1, 1, 2, 2, 3]
        );
        distances.merge(&Distances::within(&[1, 1]));
        assert_eq!(distances.at_most(0), 2);
    }
}
