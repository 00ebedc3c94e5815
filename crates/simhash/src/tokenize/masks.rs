//! Finds words in plain text ([`crate::plain`]), 64 bytes at a time.
//!
//! UAX #29 restricted to plain characters: a word consists of letters, digits and `_`; one of `'.:·‘’` may stand between
//! two letters, and one of `',.;‘’` between two digits. A mask of 64 bits marks each kind of byte, and shifts of the masks
//! apply the rules.

use crate::isa::{Isa, Kernel, Work};
use crate::plain::{Firsts, Window};
use crate::text::Folded;

/// The classes of 64 bytes: bit i of each mask stands for byte i.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Bytes of words: letters, digits, `_`, and the punctuation between them that does not end a word.
    pub(crate) words: u64,
    /// The first bytes of plain characters of Chinese, Japanese and Korean, of three bytes each.
    pub(crate) cjk: u64,
    /// Bytes of characters that are not plain.
    pub(crate) other: u64,
    /// White space of ASCII, which always ends a word that does not consist of white space and combining marks.
    pub(crate) space: u64,
}

/// Fills `chunks` with the classes of the bytes of `text`; the last chunk is padded with zero bytes.
pub(crate) fn classify(kernel: Kernel, text: &Folded, chunks: &mut Vec<Chunk>) {
    chunks.clear();
    kernel.run(Classify { text, chunks });
}

struct Classify<'a> {
    text: &'a Folded,
    chunks: &'a mut Vec<Chunk>,
}

/// The kinds of 64 bytes, before the rules apply: bit i of each mask stands for byte i.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    letters: u64,
    digits: u64,
    underscores: u64,
    /// Punctuation of ASCII that joins letters: `'`, `.` and `:`.
    in_letters: u64,
    /// Punctuation of ASCII that joins digits: `'`, `,`, `.` and `;`.
    in_digits: u64,
    other: u64,
    space: u64,
    firsts: Firsts,
}

impl Work for Classify<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LANES: usize>(self, isa: impl Isa) {
        let count = self.text.len() / 64 + 1;
        self.chunks.reserve(count);
        // The rules need the last byte of the chunk before and the first bytes of the chunk after.
        let mut before = Kinds::default();
        let mut own = Kinds::of(isa, self.text.window(0), &Firsts::default());
        // The joining marks of the chunk before.
        let (mut dots_before, mut quotes_before) = (0, 0);
        for at in 1..=count {
            let after = if at < count {
                Kinds::of(isa, self.text.window(64 * at), &own.firsts)
            } else {
                Kinds::default()
            };
            // The bytes at which a mark of `bytes` bytes would begin between two characters of one kind.
            let around = |bytes: u32, kind: fn(&Kinds) -> u64| {
                let (before, own, after) = (kind(&before), kind(&own), kind(&after));
                (own << 1 | before >> 63) & (own >> bytes | after << (64 - bytes))
            };
            let is_letter = |kinds: &Kinds| kinds.letters;
            let is_digit = |kinds: &Kinds| kinds.digits;
            let dots = own.firsts.dots & around(2, is_letter);
            let quotes = own.firsts.quotes & (around(3, is_letter) | around(3, is_digit));
            let joining = (own.in_letters & around(1, is_letter))
                | (own.in_digits & around(1, is_digit))
                | all_of_two(dots, dots_before)
                | all_of_three(quotes, quotes_before);
            self.chunks.push(Chunk {
                words: own.letters | own.digits | own.underscores | joining,
                cjk: own.firsts.cjk,
                other: own.other,
                space: own.space,
            });
            (dots_before, quotes_before) = (dots, quotes);
            (before, own) = (own, after);
        }
    }
}

