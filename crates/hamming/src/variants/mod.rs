//! The mechanism of `variants-N`: an entry is stored under every key within its block's radius (its variants), so that
//! a query finds all its candidates of a block in one bucket.
//!
//! A tag holds bits of the next two blocks (the first block follows the last), at most 32 less the radius; see
//! [`pigeonring`] for its tests. So few candidates pass them that buckets hold no indexes of entries: [`tag_index`]
//! finds the entries of a tag.

mod fill;
mod pigeonring;
mod plan;
mod table;
mod tag_index;

pub(crate) use plan::VariantsPlan;

use crate::buckets::{ProbeBuffers, probe_tables};
use crate::cost::Cost;
use crate::design::Design;
use crate::isa::Kernel;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, MechanismTables, Times};
use crate::parallel::build_in_parallel;
use crate::related::Related;
use table::VariantTable;

/// Bytes held for one probed fingerprint: the caller's chunk and the partitioned chunk each hold
/// its 8 bytes and an index of 4 bytes.
const PROBED_BYTES: usize = 24;

/// One table of variants for each block.
#[derive(Debug)]
pub(crate) struct Variants {
    tables: Vec<VariantTable>,
    chunk_len: usize,
}

impl MechanismTables for Variants {
    type Buffers = ProbeBuffers;

    fn predict(design: &Design, entries: usize) -> Cost {
        VariantsPlan::new(design, entries).cost()
    }

    fn related_ns(design: &Design, related: &Related) -> f64 {
        VariantsPlan::related_ns(design, related)
    }

    fn describe(design: &Design, entries: usize) -> String {
        VariantsPlan::new(design, entries).describe()
    }

    fn build(values: &[u64], design: &Design, threads: usize) -> Self {
        let plan = VariantsPlan::new(design, values.len());
        let blocks = design.blocks();
        let tables = build_in_parallel(blocks.len(), threads, |at| {
            VariantTable::build(values, &blocks[at], &plan.tables[at])
        });
        // The chunks of all threads together take an eighth of the tables' bytes; each has 2²⁰ to
        // 2²³ fingerprints. A large chunk, once partitioned, reads a large table nearly in order.
        let bytes: usize = tables.iter().map(VariantTable::bytes).sum();
        let most = bytes / 8 / (PROBED_BYTES * threads.max(1));
        Self {
            tables,
            chunk_len: (most >> 20 << 20).clamp(1 << 20, 1 << 23),
        }
    }

    fn bytes(&self) -> usize {
        self.tables.iter().map(VariantTable::bytes).sum()
    }

    fn chunk_len(&self) -> usize {
        self.chunk_len
    }

    fn probe(
        &self,
        kernel: Kernel,
        part: &BatchPart<'_>,
        chunk: &[u64],
        buffers: &mut ProbeBuffers,
        matches: &mut Matches<'_>,
    ) -> Times {
        probe_tables(kernel, &self.tables, part, chunk, buffers, matches)
    }
}
