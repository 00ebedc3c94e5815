//! Reference implementations of the join: a double loop that is the definition of a pair, and a join by sorting for
//! sets that are too large for the loop.

/// The indexes of two fingerprints, and their distance.
pub type Pair = (usize, usize, u32);

/// Returns every `(i, j, distance)` where `left[i]` and `right[j]` differ in at most `max_distance` bits, ascending.
#[must_use]
pub fn pairs_within(left: &[u64], right: &[u64], max_distance: u32) -> Vec<Pair> {
    double_loop(left, right, |_| 0, max_distance)
}

/// Returns every `(i, j, distance)` where `i < j` and `set[i]` and `set[j]` differ in at most `max_distance` bits,
/// ascending.
#[must_use]
pub fn pairs_inside(set: &[u64], max_distance: u32) -> Vec<Pair> {
    double_loop(set, set, |i| i + 1, max_distance)
}

/// The pairs of `left[i]` and `right[j]`, with j from `first` of i on.
fn double_loop(
    left: &[u64],
    right: &[u64],
    first: impl Fn(usize) -> usize,
    max_distance: u32,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, a) in left.iter().enumerate() {
        let first = first(i);
        for (j, b) in (first..).zip(&right[first..]) {
            let distance = (a ^ b).count_ones();
            if distance <= max_distance {
                pairs.push((i, j, distance));
            }
        }
    }
    pairs
}

/// Decides on `documents` documents in turn: keeps each one, unless it forms a pair with a kept
/// document before it. Returns for each document whether it is kept.
#[must_use]
pub fn kept_in_turn(documents: usize, is_pair: impl Fn(usize, usize) -> bool) -> Vec<bool> {
    let mut kept: Vec<bool> = Vec::new();
    for document in 0..documents {
        let is_duplicate = (0..document).any(|other| kept[other] && is_pair(other, document));
        kept.push(!is_duplicate);
    }
    kept
}

/// Returns the pairs of [`pairs_within`], for large sets.
///
/// Cuts the 64 bits into `max_distance + 1` blocks, and compares fingerprints that agree on a
/// block. No pair is missed: fingerprints that differ in every block differ in more than
/// `max_distance` bits. The code is simple rather than fast, and shares nothing with the join. Up
/// to a `max_distance` of about 7, blocks are long enough that few fingerprints agree on one.
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
                    // Only the first of the blocks on which a pair agrees reports it.
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
    fn blocks_and_double_loop_find_the_same_pairs() {
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
