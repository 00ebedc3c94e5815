//! Cuts Chinese text into words by jieba's dictionary.

use std::ops::Range;
use std::sync::LazyLock;

use jieba_rs::Jieba;

/// Calls `each` with the words of `run`.
///
/// Jieba's hidden Markov model, which guesses unknown words, is off: its guesses depend on neighbouring words, so a small
/// edit would change features far from it.
pub(super) fn segment(text: &str, run: Range<usize>, mut each: impl FnMut(Range<usize>)) {
    static DICTIONARY: LazyLock<Jieba> = LazyLock::new(Jieba::new);
    let mut at = run.start;
    for word in DICTIONARY.cut(&text[run], false) {
        each(at..at + word.word.len());
        at += word.word.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_dictionary() {
        let text = "a近似重复的网页";
        let mut words = Vec::new();
        segment(text, 1..text.len(), |word| words.push(&text[word]));
        assert_eq!(words, ["近似", "重复", "的", "网页"]);
    }
}
