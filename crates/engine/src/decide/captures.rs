//! Finds the earlier captures of the batch's documents: the rows of the archive with their ids.
//!
//! Reads the ids of the archive, which a probe does not. A document that forms no pair with its capture is an update of it.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use archive::{DecodedStep, ReadRows, RowColumns, RowPages, Rulings, SnapshotFile};
use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::Int64Type;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::{StreamExt as _, TryStreamExt as _};
use simhash::SketchBits;
use tokio::sync::OnceCell;
use twox_hash::XxHash3_64;

use super::id_order::IdOrder;
use crate::batch::{Batch, FingerprintsByRow, IdColumn};
use crate::error::{EngineError, Result};
use crate::memory::reserve;
use crate::probe::{CompareSketches, Compared};
use crate::work_items::days_since_epoch;
use documents::DocumentId;
use streams::{blocking, ended};

/// Rows whose ids are read at once.
const ROWS_AT_ONCE: u64 = 1 << 16;
/// Documents of the batch that share an id, if they are more, are updates of nothing: nobody can tell which of them is.
pub(super) const MAX_SHARED: usize = 64;
/// Bytes of memory for each document with a capture.
const CAPTURE_BYTES: usize = 64;

/// Which of two captures of a document is kept, if they form no pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnUpdate {
    #[default]
    Both,
    /// The newer one, from the commit of its day on.
    KeepNew,
    KeepOld,
}

impl fmt::Display for OnUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Both => "both",
            Self::KeepNew => "keep-new",
            Self::KeepOld => "keep-old",
        })
    }
}

/// Where captures are looked for, and what forms a pair.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) files: Vec<SnapshotFile>,
    /// Says which captures are superseded.
    pub(crate) rulings: Arc<Rulings>,
    /// Fingerprints that differ in at most this many bits are a pair,
    pub(crate) max_distance: u32,
    /// if the sketches, of this size, do not say otherwise.
    pub(crate) sketches: Option<(CompareSketches, SketchBits)>,
    /// Which capture of a document stands for the others.
    pub(crate) on_update: OnUpdate,
}

/// The capture that stands for all of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capture {
    /// Whether the archive keeps it, and no newer one counts instead.
    pub(super) is_kept: bool,
    /// Its day, in days since 1970.
    pub(super) day: Option<i32>,
    /// Orders the batches of one day: the version of the table that each was compared with.
    base_version: Option<u64>,
    /// Bits in which its fingerprint and the document's differ.
    pub(super) distance: u32,
    /// Whether the document forms a pair with it.
    pub(super) is_pair: bool,
}

/// A capture of the document at a row of the batch's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowCapture {
    pub(super) row: u32,
    /// Its day, in days since 1970.
    pub(super) day: Option<i32>,
    pub(super) fingerprint: u64,
}

/// The captures of the batch's documents.
#[derive(Debug, Default)]
pub(super) struct Captures {
    of_row: HashMap<u32, Capture>,
    /// The kept ones, if updates supersede them.
    kept: Vec<RowCapture>,
    /// The kept captures of the documents that were asked for, with their fingerprints.
    pub(super) asked: Vec<(DocumentId, Option<i32>, u64)>,
    memory: Option<MemoryReservation>,
}

impl Captures {
    /// The capture that stands for all of the document at `row`.
    pub(super) fn of_row(&self, row: u32) -> Option<Capture> {
        self.of_row.get(&row).copied()
    }

    /// The kept captures of the document at `row`.
    pub(super) fn kept_of(&self, row: u32) -> impl Iterator<Item = RowCapture> + '_ {
        let start = self.kept.partition_point(|capture| capture.row < row);
        let kept = self.kept[start..].iter();
        kept.take_while(move |capture| capture.row == row).copied()
    }

    /// The rows of updates of kept captures.
    pub(super) fn updates(&self) -> impl Iterator<Item = u32> + '_ {
        let updates = self.of_row.iter();
        let updates = updates.filter(|(_, capture)| capture.is_kept && !capture.is_pair);
        updates.map(|(row, _)| *row)
    }

    fn reserve(&self, captures: usize) -> Result<()> {
        let Some(memory) = &self.memory else {
            return Ok(());
        };
        reserve(memory, CAPTURE_BYTES * captures, || {
            "the captures of the documents".into()
        })
    }

    fn add(&mut self, found: Found, on_update: OnUpdate) -> Result<()> {
        self.reserve(found.asked.len())?;
        for (row, capture, fingerprint) in found.of_rows {
            if capture.is_kept && on_update == OnUpdate::KeepNew {
                self.reserve(1)?;
                self.kept.push(RowCapture {
                    row,
                    day: capture.day,
                    fingerprint,
                });
            }
            if !self.of_row.contains_key(&row) {
                self.reserve(1)?;
            }
            let stands = self.of_row.entry(row).or_insert(capture);
            let order = |capture: &Capture| (capture.day, capture.base_version);
            let kept = capture.is_kept.cmp(&stands.is_kept);
            let newer = order(&capture).cmp(&order(stands));
            let counts = match on_update {
                OnUpdate::KeepOld => kept.then(newer.reverse()),
                OnUpdate::Both | OnUpdate::KeepNew => kept.then(newer),
            };
            match counts {
                std::cmp::Ordering::Greater => *stands = capture,
                // A batch may have an id twice.
                std::cmp::Ordering::Equal => {
                    stands.is_pair |= capture.is_pair;
                    stands.distance = stands.distance.min(capture.distance);
                }
                std::cmp::Ordering::Less => {}
            }
        }
        self.asked.extend(found.asked);
        Ok(())
    }
}

