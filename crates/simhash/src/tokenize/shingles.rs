//! Shingles: n consecutive features of another way.

use std::ops::Range;

use super::Extract;
use crate::text::{Feature, Folded};

/// Extracts n consecutive features, joined by spaces; of a text that has fewer, all.
#[derive(Debug, Clone)]
pub(crate) struct Shingles<E> {
    n: usize,
    of: E,
    /// The features, one after the other, each with a space behind it.
    joined: Folded,
    features: Vec<Range<usize>>,
}

impl<E> Shingles<E> {
    pub(crate) fn new(n: u8, of: E) -> Self {
        Self {
            n: usize::from(n),
            of,
            joined: Folded::default(),
            features: Vec::new(),
        }
    }
}

impl<E: Extract> Extract for Shingles<E> {
    fn extract(&mut self, text: &Folded, each: &mut impl FnMut(Feature<'_>)) {
        self.features.clear();
        self.joined.fill(|out| {
            self.of.extract(text, &mut |feature| {
                let start = out.len();
                out.push_str(feature.text());
                self.features.push(start..out.len());
                out.push(' ');
            });
        });
        let whole = self.n.min(self.features.len());
        for shingle in self.features.windows(whole.max(1)) {
            let (first, last) = (&shingle[0], &shingle[shingle.len() - 1]);
            each(self.joined.feature(first.start..last.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Kernel;
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
    }
}
