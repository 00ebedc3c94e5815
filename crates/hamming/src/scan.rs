//! The scan of the design of halves: which fingerprints are within 1 bit of the batch on one of their halves.
//!
//! About 1 in 60 is, for a batch of a million; only those are looked up in the tables. Two ways, by the size
//! of the batch:
//!
//! - [`Lines`]: for each value of a quarter, a few cache lines at most with the other quarters (16 bits each) of the entries
//!   that have it. A fingerprint's two lines are compared in registers. 8 MB a half for a million, all in cache.
//! - [`Bitmap`]: a bit for each of the 2³² halves, set for those within 1 bit of an entry's; one access to memory.
//!
//! The leading half of sorted fingerprints stays the same in its upper quarter for long runs. For a run, the
//! lower quarters that pass are marked in a [`RunMap`] of 8 KiB. In a dense archive a way that needs less of the cache
//! goes before, [`dense`].

mod bitmap;
mod dense;
mod lines;
mod run_map;

pub(crate) use bitmap::Bitmap;
use dense::LeadMap;
pub(crate) use dense::{Lead, Look, Tail};
#[cfg(target_arch = "x86_64")]
pub(crate) use dense::{RUN_BITS, TAIL_BITS, WORD_BITS};
use lines::Lines;
use run_map::RunMap;

use crate::kernels::{Compare, Kernel, Work};
use crate::sketches::{Chunk, IndexedTable};
use crate::tables::Tables;

/// Bits of a quarter.
pub(crate) const QUARTER_BITS: u32 = 16;
/// Runs of fingerprints with the same leading quarter are worth a [`RunMap`] from this length on.
const LONG_RUN: usize = 512;

/// Picks the fingerprints that are near the batch on a half.
#[derive(Debug)]
pub(crate) struct Scan {
    entries: usize,
    halves: [Half; 2],
    lead: Lead,
    tail: Tail,
}

/// The two parts that a fingerprint is cut into.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Leading,
    Trailing,
}

/// What tells whether a half is within 1 bit of an entry's.
#[derive(Debug)]
enum Half {
    Lines(Lines),
    Bitmap(Bitmap),
}

/// How halves are looked up, by the size of the batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    /// See [`Lines`].
    Lines {
        /// Bits of the key, the upper ones of a quarter.
        key_bits: u32,
        /// Sketches of a key.
        lanes: usize,
    },
    /// See [`Bitmap`].
    Bitmap,
}

impl Layout {
    /// The smallest lines in which hardly any key has too many entries; bitmaps when there are none.
    pub(crate) fn choose(entries: usize) -> Self {
        let fits = |&(key_bits, lanes): &(u32, usize)| {
            let mean = entries as f64 / f64::from(1u32 << key_bits);
            // Three standard deviations of Poisson's distribution.
            mean + 3.0 * mean.sqrt() <= lanes as f64
        };
        let layouts = (4..=QUARTER_BITS).flat_map(|bits| [16, 32, 64].map(|lanes| (bits, lanes)));
        layouts
            .filter(fits)
            .min_by_key(|&(key_bits, lanes)| (lanes << key_bits, lanes))
            .map_or(Self::Bitmap, |(key_bits, lanes)| Self::Lines {
                key_bits,
                lanes,
            })
    }

    /// The largest lines there are.
    const LARGEST: Self = Self::Lines {
        key_bits: QUARTER_BITS,
        lanes: 64,
    };

    /// Lines of this layout, without entries.
    fn lines(self) -> Lines {
        match self {
            Self::Lines { key_bits, lanes } => Lines::new(key_bits, lanes),
            Self::Bitmap => Self::LARGEST.lines(),
        }
    }

    /// Cache lines that a fingerprint needs of a half in no order.
    pub(crate) fn accesses(self) -> f64 {
        match self {
            Self::Lines { lanes, .. } => 2.0 * (lanes as f64 / 32.0).max(1.0),
            Self::Bitmap => 1.0,
        }
    }

    /// The share of fingerprints that pass because a key has more of `entries` than lanes, at most.
    pub(crate) fn crowded(self, entries: usize) -> f64 {
        match self {
            // Beyond three standard deviations, in four quarters.
            Self::Lines { key_bits, lanes } => {
                let mean = entries as f64 / f64::from(1u32 << key_bits);
                if mean + 4.0 * mean.sqrt() > lanes as f64 {
                    0.004
                } else {
                    0.0
                }
            }
            Self::Bitmap => 0.0,
        }
    }

