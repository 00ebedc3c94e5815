//! Sorts pairs by the document that is decided later: in memory and, if the pairs do not fit, on
//! the disk.
//!
//! Documents are cut into buckets of 65,536 by their number. A pair goes to the bucket of its later document, where it takes 8
//! bytes, or 16 with a similarity. At the end, the buckets are sorted by counting, one after the other, each in as few pieces
//! as the memory allows.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SpillFile, SpillWriter};
use datafusion::prelude::SessionContext;
use storage::StorageError;

use super::greedy::{Greedy, OrderedPair};
use crate::error::{EngineError, Result};
use streams::free_bytes;

/// Bits of a document's number that tell it apart from the others of its bucket.
const BUCKET_BITS: u32 = 16;
const BUCKET_DOCUMENTS: usize = 1 << BUCKET_BITS;
/// The most bytes of a block of pairs.
const MOST_BLOCK_BYTES: usize = 64 << 10;
/// The least bytes of a block of pairs.
const LEAST_BLOCK_BYTES: usize = 512;
/// One block for each bucket takes at most these bytes in all, unless blocks would then be smaller
/// than [`LEAST_BLOCK_BYTES`].
const FIRST_BLOCKS_BYTES: usize = 64 << 20;
/// The least number of pairs that are sorted at once.
const LEAST_SORTED: usize = 1 << 12;

/// Collects pairs in any order, and hands them over by their later document.
pub struct PairSorter {
    buckets: Vec<Bucket>,
    similarities: bool,
    block: usize,
    /// The most bytes of all blocks; if there would be more, the sorter writes them to the disk.
    limit: usize,
    blocks: MemoryReservation,
    /// Memory of the pairs that are sorted at once.
    sorting: MemoryReservation,
    disk: Arc<DiskManager>,
    spill: Option<Spill>,
}

/// The pairs whose later document is in one range.
#[derive(Debug, Default)]
struct Bucket {
    /// Pairs in memory; all blocks but the last are full.
    blocks: Vec<Block>,
    /// Pairs on the disk.
    segments: Vec<Segment>,
}

/// Pairs, packed by [`pack`], and their similarities: NaN where one is not known, empty if no pair
/// has one.
#[derive(Debug, Default)]
struct Block {
    pairs: Vec<u64>,
    similarities: Vec<f64>,
}

/// Pairs of one bucket in the spill file: first all pairs, then their similarities.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    pairs: usize,
}

/// The file with the pairs that the memory did not hold.
struct Spill {
    /// Deletes the file when it is dropped.
    _file: Arc<dyn SpillFile>,
    path: String,
    writer: BufWriter<Box<dyn SpillWriter>>,
    reader: File,
    bytes: u64,
}

impl Spill {
    fn create(disk: &Arc<DiskManager>) -> Result<Self, DataFusionError> {
        let file = disk.create_tmp_file("pairs")?;
        let path = file
            .path()
            .ok_or_else(|| DataFusionError::Internal("the spill file is not on the disk".into()))?;
        Ok(Self {
            reader: File::open(path)?,
            path: path.display().to_string(),
            writer: BufWriter::with_capacity(1 << 20, file.open_writer()?),
            _file: file,
            bytes: 0,
        })
    }
}

/// Packs a pair into 64 bits, without the number of its bucket.
fn pack(pair: &OrderedPair) -> u64 {
    let in_bucket = pair.later % BUCKET_DOCUMENTS as u32;
    u64::from(in_bucket) << 48 | u64::from(pair.distance) << 32 | u64::from(pair.earlier)
}

/// The later document of a packed pair, among those of its bucket.
fn later_in_bucket(packed: u64) -> usize {
    (packed >> 48) as usize
}

fn unpack(bucket: usize, packed: u64, similarity: f64) -> OrderedPair {
    OrderedPair {
        later: (bucket << BUCKET_BITS | later_in_bucket(packed)) as u32,
        earlier: packed as u32,
        distance: (packed >> 32) as u8,
        similarity: (!similarity.is_nan()).then_some(similarity),
    }
}

