//! Makes fingerprints of texts under one model, with buffers that are reused from text to text.

use std::collections::HashSet;

use memchr::{memchr, memmem};

use crate::bitmap;
use crate::feature_hashes::{FeatureHasher, FeatureHashes};
use crate::features::Features;
use crate::isa::Kernel;
use crate::model::Model;
use crate::sketch::{SHINGLE, Sketcher};
use crate::spec::{Hash, Spec};
use crate::sum::Sum;
use crate::text::{Feature, Folded};

/// The most hashes that are kept for a fingerprint. With the memory to count and weigh them, they take some 30 MiB.
const MOST_KEPT: usize = 1 << 19;
/// The number of hashes that are given at a time when the features of a long text are hashed again.
const PIECE: usize = 1 << 14;

/// Makes fingerprints under one [`Model`]. Cheap to create: it shares the model's tables and owns only buffers.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    features: Features,
    hasher: FeatureHasher,
    /// The number of features of the last text.
    len: usize,
    /// Whether the last text had enough features.
    has_enough: bool,
    /// The fingerprint of the last text, if it had too few features and is compared as a whole.
    whole: Option<u64>,
    sum: Sum,
    /// Makes sketches, if the spec asks for them.
    sketcher: Option<Sketcher>,
}

/// Whether more than one in ten characters of a text are U+FFFD: it was read in a wrong encoding.
#[must_use]
pub fn is_garbled(text: &str) -> bool {
    const REPLACEMENT: &str = "\u{fffd}";
    // Most texts have none, nor a character that begins as it does.
    let Some(begin) = memchr(REPLACEMENT.as_bytes()[0], text.as_bytes()) else {
        return false;
    };
    if memmem::find(&text.as_bytes()[begin..], REPLACEMENT.as_bytes()).is_none() {
        return false;
    }
    let replaced = text.matches(REPLACEMENT).count();
    10 * replaced > text.chars().count()
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
            hasher: FeatureHasher::new(spec.seed, kernel),
            len: 0,
            has_enough: false,
            whole: None,
            sketcher: Sketcher::new(spec.sketch),
            sum: Sum::new(model, kernel),
        }
    }

    /// The spec of the fingerprints.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        self.sum.model().spec()
    }

    /// The fingerprint of `text`. If it has fewer distinct features than [`Spec::min_features`] (an empty page, a bare "404"),
    /// [`Spec::short_texts`] says whether it has one. A text with more than one replacement character in ten was read in the wrong
    /// encoding, and has none: others of its kind would look like it.
    pub fn fingerprint(&mut self, text: &str) -> Option<u64> {
        if is_garbled(text) {
            (self.len, self.has_enough, self.whole) = (0, false, None);
            return None;
        }
        self.hash_features(text, MOST_KEPT);
        let found = if self.len == self.hasher.kept().len() {
            self.sum.fingerprint(self.hasher.kept())
        } else {
            self.fingerprint_of_long()
        };
        self.has_enough = found.is_some();
        self.whole = match found {
            Some(_) => None,
            None => {
                let Spec {
                    short_texts, seed, ..
                } = self.spec();
                short_texts.fingerprint(self.features.folded(), *seed)
            }
        };
        found.or(self.whole)
    }

    /// The fingerprint of the last text, whose hashes are not kept.
    #[cold]
    fn fingerprint_of_long(&mut self) -> Option<u64> {
        self.hasher.free();
        let Self {
            features,
            hasher,
            sum,
            len,
            ..
        } = self;
        sum.fingerprint_of_long(*len, &mut |each: &mut dyn FnMut(&[u64])| {
            hasher.hash(PIECE, |hashes| features.extract_again(hashes), each);
            each(hasher.kept());
        })
    }

    /// Returns the fingerprint of `text`, and appends its sketch to `sketch`,
    /// [`crate::SketchBits::bytes`] bytes.
    ///
    /// Appends nothing if the text has no fingerprint or the spec has no sketches.
    pub fn fingerprint_and_sketch(&mut self, text: &str, sketch: &mut Vec<u8>) -> Option<u64> {
        let fingerprint = self.fingerprint(text);
        if let (Some(whole), Some(sketcher)) = (self.whole, &mut self.sketcher) {
            sketcher.sketch(&[whole], sketch);
        } else if let (Some(_), Some(sketcher)) = (fingerprint, &mut self.sketcher) {
            sketcher.start();
            // Those of a long text are read again.
            if self.len > MOST_KEPT {
                let features = &mut self.features;
                let extract = |hashes: &mut FeatureHashes<'_>| features.extract_again(hashes);
                let mut add = |hashes: &[u64]| sketcher.add(hashes);
                self.hasher.hash(PIECE, extract, &mut add);
            }
            sketcher.add(self.hasher.kept());
            sketcher.finish(sketch);
        }
        fingerprint
    }

    /// The number of features of the text that was fingerprinted last; a feature counts as often as it occurs. `None` if too few of
    /// them are distinct to compare the text by them.
    #[must_use]
    pub fn last_features(&self) -> Option<usize> {
        self.has_enough.then_some(self.len)
    }

    /// The number of all features of the text that was fingerprinted last, however few are distinct.
    #[must_use]
    pub fn feature_count(&self) -> usize {
        self.len
    }

    /// Appends the bitmap of the shingles that [`Measure::Jaccard`](crate::Measure::Jaccard) compares of the text that was
    /// fingerprinted last, for [`bitmap::may_reach`]. Appends nothing if its features are not its words, or if it is very short or
    /// very long.
    pub fn append_bitmap(&self, bitmap: &mut Vec<u8>) {
        let words = self.hasher.kept();
        if words.len() == self.len && words.len() >= SHINGLE && self.features.are_words() {
            let shingles = words.array_windows::<SHINGLE>();
            // A bitmap is compared with others alone: any hash of three words will do, and this one is fast.
            let hash = |[a, b, c]: &[u64; SHINGLE]| a ^ b.rotate_left(21) ^ c.rotate_left(42);
            bitmap::append(shingles.map(hash), bitmap);
        }
    }

    /// The text that is cut into features: `text` without markup, folded.
    pub(crate) fn fold(&mut self, text: &str) -> &Folded {
        self.features.fold(text)
    }

    /// Hashes the features of `text`, in the order of the text, once per occurrence. Keeps the hashes if there are not more than
    /// `most`.
    fn hash_features(&mut self, text: &str, most: usize) {
        let features = &mut self.features;
        let mut forgotten = 0;
        self.hasher.hash(
            most,
            |hashes| features.extract(text, hashes),
            &mut |hashes| forgotten += hashes.len(),
        );
        self.len = forgotten + self.hasher.kept().len();
    }

    /// The hashes of the distinct features of `text`, in the order of their first occurrence.
    pub fn distinct_hashes(&mut self, text: &str) -> &[u64] {
        self.hash_features(text, usize::MAX);
        self.sum.distinct(self.hasher.kept())
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
    use proptest::prelude::*;

    use super::*;
    use crate::{Measure, Similarity, Tokenizer};

    #[test]
    fn a_text_of_replacement_characters_has_no_fingerprint() {
        let spec = Spec {
            min_features: 1,
            ..Spec::default()
        };
        let mut fingerprinter = Fingerprinter::new(Model::new(spec, None, None).unwrap());
        let words = "one two three four five six seven eight ";
        for (replaced, is_garbled) in [(0, false), (4, false), (5, true), (50, true)] {
            let text = words.to_owned() + &"\u{fffd}".repeat(replaced);
            let found = fingerprinter.fingerprint(&text);
            assert_eq!(found.is_none(), is_garbled, "{replaced}");
        }
    }

    proptest! {
        #[test]
        fn bitmaps_are_of_the_shingles_that_jaccard_compares(
            words in proptest::collection::vec("[abc]|近似|似|กข|é|’|\u{301}|안", 0..40),
            other in proptest::collection::vec("[abc]|近", 0..10),
            at in 0_usize..40,
        ) {
            let text = words.join(" ");
            let other = [&words[..at.min(words.len())], &other].concat().join(" ");
            for tokenizer in [Tokenizer::WordsCjkGrams, Tokenizer::Words, Tokenizer::Shingles(2)] {
                let spec = Spec { tokenizer, min_features: 1, ..Spec::default() };
                let model = Model::plain(spec).unwrap();
                let mut similarity = Similarity::new(Measure::Jaccard, model.clone());
                let mut fingerprinter = Fingerprinter::new(model);
                let texts = [&text, &other].map(|text| {
                    fingerprinter.fingerprint(text);
                    let mut bitmap = Vec::new();
                    fingerprinter.append_bitmap(&mut bitmap);
                    (similarity.prepare(text), bitmap)
                });
                let [(a, of_a), (b, of_b)] = texts;
                let found = Similarity::between(&a, &b, 0.0);
                prop_assert!(bitmap::may_reach(&of_a, &of_b, found), "{}", tokenizer);
            }
        }
    }

    #[test]
    fn texts_of_words_have_bitmaps() {
        let mut fingerprinter = Fingerprinter::new(Model::plain(Spec::default()).unwrap());
        for (text, has_bitmap) in [
            ("one two three four five", true),
            ("раз два – три четыре ☃ пять", true),
            ("one two three four 近似", false),
            ("one two three four ไทย", false),
            ("one two", false),
            ("", false),
        ] {
            fingerprinter.fingerprint(text);
            let mut bitmap = Vec::new();
            fingerprinter.append_bitmap(&mut bitmap);
            assert_eq!(!bitmap.is_empty(), has_bitmap, "{text}");
        }
    }

    #[test]
    fn the_features_of_the_last_text_are_counted() {
        let model = Model::plain(Spec::default()).unwrap();
        let mut fingerprinter = Fingerprinter::new(model);
        assert_eq!(fingerprinter.fingerprint("one two two"), None);
        assert_eq!(fingerprinter.last_features(), None);
        fingerprinter.fingerprint_and_sketch("a b c d e", &mut Vec::new());
        assert_eq!(fingerprinter.last_features(), Some(5));
        assert_eq!(fingerprinter.fingerprint(""), None);
        assert_eq!(fingerprinter.last_features(), None);
    }

    #[test]
    fn long_texts_have_the_fingerprint_and_the_sketch_of_all_their_features() {
        // Half of the words are rare, and those at the end decide many bits.
        let words = |range: std::ops::Range<usize>| -> String {
            range.map(|n| format!("w{} x{n} ", n % 1_000)).collect()
        };
        let text = words(0..MOST_KEPT / 2 + 50_000) + &"end ".repeat(1_000);
        let spec = Spec {
            sketch: crate::SketchBits::Bits128,
            ..Spec::default()
        };
        let model = Model::plain(spec).unwrap();
        let mut fingerprinter = Fingerprinter::new(model.clone());
        let mut sketch = Vec::new();
        let found = fingerprinter.fingerprint_and_sketch(&text, &mut sketch);
        assert_eq!(fingerprinter.last_features(), Some(MOST_KEPT + 101_000));
        let mut hashes = Vec::new();
        fingerprinter.for_each_feature(&text, |hash, _| hashes.push(hash));
        let mut sum = Sum::new(model, Kernel::detect());
        assert_eq!(found, sum.fingerprint(&hashes));
        let mut expected = Vec::new();
        let mut sketcher = Sketcher::new(crate::SketchBits::Bits128).unwrap();
        sketcher.sketch(&hashes, &mut expected);
        assert_eq!(sketch, expected);
    }
}
