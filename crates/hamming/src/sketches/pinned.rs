//! Tables of variants, whose sketches are so wide that hardly any passes for nothing, and those that do pin the entry
//! down: entries with the same bits are looked up by these.

use super::probe::{Chunk, STRIP, SketchTable, Survivor};
use super::{Buckets, Entries, Entry, Field, Sketch as _, place_by};
use crate::design::Design;
use crate::kernels::Compare;
use crate::memory::Array;
use crate::probe::{Found, Match, prefetch};
use crate::tables::push_flips;

/// The table of a block, with the entries under all keys within the block's radius.
///
/// A sketch ends with as many ones as bits of the key differ: so these count, too, when it is compared with that of a query,
/// which ends with zeros.
#[derive(Debug)]
pub(crate) struct PinnedTable {
    buckets: Buckets<u32>,
    pins: Pins,
}

/// Entries by the leading bits of their sketches.
#[derive(Debug)]
struct Pins {
    field: Field,
    /// Those with bits `b` are from `starts[b]` to `starts[b + 1]`.
    starts: Array<u32>,
    values: Array<u64>,
    /// Their indexes among those that the table was built of.
    indexes: Array<u32>,
}

/// Entries to a survivor from which on it is found out which survivors would look up the same.
const MANY: usize = 16;
/// Bits by which entries are pinned, at most.
const MAX_PIN_BITS: u32 = 20;
/// Bits of the keys that are filled together.
const BLOCK_BITS: u32 = 11;

/// Bits by which so many entries are pinned.
fn pin_bits(entries: usize) -> u32 {
    (usize::BITS - entries.leading_zeros()).clamp(1, MAX_PIN_BITS)
}

/// Bytes of the sketches and pins.
pub(super) fn bytes(entries: usize, variants: usize) -> usize {
    4 * (variants + STRIP * u32::LANES) + 12 * entries + 4 * ((1 << pin_bits(entries)) + 1)
}

impl PinnedTable {
    /// The table of block `at` of `design` over `values`.
    pub(crate) fn build(values: &[u64], design: &Design, at: usize) -> Self {
        let mut buckets = Buckets::empty(values.len(), design.blocks(), at);
        let pins = Pins::of(values, buckets.near.bits);
        fill(&mut buckets, values, design.blocks()[at].radius);
        Self { buckets, pins }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.bytes() + self.pins.bytes()
    }
}

impl Pins {
    fn of(values: &[u64], sketch: Field) -> Self {
        let field = Field {
            bits: pin_bits(values.len()).min(sketch.bits),
            ..sketch
        };
        let mut pins = Self {
            field,
            starts: Array::zeroed((1 << field.bits) + 1),
            values: Array::zeroed(values.len()),
            indexes: Array::zeroed(values.len()),
        };
        let (pinned, indexes): (&mut [u64], &mut [u32]) = (&mut pins.values, &mut pins.indexes);
        place_by(field, values, &mut pins.starts, |place, index| {
            pinned[place] = values[index];
            indexes[place] = index as u32;
        });
        pins
    }

    fn bytes(&self) -> usize {
        self.starts.bytes() + self.values.bytes() + self.indexes.bytes()
    }
}

/// Puts every entry into the buckets of all keys within `radius` of its own.
///
/// The buckets are filled by blocks of keys with the same upper bits, so that what is being filled stays in the cache: for
/// each way to flip some upper bits, with all entries of one other block, whose lower bits may differ in the rest.
fn fill(buckets: &mut Buckets<u32>, values: &[u64], radius: u32) {
    let (key, near) = (buckets.key, buckets.near);
    let lower_bits = key.bits.min(BLOCK_BITS);
    let upper_bits = key.bits - lower_bits;
    let keys = 1usize << lower_bits;
    let lower = |value: u64| key.of(value) & (keys as u32 - 1);
    // In the order of their keys.
    let mut of_keys = Array::<u32>::zeroed((1 << key.bits) + 1);
    let mut entries = vec![Entry::default(); values.len()];
    place_by(key, values, &mut of_keys, |place, index| {
        let value = values[index];
        let sketch = near.sketch(value);
        entries[place] = Entry { value, sketch };
    });
    let of_block = |block: usize| {
        let [from, to] = [block, block + 1].map(|block| of_keys[block * keys] as usize);
        &entries[from..to]
    };
    let flips = |bits: u32| {
        let mut flips = Vec::new();
        push_flips(bits, radius, 0, &mut flips);
        // Those of few bits first.
        flips.sort_unstable_by_key(|flip| (flip.count_ones(), *flip));
        flips
    };
    let (upper_flips, lower_flips) = (flips(upper_bits), flips(lower_bits));
    // Those of the lower bits when so many of the upper ones are flipped.
    let lower_flips: Vec<&[u32]> = (0..=radius)
        .map(|flipped| {
            let fits = |flip: &u32| flip.count_ones() + flipped <= radius;
            &lower_flips[..lower_flips.partition_point(fits)]
        })
        .collect();

    let starts: &mut [u32] = &mut buckets.starts;
    let sketches: &mut [u32] = &mut buckets.sketches;
    let mut places = vec![0u32; keys];
    let mut end = 0u32;
    for (block, starts) in starts.chunks_exact_mut(keys).enumerate() {
        places.fill(0);
        for upper in &upper_flips {
            let flips = lower_flips[upper.count_ones() as usize];
            for entry in of_block(block ^ *upper as usize) {
                let key = lower(entry.value);
                for flip in flips {
                    places[(key ^ flip) as usize] += 1;
                }
            }
        }
        for (place, start) in places.iter_mut().zip(starts) {
            *start = end;
            end += std::mem::replace(place, end);
        }
        for upper in &upper_flips {
            let flipped = upper.count_ones();
            let flips = lower_flips[flipped as usize];
            for entry in of_block(block ^ *upper as usize) {
                let key = lower(entry.value);
                for flip in flips {
                    let place = &mut places[(key ^ flip) as usize];
                    let ones = (1 << (flipped + flip.count_ones())) - 1;
                    sketches[*place as usize] = entry.sketch | ones;
                    *place += 1;
                }
            }
        }
    }
    if let Some(last) = starts.last_mut() {
        *last = end;
    }
}

