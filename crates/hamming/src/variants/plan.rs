//! The plan of `variants-N`: the layouts of its tables, and their predicted cost.

use super::fill::ENTRY_BYTES;
use super::pigeonring::pigeonring_scheme;
use super::tag_index::TagIndex;
use crate::buckets::{TablePlan, add_tables};
use crate::cost::Cost;
use crate::design::Design;

/// The layouts of the tables of a design over a number of entries.
#[derive(Debug)]
pub(crate) struct VariantsPlan {
    entries: usize,
    /// The plan of each block's table.
    pub(crate) tables: Vec<TablePlan>,
}

impl VariantsPlan {
    /// Plans the tables of `design` over `entries` entries.
    pub(crate) fn new(design: &Design, entries: usize) -> Self {
        let blocks = design.blocks();
        let table = |at: usize| {
            let plan =
                TablePlan::choose::<u32>(&blocks[at], pigeonring_scheme(blocks, at), entries);
            let sorting = ENTRY_BYTES * entries + (8 << plan.key.bits);
            plan.with_more_bytes(TagIndex::bytes_for(entries), sorting)
        };
        Self {
            entries,
            tables: (0..blocks.len()).map(table).collect(),
        }
    }

    /// The predicted cost.
    pub(super) fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        add_tables(&mut cost, &self.tables, self.entries, 1.0, true);
        cost
    }

    /// Describes the layout in one line.
    pub(super) fn describe(&self) -> String {
        let tables: Vec<String> = (self.tables.iter())
            .map(|table| {
                format!(
                    "keys of {} bits with {:.1} candidates",
                    table.key.bits, table.candidates
                )
            })
            .collect();
        tables.join(", ")
    }
}
