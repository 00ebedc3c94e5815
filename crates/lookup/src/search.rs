//! Finds the fingerprints of an index within k bits of a query: the kernel of this crate.
//!
//! Two fingerprints within k bits differ in at most r = ⌊k/2⌋ bits of the leading half, or of the trailing half. So a
//! search visits every bucket of the table `straight` whose number is within r bits of the query's leading bits, and
//! likewise in the table `rotated`; it compares all 64 bits of every value there. (Manku, Jain and Das Sarma,
//! section 3.1, but a half may differ in r bits, where the blocks of the paper agree.)
//!
//! A search mostly waits for memory: for a block's directory entry, its counts, and its remainders. So it takes a chunk
//! of blocks, of one query or of many, through three phases; each phase prefetches what the next one reads:
//!
//! ```text
//! push      query XOR mask -> block number    prefetch the directory entry
//! phase 1   directory entry -> byte range     prefetch the header and the counts
//! phase 2   counts -> buckets with values     prefetch the remainders
//! phase 3   remainder XOR query -> distance   fingerprints within k
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hamming::prefetch::prefetch_l1;

use crate::MAX_DISTANCE;
use crate::error::{LookupError, Result};
use crate::paged::is_in_one_page;
use crate::segment::{ROTATION, SIGN, Segment};
use crate::table::{BLOCK_BITS, BLOCK_BUCKETS, Block, HEADER, remainder};

/// Blocks in a chunk. More would evict each other's prefetched cache lines.
const CHUNK: usize = 256;

/// Bytes of a cache line.
const LINE: usize = 64;

/// A read of a byte that takes longer than this went to the disk.
const DISK: Duration = Duration::from_micros(30);

/// A fingerprint that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Number of the query in the slice that was searched for.
    pub query: u32,
    /// The distance to the query, in bits.
    pub distance: u32,
    pub fingerprint: u64,
    /// Number of the segment that has the fingerprint, for [`Index::document`](crate::Index::document).
    pub segment: u32,
    /// Its rows in that segment: one for each document.
    pub rows: Range<u32>,
}

/// All masks of `width` bits with at most [`MAX_RADIUS`] ones, those with fewer ones first.
#[derive(Debug)]
struct Masks {
    masks: Vec<u32>,
    /// For each r, how many masks have at most r bits.
    within: [usize; MAX_RADIUS as usize + 1],
}

/// The largest r: the most bits in which a half may differ.
const MAX_RADIUS: u32 = MAX_DISTANCE / 2;

impl Masks {
    fn new(width: u32) -> Self {
        let mut masks: Vec<u32> = vec![0];
        let mut within = [1; MAX_RADIUS as usize + 1];
        let mut last = 0..1;
        for bits in &mut within[1..] {
            let mut next = Vec::new();
            for &mask in &masks[last.clone()] {
                // Add only higher bits, so that each mask is made once.
                let from = 32 - mask.leading_zeros();
                next.extend((from..width).map(|bit| mask | 1 << bit));
            }
            last = masks.len()..masks.len() + next.len();
            masks.append(&mut next);
            *bits = masks.len();
        }
        Self { masks, within }
    }

    /// The masks with at most `radius` ones.
    #[inline(always)]
    fn within(&self, radius: u32) -> &[u32] {
        &self.masks[..self.within[radius as usize]]
    }
}

/// A block to be searched for a query.
#[derive(Debug, Clone, Copy)]
struct Probe {
    /// The stored query (see [`SIGN`]), rotated as the table is.
    value: u64,
    query: u32,
    segment: u32,
    table: u8,
    /// Bits of the bucket's number within the block that may differ: r less those in which the block's number differs.
    radius: u8,
    /// Whether the block lies in one page, which was checked before.
    is_checked: bool,
    block: u32,
    /// Where the block lies in the file.
    start: usize,
    end: usize,
}

