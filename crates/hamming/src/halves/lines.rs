//! Halves as sketches by quarter, in cache lines.

use super::layout::QUARTER_BITS;
use super::pick::pick;
use crate::isa::{Isa, Kernel, Work, mask_of};
use crate::memory::Array;
use crate::prefetch::prefetch_l2;
use crate::unchecked::ByUpperBits;

/// Both quarters of a half as keys, each with the other as sketch.
///
/// A fingerprint passes when an entry has its upper quarter and a lower one within 1 bit, or the reverse. An entry's sketch
/// stands in the lines of its key. When these are full, the entry overflows to the other side: its quarter stands in the lines
/// of all keys within 1 bit of its sketch, so that the same fingerprints pass. When one of those is full too, the entry's own
/// key becomes crowded: every fingerprint with that key passes.
#[derive(Debug)]
pub(super) struct Lines {
    key_bits: u32,
    lanes: usize,
    upper: Side,
    lower: Side,
    /// Whether any key is crowded.
    crowded: bool,
}

/// One quarter as the key.
#[derive(Debug)]
struct Side {
    /// Sketches of each key, as many as there are lanes. Unused lanes are 0: a fingerprint that passes because of one costs a
    /// lookup and finds nothing.
    sketches: Array<u16>,
    /// Lanes in use of each key.
    used: Vec<u8>,
    /// A bit for each crowded key.
    crowded: Vec<u64>,
    /// Quarter and sketch of entries that found no lane.
    overflow: Vec<(u16, u16)>,
}

impl Lines {
    /// The lines of `halves`, with keys of `key_bits` bits and `lanes` sketches for each.
    pub(super) fn build(key_bits: u32, lanes: usize, halves: impl Iterator<Item = u32>) -> Self {
        let mut upper = Side::new(key_bits, lanes);
        let mut lower = Side::new(key_bits, lanes);
        let unused = QUARTER_BITS - key_bits;
        {
            let (mut upper, mut lower) =
                (upper.filling(lanes, unused), lower.filling(lanes, unused));
            for half in halves {
                let (high, low) = ((half >> QUARTER_BITS) as u16, half as u16);
                upper.insert(high, low);
                lower.insert(low, high);
            }
        }
        let of_upper = std::mem::take(&mut upper.overflow);
        let of_lower = std::mem::take(&mut lower.overflow);
        let mut crowded = lower.place_overflow(lanes, unused, of_upper, &mut upper.crowded);
        crowded |= upper.place_overflow(lanes, unused, of_lower, &mut lower.crowded);
        Self {
            key_bits,
            lanes,
            upper,
            lower,
            crowded,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        [&self.upper, &self.lower]
            .map(|side| side.sketches.bytes() + side.used.len() + 8 * side.crowded.len())
            .iter()
            .sum()
    }

    /// Adds the indexes of the fingerprints of `run` that pass; see [`super::scan::HalfFilter::pick`].
    pub(super) fn pick(&self, kernel: Kernel, run: &[u64], shift: u32, indexes: &mut Vec<u32>) {
        macro_rules! pick {
            ($lanes:literal, $crowded:literal) => {
                kernel.run(PickByLines::<$lanes, $crowded> {
                    lines: self,
                    run,
                    shift,
                    indexes,
                })
            };
        }
        match (self.lanes, self.crowded) {
            (16, false) => pick!(16, false),
            (16, true) => pick!(16, true),
            (32, false) => pick!(32, false),
            (32, true) => pick!(32, true),
            (_, false) => pick!(64, false),
            (_, true) => pick!(64, true),
        }
    }
}

struct PickByLines<'a, const LANES: usize, const CROWDED: bool> {
    lines: &'a Lines,
    run: &'a [u64],
    shift: u32,
    indexes: &'a mut Vec<u32>,
}