/// What one row group has.
#[derive(Debug, Default)]
struct Found {
    of_rows: Vec<(u32, Capture, u64)>,
    asked: Vec<(DocumentId, Option<i32>, u64)>,
}

impl History {
    /// The captures of the documents of `batch` if `of_batch`, and those with the ids `asked`.
    pub(super) async fn captures(
        self,
        (batch, by_id): (Arc<Batch>, Arc<IdOrder>),
        of_batch: bool,
        mut asked: Vec<DocumentId>,
        (pool, threads): (&Arc<dyn MemoryPool>, usize),
    ) -> Result<Captures> {
        let memory = MemoryConsumer::new("captures").register(pool);
        let mut captures = Captures::default();
        if !of_batch && asked.is_empty() {
            return Ok(captures);
        }
        let bytes = if of_batch {
            IdTable::bytes_for(by_id.rows.len())
        } else {
            0
        };
        reserve(&memory, bytes + batch.rows * size_of::<u32>(), || {
            format!("a table of the documents' ids takes {bytes} bytes")
        })?;
        let on_update = self.on_update;
        asked.sort_unstable();
        let search = blocking(move || {
            Ok::<_, EngineError>(Search {
                table: IdTable::new(if of_batch { &by_id.rows } else { &[] }, &batch),
                fingerprints: batch.fingerprints_by_row(),
                history: self,
                batch,
                by_id,
                asked,
            })
        });
        let search = Arc::new(search.await?);
        captures.memory = Some(memory);
        let groups = search.history.files.iter().flat_map(|file| {
            let groups = 0..file.reader.row_groups().len();
            let pages: Arc<OnceCell<RowPages>> = Arc::default();
            groups.map(move |group| (file.clone(), Arc::clone(&pages), group))
        });
        let groups: Vec<_> = groups.collect();
        let found = futures::stream::iter(groups).map(|(file, pages, group)| {
            let search = Arc::clone(&search);
            ended(SpawnedTask::spawn(async move {
                search.row_group(file, &pages, group).await
            }))
        });
        let mut found = found.buffer_unordered(threads.max(1));
        while let Some(found) = found.try_next().await? {
            captures.add(found, on_update)?;
        }
        captures.kept.sort_unstable();
        captures.asked.sort_unstable();
        Ok(captures)
    }
}

/// A search for the captures of a batch.
struct Search {
    history: History,
    batch: Arc<Batch>,
    by_id: Arc<IdOrder>,
    table: IdTable,
    fingerprints: FingerprintsByRow,
    /// In their order.
    asked: Vec<DocumentId>,
}

/// A row of the archive whose id is looked for.
struct Hit {
    row: u32,
    is_kept: bool,
    /// The id, if captures may be superseded.
    id: Option<String>,
    /// The place of the id among those of the batch.
    place: Option<u32>,
    asked: Option<DocumentId>,
}

