//! The plan of `variants-N` and `trie`: the layouts of its tables, and their predicted cost.

use super::fill::ENTRY_BYTES;
use super::pigeonring::pigeonring_scheme;
use super::tag_index::TagIndex;
use super::trie;
use crate::buckets::{CACHE_LINE_NS, COMPARE_NS, TablePlan, Tag as _, add_tables};
use crate::cost::{BUILD_NS, Cost};
use crate::design::{Block, Design};
use crate::limits::Limits;
use crate::related::Related;

/// The layouts of the tables of a design over a number of entries.
#[derive(Debug)]
pub(crate) struct VariantsPlan {
    entries: usize,
    /// The leading block, if a trie takes the place of its table.
    trie: Option<Block>,
    /// The plan of the table of each other block.
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
        let trie = design.has_trie().then(|| blocks[0]);
        Self {
            entries,
            trie,
            tables: (usize::from(trie.is_some())..blocks.len())
                .map(table)
                .collect(),
        }
    }

    /// The predicted cost.
    pub(super) fn cost(&self, limits: &Limits) -> Cost {
        let mut cost = Cost::default();
        add_tables(&mut cost, &self.tables, self.entries, 1.0, true);
        if let Some(block) = &self.trie {
            let (candidates, probe_ns) = trie::predict(block, self.entries, limits.sorted_run);
            cost.candidates += candidates;
            cost.probe_ns += probe_ns;
            cost.lookups += 1.0;
            cost.bytes =
                cost.bytes
                    .saturating_add(trie::bytes_for(block, self.entries, limits.threads));
            cost.build_seconds += 1e-9 * BUILD_NS * self.entries as f64;
        }
        cost
    }

    /// See [`crate::mechanism::MechanismTables::related_ns`]: entries whose keys agree are candidates, and those of them that
    /// pass the tests by the pigeonring principle are compared.
    pub(super) fn related_ns(design: &Design, related: &Related) -> f64 {
        let blocks = design.blocks();
        let of_block = |at: usize| {
            let chain = |difference: u64, len: usize| {
                let ring = (0..len).map(|more| &blocks[(at + more) % blocks.len()]);
                let differing: u32 = ring
                    .clone()
                    .map(|block| (difference & block.mask).count_ones())
                    .sum();
                differing < ring.map(|block| block.radius + 1).sum()
            };
            let random = blocks[at].random_share();
            let candidates = related.excess(|difference| chain(difference, 1), random);
            let all = |difference| (1..=3).all(|len| chain(difference, len));
            // Hardly any random pair passes.
            let compared = related.excess(all, 0.0);
            CACHE_LINE_NS * candidates / u32::LANES as f64 + COMPARE_NS * compared
        };
        (0..blocks.len()).map(of_block).sum()
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
        let trie = self
            .trie
            .as_ref()
            .map(|block| trie::describe(block, self.entries));
        trie.into_iter()
            .chain(tables)
            .collect::<Vec<_>>()
            .join(", ")
    }
}