impl Kinds {
    /// The kinds of the first 64 bytes of a window. `before` are the characters that begin in the 64 bytes before.
    #[inline(always)]
    fn of(isa: impl Isa, window: &Window, before: &Firsts) -> Self {
        let Some(bytes) = window.first_chunk::<64>() else {
            unreachable!()
        };
        let lower = &mut [0; 64];
        for (lower, byte) in lower.iter_mut().zip(bytes) {
            *lower = byte | 0x20;
        }
        let quote_or_dot = isa.mask(bytes, |byte| (byte == b'\'') | (byte == b'.'));
        let not_ascii = isa.mask(bytes, |byte| byte >= 0x80);
        let firsts = Firsts::find(isa, window, not_ascii);
        let letters = all_of_two(firsts.letters, before.letters);
        let of_two = all_of_two(
            firsts.short_marks | firsts.dots,
            before.short_marks | before.dots,
        );
        let of_three = all_of_three(firsts.marks | firsts.cjk, before.marks | before.cjk);
        Self {
            letters: isa.mask(lower, |byte| byte.wrapping_sub(b'a') < 26) | letters,
            digits: isa.mask(bytes, |byte| byte.wrapping_sub(b'0') < 10),
            underscores: isa.mask(bytes, |byte| byte == b'_'),
            in_letters: quote_or_dot | isa.mask(bytes, |byte| byte == b':'),
            in_digits: quote_or_dot | isa.mask(bytes, |byte| (byte == b',') | (byte == b';')),
            other: not_ascii & !(letters | of_two | of_three),
            space: isa.mask(bytes, |byte| {
                (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
            }),
            firsts,
        }
    }
}

/// All bytes of characters of two bytes, by their first bytes in the chunk and in the chunk before.
#[inline(always)]
fn all_of_two(firsts: u64, before: u64) -> u64 {
    firsts | firsts << 1 | before >> 63
}

/// All bytes of characters of three bytes, by their first bytes in the chunk and in the chunk before.
#[inline(always)]
fn all_of_three(firsts: u64, before: u64) -> u64 {
    firsts | firsts << 1 | firsts << 2 | before >> 62 | before >> 63
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation as _;

    use super::*;

    fn classes(kernel: Kernel, text: &str) -> Vec<Chunk> {
        let mut folded = Folded::default();
        folded.fill(|out| out.push_str(text));
        let mut chunks = Vec::new();
        classify(kernel, &folded, &mut chunks);
        chunks
    }

    /// The runs of bytes that [`classify`] puts in words, except runs of `_` alone.
    fn words(kernel: Kernel, text: &str) -> Vec<&str> {
        let chunks = classes(kernel, text);
        let is = |at: usize| chunks[at / 64].words >> (at % 64) & 1 == 1;
        assert!((text.len()..64 * chunks.len()).all(|at| !is(at)));
        let mut words = Vec::new();
        let mut start = None;
        for at in 0..=text.len() {
            match (start, is(at)) {
                (None, true) => start = Some(at),
                (Some(from), false) => {
                    words.push(&text[from..at]);
                    start = None;
                }
                _ => {}
            }
        }
        words.retain(|word| word.bytes().any(|byte| byte != b'_'));
        words
    }

    #[test]
    fn every_character_has_the_class_of_its_kind() {
        for c in '\0'..=char::MAX {
            // The character lies on both sides of the boundary between two chunks.
            let text = format!("{}{c}", ".".repeat(63));
            let chunks = classes(Kernel::PORTABLE, &text);
            let is_plain = (chunks[0].other | chunks[1].other) == 0;
            let cjk = [
                '\u{4e00}'..='\u{9fff}',
                '\u{ac00}'..='\u{d77f}',
                '\u{3041}'..='\u{3096}',
                '\u{30a1}'..='\u{30fa}',
                '\u{30fc}'..='\u{30fe}',
            ];
            let letters = ['\u{c0}'..='\u{27f}', '\u{400}'..='\u{47f}'];
            let is_in =
                |ranges: &[RangeInclusive<char>]| ranges.iter().any(|range| range.contains(&c));
            let is_mark = "¡¢£¤¥¦§©«¬®°±¶·»¿×÷‐–—‘’“”„•‹›€、。〈〉《》「」『』【】".contains(c);
            let is_letter = is_in(&letters) && !is_mark;
            assert_eq!(
                is_plain,
                c.is_ascii() || is_mark || is_letter || is_in(&cjk),
                "{c:?}"
            );
            assert_eq!(
                (chunks[0].cjk, chunks[1].cjk),
                (u64::from(is_in(&cjk)) << 63, 0),
                "{c:?}"
            );
            if is_letter {
                // Joined with letters, and by what stands between letters.
                let text = format!("a{c}a:{c}.{c}·{c}’{c} {c}");
                let words: Vec<_> = text.unicode_words().collect();
                assert_eq!(words, [format!("a{c}a:{c}.{c}·{c}’{c}"), c.to_string()]);
            }
        }
    }

    proptest! {
        #[test]
        fn words_are_those_of_uax_29(
            text in "([a-zA-Z0-9_\u{c0}-\u{27f}\u{400}-\u{47f}éüßж]{0,3}([ -~\\t\\n\\x00-\\x1f\\x7f]{0,2}|[’‘·]|[’‘“”„–—•·«»©×€›。、]{0,2})){0,60}",
        ) {
            let expected: Vec<_> = text.unicode_words().collect();
            for kernel in Kernel::available() {
                prop_assert_eq!(words(kernel, &text), expected.clone(), "{}", kernel.name());
            }
        }

        #[test]
        fn kernels_agree_on_any_text(text in "([ -~]|\\PC|[近似а-я。éカな한]){0,150}") {
            let expected = classes(Kernel::PORTABLE, &text);
            for (at, &byte) in text.as_bytes().iter().enumerate() {
                let chunk = expected[at / 64];
                let bit = |mask: u64| mask >> (at % 64) & 1 == 1;
                prop_assert!(!bit(chunk.other) || !byte.is_ascii());
                prop_assert!(!bit(chunk.other) || !bit(chunk.words));
                prop_assert_eq!(bit(chunk.space), matches!(byte, b' ' | 9..=13));
            }
            for kernel in Kernel::available() {
                prop_assert_eq!(&classes(kernel, &text), &expected);
            }
        }
    }
}
