//! Makes fingerprints of texts under one model, with buffers that are reused from text to text.

use std::collections::HashSet;

use crate::feature_hashes::FeatureHashes;
use crate::features::Features;
use crate::isa::Kernel;
use crate::model::Model;
use crate::sketch::Sketcher;
use crate::spec::{Hash, Spec};
use crate::sum::Sum;
use crate::text::{Feature, Folded};

/// Makes fingerprints under one [`Model`]. Cheap to create: it shares the model's tables and owns only buffers.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    features: Features,
    hashes: FeatureHashes,
    sum: Sum,
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
        let Hash::Murmur3X64128Low64 = spec.hash;
        Self {
            features: Features::new(&model, kernel),
            hashes: FeatureHashes::new(spec.seed, kernel),
            sketcher: Sketcher::new(spec.sketch),
            sum: Sum::new(model, kernel),
        }
    }

    /// The spec of the fingerprints.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        self.sum.model().spec()
    }

    /// The fingerprint of `text`, or `None` if it has fewer distinct features than [`Spec::min_features`]. Such texts (an
    /// empty page, a bare "404") would be near-duplicates of each other without having anything in common.
    pub fn fingerprint(&mut self, text: &str) -> Option<u64> {
        self.hash_features(text);
        self.sum.fingerprint(self.hashes.finish())
    }

    /// Returns the fingerprint of `text`, and appends its sketch to `sketch`,
    /// [`crate::SketchBits::bytes`] bytes.
    ///
    /// Appends nothing if the text has no fingerprint or the spec has no sketches.
    pub fn fingerprint_and_sketch(&mut self, text: &str, sketch: &mut Vec<u8>) -> Option<u64> {
        self.hash_features(text);
        let hashes = self.hashes.finish();
        let fingerprint = self.sum.fingerprint(hashes);
        if let (Some(_), Some(sketcher)) = (fingerprint, &mut self.sketcher) {
            sketcher.sketch(hashes, sketch);
        }
        fingerprint
    }

    /// The number of features of the text that was fingerprinted last. A feature counts as often as it occurs.
    #[must_use]
    pub fn last_features(&self) -> usize {
        self.hashes.len()
    }

    /// The text that is cut into features: `text` without markup, folded.
    pub(crate) fn fold(&mut self, text: &str) -> &Folded {
        self.features.fold(text)
    }

    /// Hashes the features of `text`, in the order of the text, once per occurrence.
    fn hash_features(&mut self, text: &str) {
        self.hashes.clear();
        self.features.extract(text, &mut self.hashes);
    }

    /// The hashes of the distinct features of `text`, in the order of their first occurrence.
    pub fn distinct_hashes(&mut self, text: &str) -> &[u64] {
        self.hash_features(text);
        self.sum.distinct(self.hashes.finish())
    }

    /// Calls `each` with the hash and the text of every feature of `text`, in the order of the text, once per occurrence.
    pub fn for_each_feature(&mut self, text: &str, mut each: impl FnMut(u64, &str)) {
        let seed = self.spec().seed;
        self.features.extract(text, &mut |feature: Feature<'_>| {
            each(feature.hash(seed), feature.text());
        });
    }

    /// The distinct features of a text with their weights, in the order of their first occurrence.
    pub fn features(&mut self, text: &str) -> Vec<WeightedFeature> {
        let (mut hashes, mut names) = (Vec::new(), Vec::new());
        let mut known = HashSet::new();
        self.for_each_feature(text, |hash, feature| {
            hashes.push(hash);
            if known.insert(hash) {
                names.push(feature.to_owned());
            }
        });
        let weights = self.sum.weights(&hashes);
        let each = names.into_iter().zip(weights);
        each.map(|(feature, (hash, occurrences, weight))| WeightedFeature {
            feature,
            hash,
            occurrences,
            weight,
        })
        .collect()
    }
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
