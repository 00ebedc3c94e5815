//! The definition of a hit, in a double loop: what every other way of finding hits is checked against.

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