impl Search {
    /// The captures in a row group; `pages` are those of its file, which the first of its row groups reads.
    async fn row_group(
        &self,
        file: SnapshotFile,
        pages: &OnceCell<RowPages>,
        group: usize,
    ) -> Result<Found> {
        let rows = file.reader.row_groups().nth(group).unwrap_or(0);
        let pages = pages.get_or_try_init(|| file.reader.row_pages()).await?;
        let day = file.day.map(days_since_epoch);
        let wanted = RowColumns {
            kept: true,
            ..RowColumns::default()
        };
        let mut hits = Vec::new();
        for start in (0..rows).step_by(ROWS_AT_ONCE as usize) {
            let end = rows.min(start + ROWS_AT_ONCE);
            let numbers: Vec<u32> = (start as u32..end as u32).collect();
            let read = file.reader.rows(pages, group, &numbers, wanted).await?;
            self.add_hits(&read, start as u32, &mut hits);
        }
        let mut found = Found::default();
        if !hits.is_empty() {
            let rows: Vec<u32> = hits.iter().map(|hit| hit.row).collect();
            let fingerprints = fingerprints(&file, group, rows.clone()).await?;
            let sketches = match self.history.sketches {
                Some((_, sketch)) => {
                    let wanted = RowColumns {
                        sketch,
                        ..RowColumns::default()
                    };
                    Some(file.reader.rows(pages, group, &rows, wanted).await?)
                }
                None => None,
            };
            for (at, hit) in hits.into_iter().enumerate() {
                let Some(fingerprint) = fingerprints[at] else {
                    continue;
                };
                let superseded = |id: &String| {
                    let rulings = &self.history.rulings;
                    rulings.is_superseded(id, day, |superseded| superseded == fingerprint)
                };
                let is_kept = hit.is_kept && !hit.id.as_ref().is_some_and(superseded);
                let sketch = sketches.as_ref().map(|rows| &rows.sketches);
                let sketch = sketch.filter(|sketches| sketches.is_valid(at));
                let sketch = sketch.map(|sketches| sketches.value(at));
                for row in hit.place.into_iter().flat_map(|place| self.rows_at(place)) {
                    let Some(own) = self.fingerprints.of_row(*row) else {
                        continue;
                    };
                    let distance = (own ^ fingerprint).count_ones();
                    let asked = self.history.sketches.map(|(compare, _)| compare);
                    let own = self.batch.sketch(*row);
                    let is_similar = match CompareSketches::compare(asked, own, sketch) {
                        Compared::NotAsked | Compared::Similar(_) => true,
                        Compared::Dissimilar => false,
                        // Of texts without sketches, only equal fingerprints say something.
                        Compared::Unknown => distance == 0,
                    };
                    let capture = Capture {
                        is_kept,
                        day,
                        base_version: file.base_version,
                        distance,
                        is_pair: distance <= self.history.max_distance && is_similar,
                    };
                    found.of_rows.push((*row, capture, fingerprint));
                }
                if is_kept && let Some(id) = hit.asked {
                    found.asked.push((id, day, fingerprint));
                }
            }
        }
        Ok(found)
    }

    fn add_hits(&self, read: &ReadRows, first: u32, hits: &mut Vec<Hit>) {
        let own = self.batch.id_column();
        let row_at = |place: u32| self.by_id.rows[place as usize];
        let may_be_superseded = self.history.rulings.has_superseded();
        let mut add = |at: usize, place: Option<u32>| {
            let asked = (!self.asked.is_empty()).then(|| DocumentId::read(&read.ids, at));
            let asked = asked.filter(|id| self.asked.binary_search(id).is_ok());
            if place.is_none() && asked.is_none() {
                return;
            }
            hits.push(Hit {
                row: first + at as u32,
                // In an archive without decisions, all documents count as kept.
                is_kept: read.kept.is_null(at) || read.kept.value(at),
                id: may_be_superseded.then(|| DocumentId::read(&read.ids, at).to_string()),
                place,
                asked,
            });
        };
        match &own {
            IdColumn::Text(own) => {
                let ids = read.ids.as_string::<i32>();
                let hash_of = |at| hash(ids.value(at).as_bytes());
                let is_own =
                    |at: usize, place| own.bytes(row_at(place)) == ids.value(at).as_bytes();
                self.find_each(ids.len(), hash_of, is_own, &mut add);
            }
            IdColumn::Number(own) => {
                let ids: &[i64] = read.ids.as_primitive::<Int64Type>().values();
                let hash_of = |at: usize| hash_of_number(ids[at]);
                let is_own = |at: usize, place| own.value(row_at(place)) == ids[at];
                self.find_each(ids.len(), hash_of, is_own, &mut add);
            }
        }
    }

    /// Calls `add` for each of `count` ids that may be looked for, with its place among those of the batch.
    fn find_each(
        &self,
        count: usize,
        hash_of: impl Fn(usize) -> u64,
        is_own: impl Fn(usize, u32) -> bool,
        add: &mut impl FnMut(usize, Option<u32>),
    ) {
        if !self.asked.is_empty() {
            for at in 0..count {
                add(at, self.table.find(hash_of(at), |place| is_own(at, place)));
            }
            return;
        }
        // Most ids are not in the batch, and the filter fits into the cache; the table does not.
        let hashes = (0..count).map(|at| (at, hash_of(at)));
        let likely: Vec<(usize, u64)> = hashes
            .filter(|(_, hash)| self.table.may_have(*hash))
            .collect();
        for (at, hash) in likely {
            let place = self.table.find(hash, |place| is_own(at, place));
            if place.is_some() {
                add(at, place);
            }
        }
    }

