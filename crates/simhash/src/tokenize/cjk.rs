//! The scripts of Chinese, Japanese and Korean (CJK): Han, Hiragana, Katakana and Hangul.

use std::ops::Range;

use super::TakeFeature;
use crate::text::Folded;

/// Whether `c` is a character of Han, Hiragana, Katakana or Hangul.
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

/// Whether a Han character from U+4E00 to U+9FFF begins at `at`, as most Han characters are. It has
/// 3 bytes. `bytes` are UTF-8.
#[inline(always)]
pub(crate) fn is_common_han(bytes: &[u8], at: usize) -> bool {
    // The first two bytes of such a character, in the order of their characters.
    match bytes.get(at..at + 2) {
        Some(&[first, second]) => (0xe4b8..=0xe9bf).contains(&u16::from_be_bytes([first, second])),
        _ => false,
    }
}

/// Whether a CJK character begins at `at`, where a character of `text` begins or the text ends.
#[inline(always)]
fn begins_at(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    // Every CJK character begins with a byte of at least 0xE1.
    bytes.get(at).is_some_and(|&first| first >= 0xe1)
        && (is_common_han(bytes, at) || text[at..].chars().next().is_some_and(is_cjk))
}

/// Where the first run of CJK characters in `text` at or after `from` begins; the end of `text` if there is none.
pub(crate) fn next_start(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut start = from;
    while let Some(step) = bytes[start..].iter().position(|&byte| byte >= 0xe1) {
        start += step;
        if begins_at(text, start) {
            return start;
        }
        start += utf8_len(bytes[start]);
    }
    bytes.len()
}

/// Where the run of CJK characters ends that begins at `start`, or goes on there.
pub(crate) fn run_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = start;
    loop {
        while is_common_han(bytes, end) {
            end += 3;
        }
        if begins_at(text, end) {
            end += utf8_len(bytes[end])
        } else {
            return end;
        }
    }
}

/// Gives `each` the characters and the overlapping pairs of characters of the run of CJK that begins at `start`, and
/// returns where the run ends. Reads no further than to `limit`.
#[inline(always)]
pub(crate) fn chars_and_bigrams(
    text: &Folded,
    mut start: usize,
    limit: usize,
    each: &mut impl TakeFeature,
) -> usize {
    let whole = &text.as_str()[..limit];
    let bytes = whole.as_bytes();
    while start < limit {
        // Most characters have 3 bytes. With the length known, a feature is hashed in fewer steps.
        while is_common_han(bytes, start) && is_common_han(bytes, start + 3) {
            each.take(text.feature(start..start + 3));
            each.take(text.feature(start..start + 6));
            start += 3;
        }
        let middle = start + utf8_len(bytes[start]);
        each.take(text.feature(start..middle));
        if !begins_at(whole, middle) {
            return middle;
        }
        each.take(text.feature(start..middle + utf8_len(bytes[middle])));
        start = middle;
    }
    start
}

/// Calls `each` with the overlapping pairs of characters of `run`, or with its only character.
#[inline(always)]
pub(crate) fn bigrams(text: &str, run: Range<usize>, mut each: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let next = |at: usize| at + utf8_len(bytes[at]);
    let mut start = run.start;
    if start == run.end {
        return;
    }
    let mut middle = next(start);
    if middle == run.end {
        return each(run);
    }
    while middle < run.end {
        let end = next(middle);
        each(start..end);
        (start, middle) = (middle, end);
    }
}

/// The number of bytes of the character that begins with `first`.
#[inline(always)]
pub(crate) fn utf8_len(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_script_and_length() {
        for c in '\0'..=char::MAX {
            let is_common = ('\u{4e00}'..'\u{a000}').contains(&c);
            assert_eq!(
                is_common_han(c.to_string().as_bytes(), 0),
                is_common,
                "{c:?}"
            );
            assert!(!is_common || (is_cjk(c) && c.len_utf8() == 3));
        }
        for c in ['a', 'é', '近', '\u{20000}'] {
            assert_eq!(utf8_len(c.to_string().as_bytes()[0]), c.len_utf8());
        }
        let first = ('\u{80}'..=char::MAX).filter(|&c| is_cjk(c));
        assert!(first.map(|c| c.to_string().as_bytes()[0]).min() == Some(0xe1));
    }
}
