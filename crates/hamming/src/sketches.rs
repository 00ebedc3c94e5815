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

use crate::cost::ball;
use crate::design::{Block, Design};
use crate::kernels::{Compare, Kernel, Limit, Work};
use crate::memory::Array;
use crate::probe::{IN_FLIGHT, Match, prefetch, prefetch_far};
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
    /// Bytes of the table.
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
            usize::MAX / 256
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
    pub(crate) fn build(values: &[u64], design: &Design, at: usize) -> Self {
        let block = &design.blocks()[at];
        let (sketched, limit) = Self::sketch(design.blocks(), at);
        let size = Self::size(block, values.len());
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

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    partitioned: Partitioned,
    buckets: Vec<Bucket>,
    survivors: Vec<Survivor>,
}

/// A bucket to be compared with one query.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    start: u32,
    end: u32,
    counts: u32,
}

/// Groups of sketches that are compared before what passed is looked at.
const MASKS: usize = 32;

/// A candidate whose sketch is near.
#[derive(Debug, Clone, Copy, Default)]
struct Survivor {
    query: u32,
    /// Its place in the table, later its index.
    entry: u32,
}

impl SketchTable {
    /// Looks up every fingerprint of the chunk. Appends what is near; tables of the same design find pairs that others find
    /// too.
    pub(crate) fn probe(
        &self,
        kernel: Kernel,
        entries: &Entries<'_>,
        chunk: &[u64],
        candidates: &mut Candidates,
        matches: &mut Vec<Match>,
    ) {
        // What is in the order of the table already needs no other.
        let in_order = self.key.shift + self.key.bits == 64 && chunk.is_sorted();
        if in_order || chunk.len() < PARTITION_FROM || self.bytes() < CACHED {
            return self.probe_some(kernel, entries, (chunk, None), candidates, matches);
        }
        let mut partitioned = std::mem::take(&mut candidates.partitioned);
        let queries = partitioned.fill(self.key, chunk);
        self.probe_some(kernel, entries, queries, candidates, matches);
        candidates.partitioned = partitioned;
    }

    /// As [`Self::probe`], of some fingerprints with, if it is not their index, the number of each.
    pub(crate) fn probe_some(
        &self,
        kernel: Kernel,
        entries: &Entries<'_>,
        (chunk, queries): (&[u64], Option<&[u32]>),
        candidates: &mut Candidates,
        matches: &mut Vec<Match>,
    ) {
        kernel.run(Probe {
            table: self,
            entries,
            chunk,
            queries,
            buckets: &mut candidates.buckets,
            survivors: &mut candidates.survivors,
            matches,
        });
    }
}

/// What tables were built of.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    pub(crate) values: &'a [u64],
    /// The index of the first of them in the batch.
    pub(crate) first: usize,
    pub(crate) max_distance: u32,
}

/// Chunks are partitioned from this length on.
const PARTITION_FROM: usize = 1 << 14;
/// Tables of more bytes are worth a partitioned chunk.
pub(crate) const CACHED: usize = 4 << 20;
/// Bits of the key by which a chunk is partitioned: so few that each partition has a cache line to be written to, so
/// many that what one looks up in a table is in the second-level cache and on few pages.
const PARTITION_BITS: u32 = 10;

/// A chunk in the order of the leading bits of a key.
#[derive(Debug)]
struct Partitioned {
    fingerprints: Array<u64>,
    /// The index in the chunk of each.
    queries: Array<u32>,
}

impl Default for Partitioned {
    fn default() -> Self {
        Self {
            fingerprints: Array::zeroed(0),
            queries: Array::zeroed(0),
        }
    }
}

impl Partitioned {
    fn fill(&mut self, key: Field, chunk: &[u64]) -> (&[u64], Option<&[u32]>) {
        if self.queries.len() < chunk.len() {
            self.fingerprints = Array::zeroed(chunk.len());
            self.queries = Array::zeroed(chunk.len());
        }
        let partition = |fingerprint: u64| {
            (key.of(fingerprint) >> key.bits.saturating_sub(PARTITION_BITS)) as usize
        };
        let mut next = [0u32; 1 << PARTITION_BITS];
        for &fingerprint in chunk {
            next[partition(fingerprint)] += 1;
        }
        let mut sum = 0;
        for next in &mut next {
            sum += std::mem::replace(next, sum);
        }
        let (fingerprints, queries) = (
            &mut self.fingerprints[..chunk.len()],
            &mut self.queries[..chunk.len()],
        );
        for (query, &fingerprint) in chunk.iter().enumerate() {
            let next = &mut next[partition(fingerprint)];
            fingerprints[*next as usize] = fingerprint;
            queries[*next as usize] = query as u32;
            *next += 1;
        }
        (fingerprints, Some(queries))
    }
}

