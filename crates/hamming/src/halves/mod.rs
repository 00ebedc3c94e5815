//! The mechanism of `halves`: two halves of radius 1, each of two quarters, so that a pair agrees exactly on one
//! quarter and within 1 bit on the other quarter of the same half.
//!
//! A [`Scan`] picks the fingerprints that are within 1 bit of the batch on a half: about 1 in 60 with a batch of a
//! million. Only those are looked up in the tables of the two quarters of the half.
//!
//! ```text
//! chunk ─ Scan::pick(leading) ──▶ tables of quarters 0 and 1 ─┐
//!       ─ Scan::pick(trailing) ─▶ tables of quarters 2 and 3 ─┴▶ matches
//! ```

mod append_passing;
mod bitmap;
mod filter_layout;
mod lines;
mod plan;
mod quarters;
mod run_entries;
mod run_scan;
mod run_scan_plan;
mod scan;
mod tail_filter;

use std::time::Instant;

use crate::buckets::{ProbeBuffers, probe_in_given_order, probe_tables};
use crate::cost::Cost;
use crate::design::Design;
use crate::isa::Kernel;
use crate::limits::Limits;
use crate::matches::Matches;
use crate::mechanism::{BatchPart, MechanismTables, Times};
use crate::parallel::build_in_parallel;
use plan::HalvesPlan;
use quarters::QuarterTable;
use scan::{Half, Picked, Scan};

/// Fingerprints that are probed at once: few enough to stay in the cache between the two scans and the lookups.
const CHUNK: usize = 1 << 14;

/// The tables of the four quarters, and the scan in front of them.
#[derive(Debug)]
pub(crate) struct Halves {
    quarters: Vec<QuarterTable>,
    scan: Scan,
}

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct HalvesBuffers {
    picked: Picked,
    lookups: ProbeBuffers,
}

impl MechanismTables for Halves {
    type Buffers = HalvesBuffers;

    fn predict(design: &Design, entries: usize, _limits: &Limits) -> Cost {
        HalvesPlan::new(design, entries).cost()
    }

    fn describe(design: &Design, entries: usize) -> String {
        HalvesPlan::new(design, entries).describe()
    }

    fn build(values: &[u64], design: &Design, threads: usize) -> Self {
        let plan = HalvesPlan::new(design, values.len());
        let quarters = build_in_parallel(plan.quarters.len(), threads, |at| {
            QuarterTable::build(values, &plan.quarters[at])
        });
        let scan = Scan::build(values, &quarters, plan, threads);
        Self { quarters, scan }
    }

    fn bytes(&self) -> usize {
        let quarters: usize = self.quarters.iter().map(QuarterTable::bytes).sum();
        quarters + self.scan.bytes()
    }

    fn chunk_len(&self) -> usize {
        CHUNK
    }

    fn probe(
        &self,
        kernel: Kernel,
        part: &BatchPart<'_>,
        chunk: &[u64],
        buffers: &mut HalvesBuffers,
        matches: &mut Matches<'_>,
    ) -> Times {
        if part.self_start.is_some() {
            // The scan would pass every one of the batch's own values.
            let lookups = &mut buffers.lookups;
            return probe_tables(kernel, &self.quarters, part, chunk, lookups, matches);
        }
        let mut times = Times::default();
        for (half, quarters) in [Half::Leading, Half::Trailing]
            .into_iter()
            .zip(self.quarters.chunks(2))
        {
            let begin = Instant::now();
            let picked = &mut buffers.picked;
            self.scan.pick(kernel, half, chunk, picked);
            let filtered = Instant::now();
            times.filtering += filtered - begin;
            let queries = picked.queries(chunk);
            for quarter in quarters {
                let lookups = &mut buffers.lookups;
                probe_in_given_order(kernel, quarter, part, queries, lookups, matches);
            }
            times.comparing += filtered.elapsed();
            if matches.is_full() {
                break;
            }
        }
        times
    }
}
