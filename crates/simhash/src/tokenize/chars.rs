//! Extracts n-grams of letters and digits; for n = 2 they are the literature's "two-letter grams".

use super::{Extract, TakeFeature};
use crate::text::Folded;

/// Extracts n consecutive letters and digits, ignoring all characters between them.
#[derive(Debug, Clone)]
pub(crate) struct Chars {
    n: usize,
    /// The letters and digits of the text.
    letters: Folded,
}

impl Chars {
    pub(crate) fn new(n: u8) -> Self {
        Self {
            n: usize::from(n),
            letters: Folded::default(),
        }
    }
}

impl Extract for Chars {
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        self.letters.fill(|out| {
            out.extend(text.as_str().chars().filter(|c| c.is_alphanumeric()));
        });
        let letters = self.letters.as_str();
        let starts = letters.char_indices().map(|(at, _)| at);
        // Fewer than n letters and digits are one gram.
        let ends = starts.clone().skip(self.n).chain([letters.len()]);
        for (start, end) in starts.zip(ends) {
            each.take(self.letters.feature(start..end));
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
