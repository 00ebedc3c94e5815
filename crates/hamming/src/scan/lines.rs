//! Sketches by quarter, in cache lines.

use super::{QUARTER_BITS, each, pick};
use crate::kernels::{Compare, Kernel, Work};
use crate::memory::Array;
use crate::probe::prefetch_far;

/// Both quarters of a half as keys, each with the other as sketch.
///
/// An entry passes a fingerprint that has its upper quarter and a lower one within 1 bit, or the reverse. Its
/// sketch stands in the line of its key; where that is full, in the lines of all the other side's keys within 1 bit of
/// its sketch, which come to the same; where one of those is full too, the key is crowded and everything passes.
#[derive(Debug)]
pub(crate) struct Lines {
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
    /// Sketches of each key, as many as there are lanes. Those that are no entry's are 0: a fingerprint that passes
    /// for nothing costs a lookup and finds nothing.
    sketches: Array<u16>,
    /// Lanes in use of each key.
    used: Vec<u8>,
    /// A bit for each crowded key.
    crowded: Vec<u64>,
    /// Quarter and sketch of entries that found no lane.
    left_over: Vec<(u16, u16)>,
}

impl Lines {
    /// Without entries.
    pub(crate) fn new(key_bits: u32, lanes: usize) -> Self {
        Self {
            key_bits,
            lanes,
            upper: Side::new(key_bits, lanes),
            lower: Side::new(key_bits, lanes),
            crowded: false,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        [&self.upper, &self.lower]
            .map(|side| side.sketches.bytes() + side.used.len() + 8 * side.crowded.len())
            .iter()
            .sum()
    }

    /// Replaces all entries by those with these halves.
    pub(crate) fn fill(&mut self, halves: impl Iterator<Item = u32>) {
        let (lanes, unused) = (self.lanes, QUARTER_BITS - self.key_bits);
        let (upper, lower) = (&mut self.upper, &mut self.lower);
        upper.clear();
        lower.clear();
        {
            let (mut upper, mut lower) =
                (upper.filling(lanes, unused), lower.filling(lanes, unused));
            for half in halves {
                let (high, low) = ((half >> QUARTER_BITS) as u16, half as u16);
                upper.insert(high, low);
                lower.insert(low, high);
            }
        }
        let of_upper = std::mem::take(&mut upper.left_over);
        let of_lower = std::mem::take(&mut lower.left_over);
        self.crowded = lower.adopt(lanes, unused, of_upper, &mut upper.crowded);
        self.crowded |= upper.adopt(lanes, unused, of_lower, &mut lower.crowded);
    }

    /// Adds the indexes of those in `run` that pass; see [`super::Half::scan`].
    pub(crate) fn scan(
        &self,
        kernel: Kernel,
        run: &[u64],
        first: usize,
        shift: u32,
        indexes: &mut Vec<u32>,
    ) {
        macro_rules! scan {
            ($lanes:literal, $crowded:literal) => {
                kernel.run(ScanLines::<$lanes, $crowded> {
                    lines: self,
                    run,
                    first,
                    shift,
                    indexes,
                })
            };
        }
        match (self.lanes, self.crowded) {
            (16, false) => scan!(16, false),
            (16, true) => scan!(16, true),
            (32, false) => scan!(32, false),
            (32, true) => scan!(32, true),
            (_, false) => scan!(64, false),
            (_, true) => scan!(64, true),
        }
    }
}

struct ScanLines<'a, const LANES: usize, const CROWDED: bool> {
    lines: &'a Lines,
    run: &'a [u64],
    first: usize,
    shift: u32,
    indexes: &'a mut Vec<u32>,
}

impl<const LANES: usize, const CROWDED: bool> Work for ScanLines<'_, LANES, CROWDED> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self {
            lines,
            run,
            first,
            shift,
            indexes,
        } = self;
        let unused = QUARTER_BITS - lines.key_bits;
        let upper = lines.upper.sketches.as_chunks::<LANES>().0;
        let lower = lines.lower.sketches.as_chunks::<LANES>().0;
        let keys = 1usize << lines.key_bits;
        assert!(
            upper.len() == keys && lower.len() == keys,
            "a line for each key"
        );
        // Both quarters, and their keys: below 2^key_bits, for a quarter has 16 bits.
        let quarters = |fingerprint: u64| {
            let half = (fingerprint >> shift) as u32;
            let (high, low) = ((half >> QUARTER_BITS) as u16, half as u16);
            (
                high,
                low,
                usize::from(high >> unused),
                usize::from(low >> unused),
            )
        };
        let fetch = |fingerprint| {
            let (_, _, high_key, low_key) = quarters(fingerprint);
            prefetch_far(upper, high_key);
            prefetch_far(lower, low_key);
            if LANES == 64 {
                // The second line of each.
                prefetch_far(upper.as_flattened(), high_key * LANES + LANES / 2);
                prefetch_far(lower.as_flattened(), low_key * LANES + LANES / 2);
            }
        };
        let passes = |fingerprint| {
            let (high, low, high_key, low_key) = quarters(fingerprint);
            debug_assert!(high_key < keys && low_key < keys);
            // SAFETY: there is a line for each key, as asserted above; and the function this is inlined into is
            // compiled for the instruction set, see `Kernel::run`.
            let near = unsafe {
                C::near(
                    upper.get_unchecked(high_key),
                    low,
                    lower.get_unchecked(low_key),
                    high,
                )
            };
            let crowded = CROWDED
                && (is_set(&lines.upper.crowded, high_key) | is_set(&lines.lower.crowded, low_key));
            near | crowded
        };
        pick(run, first, indexes, fetch, |block| each(block, passes));
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
            left_over: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.sketches.fill(0);
        self.used.fill(0);
        self.crowded.fill(0);
        self.left_over.clear();
    }

    fn filling(&mut self, lanes: usize, unused: u32) -> Filling<'_> {
        Filling {
            lanes,
            unused,
            sketches: &mut self.sketches,
            used: &mut self.used,
            left_over: &mut self.left_over,
        }
    }

    /// Takes in what the other side had no lane for; where that cannot be done, its key there is crowded, and the
    /// answer true.
    fn adopt(
        &mut self,
        lanes: usize,
        unused: u32,
        left_over: Vec<(u16, u16)>,
        crowded_there: &mut [u64],
    ) -> bool {
        let mut crowded = false;
        for (quarter, sketch) in left_over {
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

/// A side that entries are put into.
struct Filling<'a> {
    lanes: usize,
    unused: u32,
    sketches: &'a mut [u16],
    used: &'a mut [u8],
    left_over: &'a mut Vec<(u16, u16)>,
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
            self.left_over.push((quarter, sketch));
        }
    }
}
