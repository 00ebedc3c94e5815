//! Finds words in plain text, 64 bytes at a time. Plain are ASCII; the letters from U+00C0 to U+027F
//! (Latin) and from U+0400 to U+047F (Cyrillic), of two bytes each; and the commonest quotation marks
//! and dashes, of three bytes each.
//!
//! UAX #29 restricted to these: a word consists of letters, digits and `_`; one of `'.:‘’` may stand between two letters, and
//! one of `',.;‘’` between two digits. A mask of 64 bits marks each kind of byte, and shifts of the masks apply the rules.

use crate::isa::{Kernel, Work, mask};

/// The classes of 64 bytes: bit i of each mask stands for byte i.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Bytes of words: letters, digits, `_`, and the punctuation between them that does not end a word.
    pub(crate) words: u64,
    /// Bytes of characters that are not plain.
    pub(crate) other: u64,
    /// White space, which always ends a word.
    pub(crate) space: u64,
}

/// Fills `chunks` with the classes of `bytes`; the last chunk is padded with zero bytes.
pub(crate) fn classify(kernel: Kernel, bytes: &[u8], chunks: &mut Vec<Chunk>) {
    chunks.clear();
    kernel.run(Classify { bytes, chunks });
}

struct Classify<'a> {
    bytes: &'a [u8],
    chunks: &'a mut Vec<Chunk>,
}

/// The kinds of 64 bytes, before the rules apply: bit i of each mask stands for byte i.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    letters: u64,
    digits: u64,
    underscores: u64,
    /// Punctuation that joins letters: `'`, `.` and `:`.
    in_letters: u64,
    /// Punctuation that joins digits: `'`, `,`, `.` and `;`.
    in_digits: u64,
    /// The first bytes of ‘ and ’, which join letters and digits.
    quotes: u64,
    other: u64,
    space: u64,
}

impl Work for Classify<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LANES: usize>(self) {
        let (full, rest) = self.bytes.as_chunks::<64>();
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        self.chunks.reserve(full.len() + 1);
        // The rules need the last two bytes of the chunk before and the first bytes of the chunk after.
        let mut before = Kinds::default();
        let bytes_of = |at: usize| full.get(at).unwrap_or(&last);
        let kinds_of = |at: usize| {
            Kinds::from_bytes(bytes_of(at), || {
                let before = at.checked_sub(1).map(bytes_of);
                let after = (at < full.len()).then(|| bytes_of(at + 1));
                let last = before.map_or([0; 2], |bytes| [bytes[62], bytes[63]]);
                (last, after.map_or([0; 2], |bytes| [bytes[0], bytes[1]]))
            })
        };
        let mut own = kinds_of(0);
        // The bytes of a mark that began in the chunk before, and joins.
        let mut rest_of_quote = 0;
        for at in 0..=full.len() {
            let after = match at < full.len() {
                true => kinds_of(at + 1),
                false => Kinds::default(),
            };
            let between = |kind: fn(&Kinds) -> u64| {
                let (before, own, after) = (kind(&before), kind(&own), kind(&after));
                (own << 1 | before >> 63) & (own >> 1 | after << 63)
            };
            // The first bytes of marks of three bytes that stand between two characters of a kind.
            let around = |kind: fn(&Kinds) -> u64| {
                let (before, own, after) = (kind(&before), kind(&own), kind(&after));
                (own << 1 | before >> 63) & (own >> 3 | after << 61)
            };
            let quotes =
                own.quotes & (around(|kinds| kinds.letters) | around(|kinds| kinds.digits));
            let joining = (own.in_letters & between(|kinds| kinds.letters))
                | (own.in_digits & between(|kinds| kinds.digits))
                | (quotes | quotes << 1 | quotes << 2 | rest_of_quote);
            rest_of_quote = quotes >> 62 | quotes >> 63;
            self.chunks.push(Chunk {
                words: own.letters | own.digits | own.underscores | joining,
                other: own.other,
                space: own.space,
            });
            (before, own) = (own, after);
        }
    }
}

impl Kinds {
    #[inline(always)]
    fn from_bytes(bytes: &[u8; 64], neighbours: impl FnOnce() -> ([u8; 2], [u8; 2])) -> Self {
        let lower = &mut [0; 64];
        for (lower, byte) in lower.iter_mut().zip(bytes) {
            *lower = byte | 0x20;
        }
        let quote_or_dot = mask(bytes, |byte| (byte == b'\'') | (byte == b'.'));
        let other = mask(bytes, |byte| byte >= 0x80);
        let longer = match other {
            0 => Longer::default(),
            _ => Longer::from_bytes(bytes, neighbours()),
        };
        Self {
            letters: mask(lower, |byte| byte.wrapping_sub(b'a') < 26) | longer.letters,
            digits: mask(bytes, |byte| byte.wrapping_sub(b'0') < 10),
            underscores: mask(bytes, |byte| byte == b'_'),
            in_letters: quote_or_dot | mask(bytes, |byte| byte == b':'),
            in_digits: quote_or_dot | mask(bytes, |byte| (byte == b',') | (byte == b';')),
            quotes: longer.quotes,
            other: other & !(longer.letters | longer.punctuation),
            space: mask(bytes, |byte| {
                (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
            }),
        }
    }
}

/// The plain characters of two and three bytes among 64 bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Longer {
    /// All bytes of letters.
    letters: u64,
    /// All bytes of punctuation.
    punctuation: u64,
    /// The first bytes of the marks that join letters, or digits, as an apostrophe does: ‘ and ’.
    quotes: u64,
}

