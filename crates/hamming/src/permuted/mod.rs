//! The mechanism of Manku, Jain and Das Sarma (WWW 2007, section 3.1): a permuted, sorted copy of
//! the batch for each block, with a directory over the leading bits of the block. It serves
//! `blocks-N`, `choose-N-M`, `nested-N` and `exhaustive`.
//!
//! Every fingerprint is looked up in every table, under each directory prefix within the block's radius.

mod plan;
mod probe;
mod table;

use std::time::Instant;

use crate::cost::Cost;
use crate::design::{Block, Design};
use crate::isa::Kernel;
use crate::limits::Limits;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, MechanismTables, Times};
use crate::parallel::build_in_parallel;
use crate::related::Related;
use plan::{CANDIDATE_NS, PermutedPlan};
use probe::{Indexed, Lookup, ProbeEveryTable};
use table::PermutedTable;

/// Fingerprints that are probed at once: few enough to stay in the cache from table to table.
const CHUNK: usize = 1 << 14;

/// One permuted table for each block.
#[derive(Debug)]
pub(crate) struct Permuted {
    blocks: Vec<Block>,
    tables: Vec<PermutedTable>,
}

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct PermutedBuffers {
    lookups: Vec<Lookup>,
}

impl MechanismTables for Permuted {
    type Buffers = PermutedBuffers;

    fn predict(design: &Design, entries: usize, _limits: &Limits) -> Cost {
        PermutedPlan::new(design, entries).cost()
    }

    fn related_ns(design: &Design, related: &Related) -> f64 {
        let agree = |block: &Block| {
            related.excess(|difference| block.agrees(difference), block.random_share())
        };
        design
            .blocks()
            .iter()
            .map(|block| CANDIDATE_NS * agree(block))
            .sum()
    }

    fn describe(design: &Design, entries: usize) -> String {
        PermutedPlan::new(design, entries).describe()
    }

    fn build(values: &[u64], design: &Design, threads: usize) -> Self {
        let plan = PermutedPlan::new(design, values.len());
        let tables = build_in_parallel(plan.tables.len(), threads, |at| {
            PermutedTable::build(values, &plan.tables[at])
        });
        Self {
            blocks: design.blocks().to_vec(),
            tables,
        }
    }

    fn bytes(&self) -> usize {
        self.tables.iter().map(PermutedTable::bytes).sum()
    }

    fn chunk_len(&self) -> usize {
        CHUNK
    }

    fn probe(
        &self,
        kernel: Kernel,
        part: &BatchPart<'_>,
        chunk: &[u64],
        buffers: &mut PermutedBuffers,
        matches: &mut Matches<'_>,
    ) -> Times {
        let begin = Instant::now();
        kernel.execute(ProbeEveryTable {
            indexed: Indexed {
                tables: &self.tables,
                blocks: &self.blocks,
                part,
            },
            chunk,
            lookups: &mut buffers.lookups,
            matches,
        });
        Times {
            comparing: begin.elapsed(),
            ..Times::default()
        }
    }
}
