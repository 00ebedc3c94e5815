//! Tables of sketches: a bucket for every value of a block that is within the block's radius of an entry's, so that a query
//! finds all its candidates in one place, whatever the order of the archive.
//!
//! A candidate is a sketch, 16 bits beside the block; 16 of them are compared at once, and what passes is compared in full.
//!
//! In `variants-N` the sketch is of the block that follows (the first follows the last). By the strong form of the
//! pigeonhole principle (Qin and Xiao, "Pigeonring", VLDB 2018) a pair within k, with Σ(rᵢ + 1) = k + 1, has a block i
//! with not only dᵢ ≤ rᵢ, but also dᵢ + dᵢ₊₁ ≤ rᵢ + rᵢ₊₁ + 1: around the ring, dᵢ − (rᵢ + 1) sums to less than 0, so there is a
//! place from which on all partial sums are less than 0. One candidate in 70 passes, at radii of 2. In `halves` it is of
//! the other quarter of the half, within 1.

mod partition;
mod probe;

pub(crate) use probe::{Candidates, Entries};

use crate::cost::ball;
use crate::design::{Block, Design};
use crate::memory::Array;
use crate::tables::push_flips;

/// Sketches that are compared at once.
pub(crate) const LANES: usize = 32;
/// Bits of a sketch.
const SKETCH_BITS: u32 = 16;
/// Bits that keys have at most, and whole tables of variants at most.
const MAX_KEY_BITS: u32 = 24;
const MAX_VARIANTS: f64 = 4e9;

/// The table of one block.
#[derive(Debug)]
pub(crate) struct SketchTable {
    key: Field,
    sketch: Field,
    /// Bits in which a sketch may differ for entries whose key differs in as many bits as the radius.
    limit: u16,
    /// For each key where its bucket begins, and how many entries of it are within one bit less than the radius (low
    /// half) and two bits less (high half). The bucket is in that order, the nearest first.
    heads: Array<[u32; 2]>,
    sketches: Array<u16>,
    /// Indexes of the entries among those that the table was built of.
    indexes: Array<u32>,
}

/// Consecutive bits of a fingerprint.
#[derive(Debug, Clone, Copy)]
struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    /// The leading bits of `mask`, at most so many.
    fn leading(mask: u64, bits: u32) -> Self {
        let bits = bits.min(mask.count_ones());
        Self {
            shift: 64 - mask.leading_zeros() - bits,
            bits,
        }
    }

    #[inline(always)]
    fn of(self, fingerprint: u64) -> u32 {
        (fingerprint >> self.shift) as u32 & ((1 << self.bits) - 1)
    }
}

/// What the table of a block takes: see [`SketchTable::size`].
pub(crate) struct Size {
    /// Bits of the keys.
    pub(crate) key_bits: u32,
    /// Candidates that a query meets.
    pub(crate) candidates: f64,
    /// Bytes of the table; `usize::MAX` when it cannot be built, in however much memory.
    pub(crate) bytes: usize,
    /// More bytes, while it is built.
    pub(crate) building: usize,
}

impl SketchTable {
    /// What a table of `block` over so many entries takes, with `bits` bits of the key at most.
    fn size_with(block: &Block, entries: usize, bits: u32) -> Size {
        let key_bits = bits.min(block.mask.count_ones());
        let variants = entries as f64 * ball(key_bits, block.radius);
        let bytes = if variants < MAX_VARIANTS {
            6 * (variants as usize + LANES) + (8 << key_bits) + 8
        } else {
            usize::MAX
        };
        Size {
            key_bits,
            candidates: variants / 2f64.powi(key_bits.cast_signed()),
            bytes,
            building: match block.radius {
                0 => 0,
                _ => size_of::<Entry>() * entries + (8 << key_bits),
            },
        }
    }

    /// What a table of `block` over so many entries takes. More bits of the key are fewer candidates, in a larger table.
    pub(crate) fn size(block: &Block, entries: usize) -> Size {
        (8..=MAX_KEY_BITS)
            .map(|bits| Self::size_with(block, entries, bits))
            // Two lines of candidates are one access.
            .find(|size| size.candidates <= 16.0)
            .unwrap_or_else(|| Self::size_with(block, entries, MAX_KEY_BITS))
    }

