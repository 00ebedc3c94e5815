//! A bitmap of the halves that are within 1 bit of an entry's half.

use super::append_passing::AppendPassing;
use super::filter_layout::QUARTER_BITS;
use crate::ball::WORD_BALLS;
use crate::huge_array::HugeArray;
use crate::isa::Kernel;
use crate::prefetch::prefetch_l2;

/// A bit for each of the 2³² values of a half.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: HugeArray<u64>,
}

/// Words of a region, which holds the halves with one upper quarter.
const REGION_WORDS: usize = 1 << (QUARTER_BITS - 6);

impl Bitmap {
    /// Bytes needed to build the bitmap of `halves` halves, besides those of the bitmap.
    pub(super) fn building_bytes(halves: usize) -> usize {
        2 * ((4 << QUARTER_BITS) + 4) + 2 * halves
    }

    /// Builds the bitmap of `halves` and of their neighbours at 1 bit.
    ///
    /// It fills one region at a time, so that the region stays in the first-level cache: from the
    /// entries in it, then from those whose upper quarter is 1 bit away.
    pub(super) fn build(halves: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        // The lower quarters, sorted by the upper ones.
        let mut starts = vec![0u32; (1 << QUARTER_BITS) + 1];
        for half in halves.clone() {
            starts[(half >> QUARTER_BITS) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut lower = vec![0u16; halves.len()];
        let mut next = starts.clone();
        for half in halves {
            let next = &mut next[(half >> QUARTER_BITS) as usize];
            lower[*next as usize] = half as u16;
            *next += 1;
        }
        let lower_quarters =
            |upper: usize| &lower[starts[upper] as usize..starts[upper + 1] as usize];

        let mut words = HugeArray::<u64>::zeroed(REGION_WORDS << QUARTER_BITS);
        for (upper, region) in words.chunks_exact_mut(REGION_WORDS).enumerate() {
            for &low in lower_quarters(upper) {
                let (word, bit) = (usize::from(low >> 6), usize::from(low & 63));
                region[word] |= WORD_BALLS[0][bit];
                for flip in 0..QUARTER_BITS - 6 {
                    region[word ^ 1 << flip] |= 1 << bit;
                }
            }
            for flip in 0..QUARTER_BITS {
                for &low in lower_quarters(upper ^ 1 << flip) {
                    region[usize::from(low >> 6)] |= 1 << (low & 63);
                }
            }
        }
        Self { words }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Appends the indexes of those `fingerprints` that pass; see [`super::scan::HalfFilter::pick`].
    pub(super) fn pick(
        &self,
        kernel: Kernel,
        fingerprints: &[u64],
        shift: u32,
        indexes: &mut Vec<u32>,
    ) {
        let words: &[u64] = &self.words;
        kernel.execute(AppendPassing {
            fingerprints,
            indexes,
            fetch: |f: u64| prefetch_l2(words, ((f >> shift) as u32 >> 6) as usize),
            passes: |f: u64| {
                let half = (f >> shift) as u32;
                words[(half >> 6) as usize] >> (half & 63) & 1 == 1
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn bits_are_the_balls() {
        let spread = (0..3000u32).map(|at| at.wrapping_mul(0x9e37_79b9));
        // Many with the same upper quarter, and the extremes.
        let crowded = (0..3000u32).map(|at| 0x8000_0000 + at * 7 % 65536);
        let halves: Vec<u32> = spread.chain(crowded).chain([0, u32::MAX]).collect();
        let bitmap = Bitmap::build(halves.iter().copied());
        let mut near = BTreeSet::from_iter(halves.iter().copied());
        for bit in 0..32 {
            near.extend(halves.iter().map(|half| half ^ 1 << bit));
        }
        for &half in &near {
            let word = bitmap.words[(half >> 6) as usize];
            assert_eq!((word >> (half & 63)) & 1, 1, "{half:08x}");
        }
        let ones: u64 = bitmap
            .words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        assert_eq!(ones, near.len() as u64);
    }
}
