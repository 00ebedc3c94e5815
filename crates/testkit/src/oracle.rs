//! The definition of a hit, in a double loop: what every other way of finding hits is checked against; and a plain way
//! of finding the same pairs in sets that are too large for it.

/// A pair by the indexes of its fingerprints, with its distance.
pub type Pair = (usize, usize, u32);

/// Every pair `(i, j, distance)` with `left[i]` and `right[j]` at most `max_distance` bits apart, in order.
#[must_use]
pub fn pairs_within(left: &[u64], right: &[u64], max_distance: u32) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            let distance = (a ^ b).count_ones();
            if distance <= max_distance {
                pairs.push((i, j, distance));
            }
        }
    }
    pairs
}

/// Every pair `(i, j, distance)` with `i < j` inside one set.
#[must_use]
pub fn pairs_inside(set: &[u64], max_distance: u32) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, a) in set.iter().enumerate() {
        for (j, b) in set.iter().enumerate().skip(i + 1) {
            let distance = (a ^ b).count_ones();
            if distance <= max_distance {
                pairs.push((i, j, distance));
            }
        }
    }
    pairs
}

/// The pairs of [`pairs_within`] for large sets: those that agree on one of `max_distance + 1` runs of bits are compared,
/// because a pair that differs in all of them differs in more bits. Written for being plainly right, not for speed;
/// it shares no code with the join. Useful while the runs are long: for `max_distance` up to 7 or so.
#[must_use]
pub fn pairs_by_blocks(left: &[u64], right: &[u64], max_distance: u32) -> Vec<Pair> {
    let blocks = max_distance + 1;
    let mask_of = |block: u32| -> u64 {
        let bits = 64 * block / blocks..64 * (block + 1) / blocks;
        bits.fold(0, |mask, bit| mask | 1 << bit)
    };
    let sorted = |set: &[u64], mask: u64| -> Vec<(u64, u64, usize)> {
        let mut rows: Vec<_> = set
            .iter()
            .enumerate()
            .map(|(at, &value)| (value & mask, value, at))
            .collect();
        rows.sort_unstable();
        rows
    };
    let mut pairs = Vec::new();
    for block in 0..blocks {
        let mask = mask_of(block);
        let (left, right) = (sorted(left, mask), sorted(right, mask));
        let mut rest = &right[..];
        for group in left.chunk_by(|a, b| a.0 == b.0) {
            let key = group[0].0;
            rest = &rest[rest.partition_point(|row| row.0 < key)..];
            let (same, after) = rest.split_at(rest.partition_point(|row| row.0 == key));
            rest = after;
            for &(_, a, i) in group {
                for &(_, b, j) in same {
                    let distance = (a ^ b).count_ones();
                    // A pair that agrees on several runs is reported by the first.
                    if distance <= max_distance
                        && (0..block).all(|earlier| (a ^ b) & mask_of(earlier) != 0)
                    {
                        pairs.push((i, j, distance));
                    }
                }
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use rand::{Rng, RngCore, SeedableRng};

    use super::*;

    #[test]
    fn both_ways_find_the_same_pairs() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let left: Vec<u64> = (0..400).map(|_| rng.next_u64()).collect();
        let right: Vec<u64> = (0..1000)
            .map(|at| {
                (0..at % 14).fold(left[rng.random_range(0..400)], |value, _| {
                    value ^ 1 << rng.random_range(0..64)
                })
            })
            .collect();
        for k in [0, 1, 3, 6, 10, 16] {
            let pairs = pairs_within(&left, &right, k);
            assert_eq!(pairs_by_blocks(&left, &right, k), pairs);
            let inside: Vec<Pair> = pairs_by_blocks(&right, &right, k)
                .into_iter()
                .filter(|p| p.0 < p.1)
                .collect();
            assert_eq!(inside, pairs_inside(&right, k));
        }
    }
}
