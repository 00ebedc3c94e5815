//! Verification by sketches, as `run --verify sketch` does it: which of the pairs that fingerprints find it keeps.

use std::time::Instant;

use simhash::sketch::estimate;
use simhash::{Fingerprinter, SketchBits};

use super::corpora::Corpora;
use super::distances::MAX_DISTANCE;
use super::measured::Measured;
use crate::threads;
use crate::truth::Pair;

#[derive(Debug, clap::Args)]
pub struct SketchArgs {
    /// Also verify the pairs of each spec whose name contains this text, by sketches
    #[arg(long, value_name = "NAME", default_value = "words+cjk-grams")]
    sketched: String,
    /// Sizes of the sketches, in bits; 0 leaves them out
    #[arg(long, value_name = "BITS", value_delimiter = ',', default_values_t = SIZES)]
    sketches: Vec<SketchBits>,
    /// Estimated similarities from which on a verification keeps a pair
    #[arg(long, value_name = "SIMILARITY", value_delimiter = ',', default_values_t = MIN_SIMILARITIES)]
    min_similarities: Vec<f64>,
}

/// Sizes that are measured by default.
const SIZES: [SketchBits; 3] = [SketchBits::Bits64, SketchBits::Bits128, SketchBits::Bits256];
/// The default of `run --verify sketch`.
const MIN_SIMILARITIES: [f64; 1] = [0.75];

impl SketchArgs {
    /// Returns a verification for each size of sketch, none if the spec of this name is not to be verified.
    pub fn verifications(&self, spec: &str) -> Vec<Verification> {
        if !spec.contains(&self.sketched) {
            return Vec::new();
        }
        let sizes = self.sketches.iter().filter(|size| !size.is_none());
        let verifications = sizes.map(|&size| Verification {
            size,
            min_similarities: self.min_similarities.clone(),
            similar: Vec::new(),
            seconds: Vec::new(),
        });
        verifications.collect()
    }
}

/// The pairs of a spec that sketches of one size show to be similar.
pub struct Verification {
    pub size: SketchBits,
    min_similarities: Vec<f64>,
    /// For each corpus, the pairs that reach the least of `min_similarities`.
    similar: Vec<Vec<SimilarPair>>,
    /// For each corpus, the seconds in which fingerprints and sketches are made.
    seconds: Vec<f64>,
}

/// A pair within [`MAX_DISTANCE`] bits.
struct SimilarPair {
    pair: Pair,
    distance: u32,
    /// As the sketches estimate it.
    similarity: f64,
}

impl Verification {
    /// Verifies the pairs of the next corpus. `fingerprinter` makes the same fingerprints as before, and sketches
    /// of [`Verification::size`].
    pub fn add(
        &mut self,
        fingerprinter: &mut Fingerprinter,
        texts: &[String],
        fingerprints: &[Option<u64>],
        runs: usize,
    ) {
        let (sketches, seconds) = Sketches::make(fingerprinter, texts, runs);
        let least = self.min_similarities.iter().copied();
        let least = least.fold(f64::INFINITY, f64::min);
        self.similar
            .push(sketches.similar_pairs(fingerprints, least));
        self.seconds.push(seconds);
    }

    /// Returns a row for each minimum similarity; `unverified` is the row of all pairs of the spec.
    pub fn rows(&self, unverified: &Measured, corpora: &Corpora) -> Vec<Measured> {
        let bits = self.size.bits();
        let rows = self.min_similarities.iter().map(|&least| {
            let kept: Vec<Vec<(Pair, u32)>> = self
                .similar
                .iter()
                .map(|similar| {
                    let kept = similar.iter().filter(|pair| pair.similarity >= least);
                    kept.map(|pair| (pair.pair, pair.distance)).collect()
                })
                .collect();
            let name = format!("{}, sketch {bits} >= {least}", unverified.name);
            let mut choices = unverified.choices.clone();
            choices["sketch"] = bits.into();
            choices["min_similarity"] = least.into();
            unverified.verified(name, choices, corpora, &kept, &self.seconds)
        });
        rows.collect()
    }
}

/// The sketches of the documents of a corpus.
struct Sketches {
    /// The bytes of a sketch.
    bytes: usize,
    /// All sketches, one after another; a document without a fingerprint has zeros.
    all: Vec<u8>,
}

