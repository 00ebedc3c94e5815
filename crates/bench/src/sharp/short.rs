//! Short texts in which one word is replaced.

use engine::tune::one_word;
use serde_json::{Value, json};
use simhash::Fingerprinter;

use super::distances::Distances;

/// Texts of one length, each with a copy in which one word is replaced.
pub struct ShortTexts {
    /// The number of words of each text.
    pub words: usize,
    texts: one_word::ShortTexts,
}

impl ShortTexts {
    /// Cuts a piece of each length from each text that is long enough, and replaces one word of it.
    pub fn cut(texts: &[String], lengths: &[usize]) -> Vec<Self> {
        let cut = one_word::ShortTexts::cut(texts, lengths, usize::MAX);
        cut.into_iter()
            .map(|texts| Self {
                words: texts.words(),
                texts,
            })
            .collect()
    }

    /// Returns the number of texts.
    pub fn size(&self) -> usize {
        self.texts.size()
    }

    /// Returns the distances of the texts from their copies.
    pub fn count(&self, fingerprinter: &mut Fingerprinter) -> ShortCounts {
        let mut distances = Distances::default();
        for distance in self.texts.distances(fingerprinter).into_iter().flatten() {
            distances.add(distance);
        }
        ShortCounts {
            words: self.words,
            texts: self.size(),
            distances,
        }
    }
}

/// The distances of short texts from their copies.
pub struct ShortCounts {
    words: usize,
    texts: usize,
    /// Only texts that have a fingerprint and whose copies have one are counted.
    distances: Distances,
}

impl ShortCounts {
    /// Returns the number of words of each text.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the number of texts.
    pub fn texts(&self) -> usize {
        self.texts
    }

    /// Returns the share of texts within `k` bits of their copies. A text without a fingerprint
    /// counts as not found.
    pub fn recall(&self, k: u32) -> f64 {
        self.distances.at_most(k) as f64 / self.texts as f64
    }

    /// Returns the counts as JSON; `found` has the texts within k bits of their copies, for each k
    /// of `distances`.
    pub fn json(&self, distances: &[u32]) -> Value {
        let within = distances.iter().map(|&k| self.distances.at_most(k));
        json!({
            "words": self.words,
            "texts": self.texts,
            "without_fingerprint": self.texts as u64 - self.distances.total(),
            "found": within.collect::<Vec<_>>(),
        })
    }
}
