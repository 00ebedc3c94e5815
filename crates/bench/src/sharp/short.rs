//! Short texts in which one word is replaced.

use engine::tune::one_word::ShortTexts;
use serde_json::{Value, json};
use simhash::Fingerprinter;

use super::distances::Distances;

/// The distances of short texts from their copies in which one word is replaced.
pub struct ShortCounts {
    /// The number of words of each text.
    pub words: usize,
    pub texts: usize,
    /// Only texts that have a fingerprint and whose copies have one are counted.
    distances: Distances,
}

impl ShortCounts {
    pub fn new(texts: &ShortTexts, fingerprinter: &mut Fingerprinter) -> Self {
        let mut distances = Distances::default();
        for distance in texts.distances(fingerprinter).into_iter().flatten() {
            distances.add(distance);
        }
        Self {
            words: texts.words(),
            texts: texts.size(),
            distances,
        }
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
