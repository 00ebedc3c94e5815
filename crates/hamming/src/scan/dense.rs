//! The scan of an archive so dense that many of its fingerprints share their leading 16 bits.
//!
//! There the cut need not be in the middle. Of a pair within 3 bits either the trailing t bits agree, or at most 2 of the
//! leading 64 − t bits differ (Σ(rᵢ + 1) = 1 + 3 > 3). The trailing bits cost one access to a small bitmap; the leading
//! ones nothing but the making of a map for each run of fingerprints with the same 16 bits: a bit for each value of the
//! next [`MAP_BITS`] bits with which they are within 2 bits of an entry. In ascending order that map is read in order.

use crate::design::Design;
use crate::memory::Array;
use crate::probe::prefetch_far;
use crate::scan::{QUARTER_BITS, pick};
use crate::tables::Table;

/// Leading bits of a run.
const RUN_BITS: u32 = 16;
/// Bits of a fingerprint that a map is over, next to those.
const MAP_BITS: u32 = 20;
const MAP_SHIFT: u32 = 64 - RUN_BITS - MAP_BITS;
/// Marks that are worth it, for each fingerprint of a run.
const MARKS: f64 = 2.5;

/// A bit for each value of the trailing bits that an entry has.
#[derive(Debug)]
pub(crate) struct Tail {
    bits: u32,
    words: Array<u64>,
}

impl Tail {
    /// Trailing bits such that one in 32 fingerprints passes; never so many that the leading part is cut short.
    fn bits(entries: usize) -> u32 {
        let useful = usize::BITS - entries.leading_zeros() + 5;
        useful.clamp(10, 64 - RUN_BITS - MAP_BITS)
    }

    /// Bytes for a batch of so many entries.
    pub(crate) fn bytes_for(entries: usize) -> usize {
        1 << (Self::bits(entries) - 3)
    }

    /// Of the batch in order.
    pub(crate) fn build(values: &Table) -> Self {
        let bits = Self::bits(values.entries.len());
        let mut words = Array::<u64>::zeroed(1 << (bits - 6));
        let marked: &mut [u64] = &mut words;
        for &value in values.entries.iter() {
            let tail = value & ((1 << bits) - 1);
            marked[(tail >> 6) as usize] |= 1 << (tail & 63);
        }
        Self { bits, words }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Whether agreement on the trailing bits is agreement on the last quarter.
    pub(crate) fn covers_quarter(&self) -> bool {
        self.bits >= QUARTER_BITS
    }

    /// Adds the indexes of those in `chunk` whose trailing bits an entry has.
    pub(crate) fn scan(&self, chunk: &[u64], indexes: &mut Vec<u32>) {
        let words: &[u64] = &self.words;
        let mask = (1u64 << self.bits) - 1;
        let fetch = |f: u64| prefetch_far(words, ((f & mask) >> 6) as usize);
        pick(chunk, 0, indexes, fetch, |f| {
            words[((f & mask) >> 6) as usize] >> (f & 63) & 1 == 1
        });
    }
}

/// Whether `chunk` is in order and so dense that maps of its runs are worth it. `values` is the batch in order.
pub(crate) fn is_dense(chunk: &[u64], design: &Design, values: &Table) -> bool {
    let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
        return false;
    };
    // The radius holds for the distance of 3 that the cut is for, and below.
    if last < first || design.max_distance() > 3 {
        return false;
    }
    let span = ((last - first) as f64).max(1.0);
    let of_run = chunk.len() as f64 / span * 2f64.powi(64 - RUN_BITS.cast_signed());
    let entries = values.entries.len() as f64 / f64::from(1u32 << RUN_BITS);
    let marks = entries
        * f64::from(variants(MAP_BITS) + RUN_BITS * (MAP_BITS + 1) + RUN_BITS * (RUN_BITS - 1) / 2);
    marks < MARKS * of_run
}

/// Values within 2 bits of one of so many bits.
const fn variants(bits: u32) -> u32 {
    1 + bits + bits * (bits - 1) / 2
}

/// The map of one run, reused from run to run.
#[derive(Debug)]
pub(crate) struct LeadMap {
    /// Which tables' entries are marked, and for which leading bits.
    made_of: Option<(u64, u64)>,
    words: Array<u64>,
}

impl Default for LeadMap {
    fn default() -> Self {
        Self {
            made_of: None,
            words: Array::zeroed(1 << (MAP_BITS - 6)),
        }
    }
}

impl LeadMap {
    /// Adds the indexes of those in `chunk` that are within 2 bits of an entry on the leading part.
    /// `values` is the batch in order, `tables` tells it from others.
    pub(crate) fn scan(
        &mut self,
        tables: u64,
        values: &Table,
        chunk: &[u64],
        indexes: &mut Vec<u32>,
    ) {
        let mut rest = chunk;
        while let Some(&begin) = rest.first() {
            let same = |fingerprint: &u64| (fingerprint ^ begin) >> (64 - RUN_BITS) == 0;
            let (run, others) = rest.split_at(rest.partition_point(same).max(1));
            let first = chunk.len() - rest.len();
            rest = others;
            self.make(tables, values, begin >> (64 - RUN_BITS));
            let words: &[u64] = &self.words;
            let map = |f: u64| (f >> MAP_SHIFT) & ((1 << MAP_BITS) - 1);
            // What is out of order passes: a lookup tells.
            pick(
                run,
                first,
                indexes,
                |_| (),
                |f| {
                    let marked = words[(map(f) >> 6) as usize] >> (map(f) & 63) & 1 == 1;
                    marked | !same(&f)
                },
            );
        }
    }

    fn make(&mut self, tables: u64, values: &Table, run: u64) {
        if self.made_of == Some((tables, run)) {
            return;
        }
        self.made_of = Some((tables, run));
        let words: &mut [u64] = &mut self.words;
        words.fill(0);
        let mut mark = |value: u64| words[(value >> 6) as usize] |= 1 << (value & 63);
        let map = |entry: &u64| (entry >> MAP_SHIFT) & ((1 << MAP_BITS) - 1);
        // Bits that differ in the run's part leave so many fewer for the map's.
        for value in values.entries_under(run, RUN_BITS).iter().map(map) {
            mark(value);
            for a in 0..MAP_BITS {
                mark(value ^ 1 << a);
                for b in 0..a {
                    mark(value ^ 1 << a ^ 1 << b);
                }
            }
        }
        for a in 0..RUN_BITS {
            for value in values.entries_under(run ^ 1 << a, RUN_BITS).iter().map(map) {
                mark(value);
                (0..MAP_BITS).for_each(|bit| mark(value ^ 1 << bit));
            }
            for b in 0..a {
                values
                    .entries_under(run ^ 1 << a ^ 1 << b, RUN_BITS)
                    .iter()
                    .map(map)
                    .for_each(&mut mark);
            }
        }
    }
}