struct Probe<'a> {
    table: &'a SketchTable,
    entries: &'a Entries<'a>,
    chunk: &'a [u64],
    /// The number of each fingerprint of the chunk, where that is not its index.
    queries: Option<&'a [u32]>,
    buckets: &'a mut Vec<Bucket>,
    survivors: &'a mut Vec<Survivor>,
    matches: &'a mut Vec<Match>,
}

impl Work for Probe<'_> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self {
            table,
            entries:
                &Entries {
                    values,
                    first,
                    max_distance,
                },
            chunk,
            queries,
            buckets,
            survivors,
            matches,
        } = self;
        let heads: &[[u32; 2]] = &table.heads;
        let (sketches, indexes): (&[u16], &[u32]) = (&table.sketches, &table.indexes);
        let mut masks = [0; MASKS + 1];
        for (at, block) in chunk.chunks(IN_FLIGHT).enumerate() {
            // Each pass asks for what the next one needs.
            for &fingerprint in block {
                prefetch(heads, table.key.of(fingerprint) as usize);
            }
            buckets.clear();
            for &fingerprint in block {
                let key = table.key.of(fingerprint) as usize;
                let ([start, counts], [end, _]) = (heads[key], heads[key + 1]);
                prefetch_far(sketches, start as usize);
                for line in (start + LANES as u32..end).step_by(LANES) {
                    prefetch_far(sketches, line as usize);
                }
                // Buckets do not begin at lines.
                prefetch_far(sketches, end as usize);
                buckets.push(Bucket { start, end, counts });
            }
            let mut passed = 0;
            for (query, (bucket, &fingerprint)) in buckets.iter().zip(block).enumerate() {
                let sketch = table.sketch.of(fingerprint) as u16;
                let query = (IN_FLIGHT * at + query) as u32;
                let (near, nearest) = match bucket.counts & 0xffff {
                    CROWDED => (u32::MAX, u32::MAX),
                    near => (near, bucket.counts >> 16),
                };
                let mut from = bucket.start;
                while from < bucket.end {
                    let entries = (bucket.end - from).min((MASKS * LANES) as u32);
                    let groups = (entries as usize).div_ceil(LANES);
                    let limit = Limit {
                        bits: table.limit,
                        near: near.saturating_sub(from - bucket.start),
                        nearest: nearest.saturating_sub(from - bucket.start),
                    };
                    let lanes = &sketches[from as usize..][..groups * LANES];
                    // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                    unsafe { C::sketches(lanes, sketch, limit, &mut masks[..groups]) };
                    // The last group reaches beyond the bucket.
                    masks[groups - 1] &= u32::MAX >> ((groups * LANES) as u32 - entries);
                    // Two groups a step.
                    masks[groups] = 0;
                    for pair in 0..groups.div_ceil(2) {
                        let mut lanes =
                            u64::from(masks[2 * pair + 1]) << 32 | u64::from(masks[2 * pair]);
                        let first = from + (2 * LANES * pair) as u32;
                        if survivors.len() < passed + 2 * LANES {
                            survivors.resize(2 * (passed + 2 * LANES), Survivor::default());
                        }
                        let count = lanes.count_ones() as usize;
                        // Seldom more than two pass: to write that many always is faster than to ask.
                        for place in &mut survivors[passed..passed + 2] {
                            *place = Survivor {
                                query,
                                entry: first.wrapping_add(lanes.trailing_zeros()),
                            };
                            lanes &= lanes.wrapping_sub(1);
                        }
                        if count > 2 {
                            for place in &mut survivors[passed + 2..passed + count] {
                                *place = Survivor {
                                    query,
                                    entry: first + lanes.trailing_zeros(),
                                };
                                lanes &= lanes - 1;
                            }
                        }
                        passed += count;
                    }
                    from += entries;
                }
            }
            let survivors = &mut survivors[..passed];
            for survivor in survivors.iter() {
                prefetch(indexes, survivor.entry as usize);
            }
            for survivor in survivors.iter_mut() {
                survivor.entry = indexes[survivor.entry as usize];
                prefetch(values, survivor.entry as usize);
            }
            for &Survivor { query, entry } in survivors.iter() {
                let difference = values[entry as usize] ^ chunk[query as usize];
                let distance = difference.count_ones();
                if distance <= max_distance {
                    matches.push(Match {
                        query: queries.map_or(query, |queries| queries[query as usize]),
                        entry: (first + entry as usize) as u32,
                        distance,
                    });
                }
            }
        }
    }
}

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
