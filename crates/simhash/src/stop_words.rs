//! Stop words: words that are left out of the features.

use std::collections::{BTreeSet, HashSet};

use sha2::{Digest, Sha256};

use crate::spec::{Spec, hex};
use crate::text::Folded;

/// A list of stop words, folded as texts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopWords {
    words: BTreeSet<String>,
    digest: String,
}

impl StopWords {
    /// Reads and folds a list of one word per line; empty lines and lines that begin with `#` are ignored.
    #[must_use]
    pub fn parse(list: &str, spec: &Spec) -> Self {
        let mut folded = Folded::default();
        let lines = list.lines().map(str::trim);
        let words: BTreeSet<String> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|word| {
                spec.normalize.fold(spec.fold, word, &mut folded);
                folded.as_str().to_owned()
            })
            .collect();
        Self::from_folded(words)
    }

    /// Reads the words that [`Self::encode`] wrote.
    #[must_use]
    pub fn decode(encoded: &str) -> Self {
        let words = encoded.split('\n').filter(|word| !word.is_empty());
        Self::from_folded(words.map(str::to_owned).collect())
    }

    /// The folded words in order, a newline after each.
    #[must_use]
    pub fn encode(&self) -> String {
        self.words.iter().map(|word| format!("{word}\n")).collect()
    }

    fn from_folded(mut words: BTreeSet<String>) -> Self {
        words.remove("");
        let mut digest = Sha256::new();
        for word in &words {
            digest.update(word);
            digest.update("\n");
        }
        Self {
            digest: hex(&digest.finalize()),
            words,
        }
    }

    /// SHA-256 of [`Self::encode`], in hexadecimal; [`crate::Spec::stop_words`] names the list by it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The hashes of the words under `seed`.
    pub(crate) fn hashes(&self, seed: u32) -> HashSet<u64> {
        let hash = |word: &String| crate::hash::murmur3_low64(word.as_bytes(), seed);
        self.words.iter().map(hash).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_case_and_comments_do_not_matter() {
        let parse = |list| StopWords::parse(list, &Spec::default());
        let list = parse("# English\nThe\n\n a\n");
        assert_eq!(list.encode(), "a\nthe\n");
        assert_eq!(list, parse("a\nthe"));
        assert_ne!(list.digest(), parse("a").digest());
        // A folded word that begins with # or a space is read back unchanged.
        let odd = parse("\u{ff03}hash\n\u{b4}\nx");
        assert_eq!(StopWords::decode(&odd.encode()), odd);
    }
}