    /// The bits that sketches of block `at` are of, and in how many of them they may differ for entries whose key differs in
    /// as many bits as the radius: of what is beside the block, or else of the next one.
    pub(crate) fn sketch(blocks: &[Block], at: usize) -> (u64, u32) {
        let next = &blocks[(at + 1) % blocks.len()];
        match blocks[at].beside {
            0 => (next.mask, next.radius + 1),
            beside => (beside, 1),
        }
    }

    /// The table of block `at` of `design` over `values`.
    ///
    /// # Panics
    /// When it cannot be built, see [`Size::bytes`].
    pub(crate) fn build(values: &[u64], design: &Design, at: usize) -> Self {
        let block = &design.blocks()[at];
        let (sketched, limit) = Self::sketch(design.blocks(), at);
        let size = Self::size(block, values.len());
        // Offsets would be cut off, and pairs missed.
        assert!(
            size.bytes < usize::MAX,
            "a table has less than 4e9 variants"
        );
        let key = Field::leading(block.mask, size.key_bits);
        let variants = values.len() * ball(key.bits, block.radius) as usize;
        let mut table = Self {
            key,
            sketch: Field::leading(sketched, SKETCH_BITS),
            limit: limit as u16,
            heads: Array::zeroed((1 << key.bits) + 1),
            sketches: Array::zeroed(variants + LANES),
            indexes: Array::zeroed(variants),
        };
        match block.radius {
            0 => table.fill_exact(values),
            radius => table.fill_variants(values, radius),
        }
        table
    }

    /// Puts every entry into the bucket of its own key.
    fn fill_exact(&mut self, values: &[u64]) {
        let heads: &mut [[u32; 2]] = &mut self.heads;
        let (sketches, indexes): (&mut [u16], &mut [u32]) = (&mut self.sketches, &mut self.indexes);
        for &value in values {
            heads[self.key.of(value) as usize][0] += 1;
        }
        // From the counts to where each ends, and back from there while they are filled.
        let mut end = 0;
        for head in &mut *heads {
            end += head[0];
            head[0] = end;
        }
        for (index, &value) in values.iter().enumerate().rev() {
            let place = &mut heads[self.key.of(value) as usize][0];
            *place -= 1;
            sketches[*place as usize] = self.sketch.of(value) as u16;
            indexes[*place as usize] = index as u32;
        }
    }

    /// The indexes of the entries, in the order of their keys; in a table without variants each is there once.
    pub(crate) fn indexes(&self) -> &[u32] {
        &self.indexes
    }

