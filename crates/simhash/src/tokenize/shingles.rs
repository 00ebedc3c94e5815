//! Extracts shingles: n consecutive features of another extractor.

use super::{Extract, TakeFeature};
use crate::text::{Feature, Folded};

/// Extracts n consecutive features, joined by spaces; a text with fewer than n is one shingle.
#[derive(Debug, Clone)]
pub(crate) struct Shingles<E> {
    n: usize,
    /// Whether the features of `inner` are extracted, too.
    single: bool,
    inner: E,
    /// The features of `inner`, each followed by a space.
    joined: Folded,
    /// The length of each feature in `joined`: of a long text, they take as many bytes as they can have.
    lengths: Vec<u32>,
}

impl<E> Shingles<E> {
    pub(crate) fn new(n: u8, inner: E) -> Self {
        Self {
            n: usize::from(n),
            single: false,
            inner,
            joined: Folded::default(),
            lengths: Vec::new(),
        }
    }

    /// Extracts the features of `inner`, each followed by the shingle that begins with it, if there
    /// is one.
    pub(crate) fn with_single(n: u8, inner: E) -> Self {
        Self {
            single: true,
            ..Self::new(n, inner)
        }
    }
}

impl<E: Extract> Extract for Shingles<E> {
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        self.lengths.clear();
        self.joined.fill(|out| {
            self.inner.extract(text, &mut |feature: Feature<'_>| {
                out.push_str(feature.text());
                out.push(' ');
                self.lengths.push(feature.text().len() as u32);
            });
        });
        let n = if self.single {
            self.n
        } else {
            self.n.min(self.lengths.len())
        };
        // Where a feature is, and where the shingle that begins with it ends, with a space.
        let mut start = 0;
        let with_space = |length: &u32| *length as usize + 1;
        let mut end: usize = self.lengths.iter().take(n).map(with_space).sum();
        for (at, length) in self.lengths.iter().map(with_space).enumerate() {
            if self.single {
                each.take(self.joined.feature(start..start + length - 1));
            }
            if at + n <= self.lengths.len() {
                each.take(self.joined.feature(start..end - 1));
            }
            start += length;
            end += self.lengths.get(at + n).map_or(0, with_space);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::Kernel;
    use crate::tokenize::{Cjk, Words, features};

    #[test]
    fn consecutive_words() {
        let shingles = |text| {
            features(
                Shingles::new(3, Words::new(Cjk::Bigrams, Kernel::detect())),
                text,
            )
        };
        assert_eq!(shingles("a b, c d"), ["a b c", "b c d"]);
        assert_eq!(shingles("a b"), ["a b"]);
        assert!(shingles("").is_empty());
        let with_single = |text| {
            features(
                Shingles::with_single(2, Words::new(Cjk::Bigrams, Kernel::detect())),
                text,
            )
        };
        assert_eq!(with_single("a b, c"), ["a", "a b", "b", "b c", "c"]);
        assert_eq!(with_single("a"), ["a"]);
        assert!(with_single("").is_empty());
    }

    proptest! {
        #[test]
        fn shingles_are_those_of_the_words(words in proptest::collection::vec("[a-z]{1,20}", 0..30), n in 2_u8..17) {
            let text = words.join(" ");
            let words_of = || Words::new(Cjk::Bigrams, Kernel::detect());
            let joined: Vec<String> = words.windows(usize::from(n)).map(|shingle| shingle.join(" ")).collect();
            let expected = if joined.is_empty() && !words.is_empty() { vec![text.clone()] } else { joined.clone() };
            prop_assert_eq!(features(Shingles::new(n, words_of()), &text), expected);
            let mut expected = Vec::new();
            for (at, word) in words.iter().enumerate() {
                expected.push(word.clone());
                expected.extend(joined.get(at).cloned());
            }
            prop_assert_eq!(features(Shingles::with_single(n, words_of()), &text), expected);
        }
    }
}
