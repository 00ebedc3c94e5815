//! Which bits of a fingerprint make a sketch, and the tests that a sketch has to pass.

use super::field::Field;
use super::sketch::Test;
use crate::ball::volume;

/// The sketch of a block, and its two tests.
///
/// A sketch is the bits of `field`, followed by `flip_bits` bits: one of them is set for each bit in which the entry's key
/// differs from its bucket's. In a query's sketch they are 0, so that every test counts those differences too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SketchRule {
    /// The bits of a fingerprint that its sketch holds.
    pub(crate) field: Field,
    /// The number of bits that follow them.
    pub(crate) flip_bits: u32,
    /// The test of every candidate: of the two, the one that fewer pass.
    pub(crate) first: Test,
    /// The test of the survivors, which passed the first.
    pub(crate) second: Test,
}

impl SketchRule {
    /// The sketch of a fingerprint, with no bit of its key flipped.
    #[inline(always)]
    pub(crate) fn sketch(&self, fingerprint: u64) -> u32 {
        self.field.extract(fingerprint) << self.flip_bits
    }

    /// The share of random candidates that pass the first test, at the largest difference of keys that a bucket holds.
    pub(crate) fn first_share(&self) -> f64 {
        let bits = self.counted(self.first);
        volume(bits, self.first.limit - self.flip_bits) / 2f64.powi(bits.cast_signed())
    }

    /// The share of random candidates that pass both tests, at the largest difference of keys that a bucket holds.
    pub(crate) fn both_share(&self) -> f64 {
        // The bits of one test are among those of the other.
        let (some, all) = match self.counted(self.first) < self.counted(self.second) {
            true => (self.first, self.second),
            false => (self.second, self.first),
        };
        let (bits, limit) = (self.counted(some), all.limit - self.flip_bits);
        let mut share = 0.0;
        let mut exactly = 1.0;
        for differing in 0..=bits.min(limit).min(some.limit - self.flip_bits) {
            share += exactly * volume(self.counted(all) - bits, limit - differing);
            exactly *= f64::from(bits - differing) / f64::from(differing + 1);
        }
        share / 2f64.powi(self.field.bits.cast_signed())
    }

    /// How many bits of a fingerprint `test` compares.
    fn counted(&self, test: Test) -> u32 {
        self.field.bits - (!test.mask).count_ones()
    }
}
