//! Cuts a folded text into features: one file for each kind of feature.

mod chars;
pub mod cjk;
mod code;
mod extractor;
#[cfg(feature = "jieba")]
mod jieba;
pub(crate) mod masks;
mod sentences;
mod shingles;
mod stop_filter;
pub mod unspaced;
mod words;

pub(crate) use extractor::Extractor;
#[cfg(test)]
pub(crate) use words::{Cjk, Words};

use crate::choice::{Choice, Name, by_name};
use crate::text::{Feature, Folded};

/// Takes the features of a text, one by one. Functions do. A type can have its code inlined at every place that finds
/// features, where the compiler may know the length of a feature.
pub(crate) trait TakeFeature {
    /// Takes the next feature.
    fn take(&mut self, feature: Feature<'_>);
}

impl<F: FnMut(Feature<'_>)> TakeFeature for F {
    #[inline(always)]
    fn take(&mut self, feature: Feature<'_>) {
        self(feature);
    }
}

/// Extracts the features of a text.
pub(crate) trait Extract {
    /// Gives `each` every feature of `text`, in the order of the text, once per occurrence.
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature);
}

/// How a folded text is cut into features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// Words by UAX #29, Unicode's text segmentation; runs of Han, Hiragana, Katakana and Hangul as overlapping bigrams of
    /// characters (a run of one character is one feature); runs of Thai, Lao, Burmese and Khmer as every four consecutive
    /// characters (a shorter run is one feature).
    WordsCjkBigrams,
    /// The features of [`Tokenizer::WordsCjkBigrams`], and each character of such a run. An edit changes fewer characters
    /// than bigrams, but characters discriminate less.
    WordsCjkGrams,
    /// Words by UAX #29 alone, which makes each character of Han and of Thai a word.
    Words,
    /// Words by UAX #29; runs of Han, Hiragana, Katakana and Hangul as words of jieba's dictionary,
    /// without its guesses at unknown words; and Thai and others as in [`Tokenizer::WordsCjkBigrams`]. Needs the crate feature
    /// `jieba`.
    WordsJieba,
    /// N consecutive features of [`Tokenizer::WordsCjkBigrams`], N from 2 to 16; a text with fewer is one shingle.
    Shingles(u8),
    /// The features of [`Tokenizer::WordsCjkBigrams`], and the shingles of N consecutive ones, N
    /// from 2 to 16. Shingles tell apart texts on one subject that share words but not phrases.
    WordsAndShingles(u8),
    /// N consecutive letters and digits, N from 1 to 16, ignoring all characters between them.
    Chars(u8),
    /// Words with the signs and operators before them, for source code and tables: of `a < -b`, `a` and `<-b`. A word is a run of
    /// letters, digits and `_`, and of points between digits; a character of a script without spaces is one.
    Code,
    /// The N longest sentences, N from 1 to 64, by which Baidu is said to compare pages.
    LongestSentences(u8),
}

impl Choice for Tokenizer {
    const PLURAL: &'static str = "tokenizers";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "words+cjk-grams",
            Self::WordsCjkGrams,
            "words; of Chinese, Japanese and Korean, characters and pairs of characters; of Thai, Lao, Burmese and Khmer, four characters",
        ),
        Name::new(
            "words+cjk-bigrams",
            Self::WordsCjkBigrams,
            "the same without single characters",
        ),
        Name::new("words", Self::Words, "words; of Chinese, single characters"),
        Name::new(
            "words+jieba",
            Self::WordsJieba,
            "words; of Chinese, the words of jieba's dictionary",
        )
        .needs("jieba", cfg!(feature = "jieba")),
        Name::numbered(
            "shingles-N",
            2..=16,
            Self::Shingles,
            "N consecutive features of words+cjk-bigrams",
        ),
        Name::numbered(
            "words+shingles-N",
            2..=16,
            Self::WordsAndShingles,
            "features of words+cjk-bigrams, and N consecutive ones",
        ),
        Name::numbered(
            "chars-N",
            1..=16,
            Self::Chars,
            "N consecutive letters and digits",
        ),
        Name::new(
            "code",
            Self::Code,
            "words with the signs and operators before them; for source code and tables",
        ),
        Name::numbered(
            "longest-sentences-N",
            1..=64,
            Self::LongestSentences,
            "the N longest sentences",
        ),
    ];
}

by_name!(Tokenizer);

impl Tokenizer {
    /// Whether the features consist of words, so that stop words can be left out.
    #[must_use]
    pub fn has_words(self) -> bool {
        !matches!(
            self,
            Self::Chars(_) | Self::Code | Self::LongestSentences(_)
        )
    }

    /// The greatest number of features that a text can have; `None` if there is no limit.
    #[must_use]
    pub fn max_features(self) -> Option<u8> {
        match self {
            Self::LongestSentences(n) => Some(n),
            _ => None,
        }
    }
}

/// The features of a text, for tests.
#[cfg(test)]
pub(crate) fn features(mut extract: impl Extract, text: &str) -> Vec<String> {
    let mut folded = Folded::default();
    folded.fill(|out| out.push_str(text));
    let mut features = Vec::new();
    extract.extract(&folded, &mut |feature: Feature<'_>| {
        features.push(feature.text().to_owned());
    });
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "shingles-1",
            "shingles-+3",
            "chars-03",
            "chars-17",
            "word",
        ] {
            assert!(name.parse::<Tokenizer>().is_err(), "{name}");
        }
    }
}
