//! Extracts shingles: n consecutive features of another extractor.

use std::ops::Range;

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
    /// The range of each feature in `joined`.
    features: Vec<Range<usize>>,
}

impl<E> Shingles<E> {
    pub(crate) fn new(n: u8, inner: E) -> Self {
        Self {
            n: usize::from(n),
            single: false,
            inner,
            joined: Folded::default(),
            features: Vec::new(),
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
        self.features.clear();
        self.joined.fill(|out| {
            self.inner.extract(text, &mut |feature: Feature<'_>| {
                let start = out.len();
                out.push_str(feature.text());
                self.features.push(start..out.len());
                out.push(' ');
            });
        });
        if self.single {
            for (at, feature) in self.features.iter().enumerate() {
                each.take(self.joined.feature(feature.clone()));
                if let Some(last) = self.features.get(at + self.n - 1) {
                    each.take(self.joined.feature(feature.start..last.end));
                }
            }
            return;
        }
        let n = self.n.min(self.features.len());
        for shingle in self.features.windows(n.max(1)) {
            let (first, last) = (&shingle[0], &shingle[shingle.len() - 1]);
            each.take(self.joined.feature(first.start..last.end));
        }
    }
}

#[cfg(test)]
mod tests {
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
}
