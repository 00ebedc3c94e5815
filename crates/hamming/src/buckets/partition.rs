//! Partitioning a chunk by key, so that lookups read a large table nearly in order.

use super::field::Field;
use super::queries::Queries;
use super::tag::LINE;
use crate::huge_array::HugeArray;
use crate::isa::{Isa, Kernel, Work};
use crate::prefetch::prefetch_l1;

/// How many leading bits of the key select the partition. They are few enough for the cache to hold
/// the line that each partition is writing, and enough for the second-level cache to hold the part
/// of a table that one partition reads, which then lies on few pages.
const PARTITION_BITS: u32 = 10;
const PARTITIONS: usize = 1 << PARTITION_BITS;

/// The fingerprints of a chunk, ordered by the leading bits of a key.
#[derive(Debug)]
pub(super) struct Partitioned {
    fingerprints: HugeArray<u64>,
    /// The index of each fingerprint in the chunk.
    chunk_indexes: HugeArray<u32>,
}

impl Default for Partitioned {
    fn default() -> Self {
        Self {
            fingerprints: HugeArray::zeroed(0),
            chunk_indexes: HugeArray::zeroed(0),
        }
    }
}

impl Partitioned {
    /// Replaces the held fingerprints with those of `chunk`, partitioned by the leading bits of
    /// `key`, and returns them as queries.
    pub(super) fn fill(&mut self, kernel: Kernel, key: Field, chunk: &[u64]) -> Queries<'_> {
        if self.chunk_indexes.len() < chunk.len() {
            // The old arrays are freed before the new ones are allocated.
            *self = Self::default();
            self.fingerprints = HugeArray::zeroed(chunk.len());
            self.chunk_indexes = HugeArray::zeroed(chunk.len());
        }
        let (fingerprints, chunk_indexes) = (
            &mut self.fingerprints[..chunk.len()],
            &mut self.chunk_indexes[..chunk.len()],
        );
        kernel.execute(Fill {
            chunk,
            by: Field {
                bits: key.bits.min(PARTITION_BITS),
                ..key
            },
            fingerprints,
            chunk_indexes,
        });
        Queries {
            fingerprints,
            chunk_indexes: Some(chunk_indexes),
        }
    }
}

/// The work of [`Partitioned::fill`]; a [`Work`] because its shifts are faster with BMI2.
struct Fill<'a> {
    chunk: &'a [u64],
    by: Field,
    fingerprints: &'a mut [u64],
    chunk_indexes: &'a mut [u32],
}

impl Work for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, _isa: I) {
        let Self {
            chunk,
            by,
            fingerprints,
            chunk_indexes,
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
        for (index, &fingerprint) in chunk.iter().enumerate() {
            let next = &mut next[partition(fingerprint)];
            let place = *next as usize;
            fingerprints[place] = fingerprint;
            chunk_indexes[place] = index as u32;
            // Prefetch the partition's next line while this line is filled.
            prefetch_l1(fingerprints, place + LINE / size_of::<u64>());
            prefetch_l1(chunk_indexes, place + LINE / size_of::<u32>());
            *next += 1;
        }
    }
}
