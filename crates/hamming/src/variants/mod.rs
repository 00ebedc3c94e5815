//! The mechanism of `variants-N`: an entry is stored under every key within its block's radius (its variants), so that
//! a query finds all its candidates of a block in one bucket.
//!
//! A tag holds bits of the next two blocks (the first block follows the last), at most 32 less the radius; see
//! [`pigeonring`] for its tests. So few candidates pass them that buckets hold no indexes of entries: [`tag_index`]
//! finds the entries of a tag.
//!
//! In the design `trie`, a [`trie`] takes the place of the leading block's table, and [`walk`] that of its lookups.

mod fill;
mod pigeonring;
mod plan;
mod table;
mod tag_index;
mod trie;
mod walk;

pub(crate) use plan::VariantsPlan;

use std::time::Instant;

use crate::buckets::{ProbeBuffers, Queries, probe_tables};
use crate::cost::Cost;
use crate::design::Design;
use crate::isa::Kernel;
use crate::limits::Limits;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, MechanismTables, Times};
use crate::parallel::build_in_parallel;
use crate::related::Related;
use table::VariantTable;
use trie::Trie;
use walk::{Path, Walk};

/// Bytes held for one probed fingerprint: the caller's chunk and the partitioned chunk each hold
/// its 8 bytes and an index of 4 bytes.
const PROBED_BYTES: usize = 24;

/// One table of variants for each block; in the design `trie`, a trie for the first.
#[derive(Debug)]
pub(crate) struct Variants {
    trie: Option<Box<Trie>>,
    tables: Vec<VariantTable>,
    chunk_len: usize,
}

impl MechanismTables for Variants {
    type Buffers = (ProbeBuffers, Path);

    fn predict(design: &Design, entries: usize, limits: &Limits) -> Cost {
        VariantsPlan::new(design, entries).cost(limits)
    }

    fn related_ns(design: &Design, related: &Related) -> f64 {
        VariantsPlan::related_ns(design, related)
    }

    fn describe(design: &Design, entries: usize) -> String {
        VariantsPlan::new(design, entries).describe()
    }

    fn build(values: &[u64], design: &Design, threads: usize) -> Self {
        let plan = VariantsPlan::new(design, values.len());
        let (first, others) = design.blocks().split_at(usize::from(design.has_trie()));
        let trie = (first.first())
            .map(|block| Box::new(Trie::build(values, block, design.max_distance())));
        let tables = build_in_parallel(others.len(), threads, |at| {
            VariantTable::build(values, &others[at], &plan.tables[at])
        });
        // The chunks of all threads together take an eighth of the tables' bytes, or half of the small ones of a trie; each
        // has 2²⁰ to 2²³ fingerprints. A large chunk, once partitioned, reads a large table nearly in order.
        let bytes: usize = tables.iter().map(VariantTable::bytes).sum();
        let share = if trie.is_some() { 2 } else { 8 };
        let most = bytes / share / (PROBED_BYTES * threads.max(1));
        Self {
            trie,
            tables,
            chunk_len: (most >> 20 << 20).clamp(1 << 20, 1 << 23),
        }
    }

    fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(VariantTable::bytes).sum();
        tables + self.trie.as_ref().map_or(0, |trie| trie.bytes())
    }

    fn chunk_len(&self) -> usize {
        self.chunk_len
    }

    fn probe(
        &self,
        kernel: Kernel,
        part: &BatchPart<'_>,
        chunk: &[u64],
        (buffers, path): &mut Self::Buffers,
        matches: &mut Matches<'_>,
    ) -> Times {
        let begin = Instant::now();
        if let Some(trie) = &self.trie {
            let queries = Queries {
                fingerprints: chunk,
                chunk_indexes: None,
            };
            kernel.execute(Walk {
                trie,
                values: part.values,
                lookups: buffers.lookups(&trie.tag_index, part, queries, matches),
                path,
            });
        }
        let mut times = Times {
            comparing: begin.elapsed(),
            ..Times::default()
        };
        if !matches.is_full() {
            let of_tables = probe_tables(kernel, &self.tables, part, chunk, buffers, matches);
            times.partitioning = of_tables.partitioning;
            times.comparing += of_tables.comparing;
        }
        times
    }
}
