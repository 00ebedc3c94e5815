//! Short texts in which one word is replaced.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use simhash::Fingerprinter;
use unicode_segmentation::UnicodeSegmentation as _;

use super::distances::Distances;

/// Texts of one length, each with a copy in which one word is replaced.
pub struct ShortTexts {
    /// The number of words of each text.
    pub words: usize,
    pairs: Vec<(String, String)>,
}

/// Maximum number of words drawn to find one that differs from the word that it replaces.
const DRAWS: usize = 100;

impl ShortTexts {
    /// Cuts a piece of each length from each text that is long enough, and replaces one word of it by one of another
    /// text. Piece and words are drawn at random, the same in each call.
    ///
    /// Words are those of UAX #29, so each Han character is a word.
    pub fn cut(texts: &[String], lengths: &[usize]) -> Vec<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut all: Vec<Self> = lengths
            .iter()
            .map(|&words| Self {
                words,
                pairs: Vec::new(),
            })
            .collect();
        let mut replacements: Vec<&str> = Vec::new();
        for text in texts {
            let words: Vec<&str> = text.unicode_words().collect();
            if !words.is_empty() {
                replacements.push(words[rng.random_range(0..words.len())]);
            }
        }
        for text in texts {
            let words: Vec<(usize, &str)> = text.unicode_word_indices().collect();
            for short in &mut all {
                if short.words == 0 || words.len() < short.words {
                    continue;
                }
                let first = rng.random_range(0..=words.len() - short.words);
                let piece = &words[first..first + short.words];
                let (at, replaced) = piece[rng.random_range(0..piece.len())];
                let mut draws =
                    (0..DRAWS).map(|_| replacements[rng.random_range(0..replacements.len())]);
                let differs = |word: &&str| word.to_lowercase() != replaced.to_lowercase();
                let Some(other) = draws.find(differs) else {
                    continue;
                };
                let (start, last) = (piece[0].0, piece[piece.len() - 1]);
                let end = last.0 + last.1.len();
                let edited = [&text[start..at], other, &text[at + replaced.len()..end]];
                short
                    .pairs
                    .push((text[start..end].to_owned(), edited.concat()));
            }
        }
        all
    }

    /// Returns the number of texts.
    pub fn size(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the distances of the texts from their copies.
    pub fn count(&self, fingerprinter: &mut Fingerprinter) -> ShortCounts {
        let mut distances = Distances::default();
        for (text, edited) in &self.pairs {
            let [x, y] = [text, edited].map(|text| fingerprinter.fingerprint(text));
            if let (Some(x), Some(y)) = (x, y) {
                distances.add((x ^ y).count_ones());
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_replaced() {
        let texts = [
            "one two, three (four) five.",
            "Ein zwei drei vier",
            "近似重复",
            "",
        ]
        .map(str::to_owned);
        let short = ShortTexts::cut(&texts, &[1, 4, 5, 6]);
        assert_eq!(
            short.iter().map(ShortTexts::size).collect::<Vec<_>>(),
            [3, 3, 1, 0]
        );
        for (text, edited) in short.iter().flat_map(|short| &short.pairs) {
            let words = |text: &str| -> Vec<String> {
                text.unicode_words().map(str::to_lowercase).collect()
            };
            let (before, after) = (words(text), words(edited));
            assert_eq!(before.len(), after.len(), "{text}: {edited}");
            let differing = before.iter().zip(&after).filter(|(x, y)| x != y);
            assert_eq!(differing.count(), 1, "{text}: {edited}");
        }
        let again = ShortTexts::cut(&texts, &[1, 4, 5, 6]);
        assert_eq!(short[1].pairs, again[1].pairs);
    }
}
