//! Probing tables of sketches: the order in which a chunk is looked up.

use std::time::{Duration, Instant};

use super::lookups::{InRuns, InTurn, Lookups};
use super::partition::Partitioned;
use super::plan::LARGE_TABLE;
use super::queries::{Queries, Survivor};
use super::sketch::Sketch;
use super::sketched::Buckets;
use super::strips::Strips;
use super::table::SketchTable;
use crate::isa::Kernel;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, Times};

/// Queries with the same key, on average, from which on each bucket is looked up once for all of its queries.
const MIN_RUN: usize = 4;

/// Chunks are partitioned from this length on.
const PARTITION_FROM: usize = 1 << 14;

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct ProbeBuffers {
    partitioned: Partitioned,
    strips: Strips,
    survivors: Vec<Survivor>,
}

/// Looks up every fingerprint of `chunk` in each of `tables`, until `matches` is full. Several tables may find one pair.
pub(crate) fn probe_tables<T: SketchTable>(
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
        verifying: begin.elapsed().saturating_sub(partitioning),
        ..Times::default()
    }
}

/// Looks up every fingerprint of `chunk` in one table. Returns the time spent on partitioning.
fn probe_table<T: SketchTable>(
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
        numbers: None,
    };
    // A chunk in the order of the table's keys needs no partitions.
    let in_order = buckets.key.before == 0 && chunk.is_sorted();
    if in_order && has_runs(buckets, chunk) {
        let lookups = Lookups {
            table,
            part,
            queries,
            strips: &mut buffers.strips,
            survivors: &mut buffers.survivors,
            matches,
        };
        match buckets.few {
            true => kernel.run(InRuns::<_, true>(lookups)),
            false => kernel.run(InRuns::<_, false>(lookups)),
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
pub(crate) fn probe_in_given_order<T: SketchTable>(
    kernel: Kernel,
    table: &T,
    part: &BatchPart<'_>,
    queries: Queries<'_>,
    buffers: &mut ProbeBuffers,
    matches: &mut Matches<'_>,
) {
    let lookups = Lookups {
        table,
        part,
        queries,
        strips: &mut buffers.strips,
        survivors: &mut buffers.survivors,
        matches,
    };
    match table.buckets().few {
        true => kernel.run(InTurn::<_, true>(lookups)),
        false => kernel.run(InTurn::<_, false>(lookups)),
    }
}

/// Whether a sorted chunk has [`MIN_RUN`] or more fingerprints for each key in its range, on average.
fn has_runs<S: Sketch>(buckets: &Buckets<S>, chunk: &[u64]) -> bool {
    let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
        return false;
    };
    let keys = buckets
        .key
        .extract(last)
        .abs_diff(buckets.key.extract(first)) as usize
        + 1;
    chunk.len() / keys >= MIN_RUN
}
