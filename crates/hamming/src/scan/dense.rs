//! The scan of an archive so dense that many of its fingerprints share their leading 16 bits.
//!
//! There the cut need not be in the middle. Of a pair within 3 bits either the trailing 28 bits agree, or at most 2 of
//! the leading 36 differ (Σ(rᵢ + 1) = 1 + 3 > 3). The trailing bits cost one access to a small filter; the leading ones
//! nothing but the making of a map for each run of fingerprints with the same 16 bits: a bit for each value of the
//! next [`MAP_BITS`] bits with which they are within 2 bits of an entry. In ascending order that map is read in order.
//! One in 50 passes either, for a batch of a million; these are scanned by halves.

use crate::design::Design;
use crate::kernels::Kernel;
use crate::memory::Array;
use crate::probe::prefetch_far;
use crate::scan::Pick;
use crate::tables::Table;

/// Leading bits of a run.
const RUN_BITS: u32 = 16;
/// Bits of a fingerprint that a map is over, next to those.
const MAP_BITS: u32 = 20;
const MAP_SHIFT: u32 = TAIL_BITS;
/// Marks that are worth it, for each fingerprint of a run.
const MARKS: f64 = 2.5;
/// What costs as much as so many marks: finding the entries of a run, and clearing a map.
const WALK: f64 = 300.0;
const CLEAR: f64 = 2500.0;

/// Trailing bits: those that no map is over.
const TAIL_BITS: u32 = 64 - RUN_BITS - MAP_BITS;
/// Entries to a word of the filter.
const WORD_ENTRIES: usize = 4;

/// A Bloom filter over the trailing bits of the entries: three bits of one word each, so that a look takes one access.
/// One in 200 fingerprints passes for nothing.
#[derive(Debug)]
pub(crate) struct Tail {
    word_bits: u32,
    words: Array<u64>,
}

impl Tail {
    fn word_bits(entries: usize) -> u32 {
        let words = (entries / WORD_ENTRIES).max(1).next_power_of_two();
        words.ilog2().min(TAIL_BITS - 6)
    }

    /// Bytes for a batch of so many entries.
    pub(crate) fn bytes_for(entries: usize) -> usize {
        8 << Self::word_bits(entries)
    }

    /// Of the batch in order.
    pub(crate) fn build(values: &Table) -> Self {
        let word_bits = Self::word_bits(values.entries.len());
        let mut words = Array::<u64>::zeroed(1 << word_bits);
        let filled: &mut [u64] = &mut words;
        for &value in values.entries.iter() {
            let (word, bits) = place(value, word_bits);
            filled[word] |= bits;
        }
        Self { word_bits, words }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Adds the indexes of those in `chunk` whose trailing bits may be an entry's.
    pub(crate) fn scan(&self, kernel: Kernel, chunk: &[u64], indexes: &mut Vec<u32>) {
        let words = &self.words[..1 << self.word_bits];
        let word_bits = self.word_bits;
        kernel.run(Pick {
            run: chunk,
            first: 0,
            indexes,
            fetch: |f| prefetch_far(words, place(f, word_bits).0),
            passes: |f| {
                let (word, bits) = place(f, word_bits);
                words[word] & bits == bits
            },
        });
    }
}

/// The word of a fingerprint's trailing bits, and its three bits there.
#[inline(always)]
fn place(fingerprint: u64, word_bits: u32) -> (usize, u64) {
    let word = fingerprint & ((1 << word_bits) - 1);
    let low = fingerprint >> word_bits & 63;
    let high = fingerprint >> (TAIL_BITS - 6) & 63;
    // The upper bits of a product depend on all bits of the factor.
    let mixed = (fingerprint << (64 - TAIL_BITS) >> word_bits).wrapping_mul(MIX) >> 58;
    (word as usize, 1 << low | 1 << high | 1 << mixed)
}

/// An odd number without a pattern: 2⁶⁴ divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

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
    marks + WALK + f64::min(marks + WALK, CLEAR) < MARKS * of_run
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
    marks: usize,
    words: Array<u64>,
}

impl Default for LeadMap {
    fn default() -> Self {
        Self {
            made_of: None,
            marks: 0,
            words: Array::zeroed(1 << (MAP_BITS - 6)),
        }
    }
}

impl LeadMap {
    /// Adds the indexes of those in `chunk` that are within 2 bits of an entry on the leading part.
    /// `values` is the batch in order, `tables` tells it from others.
    pub(crate) fn scan(
        &mut self,
        kernel: Kernel,
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
            kernel.run(Pick {
                run,
                first,
                indexes,
                fetch: |_| (),
                // What is out of order passes.
                passes: |f: u64| {
                    let map = (f >> MAP_SHIFT) & ((1 << MAP_BITS) - 1);
                    let marked = words[(map >> 6) as usize] >> (map & 63) & 1 == 1;
                    marked | ((f ^ begin) >> (64 - RUN_BITS) != 0)
                },
            });
        }
    }

    fn make(&mut self, tables: u64, values: &Table, run: u64) {
        if self.made_of == Some((tables, run)) {
            return;
        }
        let before = self.made_of.replace((tables, run));
        let words: &mut [u64] = &mut self.words;
        match before {
            // Few marks are taken back one by one.
            Some((same, before)) if same == tables && self.marks < CLEAR as usize => {
                marks(values, before, |value| words[(value >> 6) as usize] = 0);
            }
            _ => words.fill(0),
        }
        self.marks = 0;
        marks(values, run, |value| {
            words[(value >> 6) as usize] |= 1 << (value & 63);
            self.marks += 1;
        });
    }
}

/// Calls `mark` with what the map of a run is to have a bit for.
#[inline(always)]
fn marks(values: &Table, run: u64, mut mark: impl FnMut(u64)) {
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
