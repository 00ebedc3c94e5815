//! Finds words in ASCII text, 64 bytes at a time.
//!
//! UAX #29 restricted to ASCII: a word consists of letters, digits and `_`; one of `'.:` may stand between two letters, and
//! one of `',.;` between two digits. A mask of 64 bits marks each kind of byte, and shifts of the masks apply the rules.

use crate::isa::{Kernel, Work, top_bits};

/// The classes of 64 bytes: bit i of each mask stands for byte i.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Bytes of words: letters, digits, `_`, and the punctuation between them that does not end a word.
    pub(crate) words: u64,
    /// Bytes that are not ASCII.
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
        // The rules need the last byte of the chunk before and the first byte of the chunk after.
        let mut before = Kinds::default();
        let mut own = Kinds::from_bytes(full.first().unwrap_or(&last));
        for at in 0..=full.len() {
            let after = match at + 1 {
                next if next < full.len() => Kinds::from_bytes(&full[next]),
                next if next == full.len() => Kinds::from_bytes(&last),
                _ => Kinds::default(),
            };
            let between = |kind: fn(&Kinds) -> u64| {
                let (before, own, after) = (kind(&before), kind(&own), kind(&after));
                (own << 1 | before >> 63) & (own >> 1 | after << 63)
            };
            let joining = (own.in_letters & between(|kinds| kinds.letters))
                | (own.in_digits & between(|kinds| kinds.digits));
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
    fn from_bytes(bytes: &[u8; 64]) -> Self {
        let lower = &mut [0; 64];
        for (lower, byte) in lower.iter_mut().zip(bytes) {
            *lower = byte | 0x20;
        }
        let quote_or_dot = mask(bytes, |byte| (byte == b'\'') | (byte == b'.'));
        Self {
            letters: mask(lower, |byte| byte.wrapping_sub(b'a') < 26),
            digits: mask(bytes, |byte| byte.wrapping_sub(b'0') < 10),
            underscores: mask(bytes, |byte| byte == b'_'),
            in_letters: quote_or_dot | mask(bytes, |byte| byte == b':'),
            in_digits: quote_or_dot | mask(bytes, |byte| (byte == b',') | (byte == b';')),
            other: mask(bytes, |byte| byte >= 0x80),
            space: mask(bytes, |byte| {
                (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
            }),
        }
    }
}

/// A mask whose bit i is set if `is` holds for byte i.
#[inline(always)]
fn mask(bytes: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
    let mut kinds = [0u8; 64];
    for (kind, &byte) in kinds.iter_mut().zip(bytes) {
        *kind = if is(byte) { 0xff } else { 0 };
    }
    top_bits(&kinds)
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

    proptest! {
        #[test]
        fn words_are_those_of_uax_29(text in "([a-zA-Z0-9_]{0,3}[ -~\\t\\n\\x00-\\x1f\\x7f]{0,2}){0,60}") {
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
                prop_assert_eq!(bit(chunk.other), !byte.is_ascii());
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
