//! Where words are in ASCII, 64 bytes at a time.
//!
//! The rules of UAX #29 that concern ASCII: letters, digits and `_` hold together, so do letters with one of `'.:` and digits
//! with one of `',.;` between them. Each kind of byte is a mask of 64 bits, and the rules are shifts of those.

use crate::kernels::{Kernel, Work};

/// What 64 bytes are: bit i for byte i.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// Letters, digits, `_`, and what holds them together.
    pub(crate) words: u64,
    /// Bytes that are not ASCII.
    pub(crate) other: u64,
    /// White space, at which any text can be cut.
    pub(crate) space: u64,
}

/// Fills `blocks` with what the bytes are; the last ones, less than 64, count as if zeros followed.
pub(crate) fn classify(kernel: Kernel, bytes: &[u8], blocks: &mut Vec<Block>) {
    blocks.clear();
    kernel.run(Classify { bytes, blocks });
}

struct Classify<'a> {
    bytes: &'a [u8],
    blocks: &'a mut Vec<Block>,
}

/// The kinds of bytes in a block.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    letters: u64,
    digits: u64,
    underscores: u64,
    /// What holds letters together: `'`, `.` and `:`.
    in_letters: u64,
    /// What holds digits together: `'`, `,`, `.` and `;`.
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
        self.blocks.reserve(full.len() + 1);
        // The rules look at the byte before and the one behind a block.
        let mut before = Kinds::default();
        let mut own = Kinds::of(full.first().unwrap_or(&last));
        for at in 0..=full.len() {
            let after = match at + 1 {
                next if next < full.len() => Kinds::of(&full[next]),
                next if next == full.len() => Kinds::of(&last),
                _ => Kinds::default(),
            };
            let between = |kind: fn(&Kinds) -> u64| {
                let (before, own, after) = (kind(&before), kind(&own), kind(&after));
                (own << 1 | before >> 63) & (own >> 1 | after << 63)
            };
            let held = (own.in_letters & between(|kinds| kinds.letters))
                | (own.in_digits & between(|kinds| kinds.digits));
            self.blocks.push(Block {
                words: own.letters | own.digits | own.underscores | held,
                other: own.other,
                space: own.space,
            });
            (before, own) = (own, after);
        }
    }
}

impl Kinds {
    #[inline(always)]
    fn of(bytes: &[u8; 64]) -> Self {
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

/// Bit i where byte i is of a kind.
#[inline(always)]
fn mask(bytes: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
    let mut kinds = [0u8; 64];
    for (kind, &byte) in kinds.iter_mut().zip(bytes) {
        *kind = if is(byte) { 0xff } else { 0 };
    }
    gather(&kinds)
}

/// The top bit of each byte.
#[inline(always)]
fn gather(bytes: &[u8; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SSE2 is part of x86-64.
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_movemask_epi8};
        let mut gathered = 0;
        for (at, part) in bytes.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: 16 bytes are read, of 16.
            let bits =
                unsafe { _mm_movemask_epi8(_mm_loadu_si128(part.as_ptr().cast::<__m128i>())) };
            gathered |= u64::from(bits.cast_unsigned()) << (16 * at);
        }
        gathered
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().enumerate().fold(0, |gathered, (at, word)| {
            let tops = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
            // Each top bit to its place in the uppermost byte.
            gathered | (tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation as _;

    use super::*;

    /// The runs of word bits, but for those of `_` alone.
    fn words(kernel: Kernel, text: &str) -> Vec<&str> {
        let mut blocks = Vec::new();
        classify(kernel, text.as_bytes(), &mut blocks);
        let is = |at: usize| blocks[at / 64].words >> (at % 64) & 1 == 1;
        assert!((text.len()..64 * blocks.len()).all(|at| !is(at)));
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
                let block = expected[at / 64];
                let bit = |mask: u64| mask >> (at % 64) & 1 == 1;
                prop_assert_eq!(bit(block.other), !byte.is_ascii());
                prop_assert_eq!(bit(block.space), matches!(byte, b' ' | 9..=13));
            }
            for kernel in Kernel::available() {
                let mut blocks = Vec::new();
                classify(kernel, &bytes, &mut blocks);
                prop_assert_eq!(&blocks, &expected);
            }
        }
    }
}
