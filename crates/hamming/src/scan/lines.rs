//! Sketches by quarter, in cache lines.

use super::{QUARTER_BITS, pick};
use crate::kernels::{Compare, Kernel, Work};
use crate::memory::Array;
use crate::probe::prefetch_far;
use crate::tables::Table;

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
    /// Sketches of each key, as many as there are lanes. Those that are no entry's repeat another: a fingerprint
    /// that passes for nothing costs a lookup and finds nothing.
    sketches: Array<u16>,
    /// A bit for each crowded key.
    crowded: Vec<u64>,
}

impl Lines {
    pub(crate) fn build(upper: &Table, lower: &Table, key_bits: u32, lanes: usize) -> Self {
        let mut upper = Filling::of(upper, key_bits, lanes);
        let mut lower = Filling::of(lower, key_bits, lanes);
        let of_upper = std::mem::take(&mut upper.left_over);
        let of_lower = std::mem::take(&mut lower.left_over);
        lower.adopt(of_upper, &mut upper.crowded);
        upper.adopt(of_lower, &mut lower.crowded);
        let (upper, lower) = (upper.finish(), lower.finish());
        Self {
            key_bits,
            lanes,
            crowded: [&upper, &lower]
                .iter()
                .any(|side| side.crowded.iter().any(|&bits| bits != 0)),
            upper,
            lower,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        [&self.upper, &self.lower]
            .map(|side| side.sketches.bytes() + 8 * side.crowded.len())
            .iter()
            .sum()
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
        let lines = self;
        match (self.lanes, self.crowded) {
            (16, false) => kernel.run(ScanLines::<16, false> {
                lines,
                run,
                first,
                shift,
                indexes,
            }),
            (16, true) => kernel.run(ScanLines::<16, true> {
                lines,
                run,
                first,
                shift,
                indexes,
            }),
            (32, false) => kernel.run(ScanLines::<32, false> {
                lines,
                run,
                first,
                shift,
                indexes,
            }),
            (32, true) => kernel.run(ScanLines::<32, true> {
                lines,
                run,
                first,
                shift,
                indexes,
            }),
            (_, false) => kernel.run(ScanLines::<64, false> {
                lines,
                run,
                first,
                shift,
                indexes,
            }),
            (_, true) => kernel.run(ScanLines::<64, true> {
                lines,
                run,
                first,
                shift,
                indexes,
            }),
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
        pick(run, first, indexes, fetch, |fingerprint| {
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
        });
    }
}

#[inline(always)]
fn is_set(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

/// A [`Side`] in the making.
struct Filling {
    key_bits: u32,
    lanes: usize,
    sketches: Array<u16>,
    /// Lanes in use of each key.
    used: Vec<u8>,
    crowded: Vec<u64>,
    /// Quarter and sketch of entries that found no lane.
    left_over: Vec<(u16, u16)>,
}

impl Filling {
    /// The lines of the entries of `table`.
    fn of(table: &Table, key_bits: u32, lanes: usize) -> Self {
        let keys = 1usize << key_bits;
        let mut filling = Self {
            key_bits,
            lanes,
            sketches: Array::zeroed(lanes * keys),
            used: vec![0; keys],
            crowded: vec![0; keys.div_ceil(64)],
            left_over: Vec::new(),
        };
        let lines: &mut [u16] = &mut filling.sketches;
        let mut rest: &[u64] = &table.entries;
        for (key, line) in lines.chunks_exact_mut(lanes).enumerate() {
            let of_key = rest.partition_point(|entry| (entry >> (64 - key_bits)) as usize <= key);
            let (own, others) = rest.split_at(of_key);
            rest = others;
            if own.len() > 2 * lanes {
                set(&mut filling.crowded, key);
                continue;
            }
            let (fitting, left_over) = own.split_at(own.len().min(lanes));
            for (lane, &entry) in line.iter_mut().zip(fitting) {
                *lane = table.partner(entry);
            }
            filling.used[key] = fitting.len() as u8;
            filling.left_over.extend(
                left_over
                    .iter()
                    .map(|&entry| ((entry >> 48) as u16, table.partner(entry))),
            );
        }
        filling
    }

    /// Takes in what the other side had no lane for; where that cannot be done, its key there is crowded.
    fn adopt(&mut self, left_over: Vec<(u16, u16)>, crowded_there: &mut [u64]) {
        let unused = QUARTER_BITS - self.key_bits;
        for (quarter, sketch) in left_over {
            let near =
                std::iter::once(sketch).chain((0..QUARTER_BITS).map(|bit| sketch ^ 1 << bit));
            let mut keys: Vec<usize> = near.map(|key| usize::from(key >> unused)).collect();
            keys.sort_unstable();
            keys.dedup();
            if keys
                .iter()
                .any(|&key| usize::from(self.used[key]) == self.lanes)
            {
                set(crowded_there, usize::from(quarter >> unused));
                continue;
            }
            for key in keys {
                let lane = key * self.lanes + usize::from(self.used[key]);
                self.sketches[lane] = quarter;
                self.used[key] += 1;
            }
        }
    }

    /// Fills the lanes that are not in use.
    fn finish(mut self) -> Side {
        let lines: &mut [u16] = &mut self.sketches;
        for (line, &used) in lines.chunks_exact_mut(self.lanes).zip(&self.used) {
            let (used, free) = line.split_at_mut(usize::from(used));
            if let Some(&any) = used.first() {
                free.fill(any);
            }
        }
        Side {
            sketches: self.sketches,
            crowded: self.crowded,
        }
    }
}
