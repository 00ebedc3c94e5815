//! Tables of exact keys, whose sketches have the index of their entry beside them.

use super::probe::{Chunk, STRIP, SketchTable, Survivor};
use super::{Buckets, Entries, Sketch as _, place_by};
use crate::design::Design;
use crate::kernels::Compare;
use crate::memory::Array;
use crate::probe::{Found, Match, prefetch};

/// The table of a block beside another one of at most 16 bits.
#[derive(Debug)]
pub(crate) struct IndexedTable {
    buckets: Buckets<u16>,
    /// Indexes of the entries among those that the table was built of, by place.
    indexes: Array<u32>,
}

/// Bytes of the sketches and indexes.
pub(super) fn bytes(entries: usize) -> usize {
    6 * entries + 2 * STRIP * u16::LANES
}

impl IndexedTable {
    /// The table of block `at` of `design` over `values`.
    pub(crate) fn build(values: &[u64], design: &Design, at: usize) -> Self {
        let mut buckets = Buckets::<u16>::empty(values.len(), design.blocks(), at);
        let mut by_place = Array::<u32>::zeroed(values.len());
        let (sketches, indexes): (&mut [u16], &mut [u32]) = (&mut buckets.sketches, &mut by_place);
        place_by(buckets.key, values, &mut buckets.starts, |place, index| {
            sketches[place] = buckets.near.sketch(values[index]) as u16;
            indexes[place] = index as u32;
        });
        Self {
            buckets,
            indexes: by_place,
        }
    }

    /// The indexes of the entries, in the order of their keys.
    pub(crate) fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.bytes() + self.indexes.bytes()
    }
}

impl SketchTable for IndexedTable {
    type Sketch = u16;

    fn buckets(&self) -> &Buckets<u16> {
        &self.buckets
    }

    #[inline(always)]
    fn compare<C: Compare>(
        &self,
        entries: &Entries<'_>,
        chunk: Chunk<'_>,
        survivors: &mut Vec<Survivor>,
        found: &mut Found<'_>,
    ) {
        let indexes: &[u32] = &self.indexes;
        for survivor in survivors.iter() {
            prefetch(indexes, survivor.place as usize);
        }
        for survivor in survivors.iter_mut() {
            survivor.place = indexes[survivor.place as usize];
            prefetch(entries.values, survivor.place as usize);
        }
        for &Survivor {
            query,
            place: index,
        } in survivors.iter()
        {
            let number = chunk.number(query);
            if entries.is_own(number, index) {
                continue;
            }
            let difference = entries.values[index as usize] ^ chunk.fingerprints[query as usize];
            let distance = difference.count_ones();
            if distance <= entries.max_distance {
                found.push(Match {
                    query: number,
                    entry: (entries.first + index as usize) as u32,
                    distance,
                });
            }
        }
    }
}
