//! Makes fingerprints of texts under one model, with buffers that are reused from text to text.

use std::collections::HashSet;

use crate::accumulate;
use crate::count::Count;
use crate::isa::Kernel;
use crate::model::Model;
use crate::normalize::Markup;
use crate::sketch::Sketcher;
use crate::spec::{Hash, Spec};
use crate::text::{Feature, Folded};
use crate::tokenize::{Extract as _, Extractor, TakeFeature};
use crate::weight::Summed;

/// Makes fingerprints under one [`Model`]. Cheap to create: it shares the model's tables and owns only buffers.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    model: Model,
    kernel: Kernel,
    extractor: Extractor,
    stripped: String,
    folded: Folded,
    hashes: Vec<u64>,
    weights: Vec<u32>,
    /// The weights of features that occur 0 to 15 times, without idf.
    weights_of_few: [u32; 16],
    count: Count,
    /// Makes sketches, if the spec asks for them.
    sketcher: Option<Sketcher>,
}

/// A distinct feature of a text, with its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedFeature {
    /// The feature.
    pub feature: String,
    /// Its hash.
    pub hash: u64,
    /// The number of its occurrences in the text.
    pub occurrences: u32,
    /// The weight of all its occurrences together.
    pub weight: u64,
}

impl Fingerprinter {
    /// A fingerprinter for `model`, with the fastest instructions of this machine.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self::with_kernel(model, Kernel::detect())
    }

    /// A fingerprinter for `model`, with the instructions of `kernel`.
    #[must_use]
    pub fn with_kernel(model: Model, kernel: Kernel) -> Self {
        let spec = model.spec();
        let stop_words = model.stop_word_hashes();
        let extractor = Extractor::new(spec.tokenizer, kernel, stop_words, spec.seed);
        let sketcher = Sketcher::new(spec.sketch);
        let weights_of_few = std::array::from_fn(|tf| spec.weight.weigh(tf as u32));
        Self {
            model,
            kernel,
            extractor,
            stripped: String::new(),
            folded: Folded::default(),
            hashes: Vec::new(),
            weights: Vec::new(),
            weights_of_few,
            count: Count::default(),
            sketcher,
        }
    }

    /// The spec of the fingerprints.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        self.model.spec()
    }

    /// The fingerprint of `text`, or `None` if it has fewer distinct features than [`Spec::min_features`]. Such texts (an
    /// empty page, a bare "404") would be near-duplicates of each other without having anything in common.
    pub fn fingerprint(&mut self, text: &str) -> Option<u64> {
        let hashes = self.hash_features(text);
        let fingerprint = self.fingerprint_of_hashes(&hashes);
        self.hashes = hashes;
        fingerprint
    }

    /// Returns the fingerprint of `text`, and appends its sketch to `sketch`,
    /// [`crate::SketchBits::bytes`] bytes.
    ///
    /// Appends nothing if the text has no fingerprint or the spec has no sketches.
    pub fn fingerprint_and_sketch(&mut self, text: &str, sketch: &mut Vec<u8>) -> Option<u64> {
        let hashes = self.hash_features(text);
        let fingerprint = self.fingerprint_of_hashes(&hashes);
        if let (Some(_), Some(sketcher)) = (fingerprint, &mut self.sketcher) {
            sketcher.sketch(&hashes, sketch);
        }
        self.hashes = hashes;
        fingerprint
    }

    /// The number of features of the text that was fingerprinted last. A feature counts as often as it occurs.
    #[must_use]
    pub fn last_features(&self) -> usize {
        self.hashes.len()
    }

    /// Hashes the features of `text`, in the order of the text, once per occurrence. Takes the buffer
    /// `self.hashes` for them, which the caller puts back.
    fn hash_features(&mut self, text: &str) -> Vec<u64> {
        let seed = self.model.spec().seed;
        let Hash::Murmur3X64128Low64 = self.model.spec().hash;
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        let mut hashed = Hashed { hashes, seed };
        self.extract(text, &mut hashed);
        hashed.hashes
    }

    /// The fingerprint of a text whose features have these hashes.
    fn fingerprint_of_hashes(&mut self, hashes: &[u64]) -> Option<u64> {
        let (spec, kernel) = (self.model.spec(), self.kernel);
        let enough = spec.min_features as usize;
        match (spec.weight.summed(), self.model.idf()) {
            (Summed::Occurrences, None) => has_distinct(hashes, enough)
                .then(|| accumulate::unweighted_fingerprint(kernel, hashes)),
            (Summed::Occurrences, Some(idf)) => has_distinct(hashes, enough).then(|| {
                idf.weights(hashes, &mut self.weights);
                accumulate::weighted_fingerprint(kernel, hashes, &self.weights)
            }),
            (Summed::Presences, None) => {
                self.count.fill(hashes);
                let distinct = &self.count.distinct;
                (distinct.len() >= enough)
                    .then(|| accumulate::unweighted_fingerprint(kernel, distinct))
            }
            (Summed::Presences | Summed::Weights, _) => {
                self.count.fill(hashes);
                weigh(
                    &self.model,
                    &self.weights_of_few,
                    &self.count,
                    &mut self.weights,
                );
                let distinct = &self.count.distinct;
                (distinct.len() >= enough)
                    .then(|| accumulate::weighted_fingerprint(kernel, distinct, &self.weights))
            }
        }
    }

    /// The hashes of the distinct features of `text`, in the order of their first occurrence.
    pub fn distinct_hashes(&mut self, text: &str) -> &[u64] {
        let hashes = self.hash_features(text);
        self.count.fill(&hashes);
        self.hashes = hashes;
        &self.count.distinct
    }

    /// Calls `each` with the hash and the text of every feature of `text`, in the order of the text, once per occurrence.
    pub fn for_each_feature(&mut self, text: &str, mut each: impl FnMut(u64, &str)) {
        let seed = self.model.spec().seed;
        self.extract(text, &mut |feature: Feature<'_>| {
            each(feature.hash(seed), feature.text());
        });
    }

    /// The distinct features of a text with their weights, in the order of their first occurrence.
    pub fn features(&mut self, text: &str) -> Vec<WeightedFeature> {
        let seed = self.model.spec().seed;
        let (mut hashes, mut names) = (Vec::new(), Vec::new());
        let mut known = HashSet::new();
        self.extract(text, &mut |feature: Feature<'_>| {
            let hash = feature.hash(seed);
            hashes.push(hash);
            if known.insert(hash) {
                names.push(feature.text().to_owned());
            }
        });
        self.count.fill(&hashes);
        weigh(
            &self.model,
            &self.weights_of_few,
            &self.count,
            &mut self.weights,
        );
        let (count, weights) = (&self.count, &self.weights);
        let each = names.into_iter().enumerate();
        each.map(|(at, feature)| WeightedFeature {
            feature,
            hash: count.distinct[at],
            occurrences: count.occurrences[at],
            weight: match self.model.spec().weight.summed() {
                Summed::Occurrences => u64::from(weights[at]) * u64::from(count.occurrences[at]),
                Summed::Presences | Summed::Weights => u64::from(weights[at]),
            },
        })
        .collect()
    }

    /// Gives `each` every feature of `text`.
    fn extract(&mut self, text: &str, each: &mut impl TakeFeature) {
        let spec = self.model.spec();
        let text = match spec.markup {
            Markup::None => text,
            markup => {
                self.stripped.clear();
                markup.strip(text, &mut self.stripped);
                &self.stripped
            }
        };
        spec.normalize.fold(text, &mut self.folded);
        self.extractor.extract(&self.folded, each);
    }
}

