//! A bitmap of all halves within 1 bit of an entry's.

use super::layout::QUARTER_BITS;
use super::pick::Pick;
use crate::ball::WORD_BALLS;
use crate::isa::Kernel;
use crate::memory::Array;
use crate::prefetch::prefetch_l2;

/// A bit for each of the 2³² halves.
#[derive(Debug)]
pub(super) struct Bitmap {
    words: Array<u64>,
}

/// Words of the halves with the same upper quarter.
const REGION: usize = 1 << (QUARTER_BITS - 6);

impl Bitmap {
    /// Further bytes while the bitmap of `halves` halves is built.
    pub(super) fn building_bytes(halves: usize) -> usize {
        2 * ((4 << QUARTER_BITS) + 4) + 2 * halves
    }

    /// Builds the bitmap of `halves` and of their neighbours at 1 bit.
    ///
    /// The bits of one upper quarter are set at a time, by the entries that have it and by those whose upper quarter is 1 bit
    /// away: what is written to stays in the first-level cache.
    pub(super) fn build(halves: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        // The lower quarters, in the order of the upper ones.
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
        let beside = |upper: usize| &lower[starts[upper] as usize..starts[upper + 1] as usize];

        let mut words = Array::<u64>::zeroed(REGION << QUARTER_BITS);
        for (upper, region) in words.chunks_exact_mut(REGION).enumerate() {
            for &own in beside(upper) {
                let (word, bit) = (usize::from(own >> 6), usize::from(own & 63));
                region[word] |= WORD_BALLS[0][bit];
                for flip in 0..QUARTER_BITS - 6 {
                    region[word ^ 1 << flip] |= 1 << bit;
                }
            }
            for flip in 0..QUARTER_BITS {
                for &other in beside(upper ^ 1 << flip) {
                    region[usize::from(other >> 6)] |= 1 << (other & 63);
                }
            }
        }
        Self { words }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Adds the indexes of the fingerprints of `run` that pass; see [`super::scan::HalfFilter::pick`].
    pub(super) fn pick(&self, kernel: Kernel, run: &[u64], shift: u32, indexes: &mut Vec<u32>) {
        let words: &[u64] = &self.words;
        kernel.run(Pick {
            run,
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
        // Many with the same upper quarter, and the edges.
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