/// A bucket that is not empty.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    probe: u32,
    /// The number of its first value in the block.
    first: u32,
    values: u32,
    /// The bit of the file at which the remainder of its first value begins.
    bit: usize,
    /// The query XOR the bucket's leading bits: XOR with a remainder gives all bits in which that value differs.
    wanted: u64,
}

/// Searches segments; has the buffers of one thread.
#[derive(Debug)]
pub struct Searcher {
    segments: Arc<[Arc<Segment>]>,
    /// For each segment, the masks for block numbers. Segments with equally long numbers share them.
    block_masks: Vec<Arc<Masks>>,
    chunk: Chunk,
}

/// The blocks that are searched together.
#[derive(Debug)]
struct Chunk {
    k: u32,
    /// Whether the processor has instructions that count bits; other architectures always have them.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    counts_bits: bool,
    bucket_masks: Masks,
    probes: Vec<Probe>,
    buckets: Vec<Bucket>,
}

impl Searcher {
    pub(crate) fn new(segments: Arc<[Arc<Segment>]>) -> Self {
        let mut widths: Vec<(u32, Arc<Masks>)> = Vec::new();
        let mut block_masks = Vec::with_capacity(segments.len());
        for segment in segments.iter() {
            let width = segment.facts.bucket_bits - BLOCK_BITS;
            let known = widths.iter().find(|(known, _)| *known == width);
            let masks = match known {
                Some((_, masks)) => Arc::clone(masks),
                None => {
                    let masks = Arc::new(Masks::new(width));
                    widths.push((width, Arc::clone(&masks)));
                    masks
                }
            };
            block_masks.push(masks);
        }
        Self {
            segments,
            block_masks,
            chunk: Chunk {
                k: 0,
                counts_bits: counts_bits(),
                bucket_masks: Masks::new(BLOCK_BITS),
                probes: Vec::with_capacity(2 * CHUNK),
                buckets: Vec::with_capacity(2 * CHUNK),
            },
        }
    }

    /// Appends to `found` every fingerprint within `k` bits of each query, in no order, once for each segment that has
    /// it. One call with many queries is faster than many calls.
    ///
    /// # Errors
    /// [`LookupError::Distance`] for a `k` above [`MAX_DISTANCE`]; [`LookupError::Damaged`] when a page that the search
    /// reads is damaged.
    pub fn search(&mut self, queries: &[u64], k: u32, found: &mut Vec<Found>) -> Result<()> {
        if k > MAX_DISTANCE {
            return Err(LookupError::Distance { k });
        }
        let (segments, chunk) = (&self.segments, &mut self.chunk);
        chunk.probes.clear();
        chunk.k = k;
        for (query, fingerprint) in queries.iter().enumerate() {
            for (segment, masks) in self.block_masks.iter().enumerate() {
                for table in 0..2 {
                    let searched = &segments[segment].tables[table];
                    let value = (fingerprint ^ SIGN).rotate_left(searched.rotation);
                    let probe = Probe {
                        value,
                        query: query as u32,
                        segment: segment as u32,
                        table: table as u8,
                        radius: 0,
                        is_checked: false,
                        block: searched.place(value).0,
                        start: 0,
                        end: 0,
                    };
                    chunk.push(segments, probe, masks.within(k / 2), found)?;
                }
            }
            if chunk.probes.len() >= CHUNK / 2 {
                chunk.search(segments, found)?;
            }
        }
        chunk.search(segments, found)
    }
}

/// Whether the processor has the instructions of `search_with_bit_counts`.
fn counts_bits() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("popcnt")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

impl Chunk {
    /// Adds a probe for each mask, with the block number XOR the mask. Searches the chunk whenever it is full.
    #[inline(always)]
    fn push(
        &mut self,
        segments: &[Arc<Segment>],
        probe: Probe,
        masks: &[u32],
        found: &mut Vec<Found>,
    ) -> Result<()> {
        let table = &segments[probe.segment as usize].tables[probe.table as usize];
        for &mask in masks {
            let block = probe.block ^ mask;
            table.prefetch(block);
            let radius = (self.k / 2 - mask.count_ones()) as u8;
            self.probes.push(Probe {
                block,
                radius,
                ..probe
            });
            if self.probes.len() == CHUNK {
                self.search(segments, found)?;
            }
        }
        Ok(())
    }

