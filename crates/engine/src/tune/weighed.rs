//! Recall and precision in documents, not in pairs: a thousand copies of one page make half a million pairs, and are one case.
//!
//! A document with n pairs that should be found counts for 1/n with each of them, so the recall is the mean of the documents'.
//! Precision at k weighs pairs in the same way: a document with n pairs within k bits counts for 1/n with each of them.

/// The largest distance of a pair that counts.
pub(super) const MAX_DISTANCE: usize = 16;

/// Sums over pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) pairs: usize,
    /// The weights of the pairs among all near ones.
    near: f64,
    /// The same of the pairs that should be found.
    right: f64,
    /// The weights of these among the pairs that should be found.
    recalled: f64,
}

/// For each k, sums over the pairs within k bits.
pub(super) type ByK = [Sums; MAX_DISTANCE + 1];

/// For each k, the number of each text's pairs within k bits.
pub(super) type Near = Vec<[u32; MAX_DISTANCE + 1]>;

impl Sums {
    /// Adds a pair that counts for `near` among all near ones, as one that need not be found.
    pub(super) fn add(&mut self, near: f64) {
        self.pairs += 1;
        self.near += near;
    }

    /// Notes of a pair that was added that it should be found, and counts for `wanted` among such pairs.
    pub(super) fn add_wanted(&mut self, near: f64, wanted: f64) {
        self.right += near;
        self.recalled += wanted;
    }

    /// The sums of several groups of pairs.
    pub(super) fn total<'s>(sums: impl IntoIterator<Item = &'s Self>) -> Self {
        sums.into_iter().fold(Self::default(), |total, sums| Self {
            pairs: total.pairs + sums.pairs,
            near: total.near + sums.near,
            right: total.right + sums.right,
            recalled: total.recalled + sums.recalled,
        })
    }

    /// The mean share of its wanted pairs that a document has among these; `documents` have such pairs. 1 if none has.
    pub(super) fn recall(&self, documents: usize) -> f64 {
        match documents {
            0 => 1.0,
            // Sums of thirds and the like.
            documents => (self.recalled / documents as f64).min(1.0),
        }
    }

    /// The share of the pairs that should be found; 1 without pairs.
    pub(super) fn precision(&self) -> f64 {
        if self.near > 0.0 {
            (self.right / self.near).min(1.0)
        } else {
            1.0
        }
    }
}

/// The harmonic mean of recall and precision.
pub(super) fn f1(recall: f64, precision: f64) -> f64 {
    if recall + precision > 0.0 {
        2.0 * recall * precision / (recall + precision)
    } else {
        0.0
    }
}

/// What a pair of two documents counts for, by the numbers of pairs of each.
pub(super) fn weight(a: u32, b: u32) -> f64 {
    [a, b]
        .map(|pairs| 1.0 / f64::from(pairs.max(1)))
        .iter()
        .sum()
}

/// What the pair of the texts `a` and `b` counts for among the near ones at each k from `distance` on.
pub(super) fn weights(
    near: &Near,
    (a, b): (usize, usize),
    distance: usize,
) -> impl Iterator<Item = (usize, f64)> {
    let pair = (distance..)
        .zip(&near[a][distance..])
        .zip(&near[b][distance..]);
    pair.map(|((k, of_a), of_b)| (k, weight(*of_a, *of_b)))
}