impl PairSorter {
    /// A sorter of pairs of `count` documents, within the memory that the session has left. `similarities` says whether pairs
    /// have them.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when there is not even room for one block of each bucket.
    pub fn new(context: &SessionContext, count: usize, similarities: bool) -> Result<Self> {
        let runtime = context.runtime_env();
        let pool = &runtime.memory_pool;
        let buckets = count.div_ceil(BUCKET_DOCUMENTS).max(1);
        // The other half is for the stage that makes the pairs, and for sorting.
        let limit = free_bytes(pool) / 2;
        let first_blocks = FIRST_BLOCKS_BYTES.min(limit);
        let block_bytes = (first_blocks / buckets).clamp(LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES);
        if block_bytes * buckets > limit {
            return Err(out_of_memory(2 * block_bytes * buckets));
        }
        Ok(Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            similarities,
            block: block_bytes / pair_bytes(similarities),
            limit,
            blocks: MemoryConsumer::new("pairs").register(pool),
            sorting: MemoryConsumer::new("sorting pairs").register(pool),
            disk: Arc::clone(&runtime.disk_manager),
            spill: None,
        })
    }

    pub fn add(&mut self, pair: &OrderedPair) -> Result<()> {
        let number = (pair.later >> BUCKET_BITS) as usize;
        let has_room = |block: &Block| block.pairs.len() < block.pairs.capacity();
        if !self.buckets[number].blocks.last().is_some_and(has_room) {
            self.reserve_block()?;
            self.buckets[number].blocks.push(Block {
                pairs: Vec::with_capacity(self.block),
                similarities: Vec::with_capacity(if self.similarities { self.block } else { 0 }),
            });
        }
        if let Some(block) = self.buckets[number].blocks.last_mut() {
            block.pairs.push(pack(pair));
            if self.similarities {
                block.similarities.push(pair.similarity.unwrap_or(f64::NAN));
            }
        }
        Ok(())
    }

    /// Reserves memory for one block; writes the other blocks to the disk if there is too little.
    fn reserve_block(&mut self) -> Result<()> {
        let bytes = self.block * pair_bytes(self.similarities);
        let fits = |blocks: &MemoryReservation| {
            blocks.size() + bytes <= self.limit && blocks.try_grow(bytes).is_ok()
        };
        if fits(&self.blocks) {
            return Ok(());
        }
        self.spill().map_err(EngineError::query("sorting pairs"))?;
        let room = self.blocks.try_grow(bytes);
        room.map_err(|_| out_of_memory(bytes))
    }

    /// Writes the pairs in memory to the disk.
    fn spill(&mut self) -> Result<(), DataFusionError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::create(&self.disk)?),
        };
        for bucket in &mut self.buckets {
            let blocks = std::mem::take(&mut bucket.blocks);
            let pairs = blocks.iter().map(|block| block.pairs.len()).sum();
            if pairs == 0 {
                continue;
            }
            bucket.segments.push(Segment {
                offset: spill.bytes,
                pairs,
            });
            for pair in blocks.iter().flat_map(|block| &block.pairs) {
                spill.writer.write_all(&pair.to_le_bytes())?;
            }
            for similarity in blocks.iter().flat_map(|block| &block.similarities) {
                spill.writer.write_all(&similarity.to_le_bytes())?;
            }
            spill.bytes += (pair_bytes(self.similarities) * pairs) as u64;
        }
        spill.writer.flush()?;
        self.blocks.free();
        Ok(())
    }

    /// Adds all pairs to `greedy`, in ascending order of their later document.
    pub fn decide(mut self, greedy: &mut Greedy) -> Result<()> {
        let largest = self.buckets.iter().map(Bucket::pairs).max().unwrap_or(0);
        let most = self.reserve_sorting(largest)?;
        let mut sorted = Sorted {
            most,
            pairs: Vec::with_capacity(most),
            similarities: Vec::with_capacity(if self.similarities { most } else { 0 }),
        };
        for number in 0..self.buckets.len() {
            let bucket = std::mem::take(&mut self.buckets[number]);
            let reading = Reading {
                bucket: &bucket,
                number,
                spill: self.spill.as_ref(),
                similarities: self.similarities,
            };
            let decided = reading.decide(&mut sorted, greedy);
            decided.map_err(StorageError::io(
                self.spill
                    .as_ref()
                    .map_or(String::new(), |spill| spill.path.clone()),
            ))?;
        }
        Ok(())
    }

    /// Reserves memory to sort `most` pairs at once, or as many as there is memory for; returns their number.
    fn reserve_sorting(&self, most: usize) -> Result<usize> {
        let mut pairs = most.max(LEAST_SORTED);
        loop {
            let bytes = pairs * pair_bytes(self.similarities);
            match self.sorting.try_grow(bytes) {
                Ok(()) => return Ok(pairs),
                Err(_) if pairs == LEAST_SORTED => return Err(out_of_memory(bytes)),
                Err(_) => pairs = (pairs / 2).max(LEAST_SORTED),
            }
        }
    }
}

