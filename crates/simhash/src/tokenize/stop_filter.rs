//! Extracts the words of a text, except stop words.

use std::collections::HashSet;
use std::sync::Arc;

use super::words::Words;
use super::{Extract, TakeFeature};
use crate::text::{Feature, Folded};

/// Extracts words, except stop words.
#[derive(Debug, Clone)]
pub(crate) struct StopFilter {
    words: Words,
    /// The hashes of the stop words under `seed`.
    stop_words: Option<Arc<HashSet<u64>>>,
    seed: u32,
}

impl StopFilter {
    /// Leaves out the words whose hashes under `seed` are in `stop_words`.
    pub(crate) fn new(words: Words, stop_words: Option<Arc<HashSet<u64>>>, seed: u32) -> Self {
        Self {
            words,
            stop_words,
            seed,
        }
    }

    /// Whether the features of `text` are its words, and all of them.
    pub(crate) fn gives_all_words(&self, text: &Folded) -> bool {
        self.stop_words.is_none() && self.words.gives_words(text)
    }
}

impl Extract for StopFilter {
    #[inline]
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        match &self.stop_words {
            None => self.words.extract(text, each),
            Some(stop_words) => self.words.extract(text, &mut |feature: Feature<'_>| {
                if !stop_words.contains(&feature.hash(self.seed)) {
                    each.take(feature);
                }
            }),
        }
    }
}