    /// Bytes of both halves.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Lines { key_bits, lanes } => {
                4 * (((2 * lanes) << key_bits) + (1 << key_bits) / 8)
            }
            Self::Bitmap => 2 << (2 * QUARTER_BITS - 3),
        }
    }
}

impl Scan {
    /// The scan of the batch in order, `entries`, and by `quarters`; on up to `threads` threads.
    pub(crate) fn build(entries: &[u64], quarters: &[IndexedTable], threads: usize) -> Self {
        // In the order of their upper quarters, in which lines are filled, and bitmaps sorted, with few cache misses.
        let half = |half: usize| {
            let shift = [32, 0][half];
            let halves = quarters[2 * half]
                .indexes()
                .iter()
                .map(move |&index| (entries[index as usize] >> shift) as u32);
            match Layout::choose(entries.len()) {
                layout @ Layout::Lines { .. } => {
                    let mut lines = layout.lines();
                    lines.fill(halves);
                    Half::Lines(lines)
                }
                Layout::Bitmap => Half::Bitmap(Bitmap::build(halves)),
            }
        };
        let leading = || (half(0), Lead::build(entries), Tail::build(entries));
        let (leading, trailing) = match threads {
            0 | 1 => (leading(), half(1)),
            _ => std::thread::scope(|scope| {
                let trailing = scope.spawn(|| half(1));
                let joined = |panic| std::panic::resume_unwind(panic);
                (leading(), trailing.join().unwrap_or_else(joined))
            }),
        };
        let (half, lead, tail) = leading;
        Self {
            entries: entries.len(),
            halves: [half, trailing],
            lead,
            tail,
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |half: &Half| match half {
            Half::Lines(lines) => lines.bytes(),
            Half::Bitmap(bitmap) => bitmap.bytes(),
        };
        self.lead.bytes() + self.tail.bytes() + self.halves.iter().map(bytes).sum::<usize>()
    }

    /// Lists what of `chunk` is to be looked up in the tables of the quarters of the leading or the trailing part.
    /// `tables` are those that the scan belongs to. The leading part comes first.
    pub(crate) fn survivors(
        &self,
        kernel: Kernel,
        part: Part,
        tables: &Tables,
        chunk: &[u64],
        survivors: &mut Survivors,
    ) {
        survivors.indexes.clear();
        let bitmaps = matches!(self.halves[0], Half::Bitmap(_));
        let map_bits = dense::map_bits(chunk, tables.design(), self.entries, bitmaps);
        match (part, map_bits) {
            (Part::Leading, Some(bits)) => {
                let of = (tables.id(), &self.lead, &self.tail);
                survivors.choose(kernel, of, bits, chunk);
                self.chosen(kernel, part, survivors);
            }
            (Part::Trailing, Some(_)) => self.chosen(kernel, part, survivors),
            (Part::Leading, None) => self.leading(kernel, chunk, survivors),
            (Part::Trailing, None) => {
                self.halves[1].scan(kernel, chunk, 0, 0, &mut survivors.indexes);
            }
        }
    }

    /// Scans those that were chosen of a dense chunk.
    fn chosen(&self, kernel: Kernel, part: Part, survivors: &mut Survivors) {
        let (half, shift) = match part {
            Part::Leading => (&self.halves[0], 32),
            Part::Trailing => (&self.halves[1], 0),
        };
        let Survivors {
            indexes, chosen, ..
        } = survivors;
        half.scan(kernel, &chosen.fingerprints, 0, shift, indexes);
        for index in indexes {
            *index = chosen.indexes[*index as usize];
        }
    }

    fn leading(&self, kernel: Kernel, chunk: &[u64], survivors: &mut Survivors) {
        let mut first = 0;
        while first < chunk.len() {
            let (length, same_quarter) = run(&chunk[first..]);
            let run = &chunk[first..first + length];
            if same_quarter && survivors.map.fill(&self.lead, (run[0] >> 48) as u16) {
                survivors.marked(kernel, run, first);
            } else {
                self.halves[0].scan(kernel, run, first, 32, &mut survivors.indexes);
            }
            first += length;
        }
    }
}

/// How many fingerprints from the first on are best scanned together, and whether they are a long run with the
/// same leading quarter.
fn run(chunk: &[u64]) -> (usize, bool) {
    let same = |fingerprint: &u64| fingerprint >> 48 == chunk[0] >> 48;
    if chunk.get(LONG_RUN - 1).is_some_and(same) {
        // In ascending order this is where the quarter is left; in no order it is anywhere.
        let length = chunk.partition_point(same);
        let differences = chunk[..length].iter().fold(0, |all, f| all | f ^ chunk[0]);
        if length >= LONG_RUN && differences >> 48 == 0 {
            return (length, true);
        }
    }
    (LONG_RUN.min(chunk.len()), false)
}

impl Half {
    /// Adds what passes on the half that begins `shift` bits from the lowest; `first` is the index of `run[0]`.
    fn scan(&self, kernel: Kernel, run: &[u64], first: usize, shift: u32, indexes: &mut Vec<u32>) {
        match self {
            Self::Lines(lines) => lines.scan(kernel, run, first, shift, indexes),
            Self::Bitmap(bitmap) => bitmap.scan(kernel, run, first, shift, indexes),
        }
    }
}

/// Which fingerprints of a chunk pass.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    indexes: Vec<u32>,
    fingerprints: Vec<u64>,
    map: RunMap,
    lead: LeadMap,
    chosen: Chosen,
}