    /// Puts every entry into the buckets of all keys within `radius` of its own.
    ///
    /// The buckets are filled by blocks of keys with the same upper bits, so that what is being filled stays in the cache: for
    /// each way to flip some upper bits, with all entries of one other block, whose lower bits may differ in the rest.
    fn fill_variants(&mut self, values: &[u64], radius: u32) {
        let lower = Field {
            shift: self.key.shift,
            bits: self.key.bits.min(BLOCK_BITS),
        };
        let upper_bits = self.key.bits - lower.bits;
        let keys = 1usize << lower.bits;
        let entries = ByKey::of(values, self.key);
        let flips = |bits: u32, weight: u32| {
            let mut flips = Vec::new();
            push_flips(bits, radius, 0, &mut flips);
            flips.retain(|flip| flip.count_ones() == weight);
            flips
        };
        let upper_flips: Vec<_> = (0..=radius).map(|w| flips(upper_bits, w)).collect();
        let lower_flips: Vec<_> = (0..=radius).map(|w| flips(lower.bits, w)).collect();

        let heads: &mut [[u32; 2]] = &mut self.heads;
        let (sketches, indexes): (&mut [u16], &mut [u32]) = (&mut self.sketches, &mut self.indexes);
        let mut places = vec![0u32; keys];
        let mut end = 0u32;
        for (block, heads) in heads.chunks_exact_mut(keys).enumerate() {
            // Every entry of a block that some flips of `weight` upper bits lead to.
            let sources = |weight: usize| {
                let blocks = upper_flips[weight].iter();
                blocks.flat_map(|flip| entries.block(block ^ *flip as usize, keys))
            };
            places.fill(0);
            for weight in 0..=radius as usize {
                for entry in sources(weight) {
                    for flip in lower_flips[..=radius as usize - weight].iter().flatten() {
                        places[(lower.of(entry.value) ^ flip) as usize] += 1;
                    }
                }
            }
            for (place, head) in places.iter_mut().zip(&mut *heads) {
                head[0] = end;
                end += std::mem::replace(place, end);
            }
            for distance in 0..=radius as usize {
                for weight in 0..=distance {
                    for entry in sources(weight) {
                        let sketch = self.sketch.of(entry.value) as u16;
                        for flip in &lower_flips[distance - weight] {
                            let place = &mut places[(lower.of(entry.value) ^ flip) as usize];
                            sketches[*place as usize] = sketch;
                            indexes[*place as usize] = entry.index;
                            *place += 1;
                        }
                    }
                }
                let less = radius as usize - distance;
                if less == 1 || less == 2 {
                    for (place, head) in places.iter().zip(&mut *heads) {
                        let count = (place - head[0]).min(u32::from(u16::MAX));
                        head[1] |= count << (16 * (less - 1));
                    }
                }
            }
        }
        if let Some(last) = heads.last_mut() {
            *last = [end, 0];
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heads.bytes() + self.sketches.bytes() + self.indexes.bytes()
    }
}

/// Bits of the keys that are filled together.
const BLOCK_BITS: u32 = 11;
/// As the number of near entries of a bucket: so many, or more. All its entries are then treated as the nearest.
const CROWDED: u32 = u16::MAX as u32;

/// What a table is built of, in the order of keys.
struct ByKey {
    entries: Vec<Entry>,
    /// The entries of key `k` are `entries[starts[k]..starts[k + 1]]`.
    starts: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    value: u64,
    index: u32,
}

impl ByKey {
    fn of(values: &[u64], key: Field) -> Self {
        let mut starts = vec![0u32; (1 << key.bits) + 1];
        for &value in values {
            starts[key.of(value) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut entries = vec![Entry::default(); values.len()];
        for (index, &value) in values.iter().enumerate() {
            let place = &mut next[key.of(value) as usize];
            entries[*place as usize] = Entry {
                value,
                index: index as u32,
            };
            *place += 1;
        }
        Self { entries, starts }
    }

    /// The entries of a block of so many keys.
    fn block(&self, block: usize, keys: usize) -> &[Entry] {
        let (from, to) = (self.starts[block * keys], self.starts[(block + 1) * keys]);
        &self.entries[from as usize..to as usize]
    }
}

/// Tables of more bytes are worth a partitioned chunk.
pub(crate) const CACHED: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distinct;

    #[test]
    fn buckets_hold_every_variant_once_the_nearest_first() {
        let values: Vec<u64> = (0..400u64)
            .map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let values = Distinct::new(&values).values().to_vec();
        let design = Design::named("variants-3", 8).unwrap();
        for at in 0..3 {
            let table = SketchTable::build(&values, &design, at);
            let mut entries = 0;
            for key in 0..1u32 << table.key.bits {
                let ([start, counts], [end, _]) =
                    (table.heads[key as usize], table.heads[key as usize + 1]);
                let distance = |place: u32| {
                    let value = values[table.indexes[place as usize] as usize];
                    assert_eq!(
                        table.sketches[place as usize],
                        table.sketch.of(value) as u16
                    );
                    (table.key.of(value) ^ key).count_ones()
                };
                let expected = values
                    .iter()
                    .filter(|&&value| (table.key.of(value) ^ key).count_ones() <= 2)
                    .count();
                assert_eq!((end - start) as usize, expected);
                for place in start..end {
                    let allowed =
                        [counts >> 16, counts & 0xffff].map(|count| place < start + count);
                    let exact = distance(place);
                    assert_eq!(allowed, [exact == 0, exact <= 1]);
                }
                entries += expected;
            }
            let variants = ball(table.key.bits, 2) as usize;
            assert_eq!(entries, 400 * variants);
        }
    }
}
