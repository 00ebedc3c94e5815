//! The table of a quarter, which keeps the index of the entry beside each tag.
//!
//! The key is the upper bits of the quarter, or all of them. The tag is the other quarter of the
//! half, in which one bit may differ.

use crate::buckets::{
    Buckets, Field, Queries, Survivor, TablePlan, TagScheme, TagTable, TagTest, TagView,
    TaggedEntries, counting_sort,
};
use crate::design::Block;
use crate::huge_array::HugeArray;
use crate::isa::Isa;
use crate::matches::{Match, Matches};
use crate::mechanism::BatchPart;
use crate::prefetch::prefetch_l1;

/// The table of a block whose [`Block::beside`] has at most 16 bits.
#[derive(Debug)]
pub(super) struct QuarterTable {
    buckets: Buckets<u16>,
    /// For each tag, the index of its entry in the part of the batch.
    indexes: HugeArray<u32>,
}

impl QuarterTable {
    /// Plans the table of `block` over `entries` entries.
    pub(super) fn plan(block: &Block, entries: usize) -> TablePlan {
        let test = TagTest { mask: !0, limit: 1 };
        let scheme = TagScheme {
            field: Field {
                before: block.beside.leading_zeros(),
                bits: block.beside.count_ones().min(u16::BITS),
            },
            flip_bits: 0,
            first: test,
            second: test,
        };
        let plan = TablePlan::choose::<u16>(block, scheme, entries);
        plan.with_more_bytes(4 * entries, 0)
    }

    /// Builds the table of `values` by `plan`.
    pub(super) fn build(values: &[u64], plan: &TablePlan) -> Self {
        let mut buckets = Buckets::<u16>::zeroed(plan);
        let mut by_place = HugeArray::<u32>::zeroed(values.len());
        let scheme = buckets.scheme;
        let (tags, indexes): (&mut [u16], &mut [u32]) = (&mut buckets.tags, &mut by_place);
        counting_sort(buckets.key, values, &mut buckets.starts, |place, index| {
            tags[place] = scheme.tag(values[index]) as u16;
            indexes[place] = index as u32;
        });
        Self {
            buckets,
            indexes: by_place,
        }
    }

    /// The indexes of the entries, in the order of their keys.
    pub(super) fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.bytes() + self.indexes.bytes()
    }
}

impl TagTable for QuarterTable {
    fn buckets(&self) -> &Buckets<u16> {
        &self.buckets
    }
}

impl TaggedEntries for QuarterTable {
    type Tag = u16;

    #[inline(always)]
    fn compare<I: Isa>(
        &self,
        _tags: TagView<'_, I, u16>,
        part: &BatchPart<'_>,
        queries: Queries<'_>,
        survivors: &mut Vec<Survivor>,
        matches: &mut Matches<'_>,
    ) {
        let indexes: &[u32] = &self.indexes;
        for survivor in survivors.iter() {
            prefetch_l1(indexes, survivor.tag_index as usize);
        }
        // From here on, the survivor holds the index of the entry.
        for survivor in survivors.iter_mut() {
            survivor.tag_index = indexes[survivor.tag_index as usize];
            prefetch_l1(part.values, survivor.tag_index as usize);
        }
        for &Survivor {
            query,
            tag_index: index,
        } in survivors.iter()
        {
            let chunk_index = queries.chunk_index(query);
            if part.is_self(chunk_index, index) {
                continue;
            }
            let difference = part.values[index as usize] ^ queries.fingerprints[query as usize];
            let distance = difference.count_ones();
            if distance <= part.max_distance {
                matches.push(Match {
                    query: chunk_index,
                    entry: (part.first + index as usize) as u32,
                    distance,
                });
            }
        }
    }
}
