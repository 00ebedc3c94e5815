//! [`TagScheme`]: which bits of a fingerprint make its tag, and the two tests that a tag has to pass.

use super::field::Field;
use super::tag::TagTest;
use crate::ball::volume;

/// How the tags of a block's table are made and tested.
///
/// A tag is the bits of `field`, followed by `flip_bits` bits: one of these is set for each bit in which the entry's
/// key differs from its bucket's. In a query's tag they are 0, so that every test counts those differences too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TagScheme {
    /// The bits of a fingerprint that its tag holds.
    pub(crate) field: Field,
    /// How many bits follow those of `field`.
    pub(crate) flip_bits: u32,
    /// The test of every candidate: the one of the two that fewer pass.
    pub(crate) first: TagTest,
    /// The test of the survivors, which passed the first.
    pub(crate) second: TagTest,
}

impl TagScheme {
    /// The tag of a fingerprint in the bucket of its own key.
    #[inline(always)]
    pub(crate) fn tag(&self, fingerprint: u64) -> u32 {
        self.field.extract(fingerprint) << self.flip_bits
    }

    /// The share of random candidates that pass the first test, if their keys differ from the bucket's in `flip_bits`
    /// bits.
    pub(crate) fn first_share(&self) -> f64 {
        let bits = self.compared_bits(self.first);
        volume(bits, self.first.limit - self.flip_bits) / 2f64.powi(bits.cast_signed())
    }

    /// The share of random candidates that pass both tests, if their keys differ from the bucket's in `flip_bits` bits.
    pub(crate) fn both_share(&self) -> f64 {
        // The bits of one test are among those of the other.
        let (narrow, wide) = if self.compared_bits(self.first) < self.compared_bits(self.second) {
            (self.first, self.second)
        } else {
            (self.second, self.first)
        };
        let (bits, limit) = (self.compared_bits(narrow), wide.limit - self.flip_bits);
        let mut share = 0.0;
        let mut exactly = 1.0;
        for differing in 0..=bits.min(limit).min(narrow.limit - self.flip_bits) {
            share += exactly * volume(self.compared_bits(wide) - bits, limit - differing);
            exactly *= f64::from(bits - differing) / f64::from(differing + 1);
        }
        share / 2f64.powi(self.field.bits.cast_signed())
    }

    /// How many bits of a fingerprint `test` compares.
    fn compared_bits(&self, test: TagTest) -> u32 {
        self.field.bits - (!test.mask).count_ones()
    }
}
