//! The plan of `variants-N`: the layouts of its tables, and their predicted cost.

use super::fill::ENTRY_BYTES;
use super::pins::Pins;
use super::ring::ring_rule;
use crate::buckets::{TablePlan, add_tables};
use crate::cost::Cost;
use crate::design::Design;

/// The planner's decisions about the tables of a design over some entries.
#[derive(Debug)]
pub(crate) struct VariantsPlan {
    entries: usize,
    /// One for each block.
    pub(crate) tables: Vec<TablePlan>,
}

impl VariantsPlan {
    /// Plans the tables of `design` over `entries` entries.
    pub(crate) fn new(design: &Design, entries: usize) -> Self {
        let blocks = design.blocks();
        let table = |at: usize| {
            let plan = TablePlan::choose::<u32>(&blocks[at], ring_rule(blocks, at), entries);
            let sorting = ENTRY_BYTES * entries + (8 << plan.key.bits);
            plan.with_more_bytes(Pins::bytes_for(entries), sorting)
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
