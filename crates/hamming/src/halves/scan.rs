//! The scan: which fingerprints of a chunk are within 1 bit of the batch on one of their halves.
//!
//! A half is looked up in one of two filters, by the size of the batch:
//!
//! - [`Lines`]: for each value of a quarter, at most two cache lines with the other quarters (16 bits each) of the entries
//!   that have it. A fingerprint's lines are compared in registers. 8 MB a half for a million, all in cache.
//! - [`Bitmap`]: a bit for each of the 2³² halves, set for those within 1 bit of an entry's; one access to memory.
//!
//! A dense chunk is scanned by runs before it is scanned by halves, see [`super::dense`].

use super::bitmap::Bitmap;
use super::dense::{DenseIndex, DenseMap};
use super::dense_plan::DensePlan;
use super::layout::Layout;
use super::lines::Lines;
use super::plan::HalvesPlan;
use super::quarters::QuarterTable;
use crate::buckets::Queries;
use crate::isa::Kernel;

/// Picks the fingerprints that are near the batch on a half.
#[derive(Debug)]
pub(super) struct Scan {
    halves: [HalfFilter; 2],
    index: DenseIndex,
    dense: DensePlan,
}

/// One of the two halves of a fingerprint.
#[derive(Debug, Clone, Copy)]
pub(super) enum Half {
    Leading,
    Trailing,
}

/// Tells whether a half is within 1 bit of an entry's; it may be wrong when it says yes.
#[derive(Debug)]
pub(super) enum HalfFilter {
    Lines(Lines),
    Bitmap(Bitmap),
}

impl Scan {
    /// Builds the scan of `entries`, ascending; `quarters` are their tables. Uses a second thread if `threads` allows.
    pub(super) fn build(
        entries: &[u64],
        quarters: &[QuarterTable],
        plan: HalvesPlan,
        threads: usize,
    ) -> Self {
        // In the order of the upper quarters: so lines are filled, and bitmaps sorted, with few cache misses.
        let filter = |half: usize| {
            let shift = [32, 0][half];
            let halves = quarters[2 * half]
                .indexes()
                .iter()
                .map(move |&index| (entries[index as usize] >> shift) as u32);
            match plan.layout {
                Layout::Lines { key_bits, lanes } => {
                    HalfFilter::Lines(Lines::build(key_bits, lanes, halves))
                }
                Layout::Bitmap => HalfFilter::Bitmap(Bitmap::build(halves)),
            }
        };
        let leading = || (filter(0), DenseIndex::build(entries));
        let ((leading, index), trailing) = match threads {
            0 | 1 => (leading(), filter(1)),
            _ => std::thread::scope(|scope| {
                let trailing = scope.spawn(|| filter(1));
                let joined = |panic| std::panic::resume_unwind(panic);
                (leading(), trailing.join().unwrap_or_else(joined))
            }),
        };
        Self {
            halves: [leading, trailing],
            index,
            dense: plan.dense,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let halves: usize = self.halves.iter().map(HalfFilter::bytes).sum();
        self.index.bytes() + halves
    }

    /// Picks the fingerprints of `chunk` to look up in the tables of the quarters of `half`. The leading half must come
    /// first: it scans a dense chunk by runs, and the trailing half reuses the result.
    pub(super) fn pick(&self, kernel: Kernel, half: Half, chunk: &[u64], picked: &mut Picked) {
        picked.indexes.clear();
        match (half, self.dense.map_bits(chunk)) {
            (Half::Leading, Some(bits)) => {
                picked.choose(kernel, &self.index, bits, chunk);
                self.pick_chosen(kernel, half, picked);
            }
            (Half::Trailing, Some(_)) => self.pick_chosen(kernel, half, picked),
            (Half::Leading, None) => {
                self.halves[0].pick(kernel, chunk, 32, &mut picked.indexes);
            }
            (Half::Trailing, None) => {
                self.halves[1].pick(kernel, chunk, 0, &mut picked.indexes);
            }
        }
    }

    /// Scans by `half` what passed the scan by runs.
    fn pick_chosen(&self, kernel: Kernel, half: Half, picked: &mut Picked) {
        let (filter, shift) = match half {
            Half::Leading => (&self.halves[0], 32),
            Half::Trailing => (&self.halves[1], 0),
        };
        let Picked {
            indexes, chosen, ..
        } = picked;
        filter.pick(kernel, &chosen.fingerprints, shift, indexes);
        for index in indexes {
            *index = chosen.indexes[*index as usize];
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

    /// Adds the indexes of the fingerprints of `run` that pass on the half that begins `shift` bits from the lowest.
    pub(super) fn pick(&self, kernel: Kernel, run: &[u64], shift: u32, indexes: &mut Vec<u32>) {
        match self {
            Self::Lines(lines) => lines.pick(kernel, run, shift, indexes),
            Self::Bitmap(bitmap) => bitmap.pick(kernel, run, shift, indexes),
        }
    }
}

/// The fingerprints of a chunk that pass, and the buffers by which they are found.
#[derive(Debug, Default)]
pub(super) struct Picked {
    indexes: Vec<u32>,
    fingerprints: Vec<u64>,
    dense_map: DenseMap,
    chosen: Chosen,
}

/// The fingerprints of a dense chunk that passed the scan by runs.
#[derive(Debug, Default)]
struct Chosen {
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
            numbers: Some(&self.indexes),
        }
    }

    /// Scans a dense chunk by runs, with maps over `bits` bits.
    fn choose(&mut self, kernel: Kernel, index: &DenseIndex, bits: u32, chunk: &[u64]) {
        let Chosen {
            indexes,
            fingerprints,
        } = &mut self.chosen;
        indexes.clear();
        self.dense_map.pick(kernel, index, bits, chunk, indexes);
        fingerprints.clear();
        fingerprints.extend(indexes.iter().map(|&index| chunk[index as usize]));
    }
}