    /// The rows of the batch with the id at `place`.
    fn rows_at(&self, place: u32) -> &[u32] {
        let rows = &self.by_id.rows[place as usize..];
        let first = rows[0];
        let shared = rows.iter().take(MAX_SHARED + 1);
        let count = shared
            .take_while(|row| self.batch.compare_ids(first, **row).is_eq())
            .count();
        if count > MAX_SHARED {
            &[]
        } else {
            &rows[..count]
        }
    }
}

/// The fingerprint of each of the `rows`, which ascend; `None` where it has none.
async fn fingerprints(
    file: &SnapshotFile,
    group: usize,
    rows: Vec<u32>,
) -> Result<Vec<Option<u64>>> {
    let encoded = file.reader.fetch(group).await?;
    let reader = file.reader.clone();
    blocking(move || {
        let mut found = vec![None; rows.len()];
        let mut next = 0;
        let mut step = DecodedStep::default();
        reader.decode(group, encoded, &mut step, |step| {
            for (at, value) in step.values().iter().enumerate() {
                let row = step.row(at);
                while rows.get(next).is_some_and(|wanted| *wanted < row) {
                    next += 1;
                }
                if rows.get(next) == Some(&row) {
                    found[next] = Some(*value);
                    next += 1;
                }
            }
            next < rows.len()
        })?;
        Ok(found)
    })
    .await
}

/// The distinct ids of a batch, by their hashes.
struct IdTable {
    /// The upper half of an id's hash, and the place of its first row by id; a power of two of slots.
    slots: Vec<Option<(u32, NonZeroU32)>>,
    /// Two bits of one word for each hash; a power of two of words.
    filter: Vec<u64>,
}

fn hash(id: &[u8]) -> u64 {
    XxHash3_64::oneshot(id)
}

/// The hash of an id that is a number; not [`hash`] of its bytes.
fn hash_of_number(id: i64) -> u64 {
    let product = u128::from(id.cast_unsigned() ^ 0x9e37_79b9_7f4a_7c15) * 0xd1b5_4a32_d192_ed03;
    (product >> 64) as u64 ^ product as u64
}

impl IdTable {
    /// Bytes of the table of `rows` ids.
    fn bytes_for(rows: usize) -> usize {
        Self::slots_for(rows) * size_of::<Option<(u32, NonZeroU32)>>() + 8 * Self::words_for(rows)
    }

    fn slots_for(rows: usize) -> usize {
        (2 * rows).next_power_of_two()
    }

    /// Sixteen bits an id: of the ids that are not in the table, one in fifty passes.
    fn words_for(rows: usize) -> usize {
        (rows / 4).next_power_of_two()
    }

    /// The table of the ids of `rows`, which are in the order of their ids.
    fn new(rows: &[u32], batch: &Batch) -> Self {
        let mut table = Self {
            slots: vec![None; Self::slots_for(rows.len())],
            filter: vec![0; Self::words_for(rows.len())],
        };
        let ids = batch.id_column();
        let mut before: Option<u32> = None;
        for (place, row) in (1..).zip(rows) {
            let repeats = before.is_some_and(|before| batch.compare_ids(before, *row).is_eq());
            before = Some(*row);
            if repeats {
                continue;
            }
            let hash = match &ids {
                IdColumn::Text(ids) => hash(ids.bytes(*row)),
                IdColumn::Number(ids) => hash_of_number(ids.value(*row)),
            };
            let (word, bits) = table.filter_bits(hash);
            table.filter[word] |= bits;
            let mut slot = table.first_slot(hash);
            while table.slots[slot].is_some() {
                slot = (slot + 1) % table.slots.len();
            }
            let place = NonZeroU32::new(place);
            table.slots[slot] = place.map(|place| ((hash >> 32) as u32, place));
        }
        table
    }

    fn first_slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn filter_bits(&self, hash: u64) -> (usize, u64) {
        let word = (hash >> 12) as usize & (self.filter.len() - 1);
        (word, 1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }

    /// Whether an id of this hash may be in the table.
    fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = self.filter_bits(hash);
        self.filter[word] & bits == bits
    }

    /// The place of the first row with an id of this hash for which `is_own` is true.
    fn find(&self, hash: u64, is_own: impl Fn(u32) -> bool) -> Option<u32> {
        let mut slot = self.first_slot(hash);
        while let Some((tag, place)) = self.slots[slot] {
            let place = place.get() - 1;
            if tag == (hash >> 32) as u32 && is_own(place) {
                return Some(place);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }
}
