//! The scripts of Thai, Lao, Burmese and Khmer, which have no spaces between words. UAX #29 leaves them to dictionaries.
//!
//! Their letters are few, and pairs of them repeat in every text: only from four letters on do unrelated texts differ as those
//! of spaced scripts do.

use super::TakeFeature;
use super::cjk::utf8_len;
use crate::text::Folded;

/// The number of characters of a feature.
const GRAM: usize = 4;

/// The first byte of such a character, and of a character of [`cjk`](super::cjk), is this or more.
pub(crate) const LEAST_BYTE: u8 = 0xe0;

/// Whether `c` is a letter or a mark of Thai, Lao, Burmese or Khmer.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e01}'..='\u{e3a}'        // Thai, without the currency, digits and marks of lists
        | '\u{e40}'..='\u{e4e}'
        | '\u{e81}'..='\u{ecf}'      // Lao
        | '\u{edc}'..='\u{edf}'
        | '\u{1000}'..='\u{103f}'    // Burmese
        | '\u{1050}'..='\u{108f}'
        | '\u{109a}'..='\u{109d}'
        | '\u{1780}'..='\u{17d3}'    // Khmer
        | '\u{17d7}' | '\u{17dc}' | '\u{17dd}'
        | '\u{a9e0}'..='\u{a9ef}'    // Burmese, extensions B and A
        | '\u{a9fa}'..='\u{a9fe}'
        | '\u{aa60}'..='\u{aa76}'
        | '\u{aa7a}'..='\u{aa7f}')
}

/// Returns the byte offset of the first such character in `text` from `from` on, or the length of `text` if it has none there.
pub(crate) fn next_start(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let is_first = |byte: &u8| matches!(byte, 0xe0 | 0xe1 | 0xea);
    let mut start = from;
    while let Some(step) = bytes[start..].iter().position(is_first) {
        start += step;
        if text[start..].starts_with(is_unspaced) {
            return start;
        }
        start += utf8_len(bytes[start]);
    }
    bytes.len()
}

/// Gives `each` every four consecutive characters of the run that begins at `start`, or a shorter run as a whole, and returns
/// where the run ends. Reads no further than to `limit`.
pub(crate) fn grams(
    text: &Folded,
    start: usize,
    limit: usize,
    each: &mut impl TakeFeature,
) -> usize {
    let run = &text.as_str()[start..limit];
    let end = start + run.find(|c| !is_unspaced(c)).unwrap_or(run.len());
    let bytes = text.as_str().as_bytes();
    let (mut first, mut last, mut characters) = (start, start, 0);
    while last < end {
        last += utf8_len(bytes[last]);
        characters += 1;
        if characters >= GRAM {
            each.take(text.feature(first..last));
            first += utf8_len(bytes[first]);
        }
    }
    if (1..GRAM).contains(&characters) {
        each.take(text.feature(start..end));
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_scripts() {
        for c in '\0'..=char::MAX {
            let first = c.to_string().as_bytes()[0];
            assert!(
                !is_unspaced(c) || matches!(first, 0xe0 | 0xe1 | 0xea),
                "{c:?}"
            );
            assert!(!is_unspaced(c) || !super::super::cjk::is_cjk(c), "{c:?}");
        }
    }
}