/// Bytes of a pair, in memory and on the disk.
fn pair_bytes(similarities: bool) -> usize {
    if similarities { 16 } else { 8 }
}

fn out_of_memory(bytes: usize) -> EngineError {
    EngineError::OutOfMemory {
        what: format!("sorting the pairs of documents takes {bytes} bytes more"),
    }
}

/// Pairs of a range of a bucket, sorted by their later document.
#[derive(Debug)]
struct Sorted {
    /// The most pairs that are sorted at once.
    most: usize,
    pairs: Vec<u64>,
    /// Empty if no pair has one.
    similarities: Vec<f64>,
}

impl Bucket {
    /// Pairs in memory and on the disk.
    fn pairs(&self) -> usize {
        let in_memory: usize = self.blocks.iter().map(|block| block.pairs.len()).sum();
        let on_disk: usize = self.segments.iter().map(|segment| segment.pairs).sum();
        in_memory + on_disk
    }
}

/// A bucket that is read.
struct Reading<'a> {
    bucket: &'a Bucket,
    number: usize,
    spill: Option<&'a Spill>,
    similarities: bool,
}

impl Reading<'_> {
    /// Sorts the pairs of the bucket by counting, in pieces that fit `sorted`, and adds them to `greedy`.
    fn decide(&self, sorted: &mut Sorted, greedy: &mut Greedy) -> std::io::Result<()> {
        let mut counts = vec![0_usize; BUCKET_DOCUMENTS];
        self.each(|pair, _| counts[later_in_bucket(pair)] += 1)?;
        let mut first = 0;
        while first < BUCKET_DOCUMENTS {
            // The documents from `first` to `end` have as many pairs as there is room for.
            let mut end = first;
            let mut room = 0;
            while end < BUCKET_DOCUMENTS && room + counts[end] <= sorted.most {
                room += counts[end];
                end += 1;
            }
            if end == first {
                // The pairs of one document need no order.
                self.each(|pair, similarity| {
                    if later_in_bucket(pair) == first {
                        greedy.add(unpack(self.number, pair, similarity));
                    }
                })?;
                first += 1;
                continue;
            }
            let mut next = 0;
            for count in &mut counts[first..end] {
                next += std::mem::replace(count, next);
            }
            sorted.pairs.clear();
            sorted.pairs.resize(room, 0);
            sorted.similarities.clear();
            sorted
                .similarities
                .resize(if self.similarities { room } else { 0 }, f64::NAN);
            self.each(|pair, similarity| {
                let later = later_in_bucket(pair);
                if (first..end).contains(&later) {
                    let place = &mut counts[later];
                    sorted.pairs[*place] = pair;
                    if let Some(slot) = sorted.similarities.get_mut(*place) {
                        *slot = similarity;
                    }
                    *place += 1;
                }
            })?;
            for (at, &pair) in sorted.pairs.iter().enumerate() {
                let similarity = similarity(&sorted.similarities, at);
                greedy.add(unpack(self.number, pair, similarity));
            }
            first = end;
        }
        Ok(())
    }

    /// Calls `take` with each pair and its similarity, those on the disk first.
    fn each(&self, mut take: impl FnMut(u64, f64)) -> std::io::Result<()> {
        if let Some(spill) = self.spill {
            let values = |offset: u64, count: usize| {
                let mut bytes = vec![0; 8 * count];
                spill
                    .reader
                    .read_exact_at(&mut bytes, offset)
                    .map(|()| bytes)
            };
            for segment in &self.bucket.segments {
                let similarities = segment.offset + 8 * segment.pairs as u64;
                for from in (0..segment.pairs).step_by(SEGMENT_PIECE) {
                    let count = SEGMENT_PIECE.min(segment.pairs - from);
                    let pairs = values(segment.offset + 8 * from as u64, count)?;
                    let pairs = pairs.as_chunks::<8>().0.iter();
                    let pairs = pairs.map(|bytes| u64::from_le_bytes(*bytes));
                    if !self.similarities {
                        pairs.for_each(|pair| take(pair, f64::NAN));
                        continue;
                    }
                    let known = values(similarities + 8 * from as u64, count)?;
                    let known = known.as_chunks::<8>().0.iter();
                    let known = known.map(|bytes| f64::from_le_bytes(*bytes));
                    pairs.zip(known).for_each(|(pair, known)| take(pair, known));
                }
            }
        }
        for block in &self.bucket.blocks {
            for (at, &pair) in block.pairs.iter().enumerate() {
                take(pair, similarity(&block.similarities, at));
            }
        }
        Ok(())
    }
}

