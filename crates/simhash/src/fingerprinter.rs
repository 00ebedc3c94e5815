//! Runs a [`Model`] over texts, with buffers that are reused from text to text.

use std::collections::HashSet;
use std::sync::Arc;

use crate::accumulate;
use crate::count::Count;
use crate::kernels::Kernel;
use crate::model::Model;
use crate::spec::{Hash, Spec};
use crate::text::{Feature, Folded};
use crate::tokenize::{Chars, Cjk, Extract, Sentences, Shingles, Tokenizer, Words};
use crate::weigh::Weight;

/// Makes fingerprints under one [`Model`]. Cheap to make: it shares the model's tables, and has buffers of its own.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    model: Model,
    kernel: Kernel,
    extract: AnyExtract,
    stripped: String,
    folded: Folded,
    hashes: Vec<u64>,
    weights: Vec<u32>,
    count: Count,
}

/// A feature of a text, with what it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedFeature {
    /// The feature.
    pub feature: String,
    /// Its hash.
    pub hash: u64,
    /// How often it occurs in the text.
    pub occurrences: u32,
    /// The weight of all occurrences.
    pub weight: u64,
}

impl Fingerprinter {
    /// A fingerprinter for `model`.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self::with_kernel(model, Kernel::detect())
    }

    /// As [`Self::new`], with the instructions of `kernel`.
    #[must_use]
    pub fn with_kernel(model: Model, kernel: Kernel) -> Self {
        let spec = model.spec();
        let words = |cjk| Filtered {
            words: Words::new(cjk, kernel),
            stopped: model.stopped().cloned(),
            seed: spec.seed,
        };
        let extract = match spec.tokenizer {
            Tokenizer::WordsCjkBigrams => AnyExtract::Words(words(Cjk::Bigrams)),
            Tokenizer::WordsCjkGrams => AnyExtract::Words(words(Cjk::Grams)),
            Tokenizer::Words => AnyExtract::Words(words(Cjk::Words)),
            #[cfg(feature = "jieba")]
            Tokenizer::WordsJieba => AnyExtract::Words(words(Cjk::Jieba)),
            // Not to be had by its name in such a build.
            #[cfg(not(feature = "jieba"))]
            Tokenizer::WordsJieba => AnyExtract::Words(words(Cjk::Words)),
            Tokenizer::Shingles(n) => AnyExtract::Shingles(Shingles::new(n, words(Cjk::Bigrams))),
            Tokenizer::Chars(n) => AnyExtract::Chars(Chars::new(n)),
            Tokenizer::LongestSentences(n) => AnyExtract::Sentences(Sentences::new(n)),
        };
        Self {
            model,
            kernel,
            extract,
            stripped: String::new(),
            folded: Folded::default(),
            hashes: Vec::new(),
            weights: Vec::new(),
            count: Count::default(),
        }
    }

    /// The spec it was made for.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        self.model.spec()
    }

    /// The fingerprint of `text`, or `None` when it has fewer distinct features than
    /// [`Spec::min_features`] (an empty page, a bare "404"): such texts resemble each other only by
    /// saying nothing.
    pub fn fingerprint(&mut self, text: &str) -> Option<u64> {
        let seed = self.model.spec().seed;
        let Hash::Murmur3X64128Low64 = self.model.spec().hash;
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        self.extract(text, &mut |feature| hashes.push(feature.hash(seed)));
        let fingerprint = self.sum(&hashes);
        self.hashes = hashes;
        fingerprint
    }

    /// The fingerprint of a text with these features.
    fn sum(&mut self, hashes: &[u64]) -> Option<u64> {
        let (spec, kernel) = (self.model.spec(), self.kernel);
        let enough = spec.min_features as usize;
        match (spec.weight, self.model.idf()) {
            (Weight::Tf, None) => {
                has_distinct(hashes, enough).then(|| accumulate::of_equal_weights(kernel, hashes))
            }
            (Weight::Tf, Some(idf)) => has_distinct(hashes, enough).then(|| {
                let weights = &mut self.weights;
                weights.clear();
                weights.extend(hashes.iter().map(|&hash| idf.weight(hash)));
                accumulate::of_weighted(kernel, hashes, weights)
            }),
            (Weight::Set, None) => {
                self.count.fill(hashes);
                let distinct = &self.count.distinct;
                (distinct.len() >= enough).then(|| accumulate::of_equal_weights(kernel, distinct))
            }
            (Weight::Set | Weight::LogTf | Weight::Levels, _) => {
                self.count.fill(hashes);
                weigh(&self.model, &self.count, &mut self.weights);
                let distinct = &self.count.distinct;
                (distinct.len() >= enough)
                    .then(|| accumulate::of_weighted(kernel, distinct, &self.weights))
            }
        }
    }

    /// The distinct features of a text, in the order of their first occurrence, with what each counts.
    pub fn features(&mut self, text: &str) -> Vec<WeightedFeature> {
        let seed = self.model.spec().seed;
        let (mut hashes, mut names) = (Vec::new(), Vec::new());
        let mut known = HashSet::new();
        self.extract(text, &mut |feature| {
            let hash = feature.hash(seed);
            hashes.push(hash);
            if known.insert(hash) {
                names.push(feature.text().to_owned());
            }
        });
        self.count.fill(&hashes);
        weigh(&self.model, &self.count, &mut self.weights);
        let (count, weights) = (&self.count, &self.weights);
        let each = names.into_iter().enumerate();
        each.map(|(at, feature)| WeightedFeature {
            feature,
            hash: count.distinct[at],
            occurrences: count.occurrences[at],
            weight: match self.model.spec().weight {
                Weight::Tf => u64::from(weights[at]) * u64::from(count.occurrences[at]),
                _ => u64::from(weights[at]),
            },
        })
        .collect()
    }

    fn extract(&mut self, text: &str, each: &mut impl FnMut(Feature<'_>)) {
        let spec = self.model.spec();
        let text = match spec.markup {
            None => text,
            Some(markup) => {
                self.stripped.clear();
                markup.strip(text, &mut self.stripped);
                &self.stripped
            }
        };
        spec.normalize.fold(text, &mut self.folded);
        match &mut self.extract {
            AnyExtract::Words(extract) => extract.extract(&self.folded, each),
            AnyExtract::Shingles(extract) => extract.extract(&self.folded, each),
            AnyExtract::Chars(extract) => extract.extract(&self.folded, each),
            AnyExtract::Sentences(extract) => extract.extract(&self.folded, each),
        }
    }
}

