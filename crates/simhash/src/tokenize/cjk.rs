//! The scripts of Chinese, Japanese and Korean (CJK): Han, Hiragana, Katakana and Hangul.

use std::ops::Range;

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

/// First bytes in UTF-8 that begin only Han characters, of 3 bytes each: those from U+5000 to
/// U+9FFF.
pub(crate) const HAN: std::ops::RangeInclusive<u8> = 0xe5..=0xe9;

/// The first run of CJK characters in `text` at or after `from`; an empty range at the end of `text` if there is none.
pub(crate) fn next_run(text: &str, from: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut start = from;
    // Every CJK character begins with a byte of at least 0xE1, so smaller bytes are skipped one by one.
    loop {
        match bytes[start..].iter().position(|&byte| byte >= 0xe1) {
            None => return bytes.len()..bytes.len(),
            Some(step) => start += step,
        }
        if HAN.contains(&bytes[start]) {
            break;
        }
        match text[start..].chars().next() {
            Some(c) if is_cjk(c) => break,
            c => start += c.map_or(1, char::len_utf8),
        }
    }
    let mut end = start;
    loop {
        while bytes.get(end).is_some_and(|byte| HAN.contains(byte)) {
            end += 3;
        }
        // Most runs end before a byte below 0xE1, which begins no CJK character.
        match bytes.get(end) {
            Some(0xe1..) => {}
            _ => return start..end,
        }
        match text[end..].chars().next() {
            Some(c) if is_cjk(c) => end += c.len_utf8(),
            _ => return start..end,
        }
    }
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

/// Calls `each` with the characters and the overlapping pairs of characters of `run`.
pub(crate) fn chars_and_bigrams(text: &str, run: Range<usize>, mut each: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut start = run.start;
    while start < run.end {
        let middle = start + utf8_len(bytes[start]);
        each(start..middle);
        if middle < run.end {
            each(start..middle + utf8_len(bytes[middle]));
        }
        start = middle;
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
        for c in '\u{5000}'..'\u{a000}' {
            assert!(is_cjk(c));
            assert!(HAN.contains(&c.to_string().as_bytes()[0]));
        }
        for c in ['a', 'é', '近', '\u{20000}'] {
            assert_eq!(utf8_len(c.to_string().as_bytes()[0]), c.len_utf8());
        }
        let first = ('\u{80}'..=char::MAX).filter(|&c| is_cjk(c));
        assert!(first.map(|c| c.to_string().as_bytes()[0]).min() == Some(0xe1));
    }
}