impl<const LANES: usize, const CROWDED: bool> Work for PickByLines<'_, LANES, CROWDED> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self {
            lines,
            run,
            shift,
            indexes,
        } = self;
        let upper = lines.upper.sketches.as_chunks::<LANES>().0;
        let lower = lines.lower.sketches.as_chunks::<LANES>().0;
        let upper = ByUpperBits::new(upper, lines.key_bits);
        let lower = ByUpperBits::new(lower, lines.key_bits);
        let quarters = |fingerprint: u64| {
            let half = (fingerprint >> shift) as u32;
            ((half >> QUARTER_BITS) as u16, half as u16)
        };
        let fetch = |fingerprint| {
            let (high, low) = quarters(fingerprint);
            let (high_key, low_key) = (upper.index(high), lower.index(low));
            prefetch_l2(upper.slice(), high_key);
            prefetch_l2(lower.slice(), low_key);
            if LANES == 64 {
                // The second line of each.
                prefetch_l2(upper.slice().as_flattened(), high_key * LANES + LANES / 2);
                prefetch_l2(lower.slice().as_flattened(), low_key * LANES + LANES / 2);
            }
        };
        let passes = |fingerprint| {
            let (high, low) = quarters(fingerprint);
            let near = isa.either_within_1(upper.get(high), low, lower.get(low), high);
            let crowded = CROWDED
                && (is_set(&lines.upper.crowded, upper.index(high))
                    | is_set(&lines.lower.crowded, lower.index(low)));
            near | crowded
        };
        pick(run, 0, indexes, fetch, |block| mask_of(block, passes));
    }
}

#[inline(always)]
fn is_set(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

impl Side {
    fn new(key_bits: u32, lanes: usize) -> Self {
        let keys = 1usize << key_bits;
        Self {
            sketches: Array::zeroed(lanes * keys),
            used: vec![0; keys],
            crowded: vec![0; keys.div_ceil(64)],
            overflow: Vec::new(),
        }
    }

    fn filling(&mut self, lanes: usize, unused: u32) -> Filling<'_> {
        Filling {
            lanes,
            unused,
            sketches: &mut self.sketches,
            used: &mut self.used,
            overflow: &mut self.overflow,
        }
    }

    /// Puts the other side's overflow into lanes of this side. An entry that finds none makes its key on the other side
    /// crowded; returns whether any did.
    fn place_overflow(
        &mut self,
        lanes: usize,
        unused: u32,
        overflow: Vec<(u16, u16)>,
        crowded_there: &mut [u64],
    ) -> bool {
        let mut crowded = false;
        for (quarter, sketch) in overflow {
            let there = usize::from(quarter >> unused);
            if is_set(crowded_there, there) {
                continue;
            }
            let near =
                std::iter::once(sketch).chain((0..QUARTER_BITS).map(|bit| sketch ^ 1 << bit));
            let mut keys: Vec<usize> = near.map(|key| usize::from(key >> unused)).collect();
            keys.sort_unstable();
            keys.dedup();
            if keys.iter().any(|&key| usize::from(self.used[key]) == lanes) {
                crowded_there[there / 64] |= 1 << (there % 64);
                crowded = true;
                continue;
            }
            for key in keys {
                self.sketches[key * lanes + usize::from(self.used[key])] = quarter;
                self.used[key] += 1;
            }
        }
        crowded
    }
}

/// A side while entries are put into it, without indirections.
struct Filling<'a> {
    lanes: usize,
    unused: u32,
    sketches: &'a mut [u16],
    used: &'a mut [u8],
    overflow: &'a mut Vec<(u16, u16)>,
}

impl Filling<'_> {
    #[inline(always)]
    fn insert(&mut self, quarter: u16, sketch: u16) {
        let key = usize::from(quarter >> self.unused);
        let used = usize::from(self.used[key]);
        if used < self.lanes {
            self.sketches[key * self.lanes + used] = sketch;
            self.used[key] += 1;
        } else {
            self.overflow.push((quarter, sketch));
        }
    }
}
