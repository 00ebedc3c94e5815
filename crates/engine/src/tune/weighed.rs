//! Recall and precision in documents, not in pairs: a thousand copies of one page make half a million pairs, and are one case.
//!
//! A document with n pairs that should be found counts for 1/n with each of them, so the recall is the mean of the documents'.
//! In precision, each document counts alike in the same way with the pairs of near fingerprints that it has.

use super::sketched::MAX_DISTANCE;

/// What a pair of near fingerprints counts for, as by [`weight`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PairWeight {
    /// Among all pairs of near fingerprints.
    pub(super) near: f64,
    /// Among the pairs that should be found; 0 for others.
    pub(super) wanted: f64,
}

/// Sums over pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    /// Pairs.
    pub(super) pairs: usize,
    /// The weights of the pairs among all near ones.
    near: f64,
    /// The same of the pairs that should be found.
    right: f64,
    /// The weights of these among the pairs that should be found.
    recalled: f64,
}

/// Sums over pairs by the distance of their fingerprints.
pub(super) type ByDistance = [Sums; MAX_DISTANCE + 1];

impl Sums {
    /// Adds a pair as one that need not be found.
    pub(super) fn add(&mut self, weight: PairWeight) {
        self.pairs += 1;
        self.near += weight.near;
    }

    /// Notes of a pair that was added that it should be found.
    pub(super) fn add_wanted(&mut self, weight: PairWeight) {
        self.right += weight.near;
        self.recalled += weight.wanted;
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
        match self.near > 0.0 {
            true => (self.right / self.near).min(1.0),
            false => 1.0,
        }
    }
}

/// The harmonic mean of recall and precision.
pub(super) fn f1(recall: f64, precision: f64) -> f64 {
    match recall + precision > 0.0 {
        true => 2.0 * recall * precision / (recall + precision),
        false => 0.0,
    }
}

/// What a pair of the documents `a` and `b` counts for, by the numbers of pairs of each document.
pub(super) fn weight(counts: &[u32], a: usize, b: usize) -> f64 {
    [a, b]
        .map(|at| 1.0 / f64::from(counts[at].max(1)))
        .iter()
        .sum()
}
