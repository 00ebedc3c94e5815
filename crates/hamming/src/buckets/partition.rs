//! Partitioning a chunk by key, so that lookups read a large table nearly in order.

use super::field::Field;
use super::queries::Queries;
use super::sketch::LINE;
use crate::isa::{Isa, Kernel, Work};
use crate::memory::Array;
use crate::prefetch::prefetch_l1;

/// Leading bits of the key by which a chunk is partitioned: few enough that the cache holds the line that each partition
/// is writing, enough that what one partition reads of a table fits in the second-level cache and on few pages.
const PARTITION_BITS: u32 = 10;
const PARTITIONS: usize = 1 << PARTITION_BITS;

/// A chunk in the order of the leading bits of a key.
#[derive(Debug)]
pub(super) struct Partitioned {
    fingerprints: Array<u64>,
    /// The index in the chunk of each.
    numbers: Array<u32>,
}

impl Default for Partitioned {
    fn default() -> Self {
        Self {
            fingerprints: Array::zeroed(0),
            numbers: Array::zeroed(0),
        }
    }
}

impl Partitioned {
    /// Partitions `chunk` by the leading bits of `key`, in place of what was there.
    pub(super) fn fill(&mut self, kernel: Kernel, key: Field, chunk: &[u64]) -> Queries<'_> {
        if self.numbers.len() < chunk.len() {
            // The old arrays are freed before the new ones are allocated.
            *self = Self::default();
            self.fingerprints = Array::zeroed(chunk.len());
            self.numbers = Array::zeroed(chunk.len());
        }
        let (fingerprints, numbers) = (
            &mut self.fingerprints[..chunk.len()],
            &mut self.numbers[..chunk.len()],
        );
        kernel.run(Fill {
            chunk,
            by: Field {
                bits: key.bits.min(PARTITION_BITS),
                ..key
            },
            fingerprints,
            numbers,
        });
        Queries {
            fingerprints,
            numbers: Some(numbers),
        }
    }
}

/// The work of [`Partitioned::fill`]; a [`Work`] because its shifts are faster with BMI2.
struct Fill<'a> {
    chunk: &'a [u64],
    by: Field,
    fingerprints: &'a mut [u64],
    numbers: &'a mut [u32],
}

impl Work for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _isa: I) {
        let Self {
            chunk,
            by,
            fingerprints,
            numbers,
        } = self;
        let partition = |fingerprint: u64| by.extract(fingerprint) as usize % PARTITIONS;
        let mut next = [0u32; PARTITIONS];
        for &fingerprint in chunk {
            next[partition(fingerprint)] += 1;
        }
        let mut sum = 0;
        for next in &mut next {
            sum += std::mem::replace(next, sum);
        }
        for (number, &fingerprint) in chunk.iter().enumerate() {
            let next = &mut next[partition(fingerprint)];
            let place = *next as usize;
            fingerprints[place] = fingerprint;
            numbers[place] = number as u32;
            // Prefetch the partition's next line while this one is filled.
            prefetch_l1(fingerprints, place + LINE / size_of::<u64>());
            prefetch_l1(numbers, place + LINE / size_of::<u32>());
            *next += 1;
        }
    }
}