/// The weight of each distinct feature; of `tf`, that of one occurrence. Less than 2²⁷.
fn weigh(model: &Model, count: &Count, weights: &mut Vec<u32>) {
    let scheme = model.spec().weight;
    let idf = |hash| model.idf().map_or(1, |idf| idf.weight(hash));
    weights.clear();
    let each = count.distinct.iter().zip(&count.occurrences);
    weights.extend(each.map(|(&hash, &tf)| match scheme {
        Weight::Tf => idf(hash),
        // Less than 2¹⁵ and 2¹².
        _ => scheme.of(tf) * idf(hash),
    }));
    if scheme == Weight::Levels {
        let heaviest = weights.iter().copied().max().unwrap_or(0);
        for weight in weights {
            *weight = Weight::level(*weight, heaviest);
        }
    }
}

/// The extractor of a spec.
#[derive(Debug, Clone)]
enum AnyExtract {
    Words(Filtered),
    Shingles(Shingles<Filtered>),
    Chars(Chars),
    Sentences(Sentences),
}

/// Words without those that are on a list.
#[derive(Debug, Clone)]
struct Filtered {
    words: Words,
    stopped: Option<Arc<HashSet<u64>>>,
    seed: u32,
}

impl Extract for Filtered {
    #[inline]
    fn extract(&mut self, text: &Folded, each: &mut impl FnMut(Feature<'_>)) {
        match &self.stopped {
            None => self.words.extract(text, each),
            Some(stopped) => self.words.extract(text, &mut |feature| {
                if !stopped.contains(&feature.hash(self.seed)) {
                    each(feature);
                }
            }),
        }
    }
}

/// Whether `hashes` has at least `wanted` distinct values; stops as soon as it knows.
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
