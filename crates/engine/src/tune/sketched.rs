//! Measures which pairs within each distance a verification by sketches of each size would keep.

use std::sync::Arc;

use serde::Serialize;
use simhash::sketch::{differing_bits, similarity_by_bits};
use simhash::{Fingerprinter, Model, SketchBits, Sketcher};

/// The sizes that are compared.
const SIZES: [SketchBits; 3] = [SketchBits::Bits64, SketchBits::Bits128, SketchBits::Bits256];
/// The largest distance of a pair whose sketches are compared.
pub(super) const MAX_DISTANCE: usize = 16;
/// A verification by sketches keeps at least this share of the pairs that should be found.
const KEPT: f64 = 0.99;

/// A verification by sketches of the pairs within one distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtSketch {
    /// Bits of a sketch.
    pub bits: u32,
    /// The largest `--min-similarity`, in steps of 0.01, with which the verification keeps 99 % of
    /// the pairs found that should be found.
    pub min_similarity: f64,
    /// Pairs that it keeps.
    pub pairs: usize,
    /// Recall: the pairs kept that should be found, divided by [`super::Tuned::wanted`].
    pub recall: f64,
    /// Precision: the pairs kept that should be found, divided by all pairs kept.
    pub precision: f64,
}

/// Numbers of pairs, by the bits in which their sketches of one size differ, and by distance.
struct Histogram {
    all: Vec<[usize; MAX_DISTANCE + 1]>,
    wanted: Vec<[usize; MAX_DISTANCE + 1]>,
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

/// The sketches of a sample, and the histogram of each size under one spec.
pub(super) struct Sketched {
    sketches: Arc<Sketches>,
    histograms: [Histogram; SIZES.len()],
}

impl Sketched {
    /// Empty histograms.
    pub(super) fn new(sketches: Arc<Sketches>) -> Self {
        let histograms = SIZES.map(|size| {
            let empty = vec![[0; MAX_DISTANCE + 1]; size.bits() as usize + 1];
            Histogram {
                all: empty.clone(),
                wanted: empty,
            }
        });
        Self {
            sketches,
            histograms,
        }
    }

    /// Counts the pair of the texts `a` and `b`.
    pub(super) fn add(&mut self, a: usize, b: usize, distance: usize) {
        self.count(a, b, distance, |histogram| &mut histogram.all);
    }

    /// Counts a pair that should be found, which was added before.
    pub(super) fn add_wanted(&mut self, a: usize, b: usize, distance: usize) {
        self.count(a, b, distance, |histogram| &mut histogram.wanted);
    }

    fn count(
        &mut self,
        a: usize,
        b: usize,
        distance: usize,
        counts: fn(&mut Histogram) -> &mut Vec<[usize; MAX_DISTANCE + 1]>,
    ) {
        if distance > MAX_DISTANCE {
            return;
        }
        let each = SIZES.iter().zip(&self.sketches.of_size);
        for ((size, sketches), histogram) in each.zip(&mut self.histograms) {
            let sketch = |at: usize| &sketches[at * size.bytes()..][..size.bytes()];
            let differing = differing_bits(sketch(a), sketch(b));
            counts(histogram)[differing as usize][distance] += 1;
        }
    }

    /// For each size, what a verification would keep of the pairs within `k` bits, if `wanted`
    /// pairs should be found in all. Empty if none of the pairs within `k` bits should be found.
    pub(super) fn at_distance(&self, k: u32, wanted: usize) -> Vec<AtSketch> {
        let sizes = SIZES.into_iter().zip(&self.histograms);
        let each = sizes.filter_map(|(size, histogram)| histogram.at_distance(size, k, wanted));
        each.collect()
    }
}

impl Histogram {
    fn at_distance(&self, size: SketchBits, k: u32, wanted: usize) -> Option<AtSketch> {
        let within =
            |counts: &[usize; MAX_DISTANCE + 1]| -> usize { counts[..=k as usize].iter().sum() };
        let kept_by = |counts: &[[usize; MAX_DISTANCE + 1]], percent: u32| -> usize {
            let least = f64::from(percent) / 100.0;
            let differing = (0..).zip(counts);
            let kept = differing
                .filter(|(differing, _)| similarity_by_bits(*differing, size.bits()) >= least);
            kept.map(|(_, counts)| within(counts)).sum()
        };
        let found = kept_by(&self.wanted, 0);
        if found == 0 {
            return None;
        }
        let is_enough =
            |percent: &u32| kept_by(&self.wanted, *percent) as f64 >= KEPT * found as f64;
        let percent = (0..=100).rev().find(is_enough).unwrap_or(0);
        let (pairs, right) = (kept_by(&self.all, percent), kept_by(&self.wanted, percent));
        Some(AtSketch {
            bits: size.bits(),
            min_similarity: f64::from(percent) / 100.0,
            pairs,
            recall: super::share(right, wanted),
            precision: super::share(right, pairs),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_keeps_what_should_be_found() {
        // 8 bits differ of 64: 0.75. One wanted pair in 200 differs in 20 bits.
        let mut all = vec![[0; MAX_DISTANCE + 1]; 65];
        let mut wanted = all.clone();
        (wanted[8][2], wanted[20][5]) = (199, 1);
        (all[8][2], all[20][5], all[8][9], all[30][2]) = (220, 1, 1000, 500);
        let histogram = Histogram { all, wanted };
        let at = |k| histogram.at_distance(SketchBits::Bits64, k, 400).unwrap();
        let expected = AtSketch {
            bits: 64,
            min_similarity: 0.75,
            pairs: 220,
            recall: 199.0 / 400.0,
            precision: 199.0 / 220.0,
        };
        assert_eq!(at(5), expected);
        assert_eq!(at(9).pairs, 1220);
        assert!(histogram.at_distance(SketchBits::Bits64, 1, 400).is_none());
    }
}