/// What of a dense chunk is worth the scan by halves.
#[derive(Debug, Default)]
struct Chosen {
    indexes: Vec<u32>,
    fingerprints: Vec<u64>,
}

impl Survivors {
    /// They themselves and their indexes in `chunk`.
    pub(crate) fn of(&mut self, chunk: &[u64]) -> Chunk<'_> {
        self.fingerprints.clear();
        self.fingerprints
            .extend(self.indexes.iter().map(|&index| chunk[index as usize]));
        Chunk {
            fingerprints: &self.fingerprints,
            numbers: Some(&self.indexes),
        }
    }

    /// Chooses of a dense chunk what may be near the batch; see [`dense`].
    fn choose(&mut self, kernel: Kernel, of: (u64, &Lead, &Tail), bits: u32, chunk: &[u64]) {
        let Chosen {
            indexes,
            fingerprints,
        } = &mut self.chosen;
        indexes.clear();
        self.lead.scan(kernel, of, bits, chunk, indexes);
        fingerprints.clear();
        fingerprints.extend(indexes.iter().map(|&index| chunk[index as usize]));
    }

    /// Adds those of `run` whose lower quarter of the leading half is marked.
    fn marked(&mut self, kernel: Kernel, run: &[u64], first: usize) {
        let map = &self.map;
        kernel.run(Pick {
            run,
            first,
            indexes: &mut self.indexes,
            fetch: |_| (),
            passes: |f| map.marks((f >> 32) as u16),
        });
    }
}

/// Fingerprints whose cache lines are asked for before they are looked at.
const BLOCK: usize = 32;

/// Adds `first` and the index to it of each of `run` that passes. Few do: the bits of a block, which `passing` gives, are
/// gone through without a branch for each, while what the next block needs is on its way.
#[inline(always)]
fn pick(
    run: &[u64],
    first: usize,
    indexes: &mut Vec<u32>,
    mut fetch: impl FnMut(u64),
    mut passing: impl FnMut(&[u64]) -> u32,
) {
    run.iter()
        .take(BLOCK)
        .for_each(|&fingerprint| fetch(fingerprint));
    for (at, block) in run.chunks(BLOCK).enumerate() {
        let next = &run[(BLOCK * (at + 1)).min(run.len())..];
        next.iter()
            .take(BLOCK)
            .for_each(|&fingerprint| fetch(fingerprint));
        let mut bits = passing(block);
        while bits != 0 {
            indexes.push((first + BLOCK * at) as u32 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

/// Bit i for fingerprint i of a block, where it passes.
#[inline(always)]
pub(crate) fn each(block: &[u64], mut passes: impl FnMut(u64) -> bool) -> u32 {
    let mut bits = 0;
    for (at, &fingerprint) in block.iter().enumerate() {
        bits |= u32::from(passes(fingerprint)) << at;
    }
    bits
}

/// [`pick`] as work of a kernel, whose instructions the shifts need to be fast.
struct Pick<'a, F, P> {
    run: &'a [u64],
    first: usize,
    indexes: &'a mut Vec<u32>,
    fetch: F,
    passes: P,
}

impl<F: FnMut(u64), P: FnMut(u64) -> bool> Work for Pick<'_, F, P> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(mut self) {
        pick(self.run, self.first, self.indexes, self.fetch, |block| {
            each(block, &mut self.passes)
        });
    }
}
