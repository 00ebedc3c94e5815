//! The filter of the scan by runs: a bitmap over leading bits of fingerprints, and a Bloom filter over trailing bits.
//!
//! It belongs to the mechanism `halves`, but stands beside the instruction sets: AVX-512 reads it by gathers, without
//! bounds checks.

use std::ops::RangeInclusive;

use crate::ball::BIT_INDEX_BITS;

/// Leading bits that all fingerprints of a run share.
pub(crate) const RUN_BITS: u32 = 16;
/// How many bits a map may cover: those that follow the leading [`RUN_BITS`].
pub(crate) const MAP_BITS: RangeInclusive<u32> = 17..=20;
/// Trailing bits of a fingerprint: those that even the largest map does not cover.
pub(crate) const TAIL_BITS: u32 = 64 - RUN_BITS - *MAP_BITS.end();
/// Words of the largest map.
pub(crate) const MAP_WORDS: usize = 1 << (*MAP_BITS.end() - BIT_INDEX_BITS);

/// A bitmap over leading bits and a Bloom filter over trailing bits: a fingerprint passes when either contains it.
pub(crate) struct RunFilter<'a> {
    pub(super) map: &'a [u64; MAP_WORDS],
    /// How many bits the map covers.
    pub(super) map_bits: u32,
    /// The words of the Bloom filter; their number is a power of two.
    pub(super) tail: &'a [u64],
}

impl<'a> RunFilter<'a> {
    /// Combines `map`, which has a bit for each value of the `map_bits` bits that follow the leading [`RUN_BITS`], and
    /// `tail`, the words of a Bloom filter.
    ///
    /// # Panics
    /// When `map` does not have [`MAP_WORDS`] words, `map_bits` is above [`MAP_BITS`], or the
    /// number of words of `tail` is not a power of two. The unchecked gathers of AVX-512 rely on
    /// all three.
    #[inline(always)]
    pub(crate) fn new(map: &'a [u64], map_bits: u32, tail: &'a [u64]) -> Self {
        assert!(map_bits <= *MAP_BITS.end() && tail.len().is_power_of_two());
        let map = map.try_into().expect("a map");
        Self {
            map,
            map_bits,
            tail,
        }
    }

    /// How many trailing bits of a fingerprint select its word of the Bloom filter.
    #[inline(always)]
    pub(crate) fn word_index_bits(&self) -> u32 {
        self.tail.len().trailing_zeros()
    }

    /// Whether the map or the Bloom filter contains `fingerprint`.
    #[inline(always)]
    pub(crate) fn passes(&self, fingerprint: u64) -> bool {
        let value = (fingerprint << RUN_BITS) >> (64 - self.map_bits);
        let marked =
            self.map[(value >> BIT_INDEX_BITS) as usize % MAP_WORDS].wrapping_shr(value as u32);
        let (word, [a, b, c]) = tail_place(fingerprint, self.word_index_bits());
        let word = self.tail[word];
        let all = word.wrapping_shr(a) & word.wrapping_shr(b) & word.wrapping_shr(c);
        (marked | all) & 1 == 1
    }
}

/// The index of a fingerprint's word in the Bloom filter, and the indexes of its three bits in that word, modulo 64 as
/// in a wrapping shift. All depend on the trailing [`TAIL_BITS`] alone.
#[inline(always)]
pub(crate) fn tail_place(fingerprint: u64, word_index_bits: u32) -> (usize, [u32; 3]) {
    let word = fingerprint & ((1 << word_index_bits) - 1);
    let low = (fingerprint >> word_index_bits) as u32;
    let high = (fingerprint >> (TAIL_BITS - 6)) as u32;
    let both = low ^ (fingerprint >> (TAIL_BITS - 7)) as u32;
    (word as usize, [low, high, both])
}