    /// Searches the blocks of the chunk, and empties it.
    fn search(&mut self, segments: &[Arc<Segment>], found: &mut Vec<Found>) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if self.counts_bits {
            // SAFETY: the processor has the instructions.
            return unsafe { self.search_with_bit_counts(segments, found) };
        }
        self.search_with_any(segments, found)
    }

    /// [`Self::search_with_any`], compiled with POPCNT and BMI.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn search_with_bit_counts(
        &mut self,
        segments: &[Arc<Segment>],
        found: &mut Vec<Found>,
    ) -> Result<()> {
        self.search_with_any(segments, found)
    }

    #[inline(always)]
    fn search_with_any(&mut self, segments: &[Arc<Segment>], found: &mut Vec<Found>) -> Result<()> {
        let k = self.k;
        // Phase 1: find the blocks.
        let mut were_read = true;
        for probe in &mut self.probes {
            let segment = &segments[probe.segment as usize];
            let range = segment.tables[probe.table as usize].block_range(probe.block);
            (probe.start, probe.end) = (range.start, range.end);
            let was_read = segment.file.was_read(range.start);
            // An empty block has the place of the next one.
            were_read &= range.is_empty() || was_read;
            probe.is_checked = was_read && is_in_one_page(&range);
            let file = segment.file.raw();
            prefetch_l1(file, range.start);
            // Prefetch a second line if the counts up to the query's bucket reach into it. A bucket takes about 3 bits:
            // a 1 for each value, mostly fewer than two, and a 0.
            let (_, bucket) = segment.tables[probe.table as usize].place(probe.value);
            let reach = range.start % LINE + HEADER + 3 * bucket as usize / 8;
            if reach >= LINE || probe.radius > 0 {
                prefetch_l1(file, range.start + LINE);
            }
        }
        self.request_from_disk(segments, were_read);
        // Phase 2: find the buckets in the counts.
        self.buckets.clear();
        for (number, probe) in self.probes.iter().enumerate() {
            if probe.start == probe.end {
                continue;
            }
            let segment = &segments[probe.segment as usize];
            let table = &segment.tables[probe.table as usize];
            let damaged = || segment.damaged(probe.table.into(), probe.block);
            let file = segment.file.raw();
            // Check the header first: it says how long the counts are.
            if !probe.is_checked {
                segment.file.check(&(probe.start..probe.start + 8))?;
            }
            let bytes = file.get(probe.start..probe.end).ok_or_else(damaged)?;
            let block = Block::parse(bytes, table.bucket_bits).ok_or_else(damaged)?;
            if !probe.is_checked {
                let counts_end = probe.start + block.counts_end();
                segment.file.check(&(probe.start..counts_end))?;
            }
            let (_, own) = table.place(probe.value);
            for &mask in self.bucket_masks.within(probe.radius.into()) {
                let bucket = own ^ mask;
                let values = block.bucket(bucket).ok_or_else(damaged)?;
                if values.is_empty() {
                    continue;
                }
                let bit = 8 * probe.start + block.remainder_bit(values.start);
                prefetch_l1(file, bit / 8);
                self.buckets.push(Bucket {
                    probe: number as u32,
                    first: values.start,
                    values: values.end - values.start,
                    bit,
                    wanted: probe.value ^ table.bucket_value(probe.block, bucket),
                });
            }
        }
        // Phase 3: compare the values.
        for bucket in &self.buckets {
            let probe = &self.probes[bucket.probe as usize];
            let segment = &segments[probe.segment as usize];
            let width = 64 - segment.facts.bucket_bits;
            let end = bucket.bit + (bucket.values * width) as usize;
            if !probe.is_checked {
                segment.file.check(&(bucket.bit / 8..end.div_ceil(8)))?;
            }
            // A remainder is read as a whole word. After the last one the checksums follow, so the word is in the file.
            let file = segment.file.raw();
            for value in 0..bucket.values {
                let bit = bucket.bit + (value * width) as usize;
                let found_bits = remainder(file, bit, width)
                    .ok_or_else(|| segment.damaged(probe.table.into(), probe.block))?;
                let difference = found_bits ^ bucket.wanted;
                if difference.count_ones() <= k {
                    found.extend(found_value(
                        segment,
                        probe,
                        bucket.first + value,
                        difference,
                        k,
                    )?);
                }
            }
        }
        self.probes.clear();
        Ok(())
    }

    /// Requests all blocks from the disk at once, if some are not in memory; otherwise each would wait for the one
    /// before.
    #[inline(always)]
    fn request_from_disk(&self, segments: &[Arc<Segment>], were_read: bool) {
        let Some(first) = self.probes.iter().find(|probe| probe.start < probe.end) else {
            return;
        };
        if were_read {
            // The system may have evicted these pages since: time one access.
            let begin = Instant::now();
            std::hint::black_box(segments[first.segment as usize].file.raw()[first.start]);
            if begin.elapsed() < DISK {
                return;
            }
        }
        self.request(segments, were_read);
    }

    #[cold]
    #[inline(never)]
    fn request(&self, segments: &[Arc<Segment>], were_read: bool) {
        for probe in self.probes.iter().filter(|probe| probe.start < probe.end) {
            let file = &segments[probe.segment as usize].file;
            if !were_read && file.was_read(probe.start) && file.was_read(probe.end - 1) {
                continue;
            }
            file.request(probe.start..probe.end);
        }
    }
}

