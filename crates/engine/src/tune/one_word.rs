//! Texts of several lengths in which one word is replaced: measures which of them settings find
//! again.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use simhash::Fingerprinter;
use simhash::reliable_length::ENOUGH;
use unicode_segmentation::UnicodeSegmentation as _;

use super::DISTANCES;

/// Texts of one length, each with a copy in which one word is replaced.
#[derive(Debug)]
pub struct ShortTexts {
    words: usize,
    pairs: Vec<(String, String)>,
}

/// Maximum number of words drawn to find one that differs from the word that it replaces.
const DRAWS: usize = 100;

impl ShortTexts {
    /// Cuts a piece of each length from each text that is long enough, up to `most` pieces of a
    /// length, and replaces one word of it by one of another text. Piece and words are drawn at
    /// random, the same in each call.
    ///
    /// Words are those of UAX #29, so each Han character is a word.
    pub fn cut(texts: &[String], lengths: &[usize], most: usize) -> Vec<Self> {
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
        let is_full = |short: &Self| short.pairs.len() >= most;
        for text in texts {
            if all.iter().all(is_full) {
                break;
            }
            let words: Vec<(usize, &str)> = text.unicode_word_indices().collect();
            for short in &mut all {
                if is_full(short) || short.words == 0 || words.len() < short.words {
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

    pub fn words(&self) -> usize {
        self.words
    }

    pub fn size(&self) -> usize {
        self.pairs.len()
    }

    /// The distance of each text from its copy; `None` if one of them has no fingerprint.
    pub fn distances(&self, fingerprinter: &mut Fingerprinter) -> Vec<Option<u32>> {
        let distance = |(text, edited): &(String, String)| {
            let [x, y] = [text, edited].map(|text| fingerprinter.fingerprint(text));
            Some((x? ^ y?).count_ones())
        };
        self.pairs.iter().map(distance).collect()
    }
}

/// Which texts of one length are found again after one word was replaced.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtLength {
    /// The number of words of each text.
    pub words: usize,
    /// Texts of this length, cut from the documents of the sample.
    pub texts: usize,
    /// For each largest distance from 0 on, the share of the texts that are found again. A text
    /// without a fingerprint is not found.
    pub recall: Vec<f64>,
    /// Documents read that have a text of fewer words.
    pub shorter_documents: u64,
}

/// Fewer texts than this do not show whether a length is reliable.
const ENOUGH_TEXTS: usize = 100;

impl AtLength {
    /// Counts the texts that are found again, and no documents.
    pub(super) fn new(texts: &ShortTexts, fingerprinter: &mut Fingerprinter) -> Self {
        let distances = texts.distances(fingerprinter);
        let recall = |k: u32| {
            let found = distances
                .iter()
                .flatten()
                .filter(|distance| **distance <= k);
            found.count() as f64 / distances.len().max(1) as f64
        };
        Self {
            words: texts.words(),
            texts: texts.size(),
            recall: DISTANCES.map(recall).collect(),
            shorter_documents: 0,
        }
    }

    /// Whether the texts are enough to say if the length is reliable.
    pub fn has_enough_texts(&self) -> bool {
        self.texts >= ENOUGH_TEXTS
    }

    /// The share of the texts that are found within `k` bits; 0 if that was not measured.
    pub fn recall_within(&self, k: u32) -> f64 {
        self.recall.get(k as usize).copied().unwrap_or(0.0)
    }
}

/// The least length from which on at least [`ENOUGH`] of the texts are found within `k` bits.
/// `lengths` are ascending; those without enough texts do not count. `None` if the greatest is too
/// short.
pub fn reliable(lengths: &[AtLength], k: u32) -> Option<&AtLength> {
    let measured = lengths.iter().rev().filter(|at| at.has_enough_texts());
    measured
        .take_while(|at| at.recall_within(k) >= ENOUGH)
        .last()
}

#[cfg(test)]
mod tests {
    use simhash::{Model, Spec};

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
        let short = ShortTexts::cut(&texts, &[1, 4, 5, 6], usize::MAX);
        let sizes = |short: &[ShortTexts]| short.iter().map(ShortTexts::size).collect::<Vec<_>>();
        assert_eq!(sizes(&short), [3, 3, 1, 0]);
        for (text, edited) in short.iter().flat_map(|short| &short.pairs) {
            let words = |text: &str| -> Vec<String> {
                text.unicode_words().map(str::to_lowercase).collect()
            };
            let (before, after) = (words(text), words(edited));
            assert_eq!(before.len(), after.len(), "{text}: {edited}");
            let differing = before.iter().zip(&after).filter(|(x, y)| x != y);
            assert_eq!(differing.count(), 1, "{text}: {edited}");
        }
        let again = ShortTexts::cut(&texts, &[1, 4, 5, 6], usize::MAX);
        assert_eq!(short[1].pairs, again[1].pairs);
        assert_eq!(sizes(&ShortTexts::cut(&texts, &[1, 5], 2)), [2, 1]);
        // A word has too few features for a fingerprint, a text of five words has enough.
        let model = Model::plain(Spec::default()).unwrap();
        let mut fingerprinter = Fingerprinter::new(model);
        assert_eq!(short[0].distances(&mut fingerprinter), [None::<u32>; 3]);
        let [Some(distance)] = short[2].distances(&mut fingerprinter)[..] else {
            panic!("a text of five words has no fingerprint");
        };
        let at = AtLength::new(&short[2], &mut fingerprinter);
        let found = at.recall.iter().filter(|share| **share == 1.0);
        assert_eq!(found.count(), 17 - distance.min(17) as usize);
    }

    #[test]
    fn a_length_is_reliable_if_all_greater_ones_are() {
        let at = |words, texts, share| AtLength {
            words,
            texts,
            recall: vec![0.0, share],
            shorter_documents: 0,
        };
        let lengths = [
            at(5, 200, 0.97),
            at(10, 200, 0.5),
            at(20, 200, 0.95),
            at(50, 200, 0.99),
            // Too few texts to say.
            at(100, 99, 0.5),
        ];
        let found = |k| reliable(&lengths, k).map(|at| at.words);
        assert_eq!([found(0), found(1), found(2)], [None, Some(20), None]);
        assert_eq!(reliable(&[at(5, 99, 1.0)], 1), None);
    }
}
