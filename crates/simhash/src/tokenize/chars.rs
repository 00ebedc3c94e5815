//! Extracts n-grams of letters and digits; for n = 2 they are the literature's "two-letter grams".

use super::{Extract, TakeFeature};
use crate::text::Folded;

/// Extracts n consecutive letters and digits, ignoring all characters between them.
#[derive(Debug, Clone)]
pub(crate) struct Chars {
    n: usize,
    /// The letters and digits of the text.
    letters: Folded,
    /// The start of each character in `letters`, and the end of the last.
    starts: Vec<usize>,
}

impl Chars {
    pub(crate) fn new(n: u8) -> Self {
        Self {
            n: usize::from(n),
            letters: Folded::default(),
            starts: Vec::new(),
        }
    }
}

impl Extract for Chars {
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        self.starts.clear();
        self.letters.fill(|out| {
            for c in text.as_str().chars().filter(|c| c.is_alphanumeric()) {
                self.starts.push(out.len());
                out.push(c);
            }
            self.starts.push(out.len());
        });
        let grams = self.starts.windows(self.n + 1);
        if grams.len() == 0 && self.starts.len() > 1 {
            // A text with fewer than n letters and digits is one gram.
            each.take(self.letters.feature(0..self.starts[self.starts.len() - 1]));
        }
        for gram in grams {
            each.take(self.letters.feature(gram[0]..gram[self.n]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::features;

    #[test]
    fn grams_ignore_characters_between_letters() {
        assert_eq!(features(Chars::new(2), "a b,c"), ["ab", "bc"]);
        assert_eq!(features(Chars::new(3), "近似！重复"), ["近似重", "似重复"]);
        assert_eq!(features(Chars::new(3), "a-b"), ["ab"]);
        assert!(features(Chars::new(1), "...").is_empty());
    }
}
