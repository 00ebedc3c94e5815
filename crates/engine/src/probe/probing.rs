//! Stage 2, probe: decodes fingerprints and compares them with the tables of the batch, on a
//! blocking thread.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use archive::reader::STEP;
use archive::{DecodedStep, Encoded, FingerprintReader};
use hamming::{Kernel, Scratch};

use super::channel::{self, Sink};
use super::coalesce::CoalescedItems;
use crate::batch::PartTables;
use crate::error::EngineError;
use crate::progress::Stages;

/// The most items that are coalesced and probed at once, for tables that are faster with many fingerprints. Each of them
/// holds a permit of the pipeline, so this is less than the number of permits.
pub const TOGETHER: usize = 8;

/// Buffers that a partition reuses from item to item, and the fingerprints that it coalesced.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    step: DecodedStep,
    scratch: Scratch,
    pub(super) coalesced: CoalescedItems,
}

impl Buffers {
    /// Adds the time since `begin` to the `stages` that took it.
    pub(super) fn report(&mut self, begin: Instant, stages: &Stages) {
        let scratch = &mut self.scratch;
        let [partition, filter, compare] = [
            &mut scratch.partitioning,
            &mut scratch.filtering,
            &mut scratch.comparing,
        ]
        .map(std::mem::take);
        let read = std::mem::take(&mut self.step.reading);
        let decode = begin
            .elapsed()
            .saturating_sub(partition + filter + compare + read);
        stages.decode.add(decode);
        stages.read.add(read);
        stages.partition.add(partition);
        stages.filter.add(filter);
        stages.compare.add(compare);
    }
}

/// Decodes a row group. Probes it at once if the tables are small, or else coalesces up to `together`
/// row groups and probes them together. Sends matches by row, ascending; returns the number of
/// fingerprints.
pub(super) fn probe_row_group(
    (reader, row_group, encoded): (&FingerprintReader, usize, Encoded),
    tables: &PartTables,
    buffers: &mut Buffers,
    together: usize,
    sink: Sink,
) -> Result<u64, EngineError> {
    let Buffers {
        step,
        scratch,
        coalesced,
    } = buffers;
    let mut probe = |values: &[u64], from, found: &mut _| {
        tables.probe_piece(Kernel::detect(), values, from, scratch, found)
    };
    let (mut rows, mut is_received) = (0, true);
    if tables.chunk_len() <= STEP {
        let mut found = Vec::new();
        reader.decode(row_group, encoded, step, |step| {
            let values = step.values();
            rows += values.len() as u64;
            let probe = |from, found: &mut _| probe(values, from, found);
            let row = |query| step.row(query as usize);
            is_received = channel::probe_and_send(&sink, &mut found, values.len(), probe, row);
            is_received
        })?;
        if is_received {
            channel::finish(sink, found);
        }
        return Ok(rows);
    }
    coalesced.begin(sink);
    reader.decode(row_group, encoded, step, |step| {
        rows += step.values().len() as u64;
        coalesced.add(step);
        if coalesced.values() + STEP > tables.chunk_len() {
            is_received = coalesced.probe(&mut probe);
        }
        is_received
    })?;
    if is_received && coalesced.items() >= together {
        is_received = coalesced.probe(&mut probe);
    }
    if !is_received {
        coalesced.give_up();
    } else if coalesced.values() == 0 {
        coalesced.mark_done();
    }
    Ok(rows)
}

/// Probes the coalesced fingerprints, and ends their items.
pub(super) fn probe_coalesced(tables: &PartTables, buffers: &mut Buffers) {
    let Buffers {
        scratch, coalesced, ..
    } = buffers;
    let probe = |values: &[u64], from, found: &mut _| {
        tables.probe_piece(Kernel::detect(), values, from, scratch, found)
    };
    if coalesced.probe(probe) {
        coalesced.mark_done()
    } else {
        coalesced.give_up()
    }
}

/// Compares the batch's distinct fingerprints in `range` with the batch, and counts them in `probed` as it goes. Sends
/// matches by index, ascending, and all matches of a fingerprint together.
pub(super) fn probe_within(
    range: Range<u32>,
    tables: &PartTables,
    buffers: &mut Buffers,
    sink: Sink,
    probed: &AtomicU64,
) {
    let indexes = range.start as usize..range.end as usize;
    let scratch = &mut buffers.scratch;
    let mut found = Vec::new();
    let probe = |from, found: &mut _| {
        let done = tables.probe_self(Kernel::detect(), indexes.clone(), from, scratch, found);
        probed.fetch_add(done as u64, Ordering::Relaxed);
        done
    };
    let row = |query| range.start + query;
    if channel::probe_and_send(&sink, &mut found, indexes.len(), probe, row) {
        channel::finish(sink, found);
    }
}
