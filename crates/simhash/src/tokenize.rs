//! Cutting a folded text into features. One small file for each way, all behind [`Extract`].

pub(crate) mod ascii;
mod chars;
pub mod cjk;
#[cfg(feature = "jieba")]
mod jieba;
mod sentences;
mod shingles;
mod words;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) use chars::Chars;
pub(crate) use sentences::Sentences;
pub(crate) use shingles::Shingles;
pub(crate) use words::{Cjk, Words};

use crate::text::{Feature, Folded};

/// A way to cut a text into features.
pub(crate) trait Extract {
    /// Calls `each` with every feature of `text`, in order, repeated ones repeatedly.
    fn extract(&mut self, text: &Folded, each: &mut impl FnMut(Feature<'_>));
}

/// How a folded text is cut into features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// `words+cjk-bigrams`: words by Unicode's UAX #29; runs of Han, Hiragana, Katakana and Hangul as overlapping
    /// character bigrams (a run of one character is one feature).
    WordsCjkBigrams,
    /// `words+cjk-grams`: the same, with the single characters of such runs too: less apt to change with an edit, less telling.
    WordsCjkGrams,
    /// `words`: words by UAX #29 alone, by which each Han character is a word.
    Words,
    /// `words+jieba`: words; runs of Han as the words of jieba's dictionary, without its guesses at unknown words. Needs
    /// the feature `jieba`.
    WordsJieba,
    /// `shingles-N`: N consecutive features of `words+cjk-bigrams`, N from 2 to 16; of a shorter text all.
    Shingles(u8),
    /// `chars-N`: N consecutive letters and digits, N from 1 to 16, whatever stands between them.
    Chars(u8),
    /// `longest-sentences-N`: the N longest sentences, the signature that Baidu is said to use, N from 1 to 64.
    LongestSentences(u8),
}

impl Tokenizer {
    /// Whether stop words can be left out of what it cuts.
    #[must_use]
    pub fn has_words(self) -> bool {
        !matches!(self, Self::Chars(_) | Self::LongestSentences(_))
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WordsCjkBigrams => f.write_str("words+cjk-bigrams"),
            Self::WordsCjkGrams => f.write_str("words+cjk-grams"),
            Self::Words => f.write_str("words"),
            Self::WordsJieba => f.write_str("words+jieba"),
            Self::Shingles(n) => write!(f, "shingles-{n}"),
            Self::Chars(n) => write!(f, "chars-{n}"),
            Self::LongestSentences(n) => write!(f, "longest-sentences-{n}"),
        }
    }
}

/// A name that is no tokenizer's.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the tokenizers are words+cjk-bigrams, words+cjk-grams, words, words+jieba{}, shingles-N (N from 2 to 16), chars-N (N from 1 to 16) \
     and longest-sentences-N (N from 1 to 64)",
    if cfg!(feature = "jieba") { "" } else { " (in a build with the feature jieba)" }
)]
pub struct UnknownTokenizer;

impl FromStr for Tokenizer {
    type Err = UnknownTokenizer;

    fn from_str(name: &str) -> Result<Self, UnknownTokenizer> {
        let number = |prefix: &str, range: std::ops::RangeInclusive<u8>| {
            // "+3" and "03" are no names.
            let digits = name.strip_prefix(prefix)?;
            let n = digits.parse().ok().filter(|n| range.contains(n))?;
            (n.to_string() == digits).then_some(n)
        };
        match name {
            "words+cjk-bigrams" => Ok(Self::WordsCjkBigrams),
            "words+cjk-grams" => Ok(Self::WordsCjkGrams),
            "words" => Ok(Self::Words),
            "words+jieba" if cfg!(feature = "jieba") => Ok(Self::WordsJieba),
            _ => number("shingles-", 2..=16)
                .map(Self::Shingles)
                .or_else(|| number("chars-", 1..=16).map(Self::Chars))
                .or_else(|| number("longest-sentences-", 1..=64).map(Self::LongestSentences))
                .ok_or(UnknownTokenizer),
        }
    }
}

impl Serialize for Tokenizer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tokenizer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// Features of a text, for tests.
#[cfg(test)]
pub(crate) fn features(mut extract: impl Extract, text: &str) -> Vec<String> {
    let mut folded = Folded::default();
    folded.fill(|out| out.push_str(text));
    let mut features = Vec::new();
    extract.extract(&folded, &mut |feature| {
        features.push(feature.text().to_owned());
    });
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for tokenizer in [
            Tokenizer::WordsCjkBigrams,
            Tokenizer::WordsCjkGrams,
            Tokenizer::Words,
            Tokenizer::Shingles(3),
            Tokenizer::Chars(2),
            Tokenizer::LongestSentences(2),
        ] {
            assert_eq!(
                tokenizer.to_string().parse::<Tokenizer>().unwrap(),
                tokenizer
            );
        }
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
