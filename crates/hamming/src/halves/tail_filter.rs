//! The Bloom filter over the trailing bits of the entries.

use crate::huge_array::HugeArray;
use crate::isa::{TAIL_BITS, tail_place};

/// At most about this many entries share a word on average, in batches of up to 2²⁴ entries.
const WORD_ENTRIES: usize = 4;

/// A Bloom filter over the trailing [`TAIL_BITS`] of the entries. Each entry sets three bits of one word, so that a
/// test takes one access. One fingerprint in 200 is a false positive.
#[derive(Debug)]
pub(super) struct TailFilter {
    word_index_bits: u32,
    words: HugeArray<u64>,
}

impl TailFilter {
    /// The binary logarithm of the number of words.
    fn word_index_bits(entries: usize) -> u32 {
        let words = (entries / WORD_ENTRIES).max(1).next_power_of_two();
        words.ilog2().min(TAIL_BITS - 6)
    }

    /// Bytes for a batch of `entries` entries.
    pub(super) fn bytes_for(entries: usize) -> usize {
        8 << Self::word_index_bits(entries)
    }

    /// Builds the filter of `entries`.
    pub(super) fn build(entries: &[u64]) -> Self {
        let word_index_bits = Self::word_index_bits(entries.len());
        let mut words = HugeArray::<u64>::zeroed(1 << word_index_bits);
        let filled: &mut [u64] = &mut words;
        for &entry in entries {
            let (word, bits) = tail_place(entry, word_index_bits);
            for bit in bits {
                filled[word] |= 1u64.wrapping_shl(bit);
            }
        }
        Self {
            word_index_bits,
            words,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// The words; their number is a power of two.
    #[inline(always)]
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..1 << self.word_index_bits]
    }
}