/// A similarity; NaN if no pair has one.
fn similarity(similarities: &[f64], at: usize) -> f64 {
    similarities.get(at).copied().unwrap_or(f64::NAN)
}

/// Pairs of a segment that are read at once.
const SEGMENT_PIECE: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decide::greedy::Decision;
    use crate::session::test_session;

    /// Decides about `count` documents with `memory` bytes.
    fn decide(
        count: u32,
        pairs: &[OrderedPair],
        similarities: bool,
        memory: usize,
    ) -> (Vec<Decision>, bool) {
        let scratch = tempfile::tempdir().unwrap();
        let context = test_session(scratch.path(), memory);
        let mut sorter = PairSorter::new(&context, count as usize, similarities).unwrap();
        for pair in pairs {
            sorter.add(pair).unwrap();
        }
        let has_spilled = sorter.spill.is_some();
        let mut greedy = Greedy::new(count as usize, similarities);
        sorter.decide(&mut greedy).unwrap();
        let decisions = (0..count).map(|document| greedy.decision(document));
        (decisions.collect(), has_spilled)
    }

    /// Decides with all pairs in memory, sorted by the standard library.
    fn expected(count: u32, pairs: &[OrderedPair], similarities: bool) -> Vec<Decision> {
        let mut pairs = pairs.to_vec();
        pairs.sort_by_key(|pair| pair.later);
        let mut greedy = Greedy::new(count as usize, similarities);
        pairs.into_iter().for_each(|pair| greedy.add(pair));
        (0..count)
            .map(|document| greedy.decision(document))
            .collect()
    }

    /// The pair of two of `count` documents, by three numbers.
    fn pair(count: u32, (a, b, c): (u32, u32, u32), similarities: bool) -> OrderedPair {
        let later = 1 + a % (count - 1);
        let similarity = f64::from(c % 10) / 10.0;
        OrderedPair {
            later,
            earlier: b % later,
            distance: (c % 17) as u8,
            similarity: Some(similarity).filter(|value| similarities && *value > 0.0),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pairs_are_handed_over_by_their_later_document(
            count in 2_u32..300_000,
            numbers in proptest::collection::vec(any::<(u32, u32, u32)>(), 0..2_000),
            similarities: bool,
        ) {
            let pairs: Vec<_> =
                numbers.into_iter().map(|numbers| pair(count, numbers, similarities)).collect();
            let (decisions, _) = decide(count, &pairs, similarities, 1 << 30);
            prop_assert_eq!(decisions, expected(count, &pairs, similarities));
        }
    }

    #[test]
    fn pairs_that_do_not_fit_are_sorted_on_the_disk() {
        for similarities in [false, true] {
            let count = 200_000;
            let mut state = 1_u64;
            let mut number = || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 32) as u32
            };
            let mut pairs: Vec<_> = (0..1_500_000)
                .map(|_| pair(count, (number(), number(), number()), similarities))
                .collect();
            // One document has more pairs than are sorted at once in this memory.
            let hub = |earlier| OrderedPair {
                earlier,
                ..pair(count, (count - 2, 0, 5), similarities)
            };
            pairs.extend((0..4_000_000).map(|at| hub(at % (count - 2))));
            let (decisions, has_spilled) = decide(count, &pairs, similarities, 48 << 20);
            assert!(has_spilled);
            assert_eq!(decisions, expected(count, &pairs, similarities));
        }
    }
}
