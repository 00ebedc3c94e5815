//! Measures which pairs within each distance a verification by sketches of each size would keep.

use std::sync::Arc;

use serde::Serialize;
use simhash::sketch::{differing_bits, similarity_by_bits};
use simhash::{Fingerprinter, Measure, Model, SketchBits, Sketcher};

use super::weighed::{ByK, Near, Sums, f1, weights};
use crate::profile::default_similarity;

/// The sizes that are compared.
const SIZES: [SketchBits; 3] = [SketchBits::Bits64, SketchBits::Bits128, SketchBits::Bits256];
/// The least and the greatest `--min-similarity` that is tried, in steps of 0.005.
const PERMILLES: std::ops::RangeInclusive<u32> = 500..=950;
const STEP: usize = 5;

/// A verification by sketches of the pairs within one distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtSketch {
    pub bits: u32,
    /// The `--min-similarity` with the greatest F1, in steps of 0.005.
    pub min_similarity: f64,
    /// Pairs that it keeps.
    pub pairs: usize,
    /// Recall: the mean, over the documents with pairs that should be found, of the share that is kept.
    pub recall: f64,
    /// Precision: the share of the pairs kept that should be found, each document counted alike.
    pub precision: f64,
    /// The harmonic mean of both.
    pub f1: f64,
}

/// The sketches of a sample's texts. They depend on the features alone, not on their weights.
pub(super) struct Sketches {
    /// For each size, the sketches of all texts, one after another.
    of_size: [Vec<u8>; SIZES.len()],
}

impl Sketches {
    /// Makes sketches of every size of `texts`, with the features of `model`.
    pub(super) fn new(texts: &[String], model: &Model) -> Self {
        let mut fingerprinter = Fingerprinter::new(model.clone());
        let mut sketchers = SIZES.map(Sketcher::new);
        let mut of_size = SIZES.map(|_| Vec::new());
        let mut hashes = Vec::new();
        for text in texts {
            hashes.clear();
            fingerprinter.for_each_feature(text, |hash, _| hashes.push(hash));
            for (sketcher, sketches) in sketchers.iter_mut().flatten().zip(&mut of_size) {
                sketcher.sketch(&hashes, sketches);
            }
        }
        Self { of_size }
    }
}

/// The sketches of a sample and, under one spec, sums over its pairs.
pub(super) struct Sketched {
    sketches: Arc<Sketches>,
    /// For each size, by the bits in which sketches differ, and by k.
    histograms: [Vec<ByK>; SIZES.len()],
}

impl Sketched {
    pub(super) fn new(sketches: Arc<Sketches>) -> Self {
        Self {
            sketches,
            histograms: SIZES.map(|size| vec![ByK::default(); size.bits() as usize + 1]),
        }
    }

    /// Calls `each` with the sums of each size and k to which the pair of the texts `a` and `b` belongs, and with what it counts
    /// for at that k.
    pub(super) fn for_each_sum(
        &mut self,
        near: &Near,
        (a, b): (usize, usize),
        distance: usize,
        mut each: impl FnMut(&mut Sums, f64),
    ) {
        let of_sizes = SIZES.iter().zip(&self.sketches.of_size);
        for ((size, sketches), histogram) in of_sizes.zip(&mut self.histograms) {
            let sketch = |at: usize| &sketches[at * size.bytes()..][..size.bytes()];
            let sums = &mut histogram[differing_bits(sketch(a), sketch(b)) as usize];
            weights(near, (a, b), distance).for_each(|(k, weight)| each(&mut sums[k], weight));
        }
    }

    /// For each size, what the best verification keeps of the pairs within `k` bits; `documents` have pairs that should be
    /// found. Empty if there are none.
    pub(super) fn at_distance(&self, k: u32, documents: usize) -> Vec<AtSketch> {
        if documents == 0 {
            return Vec::new();
        }
        let sizes = SIZES.into_iter().zip(&self.histograms);
        let best = sizes.filter_map(|(size, histogram)| {
            let within = within(histogram, k);
            let kept = PERMILLES
                .step_by(STEP)
                .map(|least| kept(&within, size, f64::from(least) / 1000.0, documents));
            // Of equally good ones, the nearest to the default.
            let default = default_similarity(Measure::Sketch);
            let away = |one: &AtSketch| (one.min_similarity - default).abs();
            kept.max_by(|a, b| a.f1.total_cmp(&b.f1).then(away(b).total_cmp(&away(a))))
        });
        best.collect()
    }

    /// What a verification by sketches of `size` from `min_similarity` on keeps of the pairs within `k` bits.
    pub(super) fn at(
        &self,
        size: SketchBits,
        min_similarity: f64,
        k: u32,
        documents: usize,
    ) -> Option<AtSketch> {
        let mut sizes = SIZES.into_iter().zip(&self.histograms);
        let (_, histogram) = sizes.find(|(other, _)| *other == size)?;
        Some(kept(&within(histogram, k), size, min_similarity, documents))
    }
}

/// The sums within `k` bits, by the bits in which sketches differ.
fn within(histogram: &[ByK], k: u32) -> Vec<Sums> {
    histogram.iter().map(|by_k| by_k[k as usize]).collect()
}

/// What is kept from `min_similarity` on; `sums` are by the bits in which sketches of `size` differ.
fn kept(sums: &[Sums], size: SketchBits, min_similarity: f64, documents: usize) -> AtSketch {
    let differing = (0..).zip(sums);
    let similar = differing
        .filter(|(differing, _)| similarity_by_bits(*differing, size.bits()) >= min_similarity);
    let total = Sums::total(similar.map(|(_, sums)| sums));
    let (recall, precision) = (total.recall(documents), total.precision());
    AtSketch {
        bits: size.bits(),
        min_similarity,
        pairs: total.pairs,
        recall,
        precision,
        f1: f1(recall, precision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_bound_has_the_greatest_f1() {
        // 8 bits differ of 64: 0.75. Ten documents have one pair each that should be found; the pairs of most have other near
        // fingerprints beside them.
        let mut sums = vec![Sums::default(); 65];
        for differing in [8, 8, 8, 8, 20] {
            sums[differing].add(1.0);
            sums[differing].add_wanted(1.0, 2.0);
        }
        (0..2).for_each(|_| sums[8].add(0.5));
        (0..40).for_each(|_| sums[20].add(0.5));
        let found = kept(&sums, SketchBits::Bits64, 0.75, 10);
        assert_eq!((found.pairs, found.recall, found.precision), (6, 0.8, 0.8));
        assert_eq!(kept(&sums, SketchBits::Bits64, 0.3, 10).recall, 1.0);
        let at_two = |sums: &Sums| {
            let mut at = ByK::default();
            at[2] = *sums;
            at
        };
        let histogram = sums.iter().map(at_two).collect();
        let sketched = Sketched {
            sketches: Arc::new(Sketches {
                of_size: Default::default(),
            }),
            histograms: [histogram, Vec::new(), Vec::new()],
        };
        let best = sketched.at_distance(2, 10)[0];
        assert_eq!(best.min_similarity, 0.75);
        assert!((best.f1 - 0.8).abs() < 1e-9);
        assert_eq!(sketched.at_distance(1, 10)[0].recall, 0.0);
        assert_eq!(sketched.at(SketchBits::Bits64, 0.75, 2, 10), Some(best));
    }
}
