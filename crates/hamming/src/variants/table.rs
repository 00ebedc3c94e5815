//! The table of one block: buckets of variants, and the index that leads from a tag to its entries.

use super::fill::fill_variants;
use super::tag_index::TagIndex;
use crate::buckets::{Buckets, Queries, Survivor, TablePlan, TagTable, TagView, TaggedEntries};
use crate::design::Block;
use crate::isa::Isa;
use crate::matches::Matches;
use crate::mechanism::BatchPart;

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
    fn buckets(&self) -> &Buckets<u32> {
        &self.buckets
    }
}

impl TaggedEntries for VariantTable {
    type Tag = u32;

    #[inline(always)]
    fn compare<I: Isa>(
        &self,
        tags: TagView<'_, I, u32>,
        part: &BatchPart<'_>,
        queries: Queries<'_>,
        survivors: &mut Vec<Survivor>,
        matches: &mut Matches<'_>,
    ) {
        self.tag_index
            .compare(tags, part, queries, survivors, matches);
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
