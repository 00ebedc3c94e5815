//! One extractor for every tokenizer.

use std::collections::HashSet;
use std::sync::Arc;

use super::chars::Chars;
use super::code::Code;
use super::sentences::Sentences;
use super::shingles::Shingles;
use super::stop_filter::StopFilter;
use super::words::{Cjk, Words};
use super::{Extract, TakeFeature, Tokenizer};
use crate::isa::Kernel;
use crate::text::Folded;

/// Extracts the features of any [`Tokenizer`].
#[derive(Debug, Clone)]
pub(crate) enum Extractor {
    Words(StopFilter),
    Shingles(Shingles<StopFilter>),
    Chars(Chars),
    Code(Code),
    Sentences(Sentences),
}

impl Extractor {
    /// An extractor that leaves out the words whose hashes under `seed` are in `stop_words`.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        kernel: Kernel,
        stop_words: Option<&Arc<HashSet<u64>>>,
        seed: u32,
    ) -> Self {
        let words = |cjk| StopFilter::new(Words::new(cjk, kernel), stop_words.cloned(), seed);
        match tokenizer {
            Tokenizer::WordsCjkBigrams => Self::Words(words(Cjk::Bigrams)),
            Tokenizer::WordsCjkGrams => Self::Words(words(Cjk::Grams)),
            Tokenizer::Words => Self::Words(words(Cjk::Words)),
            #[cfg(feature = "jieba")]
            Tokenizer::WordsJieba => Self::Words(words(Cjk::Jieba)),
            // A build without jieba refuses this tokenizer's name.
            #[cfg(not(feature = "jieba"))]
            Tokenizer::WordsJieba => Self::Words(words(Cjk::Words)),
            Tokenizer::Shingles(n) => Self::Shingles(Shingles::new(n, words(Cjk::Bigrams))),
            Tokenizer::WordsAndShingles(n) => {
                Self::Shingles(Shingles::with_single(n, words(Cjk::Bigrams)))
            }
            Tokenizer::Chars(n) => Self::Chars(Chars::new(n)),
            Tokenizer::Code => Self::Code(Code::default()),
            Tokenizer::LongestSentences(n) => Self::Sentences(Sentences::new(n)),
        }
    }

    /// Whether the features of `text` are its words, and all of them.
    pub(crate) fn gives_words(&self, text: &Folded) -> bool {
        matches!(self, Self::Words(words) if words.gives_all_words(text))
    }
}

impl Extract for Extractor {
    #[inline]
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        match self {
            Self::Words(words) => words.extract(text, each),
            Self::Shingles(shingles) => shingles.extract(text, each),
            Self::Chars(chars) => chars.extract(text, each),
            Self::Code(code) => code.extract(text, each),
            Self::Sentences(sentences) => sentences.extract(text, each),
        }
    }
}
