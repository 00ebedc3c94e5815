//! Extracts the longest sentences, by which Baidu is said to compare pages.

use super::{Extract, TakeFeature};
use crate::text::Folded;

/// Extracts the n longest sentences, the longest first; of equally long ones the earlier.
#[derive(Debug, Clone)]
pub(crate) struct Sentences {
    n: usize,
}

impl Sentences {
    pub(crate) fn new(n: u8) -> Self {
        Self { n: usize::from(n) }
    }
}

impl Extract for Sentences {
    fn extract(&mut self, text: &Folded, each: &mut impl TakeFeature) {
        let whole = text.as_str();
        let ends = |c: char| matches!(c, '.' | '!' | '?' | ';' | '\n' | '。' | '！' | '？' | '；');
        let mut sentences: Vec<_> = whole
            .split(ends)
            .map(str::trim)
            .filter(|sentence| sentence.chars().any(char::is_alphanumeric))
            .map(|sentence| {
                let start = sentence.as_ptr().addr() - whole.as_ptr().addr();
                (sentence.chars().count(), start..start + sentence.len())
            })
            .collect();
        sentences.sort_by_key(|(length, range)| (std::cmp::Reverse(*length), range.start));
        for (_, range) in sentences.into_iter().take(self.n) {
            each.take(text.feature(range));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::features;

    #[test]
    fn longest_first() {
        assert_eq!(
            features(
                Sentences::new(2),
                "One. Two words here! Two words, there? …"
            ),
            ["two words, there", "Two words here"].map(|s| s.replace("two", "Two"))
        );
        assert_eq!(
            features(Sentences::new(1), "短句。这是最长的句子！中句？"),
            ["这是最长的句子"]
        );
    }
}