/// The fingerprint that differs from the query in the bits of `difference`; `None` if the table `straight` finds it,
/// too.
#[cold]
#[inline(never)]
fn found_value(
    segment: &Segment,
    probe: &Probe,
    value: u32,
    difference: u64,
    k: u32,
) -> Result<Option<Found>> {
    let table = &segment.tables[probe.table as usize];
    let damaged = || segment.damaged(probe.table.into(), probe.block);
    let difference = difference.rotate_right(table.rotation);
    let leading = difference >> (64 - segment.facts.bucket_bits);
    if probe.table == 1 && leading.count_ones() <= k / 2 {
        return Ok(None);
    }
    let stored = probe.value.rotate_right(table.rotation) ^ difference;
    let rows = match probe.table {
        0 => {
            let block = segment.block(0, probe.block)?.ok_or_else(damaged)?;
            block.rows(value).ok_or_else(damaged)?
        }
        _ => segment.rows_of(stored)?,
    };
    if rows.is_empty() {
        return Err(damaged());
    }
    Ok(Some(Found {
        query: probe.query,
        distance: difference.count_ones(),
        fingerprint: stored ^ SIGN,
        segment: probe.segment,
        rows,
    }))
}

// A bucket's number XOR a mask stays in its block, and both halves have 32 bits.
const _: () = assert!(BLOCK_BUCKETS.is_power_of_two() && ROTATION == 32);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rows::IdRef;
    use crate::segment::testing::segment_of;

    /// Fingerprints near a few centres, so that many are within k bits of each other, and some are equal.
    fn clustered() -> impl Strategy<Value = Vec<u64>> {
        let near = (0_u64..5, proptest::collection::vec(0_u32..64, 0..12));
        let value = prop_oneof![
            4 => near.prop_map(|(centre, flips)| {
                let centre = centre.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                flips.iter().fold(centre, |value, bit| value ^ (1 << bit))
            }),
            1 => any::<u64>(),
        ];
        proptest::collection::vec(value, 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_answer_equals_brute_force(
            segments in proptest::collection::vec(clustered(), 1..4),
            queries in clustered(),
            k in 0_u32..=MAX_DISTANCE,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let opened: Vec<_> = segments.iter().enumerate()
                .map(|(number, rows)| segment_of(directory.path(), &number.to_string(), rows))
                .collect();
            for segment in &opened {
                segment.verify().unwrap();
            }
            let mut searcher = Searcher::new(opened.clone().into());
            let mut all = Vec::new();
            searcher.search(&queries, k, &mut all).unwrap();
            // One by one without special instructions, and all at once with them.
            let mut single = Vec::new();
            searcher.chunk.counts_bits = false;
            for (number, query) in queries.iter().enumerate() {
                let mut found = Vec::new();
                searcher.search(&[*query], k, &mut found).unwrap();
                single.extend(found.into_iter().map(|found| Found { query: number as u32, ..found }));
            }
            let rows = |found: Vec<Found>| {
                let mut rows: Vec<(u32, u32, u64, u32, i64)> = found.iter().flat_map(|found| {
                    let segment = &opened[found.segment as usize];
                    found.rows.clone().map(|row| match segment.rows.row(row).unwrap().id {
                        IdRef::Number(id) => (found.query, found.segment, found.fingerprint, found.distance, id),
                        IdRef::Text(_) => unreachable!(),
                    }).collect::<Vec<_>>()
                }).collect();
                rows.sort_unstable();
                rows
            };
            let mut expected = Vec::new();
            for (query, own) in queries.iter().enumerate() {
                for (segment, others) in segments.iter().enumerate() {
                    for (row, other) in others.iter().enumerate() {
                        let distance = (own ^ other).count_ones();
                        if distance <= k {
                            expected.push((query as u32, segment as u32, *other, distance, row as i64));
                        }
                    }
                }
            }
            expected.sort_unstable();
            prop_assert_eq!(&rows(all), &expected);
            prop_assert_eq!(&rows(single), &expected);
        }
    }

    #[test]
    fn a_large_table_equals_brute_force() {
        // Enough for several partitions and blocks.
        let value = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number % 3) << 40;
        let rows: Vec<u64> = (0..3_000_000).map(value).collect();
        let directory = tempfile::tempdir().unwrap();
        let segment = segment_of(directory.path(), "large", &rows);
        segment.verify().unwrap();
        let mut searcher = Searcher::new(vec![segment].into());
        for k in [0, 3, 6, 8] {
            let queries: Vec<u64> = (0..40)
                .map(|number| {
                    value(number * 70_001) ^ ((1 << (number % (u64::from(k) + 1))) - 1) << 29
                })
                .collect();
            let mut found = Vec::new();
            searcher.search(&queries, k, &mut found).unwrap();
            let mut found: Vec<_> = found
                .iter()
                .map(|found| (found.query, found.fingerprint))
                .collect();
            found.sort_unstable();
            let mut expected = Vec::new();
            for (query, own) in queries.iter().enumerate() {
                let near = rows.iter().filter(|row| (*row ^ own).count_ones() <= k);
                expected.extend(near.map(|row| (query as u32, *row)));
            }
            expected.sort_unstable();
            expected.dedup();
            assert!(expected.len() >= 40, "{k}");
            assert_eq!(found, expected, "{k}");
        }
    }

    #[test]
    fn masks_come_once_and_in_order() {
        for width in [0, 1, 5, 12] {
            let all_masks = Masks::new(width);
            for radius in 0..=MAX_RADIUS {
                let mut masks = all_masks.within(radius).to_vec();
                assert!(masks.is_sorted_by_key(|mask| mask.count_ones()));
                masks.sort_unstable();
                let all = (0..1_u32 << width).filter(|mask| mask.count_ones() <= radius);
                assert_eq!(masks, all.collect::<Vec<_>>(), "{width} bits, {radius}");
            }
        }
    }
}
