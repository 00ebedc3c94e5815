//! Cutting a folded text into features: words, and overlapping bigrams where a script has no spaces.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// How a folded text is cut into features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tokenizer {
    /// Words by Unicode's UAX #29; runs of Han, Hiragana, Katakana and Hangul as overlapping
    /// character bigrams (a run of one character is one feature).
    #[serde(rename = "words+cjk-bigrams")]
    WordsCjkBigrams,
}

/// Calls `feature` with every feature of `text`, in order, repeated ones repeatedly.
pub fn words_cjk_bigrams<'a>(text: &'a str, mut feature: impl FnMut(&'a str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let cjk_start = find_cjk(rest).unwrap_or(rest.len());
        let (spaced, from_cjk) = rest.split_at(cjk_start);
        spaced.unicode_words().for_each(&mut feature);
        let cjk_end = from_cjk
            .char_indices()
            .find(|&(_, c)| !is_cjk(c))
            .map_or(from_cjk.len(), |(at, _)| at);
        let (run, after) = from_cjk.split_at(cjk_end);
        bigrams(run, &mut feature);
        rest = after;
    }
}

/// Where the first CJK character of `text` begins.
fn find_cjk(text: &str) -> Option<usize> {
    // Every CJK character begins with a byte of at least 0xE1: most text is passed over by bytes.
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(step) = bytes[at..].iter().position(|&byte| byte >= 0xe1) {
        at += step;
        let c = text[at..].chars().next()?;
        if is_cjk(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
    None
}

/// Overlapping pairs of characters of one run; a run of one character as it is.
fn bigrams<'a>(run: &'a str, feature: &mut impl FnMut(&'a str)) {
    let starts = run.char_indices().map(|(at, _)| at);
    let ends = starts.clone().skip(2).chain([run.len()]);
    starts
        .zip(ends)
        .for_each(|(start, end)| feature(&run[start..end]));
}

/// Whether `c` belongs to a script that is cut into bigrams: Han, Hiragana, Katakana, Hangul.
#[must_use]
pub fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}'      // Hangul Jamo
        | '\u{3005}' | '\u{3007}'    // iteration mark, ideographic zero
        | '\u{3041}'..='\u{3096}'    // Hiragana
        | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}'    // Katakana, without the middle dot
        | '\u{30fc}'..='\u{30ff}'
        | '\u{3131}'..='\u{318e}'    // Hangul compatibility Jamo
        | '\u{31f0}'..='\u{31ff}'    // Katakana extensions
        | '\u{3400}'..='\u{4dbf}'    // Han, extension A
        | '\u{4e00}'..='\u{9fff}'    // Han
        | '\u{a960}'..='\u{a97c}'    // Hangul Jamo extended
        | '\u{ac00}'..='\u{d7fb}'    // Hangul syllables
        | '\u{f900}'..='\u{faff}'    // Han, compatibility
        | '\u{20000}'..='\u{323af}') // Han, extensions B and later
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn features(text: &str) -> Vec<&str> {
        let mut features = Vec::new();
        words_cjk_bigrams(text, |feature| features.push(feature));
        features
    }

    #[test]
    fn words_of_spaced_text() {
        assert_eq!(
            features("it's 3.14, e.g. a_b — naïve, naïve!"),
            ["it's", "3.14", "e.g", "a_b", "naïve", "naïve"]
        );
        assert!(features(" \t\n…—!?").is_empty());
    }

    #[test]
    fn bigrams_of_cjk_runs() {
        assert_eq!(features("近似重复"), ["近似", "似重", "重复"]);
        assert_eq!(features("第3章 中"), ["第", "3", "章", "中"]);
        assert_eq!(features("rust语言book"), ["rust", "语言", "book"]);
        assert_eq!(
            features("한국어 カナ・かな"),
            ["한국", "국어", "カナ", "かな"]
        );
    }

    proptest! {
        #[test]
        fn features_are_substrings_in_order(text in "\\PC*") {
            let mut at = 0;
            words_cjk_bigrams(&text, |feature| {
                let start = feature.as_ptr() as usize - text.as_ptr() as usize;
                assert!(start >= at && !feature.is_empty());
                at = start;
            });
        }
    }
}