impl Sketches {
    /// Makes fingerprints and sketches on one core, several times; returns the sketches, and the seconds of the
    /// fastest run.
    fn make(fingerprinter: &mut Fingerprinter, texts: &[String], runs: usize) -> (Self, f64) {
        let bytes = fingerprinter.spec().sketch.bytes();
        let mut all = Vec::new();
        let mut best = f64::INFINITY;
        for _ in 0..runs.max(1) {
            all.clear();
            let begin = Instant::now();
            for text in texts {
                let end = all.len() + bytes;
                std::hint::black_box(fingerprinter.fingerprint_and_sketch(text, &mut all));
                all.resize(end, 0);
            }
            best = best.min(begin.elapsed().as_secs_f64());
        }
        (Self { bytes, all }, best)
    }

    fn sketch(&self, document: u32) -> &[u8] {
        &self.all[document as usize * self.bytes..][..self.bytes]
    }

    /// Returns the pairs within [`MAX_DISTANCE`] bits whose estimated similarity is at least `least`, in no
    /// particular order.
    fn similar_pairs(&self, fingerprints: &[Option<u64>], least: f64) -> Vec<SimilarPair> {
        let documents = (0u32..).zip(fingerprints);
        let documents: Vec<(u32, u64)> = documents
            .filter_map(|(document, fingerprint)| Some((document, (*fingerprint)?)))
            .collect();
        let threads = threads::cores();
        let similar = threads::run(threads, |worker| {
            let mut similar = Vec::new();
            for at in (worker..documents.len()).step_by(threads) {
                let (a, x) = documents[at];
                for &(b, y) in &documents[at + 1..] {
                    let distance = (x ^ y).count_ones();
                    if distance > MAX_DISTANCE {
                        continue;
                    }
                    let similarity = estimate(self.sketch(a), self.sketch(b));
                    if similarity >= least {
                        similar.push(SimilarPair {
                            pair: (a, b),
                            distance,
                            similarity,
                        });
                    }
                }
            }
            similar
        });
        similar.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use simhash::{Model, Spec};

    use super::*;

    #[test]
    fn similar_pairs_are_those_that_a_naive_loop_keeps() {
        // Each text shares all words but one with the next; the last has no fingerprint.
        let text = |first: usize| -> String {
            let words = (first..first + 60).map(|word| format!("word{word}"));
            words.collect::<Vec<_>>().join(" ")
        };
        let mut texts: Vec<String> = (0..40).map(text).collect();
        texts.push(String::new());
        for size in SIZES {
            let spec = Spec {
                sketch: size,
                ..Spec::default()
            };
            let mut fingerprinter = Fingerprinter::new(Model::plain(spec).expect("no tables"));
            let made = texts.iter().map(|text| {
                let mut sketch = Vec::new();
                let fingerprint = fingerprinter.fingerprint_and_sketch(text, &mut sketch);
                (fingerprint, sketch)
            });
            let (fingerprints, sketches): (Vec<_>, Vec<_>) = made.unzip();
            assert_eq!(fingerprints.last(), Some(&None));

            let (made, _) = Sketches::make(&mut fingerprinter, &texts, 2);
            for least in [0.0, 0.5, 0.9] {
                let mut expected = Vec::new();
                for (a, x) in fingerprints.iter().enumerate() {
                    for (b, y) in fingerprints.iter().enumerate().skip(a + 1) {
                        let (Some(x), Some(y)) = (x, y) else { continue };
                        let distance = (x ^ y).count_ones();
                        let similarity = estimate(&sketches[a], &sketches[b]);
                        if distance <= MAX_DISTANCE && similarity >= least {
                            expected.push(((a as u32, b as u32), distance));
                        }
                    }
                }
                assert!(!expected.is_empty());
                let similar = made.similar_pairs(&fingerprints, least);
                let mut found: Vec<_> = similar
                    .iter()
                    .map(|similar| (similar.pair, similar.distance))
                    .collect();
                found.sort_unstable();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn only_the_named_specs_are_verified() {
        let args = SketchArgs {
            sketched: "log-tf".to_owned(),
            sketches: vec![SketchBits::None, SketchBits::Bits128],
            min_similarities: vec![0.75],
        };
        let sizes = |spec: &str| -> Vec<SketchBits> {
            let verifications = args.verifications(spec);
            verifications.iter().map(|sketched| sketched.size).collect()
        };
        assert_eq!(sizes("words, log-tf·idf"), [SketchBits::Bits128]);
        assert!(sizes("words, sqrt-tf").is_empty());
    }
}
