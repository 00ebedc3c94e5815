//! All halves within 1 bit of an entry's, a bit each.

use super::Pick;
use crate::kernels::Kernel;
use crate::memory::Array;
use crate::probe::prefetch_far;

/// 2³² bits.
#[derive(Debug)]
pub(crate) struct Bitmap {
    words: Array<u64>,
}

impl Bitmap {
    /// Of these halves; quick when they are nearly in order, because then the words are met nearly in order for each bit
    /// flipped.
    pub(crate) fn build(halves: impl Iterator<Item = u32>) -> Self {
        let mut bitmap = Self {
            words: Array::zeroed(1 << (32 - 6)),
        };
        let words: &mut [u64] = &mut bitmap.words;
        for half in halves {
            words[(half >> 6) as usize] |= 1 << (half & 63);
            for bit in 0..32 {
                let near = half ^ 1 << bit;
                words[(near >> 6) as usize] |= 1 << (near & 63);
            }
        }
        bitmap
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Adds the indexes of those in `run` that pass; see [`super::Half::scan`].
    pub(crate) fn scan(
        &self,
        kernel: Kernel,
        run: &[u64],
        first: usize,
        shift: u32,
        indexes: &mut Vec<u32>,
    ) {
        let words: &[u64] = &self.words;
        kernel.run(Pick {
            run,
            first,
            indexes,
            fetch: |f: u64| prefetch_far(words, ((f >> shift) as u32 >> 6) as usize),
            passes: |f: u64| {
                let half = (f >> shift) as u32;
                words[(half >> 6) as usize] >> (half & 63) & 1 == 1
            },
        });
    }
}