/// Hashes features.
struct Hashed {
    hashes: Vec<u64>,
    seed: u32,
}

impl TakeFeature for Hashed {
    #[inline(always)]
    fn take(&mut self, feature: Feature<'_>) {
        self.hashes.push(feature.hash(self.seed));
    }
}

/// Fills `weights` with the weight of each distinct feature, below 2²⁷. For [`Summed::Occurrences`], it is the weight of one
/// occurrence. `weights_of_few` has the weights of features that occur 0 to 15 times, without idf.
fn weigh(model: &Model, weights_of_few: &[u32; 16], count: &Count, weights: &mut Vec<u32>) {
    let weight = model.spec().weight;
    match model.idf() {
        Some(idf) => idf.weights(&count.distinct, weights),
        None => {
            weights.clear();
            weights.resize(count.distinct.len(), 1);
        }
    }
    if let Summed::Presences | Summed::Weights = weight.summed() {
        for (sum, &tf) in weights.iter_mut().zip(&count.occurrences) {
            let by_tf = weights_of_few.get(tf as usize).copied();
            // Does not overflow: a weight below 2¹⁵ times an idf below 2¹².
            *sum *= by_tf.unwrap_or_else(|| weight.weigh(tf));
        }
    }
    weight.apply_levels(weights);
}

/// Whether `hashes` has at least `wanted` distinct values; stops as soon as it has found them.
fn has_distinct(hashes: &[u64], wanted: usize) -> bool {
    if wanted <= 1 {
        return hashes.len() >= wanted;
    }
    let mut seen = Vec::with_capacity(wanted.min(hashes.len()));
    for hash in hashes {
        if !seen.contains(hash) {
            seen.push(*hash);
            if seen.len() == wanted {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_of_the_last_text_are_counted() {
        let model = Model::plain(Spec::default()).unwrap();
        let mut fingerprinter = Fingerprinter::new(model);
        assert_eq!(fingerprinter.fingerprint("one two two"), None);
        assert_eq!(fingerprinter.last_features(), 3);
        fingerprinter.fingerprint_and_sketch("a b c d e", &mut Vec::new());
        assert_eq!(fingerprinter.last_features(), 5);
        assert_eq!(fingerprinter.fingerprint(""), None);
        assert_eq!(fingerprinter.last_features(), 0);
    }
}
