//! The filter of the fingerprints of a dense run: a bitmap over their leading bits, and a Bloom filter over their trailing
//! ones.
//!
//! It is defined beside the instruction sets because AVX-512 reads it by gathers, without bounds checks.

use std::ops::RangeInclusive;

/// Leading bits that all fingerprints of a run share.
pub(crate) const RUN_BITS: u32 = 16;
/// How many of the bits that follow a run's a map can be over.
pub(crate) const MAP_BITS: RangeInclusive<u32> = 17..=20;
/// Trailing bits of a fingerprint: those that even the largest map is not over.
pub(crate) const TAIL_BITS: u32 = 64 - RUN_BITS - *MAP_BITS.end();
/// How many lower bits of a map's value number its bit within a word.
pub(crate) const WORD_BITS: u32 = 6;
/// Words of the largest map.
pub(crate) const MAP_WORDS: usize = 1 << (*MAP_BITS.end() - WORD_BITS);

/// A bitmap over leading bits and a Bloom filter over trailing bits: a fingerprint passes when either contains it.
pub(crate) struct RunFilter<'a> {
    pub(super) map: &'a [u64; MAP_WORDS],
    /// Bits that the map is over.
    pub(super) map_bits: u32,
    /// Words of the Bloom filter, a power of two of them.
    pub(super) tail: &'a [u64],
}

impl<'a> RunFilter<'a> {
    /// Combines `map`, which has a bit for each value of the `map_bits` bits that follow a run's, and `tail`, the words of a
    /// Bloom filter.
    ///
    /// # Panics
    /// When `map` does not have [`MAP_WORDS`] words, `map_bits` is above [`MAP_BITS`], or the number of words of `tail` is no
    /// power of two: unchecked gathers rely on it.
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

    /// How many trailing bits of a fingerprint number its word in the Bloom filter.
    #[inline(always)]
    pub(crate) fn word_bits(&self) -> u32 {
        self.tail.len().trailing_zeros()
    }

    /// Whether the map or the Bloom filter contains `fingerprint`.
    #[inline(always)]
    pub(crate) fn passes(&self, fingerprint: u64) -> bool {
        let value = (fingerprint << RUN_BITS) >> (64 - self.map_bits);
        let marked = self.map[(value >> WORD_BITS) as usize % MAP_WORDS].wrapping_shr(value as u32);
        let (word, [a, b, c]) = tail_place(fingerprint, self.word_bits());
        let word = self.tail[word];
        let all = word.wrapping_shr(a) & word.wrapping_shr(b) & word.wrapping_shr(c);
        (marked | all) & 1 == 1
    }
}

/// The number of a fingerprint's word in the Bloom filter, and of its three bits there. Only the lower 6 bits of a bit's
/// number count, as in a wrapping shift. All depend on the trailing [`TAIL_BITS`] only.
#[inline(always)]
pub(crate) fn tail_place(fingerprint: u64, word_bits: u32) -> (usize, [u32; 3]) {
    let word = fingerprint & ((1 << word_bits) - 1);
    let low = (fingerprint >> word_bits) as u32;
    let high = (fingerprint >> (TAIL_BITS - 6)) as u32;
    let both = low ^ (fingerprint >> (TAIL_BITS - 7)) as u32;
    (word as usize, [low, high, both])
}
