//! Probing tables of tags: the order in which the fingerprints of a chunk are looked up.

use std::time::{Duration, Instant};

use super::lookup_loops::{Lookups, OneByOne, RunByRun};
use super::partition::Partitioned;
use super::plan::LARGE_TABLE;
use super::queries::{Queries, Survivor};
use super::strips::Strips;
use super::tag::Tag;
use super::tag_buckets::Buckets;
use super::tag_table::TagTable;
use crate::isa::Kernel;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, Times};

/// A sorted chunk is looked up run by run if its runs have at least this length on average.
const MIN_RUN_LEN: usize = 4;

/// Chunks of at least this length are partitioned.
const PARTITION_FROM: usize = 1 << 14;

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct ProbeBuffers {
    partitioned: Partitioned,
    strips: Strips,
    survivors: Vec<Survivor>,
}

impl ProbeBuffers {
    /// The lookups of `queries` in `table`.
    pub(crate) fn lookups<'a, 'm, T>(
        &'a mut self,
        table: &'a T,
        part: &'a BatchPart<'a>,
        queries: Queries<'a>,
        matches: &'a mut Matches<'m>,
    ) -> Lookups<'a, 'm, T> {
        self.survivors.clear();
        self.strips.clear();
        Lookups {
            table,
            part,
            queries,
            strips: &mut self.strips,
            survivors: &mut self.survivors,
            matches,
        }
    }
}

/// Looks up every fingerprint of `chunk` in each of `tables`, until `matches` is full. Several tables may find the same
/// pair.
pub(crate) fn probe_tables<T: TagTable>(
    kernel: Kernel,
    tables: &[T],
    part: &BatchPart<'_>,
    chunk: &[u64],
    buffers: &mut ProbeBuffers,
    matches: &mut Matches<'_>,
) -> Times {
    let begin = Instant::now();
    let mut partitioning = Duration::ZERO;
    for table in tables {
        partitioning += probe_table(kernel, table, part, chunk, buffers, matches);
        if matches.is_full() {
            break;
        }
    }
    Times {
        partitioning,
        comparing: begin.elapsed().saturating_sub(partitioning),
        ..Times::default()
    }
}

/// Looks up every fingerprint of `chunk` in one table. Returns the time spent on partitioning.
fn probe_table<T: TagTable>(
    kernel: Kernel,
    table: &T,
    part: &BatchPart<'_>,
    chunk: &[u64],
    buffers: &mut ProbeBuffers,
    matches: &mut Matches<'_>,
) -> Duration {
    let buckets = table.buckets();
    let queries = Queries {
        fingerprints: chunk,
        chunk_indexes: None,
    };
    // A chunk in the order of the table's keys needs no partitioning.
    let in_order = buckets.key.before == 0 && chunk.is_sorted();
    if in_order && has_runs(buckets, chunk) {
        let lookups = buffers.lookups(table, part, queries, matches);
        if buckets.strips_first {
            kernel.execute(RunByRun::<_, true>(lookups))
        } else {
            kernel.execute(RunByRun::<_, false>(lookups))
        }
        return Duration::ZERO;
    }
    if in_order || chunk.len() < PARTITION_FROM || buckets.bytes() < LARGE_TABLE {
        probe_in_given_order(kernel, table, part, queries, buffers, matches);
        return Duration::ZERO;
    }
    let begin = Instant::now();
    let mut partitioned = std::mem::take(&mut buffers.partitioned);
    let queries = partitioned.fill(kernel, buckets.key, chunk);
    let partitioning = begin.elapsed();
    probe_in_given_order(kernel, table, part, queries, buffers, matches);
    buffers.partitioned = partitioned;
    partitioning
}

/// Looks up every query in one table, in the order of `queries`.
pub(crate) fn probe_in_given_order<T: TagTable>(
    kernel: Kernel,
    table: &T,
    part: &BatchPart<'_>,
    queries: Queries<'_>,
    buffers: &mut ProbeBuffers,
    matches: &mut Matches<'_>,
) {
    let lookups = buffers.lookups(table, part, queries, matches);
    if table.buckets().strips_first {
        kernel.execute(OneByOne::<_, true>(lookups))
    } else {
        kernel.execute(OneByOne::<_, false>(lookups))
    }
}

/// Whether a sorted chunk has [`MIN_RUN_LEN`] or more fingerprints for each key, on average.
fn has_runs<T: Tag>(buckets: &Buckets<T>, chunk: &[u64]) -> bool {
    let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
        return false;
    };
    let keys = buckets
        .key
        .extract(last)
        .abs_diff(buckets.key.extract(first)) as usize
        + 1;
    chunk.len() / keys >= MIN_RUN_LEN
}
