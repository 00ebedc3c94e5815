//! The scan: which fingerprints of a chunk are within 1 bit of the batch on one of their halves.
//!
//! A half is looked up in one of two filters, by the size of the batch:
//!
//! - [`Lines`]: for each key (the upper bits of a quarter), at most two cache lines with the other
//!   quarters (16 bits each) of the entries that have the key. A fingerprint's lines are compared
//!   in registers. For a million entries, the lines of a half take 8 MB and stay in the cache.
//! - [`Bitmap`]: a bit for each of the 2³² values of a half, set for those within 1 bit of an entry's half; one access
//!   to memory.
//!
//! A dense chunk is scanned by runs before it is scanned by halves, see [`super::run_scan`].

use super::bitmap::Bitmap;
use super::filter_layout::FilterLayout;
use super::lines::Lines;
use super::plan::HalvesPlan;
use super::quarters::QuarterTable;
use super::run_scan::{RunIndex, RunMap};
use super::run_scan_plan::RunScanPlan;
use crate::buckets::Queries;
use crate::isa::Kernel;

/// Picks the fingerprints that are near the batch on a half.
#[derive(Debug)]
pub(super) struct Scan {
    halves: [HalfFilter; 2],
    runs: RunIndex,
    run_plan: RunScanPlan,
}

/// One of the two halves of a fingerprint.
#[derive(Debug, Clone, Copy)]
pub(super) enum Half {
    Leading,
    Trailing,
}

/// Tells whether a half is within 1 bit of an entry's half, with false positives.
#[derive(Debug)]
pub(super) enum HalfFilter {
    Lines(Lines),
    Bitmap(Bitmap),
}

impl Scan {
    /// Builds the scan of `entries`, which are ascending; `quarters` are the tables of their quarters. Uses a second
    /// thread if `threads` allows.
    pub(super) fn build(
        entries: &[u64],
        quarters: &[QuarterTable],
        plan: HalvesPlan,
        threads: usize,
    ) -> Self {
        // The halves come in the order of their upper quarter, so that filling lines and sorting
        // for bitmaps rarely miss the cache.
        let filter = |half: usize| {
            let shift = [32, 0][half];
            let halves = quarters[2 * half]
                .indexes()
                .iter()
                .map(move |&index| (entries[index as usize] >> shift) as u32);
            match plan.layout {
                FilterLayout::Lines { key_bits, lanes } => {
                    HalfFilter::Lines(Lines::build(key_bits, lanes, halves))
                }
                FilterLayout::Bitmap => HalfFilter::Bitmap(Bitmap::build(halves)),
            }
        };
        let leading = || (filter(0), RunIndex::build(entries));
        let ((leading, runs), trailing) = match threads {
            0 | 1 => (leading(), filter(1)),
            _ => std::thread::scope(|scope| {
                let trailing = scope.spawn(|| filter(1));
                let joined = |panic| std::panic::resume_unwind(panic);
                (leading(), trailing.join().unwrap_or_else(joined))
            }),
        };
        Self {
            halves: [leading, trailing],
            runs,
            run_plan: plan.run_scan,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let halves: usize = self.halves.iter().map(HalfFilter::bytes).sum();
        self.runs.bytes() + halves
    }

    /// Picks the fingerprints of `chunk` to look up in the tables of the quarters of `half`. The leading half must come
    /// first: it scans a dense chunk by runs, and the trailing half reuses the result.
    pub(super) fn pick(&self, kernel: Kernel, half: Half, chunk: &[u64], picked: &mut Picked) {
        picked.indexes.clear();
        match (half, self.run_plan.best_map_bits(chunk)) {
            (Half::Leading, Some(bits)) => {
                picked.pick_by_runs(kernel, &self.runs, bits, chunk);
                self.filter_picked_by_half(kernel, half, picked);
            }
            (Half::Trailing, Some(_)) => self.filter_picked_by_half(kernel, half, picked),
            (Half::Leading, None) => {
                self.halves[0].pick(kernel, chunk, 32, &mut picked.indexes);
            }
            (Half::Trailing, None) => {
                self.halves[1].pick(kernel, chunk, 0, &mut picked.indexes);
            }
        }
    }

    /// Picks, among the fingerprints that the scan by runs picked, those that pass on `half`.
    fn filter_picked_by_half(&self, kernel: Kernel, half: Half, picked: &mut Picked) {
        let (filter, shift) = match half {
            Half::Leading => (&self.halves[0], 32),
            Half::Trailing => (&self.halves[1], 0),
        };
        let Picked {
            indexes, by_runs, ..
        } = picked;
        filter.pick(kernel, &by_runs.fingerprints, shift, indexes);
        for index in indexes {
            *index = by_runs.indexes[*index as usize];
        }
    }
}

impl HalfFilter {
    fn bytes(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.bytes(),
            Self::Bitmap(bitmap) => bitmap.bytes(),
        }
    }

    /// Appends the indexes of those `fingerprints` that pass on the half whose lowest bit is bit `shift`.
    pub(super) fn pick(
        &self,
        kernel: Kernel,
        fingerprints: &[u64],
        shift: u32,
        indexes: &mut Vec<u32>,
    ) {
        match self {
            Self::Lines(lines) => lines.pick(kernel, fingerprints, shift, indexes),
            Self::Bitmap(bitmap) => bitmap.pick(kernel, fingerprints, shift, indexes),
        }
    }
}

/// The fingerprints of a chunk that pass the scan, and the buffers of the scan.
#[derive(Debug, Default)]
pub(super) struct Picked {
    indexes: Vec<u32>,
    fingerprints: Vec<u64>,
    run_map: RunMap,
    by_runs: PickedByRuns,
}

/// The fingerprints of a dense chunk that pass the scan by runs, and their indexes in the chunk.
#[derive(Debug, Default)]
struct PickedByRuns {
    indexes: Vec<u32>,
    fingerprints: Vec<u64>,
}

impl Picked {
    /// The picked fingerprints, with their indexes in `chunk`.
    pub(super) fn queries(&mut self, chunk: &[u64]) -> Queries<'_> {
        self.fingerprints.clear();
        self.fingerprints
            .extend(self.indexes.iter().map(|&index| chunk[index as usize]));
        Queries {
            fingerprints: &self.fingerprints,
            chunk_indexes: Some(&self.indexes),
        }
    }

    /// Scans a dense chunk by runs, with maps that cover `bits` bits.
    fn pick_by_runs(&mut self, kernel: Kernel, runs: &RunIndex, bits: u32, chunk: &[u64]) {
        let PickedByRuns {
            indexes,
            fingerprints,
        } = &mut self.by_runs;
        indexes.clear();
        self.run_map.pick(kernel, runs, bits, chunk, indexes);
        fingerprints.clear();
        fingerprints.extend(indexes.iter().map(|&index| chunk[index as usize]));
    }
}
