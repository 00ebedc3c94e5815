//! The table of one block: buckets of variants, and the index that leads from a tag to its entries.

use super::fill::fill_variants;
use super::tag_index::TagIndex;
use crate::buckets::{Buckets, Queries, Survivor, TablePlan, TagTable};
use crate::design::Block;
use crate::isa::Isa;
use crate::matches::{Match, Matches};
use crate::mechanism::BatchPart;
use crate::prefetch::prefetch_l1;

/// If survivors have more entries than this on average, they are sorted, so that repeated ones (the
/// same query and prefix) are skipped.
const MANY_ENTRIES: usize = 16;

/// The table of a block, with the entries under all keys within the block's radius.
#[derive(Debug)]
pub(super) struct VariantTable {
    buckets: Buckets<u32>,
    tag_index: TagIndex,
}

impl VariantTable {
    /// Builds the table of `block` over `values` by `plan`.
    pub(super) fn build(values: &[u64], block: &Block, plan: &TablePlan) -> Self {
        let mut buckets = Buckets::zeroed(plan);
        let tag_index = TagIndex::build(values, buckets.scheme.field);
        fill_variants(&mut buckets, values, block.radius);
        Self { buckets, tag_index }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.bytes() + self.tag_index.bytes()
    }
}

impl TagTable for VariantTable {
    type Tag = u32;

    fn buckets(&self) -> &Buckets<u32> {
        &self.buckets
    }

    #[inline(always)]
    fn compare<I: Isa>(
        &self,
        isa: I,
        part: &BatchPart<'_>,
        queries: Queries<'_>,
        survivors: &mut Vec<Survivor>,
        matches: &mut Matches<'_>,
    ) {
        let TagIndex {
            prefix,
            starts,
            values,
            indexes,
        } = &self.tag_index;
        let scheme = self.buckets.scheme;
        let (starts, tags): (&[u32], &[u32]) = (starts, &self.buckets.tags);
        let unused = scheme.flip_bits + scheme.field.bits - prefix.bits;
        // Branchless, because it is unpredictable which survivors pass the second test: the next
        // survivor overwrites one that fails.
        let mut kept = 0;
        for at in 0..survivors.len() {
            let Survivor { query, tag_index } = survivors[at];
            let candidate = tags[tag_index as usize];
            let query_tag = scheme.tag(queries.fingerprints[query as usize]);
            // From here on, the survivor holds the prefix of the tag, by which `TagIndex` finds its entries.
            let prefix = candidate >> unused;
            prefetch_l1(starts, prefix as usize);
            survivors[kept] = Survivor {
                query,
                tag_index: prefix,
            };
            let differing = ((candidate ^ query_tag) & scheme.second.mask).count_ones();
            kept += usize::from(differing <= scheme.second.limit);
        }
        survivors.truncate(kept);
        let mut entries = 0;
        for survivor in survivors.iter() {
            let [start, end] = [0, 1].map(|next| starts[survivor.tag_index as usize + next]);
            prefetch_l1(values, start as usize);
            entries += (end - start) as usize;
        }
        // In a batch of many similar entries, many survivors of one query have the same prefix.
        if entries > MANY_ENTRIES * survivors.len() {
            survivors.sort_unstable_by_key(|survivor| {
                u64::from(survivor.query) << 32 | u64::from(survivor.tag_index)
            });
        }
        let mut before = None;
        for survivor in survivors.iter() {
            if before.replace(*survivor) == Some(*survivor) {
                continue;
            }
            let chunk_index = queries.chunk_index(survivor.query);
            let fingerprint = queries.fingerprints[survivor.query as usize];
            let prefix = survivor.tag_index as usize;
            let (mut first, end) = (starts[prefix] as usize, starts[prefix + 1] as usize);
            for candidates in values[first..end].chunks(64) {
                let mut near = isa.within(fingerprint, candidates, part.max_distance);
                while near != 0 {
                    let at = near.trailing_zeros() as usize;
                    near &= near - 1;
                    let index = indexes[first + at];
                    if !part.is_self(chunk_index, index) {
                        matches.push(Match {
                            query: chunk_index,
                            entry: (part.first + index as usize) as u32,
                            distance: (candidates[at] ^ fingerprint).count_ones(),
                        });
                    }
                }
                first += candidates.len();
            }
            if matches.is_full() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ball::volume;
    use crate::variants::plan::VariantsPlan;
    use crate::{Design, Distinct};

    #[test]
    fn buckets_hold_every_variant_once() {
        let values: Vec<u64> = (0..400u64)
            .map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let values = Distinct::new(&values).values().to_vec();
        for (name, k) in [("variants-3", 8), ("variants-4", 10), ("variants-6", 5)] {
            let design = Design::named(name, k).unwrap();
            let plan = VariantsPlan::new(&design, values.len());
            for (at, block) in design.blocks().iter().enumerate() {
                let table = VariantTable::build(&values, block, &plan.tables[at]).buckets;
                let mut variants = 0;
                for key in 0..1u32 << table.key.bits {
                    let range = table.starts[key as usize]..table.starts[key as usize + 1];
                    let mut bucket = range
                        .map(|place| table.tags[place as usize])
                        .collect::<Vec<_>>();
                    variants += bucket.len();
                    let distance = |value: u64| (table.key.extract(value) ^ key).count_ones();
                    let mut expected: Vec<u32> = values
                        .iter()
                        .filter(|&&value| distance(value) <= block.radius)
                        .map(|&value| table.scheme.tag(value) | ((1 << distance(value)) - 1))
                        .collect();
                    bucket.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(bucket, expected, "{name}, block {at}, key {key}");
                }
                assert_eq!(
                    variants,
                    400 * volume(table.key.bits, block.radius) as usize
                );
            }
        }
    }
}
