//! A filter of halves: for each key (the upper bits of a quarter), cache lines with the other
//! quarters of the entries that have the key.

use super::append_passing::append_passing;
use super::filter_layout::QUARTER_BITS;
use crate::huge_array::HugeArray;
use crate::isa::{Isa, Kernel, Work, passing_mask};
use crate::prefetch::prefetch_l2;
use crate::unchecked::ByUpperBits;

/// Halves that are gathered before they are inserted, so that no load waits for a store.
const GATHERED: usize = 1 << 12;

/// The two sides of the filter: by the upper quarter with the lower as the tag, and the reverse.
///
/// A fingerprint passes when an entry has the same upper quarter and a lower quarter within 1 bit,
/// or the reverse. On each side, an entry's tag is in the lines of its key. If these are full, the
/// entry overflows to the other side: there its quarter goes into the lines of every key within 1
/// bit of its tag, so that the same fingerprints pass. If any of those lines are full too, the
/// entry's key becomes crowded: every fingerprint with that key passes.
#[derive(Debug)]
pub(super) struct Lines {
    key_bits: u32,
    lanes: usize,
    upper: Side,
    lower: Side,
    /// Whether any key is crowded.
    crowded: bool,
}

/// The lines by one of the two quarters: its upper bits are the key, the other quarter is the tag.
#[derive(Debug)]
struct Side {
    /// For each key, one tag a lane. Unused lanes hold 0: a fingerprint that passes because of one
    /// costs a lookup that finds nothing.
    tags: HugeArray<u16>,
    /// For each key, how many of its lanes are in use.
    used: Vec<u8>,
    /// Bit `k` is set if key `k` is crowded.
    crowded: Vec<u64>,
    /// The quarter and the tag of each entry that found no lane.
    overflow: Vec<(u16, u16)>,
}

impl Lines {
    /// Builds the lines of `halves`, with keys of `key_bits` bits and `lanes` tags for each key.
    pub(super) fn build(
        key_bits: u32,
        lanes: usize,
        mut halves: impl Iterator<Item = u32>,
    ) -> Self {
        let mut upper = Side::new(key_bits, lanes);
        let mut lower = Side::new(key_bits, lanes);
        let unused = QUARTER_BITS - key_bits;
        {
            let (mut upper, mut lower) =
                (upper.filling(lanes, unused), lower.filling(lanes, unused));
            let mut gathered = [0; GATHERED];
            loop {
                let mut count = 0;
                for (place, half) in gathered.iter_mut().zip(&mut halves) {
                    *place = half;
                    count += 1;
                }
                let gathered = &gathered[..count];
                for half in gathered {
                    upper.insert((half >> QUARTER_BITS) as u16, *half as u16);
                }
                for half in gathered {
                    lower.insert(*half as u16, (half >> QUARTER_BITS) as u16);
                }
                if count < GATHERED {
                    break;
                }
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
            .map(|side| side.tags.bytes() + side.used.len() + 8 * side.crowded.len())
            .iter()
            .sum()
    }

    /// Appends the indexes of those `fingerprints` that pass; see [`super::scan::HalfFilter::pick`].
    pub(super) fn pick(
        &self,
        kernel: Kernel,
        fingerprints: &[u64],
        shift: u32,
        indexes: &mut Vec<u32>,
    ) {
        macro_rules! pick {
            ($lanes:literal, $crowded:literal) => {
                kernel.execute(PickByLines::<$lanes, $crowded> {
                    lines: self,
                    fingerprints,
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
    fingerprints: &'a [u64],
    shift: u32,
    indexes: &'a mut Vec<u32>,
}

impl<const LANES: usize, const CROWDED: bool> Work for PickByLines<'_, LANES, CROWDED> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) {
        let Self {
            lines,
            fingerprints,
            shift,
            indexes,
        } = self;
        let upper = lines.upper.tags.as_chunks::<LANES>().0;
        let lower = lines.lower.tags.as_chunks::<LANES>().0;
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
                // 64 tags of 16 bits fill two cache lines.
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
        append_passing(fingerprints, 0, indexes, fetch, |tile| {
            passing_mask(tile, passes)
        });
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
            tags: HugeArray::zeroed(lanes * keys),
            used: vec![0; keys],
            crowded: vec![0; keys.div_ceil(64)],
            overflow: Vec::new(),
        }
    }

    fn filling(&mut self, lanes: usize, unused: u32) -> Filling<'_> {
        Filling {
            lanes,
            unused,
            tags: &mut self.tags,
            used: &mut self.used,
            overflow: &mut self.overflow,
        }
    }

    /// Puts the other side's overflow into lanes of this side. An entry that finds no lane makes
    /// its key on the other side crowded. Returns whether any key became crowded.
    fn place_overflow(
        &mut self,
        lanes: usize,
        unused: u32,
        overflow: Vec<(u16, u16)>,
        crowded_keys: &mut [u64],
    ) -> bool {
        let mut crowded = false;
        for (quarter, tag) in overflow {
            let own_key = usize::from(quarter >> unused);
            if is_set(crowded_keys, own_key) {
                continue;
            }
            let near = std::iter::once(tag).chain((0..QUARTER_BITS).map(|bit| tag ^ 1 << bit));
            let mut keys: Vec<usize> = near.map(|key| usize::from(key >> unused)).collect();
            keys.sort_unstable();
            keys.dedup();
            if keys.iter().any(|&key| usize::from(self.used[key]) == lanes) {
                crowded_keys[own_key / 64] |= 1 << (own_key % 64);
                crowded = true;
                continue;
            }
            for key in keys {
                self.tags[key * lanes + usize::from(self.used[key])] = quarter;
                self.used[key] += 1;
            }
        }
        crowded
    }
}

/// A side that is being filled, without indirections.
struct Filling<'a> {
    lanes: usize,
    unused: u32,
    tags: &'a mut [u16],
    used: &'a mut [u8],
    overflow: &'a mut Vec<(u16, u16)>,
}

impl Filling<'_> {
    #[inline(always)]
    fn insert(&mut self, quarter: u16, tag: u16) {
        let key = usize::from(quarter >> self.unused);
        let used = usize::from(self.used[key]);
        if used < self.lanes {
            self.tags[key * self.lanes + used] = tag;
            self.used[key] += 1;
        } else {
            self.overflow.push((quarter, tag));
        }
    }
}