impl Longer {
    /// The plain characters among `bytes`, with the two bytes before them and the two after them.
    #[inline(always)]
    fn from_bytes(bytes: &[u8; 64], (before, after): ([u8; 2], [u8; 2])) -> Self {
        // From U+00C0 to U+027F and from U+0400 to U+047F, there are only letters, but for × and ÷.
        let is_first = |byte: u8| (byte.wrapping_sub(0xc3) < 7) | (byte.wrapping_sub(0xd0) < 2);
        let firsts = mask(bytes, is_first);
        // From U+2000 to U+203F: E2 80, and a third byte.
        let firsts_of_three = mask(bytes, |byte| byte == 0xe2);
        let goes_on = is_first(before[1]) || before.contains(&0xe2);
        if (firsts | firsts_of_three) == 0 && !goes_on {
            return Self::default();
        }
        // The second or the third bytes that `is` selects, each as a bit at the first byte.
        let second = |is: fn(u8) -> bool| mask(bytes, is) >> 1 | u64::from(is(after[0])) << 63;
        let third = |is: fn(u8) -> bool| {
            mask(bytes, is) >> 2 | u64::from(is(after[0])) << 62 | u64::from(is(after[1])) << 63
        };
        let is_sign = |byte: u8| (byte == 0x97) | (byte == 0xb7);
        let signs = mask(bytes, |byte| byte == 0xc3) & second(is_sign);
        let letters = firsts & !signs;
        // A letter or a mark that began in the chunk before may end here.
        let end_of_letter = is_first(before[1]) && !(before[1] == 0xc3 && is_sign(bytes[0]));
        let is_quote = |byte: u8| byte.wrapping_sub(0x98) < 2;
        let is_break = |byte: u8| {
            (byte.wrapping_sub(0x93) < 2) | (byte.wrapping_sub(0x9c) < 3) | (byte == 0xa2)
        };
        let begun = firsts_of_three & second(|byte| byte == 0x80);
        let quotes = begun & third(is_quote);
        let marks = quotes | begun & third(is_break);
        let is_mark = |byte| is_quote(byte) || is_break(byte);
        let end_of_mark = match (before, bytes[0], bytes[1]) {
            ([0xe2, 0x80], last, _) if is_mark(last) => 0b1,
            ([_, 0xe2], 0x80, last) if is_mark(last) => 0b11,
            _ => 0,
        };
        Self {
            letters: letters | letters << 1 | u64::from(end_of_letter),
            punctuation: marks | marks << 1 | marks << 2 | end_of_mark,
            quotes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation as _;

    use super::*;

    /// The runs of bytes that [`classify`] puts in words, except runs of `_` alone.
    fn words(kernel: Kernel, text: &str) -> Vec<&str> {
        let mut chunks = Vec::new();
        classify(kernel, text.as_bytes(), &mut chunks);
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
    fn plain_characters_are_those_of_the_module() {
        for c in '\0'..=char::MAX {
            let mut chunks = Vec::new();
            // The letter lies on both sides of the boundary between two chunks.
            let text = format!("{}{c}", ".".repeat(63));
            classify(Kernel::PORTABLE, text.as_bytes(), &mut chunks);
            let is_plain = (chunks[0].other | chunks[1].other) == 0;
            let ranges = ['\u{c0}'..='\u{27f}', '\u{400}'..='\u{47f}'];
            let is_mark = "‘’“”„–—•".contains(c);
            let expected = c.is_ascii()
                || is_mark
                || (ranges.iter().any(|range| range.contains(&c)) && !matches!(c, '×' | '÷'));
            assert_eq!(is_plain, expected, "{c:?}");
            if is_plain && !c.is_ascii() && !is_mark {
                // Joined with letters, and by what stands between letters.
                let text = format!("a{c}a:{c}.{c} {c}");
                let words: Vec<_> = text.unicode_words().collect();
                assert_eq!(words, [format!("a{c}a:{c}.{c}"), c.to_string()]);
            }
        }
    }

    proptest! {
        #[test]
        fn words_are_those_of_uax_29(
            text in "([a-zA-Z0-9_\u{c0}-\u{27f}\u{400}-\u{47f}éüßж×÷]{0,3}([ -~\\t\\n\\x00-\\x1f\\x7f]{0,2}|[’‘“”„–—•]{0,2})){0,60}",
        ) {
            let expected: Vec<_> = text.unicode_words().collect();
            for kernel in Kernel::available() {
                prop_assert_eq!(words(kernel, &text), expected.clone(), "{}", kernel.name());
            }
        }

        #[test]
        fn kernels_agree_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut expected = Vec::new();
            classify(Kernel::PORTABLE, &bytes, &mut expected);
            for (at, &byte) in bytes.iter().enumerate() {
                let chunk = expected[at / 64];
                let bit = |mask: u64| mask >> (at % 64) & 1 == 1;
                prop_assert!(!bit(chunk.other) || !byte.is_ascii());
                prop_assert!(!bit(chunk.other) || !bit(chunk.words));
                prop_assert_eq!(bit(chunk.space), matches!(byte, b' ' | 9..=13));
            }
            for kernel in Kernel::available() {
                let mut chunks = Vec::new();
                classify(kernel, &bytes, &mut chunks);
                prop_assert_eq!(&chunks, &expected);
            }
        }
    }
}
