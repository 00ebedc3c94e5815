//! A chunk brought into the order of a large table's keys, or nearly.

use super::probe::Chunk;
use super::{Field, LINE};
use crate::kernels::{Compare, Kernel, Work};
use crate::memory::Array;
use crate::probe::prefetch;

/// Bits of the key by which a chunk is partitioned: so few that each partition has a cache line to be written to, so
/// many that what one looks up in a table is in the second-level cache and on few pages.
const PARTITION_BITS: u32 = 10;
const PARTITIONS: usize = 1 << PARTITION_BITS;

/// A chunk in the order of the leading bits of a key.
#[derive(Debug)]
pub(super) struct Partitioned {
    fingerprints: Array<u64>,
    /// The index in the chunk of each.
    queries: Array<u32>,
}

impl Default for Partitioned {
    fn default() -> Self {
        Self {
            fingerprints: Array::zeroed(0),
            queries: Array::zeroed(0),
        }
    }
}

impl Partitioned {
    pub(super) fn fill(&mut self, kernel: Kernel, key: Field, chunk: &[u64]) -> Chunk<'_> {
        if self.queries.len() < chunk.len() {
            // Not both at the same time.
            *self = Self::default();
            self.fingerprints = Array::zeroed(chunk.len());
            self.queries = Array::zeroed(chunk.len());
        }
        let (fingerprints, queries) = (
            &mut self.fingerprints[..chunk.len()],
            &mut self.queries[..chunk.len()],
        );
        kernel.run(Fill {
            chunk,
            by: Field {
                bits: key.bits.min(PARTITION_BITS),
                ..key
            },
            fingerprints,
            queries,
        });
        Chunk {
            fingerprints,
            numbers: Some(queries),
        }
    }
}

/// The work of [`Partitioned::fill`], for a kernel, whose instructions the shifts need to be fast.
struct Fill<'a> {
    chunk: &'a [u64],
    by: Field,
    fingerprints: &'a mut [u64],
    queries: &'a mut [u32],
}

impl Work for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self {
            chunk,
            by,
            fingerprints,
            queries,
        } = self;
        let partition = |fingerprint: u64| by.of(fingerprint) as usize % PARTITIONS;
        let mut next = [0u32; PARTITIONS];
        for &fingerprint in chunk {
            next[partition(fingerprint)] += 1;
        }
        let mut sum = 0;
        for next in &mut next {
            sum += std::mem::replace(next, sum);
        }
        for (query, &fingerprint) in chunk.iter().enumerate() {
            let next = &mut next[partition(fingerprint)];
            let place = *next as usize;
            fingerprints[place] = fingerprint;
            queries[place] = query as u32;
            // The next line of each, which is not in the cache, is on its way until this one is full.
            prefetch(fingerprints, place + LINE / size_of::<u64>());
            prefetch(queries, place + LINE / size_of::<u32>());
            *next += 1;
        }
    }
}