impl SketchTable for PinnedTable {
    type Sketch = u32;

    fn buckets(&self) -> &Buckets<u32> {
        &self.buckets
    }

    #[inline(always)]
    fn compare<C: Compare>(
        &self,
        entries: &Entries<'_>,
        chunk: Chunk<'_>,
        survivors: &mut Vec<Survivor>,
        found: &mut Found<'_>,
    ) {
        let Pins {
            field,
            starts,
            values,
            indexes,
        } = &self.pins;
        let near = self.buckets.near;
        let (starts, sketches): (&[u32], &[u32]) = (starts, &self.buckets.sketches);
        let unused = near.room + near.bits.bits - field.bits;
        // Most do not pass the second test: these are not looked up. Which do is not to be guessed.
        let mut kept = 0;
        for at in 0..survivors.len() {
            let Survivor { query, place } = survivors[at];
            let candidate = sketches[place as usize];
            let own = near.sketch(chunk.fingerprints[query as usize]);
            // From here on that of its pin.
            let place = candidate >> unused;
            prefetch(starts, place as usize);
            survivors[kept] = Survivor { query, place };
            let differing = ((candidate ^ own) & near.second.mask).count_ones();
            kept += usize::from(differing <= near.second.limit);
        }
        survivors.truncate(kept);
        let mut pinned = 0;
        for survivor in survivors.iter() {
            let [start, end] = [0, 1].map(|next| starts[survivor.place as usize + next]);
            prefetch(values, start as usize);
            pinned += (end - start) as usize;
        }
        // Where many entries are alike, many candidates of one query have the same sketch.
        if pinned > MANY * survivors.len() {
            survivors.sort_unstable_by_key(|survivor| (survivor.query, survivor.place));
        }
        let mut before = None;
        for survivor in survivors.iter() {
            if before.replace(*survivor) == Some(*survivor) {
                continue;
            }
            let number = chunk.number(survivor.query);
            let fingerprint = chunk.fingerprints[survivor.query as usize];
            let pin = survivor.place as usize;
            let (mut first, end) = (starts[pin] as usize, starts[pin + 1] as usize);
            for candidates in values[first..end].chunks(64) {
                // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                let mut near = unsafe { C::within(fingerprint, candidates, entries.max_distance) };
                while near != 0 {
                    let at = near.trailing_zeros() as usize;
                    near &= near - 1;
                    let index = indexes[first + at];
                    if !entries.is_own(number, index) {
                        found.push(Match {
                            query: number,
                            entry: (entries.first + index as usize) as u32,
                            distance: (candidates[at] ^ fingerprint).count_ones(),
                        });
                    }
                }
                first += candidates.len();
            }
            if found.is_full() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distinct;
    use crate::cost::ball;

    #[test]
    fn buckets_hold_every_variant_once() {
        let values: Vec<u64> = (0..400u64)
            .map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let values = Distinct::new(&values).values().to_vec();
        for (name, k) in [("variants-3", 8), ("variants-4", 10), ("variants-6", 5)] {
            let design = Design::named(name, k).unwrap();
            for (at, block) in design.blocks().iter().enumerate() {
                let table = PinnedTable::build(&values, &design, at).buckets;
                let mut variants = 0;
                for key in 0..1u32 << table.key.bits {
                    let range = table.starts[key as usize]..table.starts[key as usize + 1];
                    let mut bucket = range
                        .map(|place| table.sketches[place as usize])
                        .collect::<Vec<_>>();
                    variants += bucket.len();
                    let distance = |value: u64| (table.key.of(value) ^ key).count_ones();
                    let mut expected: Vec<u32> = values
                        .iter()
                        .filter(|&&value| distance(value) <= block.radius)
                        .map(|&value| table.near.sketch(value) | ((1 << distance(value)) - 1))
                        .collect();
                    bucket.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(bucket, expected, "{name}, block {at}, key {key}");
                }
                assert_eq!(variants, 400 * ball(table.key.bits, block.radius) as usize);
            }
        }
    }
}
