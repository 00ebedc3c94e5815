//! Stage 2, probe: decodes fingerprints and compares them with the tables of the batch, on a thread that may block.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use archive::reader::STEP;
use archive::{DecodedStep, Encoded, FingerprintReader};
use hamming::{Kernel, Scratch};

use super::channel::{self, Sink};
use super::gather::Gathered;
use crate::batch::PartTables;
use crate::error::EngineError;
use crate::progress::Stages;

/// The most items that are gathered and probed at once, for tables that are faster with many fingerprints. Each holds one
/// of the pipeline's permits, so there must be fewer than the permits.
pub const TOGETHER: usize = 8;

/// What one partition reuses from item to item.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    step: DecodedStep,
    scratch: Scratch,
    pub(super) gathered: Gathered,
}

impl Buffers {
    /// Adds the time since `begin` to the `stages` that took it.
    pub(super) fn report(&mut self, begin: Instant, stages: &Stages) {
        let scratch = &mut self.scratch;
        let [partition, filter, verify] = [
            &mut scratch.partitioning,
            &mut scratch.filtering,
            &mut scratch.verifying,
        ]
        .map(std::mem::take);
        let read = std::mem::take(&mut self.step.reading);
        let decode = begin
            .elapsed()
            .saturating_sub(partition + filter + verify + read);
        stages.decode.add(decode);
        stages.read.add(read);
        stages.partition.add(partition);
        stages.filter.add(filter);
        stages.verify.add(verify);
    }
}

/// Decodes a row group and probes it, or gathers it to be probed with the next ones, at most `together` of them. Sends
/// matches by row, ascending; returns the number of fingerprints.
pub(super) fn probe_slice(
    (reader, row_group, encoded): (&FingerprintReader, usize, Encoded),
    tables: &PartTables,
    buffers: &mut Buffers,
    together: usize,
    sink: Sink,
) -> Result<u64, EngineError> {
    let Buffers {
        step,
        scratch,
        gathered,
    } = buffers;
    let mut probe = |values: &[u64], from, found: &mut _| {
        tables.probe_some(Kernel::detect(), values, from, scratch, found)
    };
    let (mut rows, mut wanted) = (0, true);
    if tables.chunk_len() <= STEP {
        let mut found = Vec::new();
        reader.decode(row_group, encoded, step, |step| {
            let values = step.values();
            rows += values.len() as u64;
            let probe = |from, found: &mut _| probe(values, from, found);
            let row = |query| step.row(query as usize);
            wanted = channel::probe_and_send(&sink, &mut found, values.len(), probe, row);
            wanted
        })?;
        if wanted {
            channel::finish(sink, found);
        }
        return Ok(rows);
    }
    gathered.begin(sink);
    reader.decode(row_group, encoded, step, |step| {
        rows += step.values().len() as u64;
        gathered.add(step);
        if gathered.values() + STEP > tables.chunk_len() {
            wanted = gathered.probe(&mut probe);
        }
        wanted
    })?;
    if wanted && gathered.items() >= together {
        wanted = gathered.probe(&mut probe);
    }
    if !wanted {
        gathered.clear();
    } else if gathered.values() == 0 {
        gathered.end();
    }
    Ok(rows)
}

/// Probes the gathered fingerprints, and ends their items.
pub(super) fn probe_gathered(tables: &PartTables, buffers: &mut Buffers) {
    let Buffers {
        scratch, gathered, ..
    } = buffers;
    let probe = |values: &[u64], from, found: &mut _| {
        tables.probe_some(Kernel::detect(), values, from, scratch, found)
    };
    match gathered.probe(probe) {
        true => gathered.end(),
        false => gathered.clear(),
    }
}

/// Probes the batch's distinct fingerprints in `range` against the batch, and counts them in `probed` as it goes. Sends
/// matches by index, ascending, those of one fingerprint together.
pub(super) fn probe_within(
    range: Range<u32>,
    tables: &PartTables,
    buffers: &mut Buffers,
    sink: Sink,
    probed: &AtomicU64,
) {
    let own = range.start as usize..range.end as usize;
    let scratch = &mut buffers.scratch;
    let mut found = Vec::new();
    let probe = |from, found: &mut _| {
        let done = tables.probe_own(Kernel::detect(), own.clone(), from, scratch, found);
        probed.fetch_add(done as u64, Ordering::Relaxed);
        done
    };
    let row = |query| range.start + query;
    if channel::probe_and_send(&sink, &mut found, own.len(), probe, row) {
        channel::finish(sink, found);
    }
}
