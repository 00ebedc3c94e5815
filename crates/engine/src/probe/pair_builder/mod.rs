//! Builds rows of pairs from matches: pairs each document of one fingerprint with each document of the other.

mod within;

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, BinaryArray, Date32Array, Float64Array, Int32Array, RecordBatch,
    UInt32Array,
};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use tokio::sync::mpsc::Sender;

use super::request::{CompareSketches, Compared};
use crate::batch::{Batch, Classes};
use crate::pairs::{self, BASE_DAY, BASE_ID, DISTANCE, NEW_ID, SIMILARITY};
use documents::DocumentId;
use streams::BATCH_ROWS;

/// A match with a row of the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowMatch {
    /// Index of the batch's distinct fingerprint.
    pub(super) entry: u32,
    pub(super) distance: u32,
    /// Index of the row among [`ArchiveRows`].
    pub(super) row: u32,
}

/// Rows of the archive, with the columns that their pairs need.
///
/// A new column is a field here and in [`ArchiveRow`]. The ids stage reads it, and the other stages pass it on.
#[derive(Debug)]
pub(super) struct ArchiveRows {
    /// The id of each row.
    pub(super) ids: ArrayRef,
    /// The sketch of each row; null where another program wrote the row without one, and in all rows if the run compares no
    /// sketches.
    pub(super) sketches: BinaryArray,
    /// Day of the rows, in days since 1970.
    pub(super) day: Option<i32>,
}

impl ArchiveRows {
    /// Id and day of the row at an index.
    pub(super) fn document(&self, index: u32) -> (DocumentId, Option<i32>) {
        (DocumentId::read(&self.ids, index as usize), self.day)
    }

    pub(super) fn row(&self, index: u32) -> ArchiveRow {
        ArchiveRow {
            id: DocumentId::read(&self.ids, index as usize),
            sketch: self.sketch(index).map(Into::into),
            day: self.day,
        }
    }

    pub(super) fn sketch(&self, index: u32) -> Option<&[u8]> {
        let index = index as usize;
        let is_known = self.sketches.is_valid(index);
        is_known.then(|| self.sketches.value(index))
    }

    /// Rows of `day`, with text ids if `text_ids`, else with integers.
    pub(super) fn from_rows(day: Option<i32>, rows: Vec<ArchiveRow>, text_ids: bool) -> Self {
        let sketches = rows.iter().map(|row| row.sketch.as_deref()).collect();
        let ids: Vec<DocumentId> = rows.into_iter().map(|row| row.id).collect();
        Self {
            sketches,
            ids: DocumentId::array(&ids, text_ids),
            day,
        }
    }
}

/// One row of [`ArchiveRows`]. Ordered by id, then by day, as the output is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ArchiveRow {
    id: DocumentId,
    /// Day of the row, in days since 1970.
    pub(super) day: Option<i32>,
    sketch: Option<Box<[u8]>>,
}

impl ArchiveRow {
    /// Whether both rows are of one document: they have the same id and day.
    pub(super) fn is_same_document(&self, other: &Self) -> bool {
        self.id == other.id && self.day == other.day
    }

    /// Bytes that the row takes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.id.bytes() + self.sketch.as_ref().map_or(0, |sketch| sketch.len())
    }
}

/// Pairs that wait to become a record batch.
#[derive(Debug, Default)]
struct Pending {
    /// Rows of the batch.
    new: Vec<u32>,
    /// Rows of the batch, or indexes of [`ArchiveRows`].
    base: Vec<u32>,
    distances: Vec<u32>,
    similarities: Vec<Option<f64>>,
}

/// Counts of the pairs that a builder made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) pairs: u64,
    /// Pairs that were dropped because of their sketches.
    pub(super) dissimilar: u64,
    /// Pairs among those sent whose sketches could not be compared.
    pub(super) without_sketch: u64,
}

impl Sent {
    /// Counts a pair by what its sketches say; returns its similarity, if known. `None` if there is no pair.
    pub(super) fn add(&mut self, compared: Compared) -> Option<Option<f64>> {
        if compared == Compared::Dissimilar {
            self.dissimilar += 1;
            return None;
        }
        self.pairs += 1;
        match compared {
            Compared::Similar(similarity) => Some(Some(similarity)),
            Compared::Unknown => {
                self.without_sketch += 1;
                Some(None)
            }
            Compared::NotAsked | Compared::Dissimilar => Some(None),
        }
    }
}

/// What the pairs of a partition are made of, and where they are sent.
pub(super) struct PairSource {
    pub(super) batch: Arc<Batch>,
    pub(super) schema: SchemaRef,
    pub(super) sketches: Option<CompareSketches>,
    /// Day of the batch, in days since 1970.
    pub(super) day: Option<i32>,
    /// The classes whose first documents alone have pairs with others; `None` if all documents have.
    pub(super) classes: Option<Arc<Classes>>,
    pub(super) sender: Sender<Result<RecordBatch>>,
}

/// Builds rows of pairs, and sends each record batch as soon as it is full: a product of many
/// documents with many others is never in memory as a whole.
pub(super) struct PairBuilder<'a> {
    source: &'a PairSource,
    /// The rows of the archive in the pairs; `None` for pairs inside the batch.
    archived: Option<&'a ArchiveRows>,
    pending: Pending,
    sent: Sent,
}

impl<'a> PairBuilder<'a> {
    pub(super) fn new(source: &'a PairSource) -> Self {
        Self {
            source,
            archived: None,
            pending: Pending::default(),
            sent: Sent::default(),
        }
    }

    /// Sends the pairs of the batch with `rows` of the archive; returns how many.
    pub(super) async fn send_archive_pairs(
        mut self,
        matches: &[RowMatch],
        rows: &'a ArchiveRows,
    ) -> Result<Sent> {
        self.archived = Some(rows);
        for found in matches {
            let sketch = rows.sketch(found.row);
            let rows_of = self.source.batch.distinct.rows(found.entry);
            let classes = &self.source.classes;
            let is_first = |row: &u32| match classes {
                Some(classes) => classes.is_first(*row),
                None => true,
            };
            for new in rows_of.filter(is_first) {
                if self.push(new, found.row, found.distance, sketch) && !self.send().await? {
                    return Ok(self.sent);
                }
            }
        }
        self.finish().await
    }

    /// Adds a pair, unless its sketches differ in too many bits; true when the record batch is
    /// full. `sketch` is that of the other document.
    fn push(&mut self, new: u32, base: u32, distance: u32, sketch: Option<&[u8]>) -> bool {
        let own = self.source.batch.sketch(new);
        let compared = CompareSketches::compare(self.source.sketches, own, sketch);
        let Some(similarity) = self.sent.add(compared) else {
            return false;
        };
        self.pending.new.push(new);
        self.pending.base.push(base);
        self.pending.distances.push(distance);
        self.pending.similarities.push(similarity);
        self.pending.new.len() == BATCH_ROWS
    }

    /// Takes the pairs that were added.
    fn take(&mut self) -> Result<RecordBatch> {
        let pending = std::mem::take(&mut self.pending);
        let batch = &self.source.batch;
        let (base_ids, base_day) = match self.archived {
            Some(rows) => {
                let indexes = UInt32Array::from(pending.base);
                (arrow::compute::take(&rows.ids, &indexes, None)?, rows.day)
            }
            None => (batch.ids(&pending.base)?, self.source.day),
        };
        let rows = pending.new.len();
        let distances = pending.distances.iter().map(|found| found.cast_signed());
        let base_days: Date32Array = std::iter::repeat_n(base_day, rows).collect();
        let columns: [(&str, ArrayRef); 5] = [
            (NEW_ID, batch.ids(&pending.new)?),
            (BASE_ID, base_ids),
            (DISTANCE, Arc::new(Int32Array::from_iter_values(distances))),
            (BASE_DAY, Arc::new(base_days)),
            (
                SIMILARITY,
                Arc::new(Float64Array::from(pending.similarities)),
            ),
        ];
        Ok(pairs::record_batch(&self.source.schema, &columns, None)?)
    }

    /// Sends the pairs that were added; false when the receiver is gone.
    async fn send(&mut self) -> Result<bool> {
        let rows = self.take()?;
        Ok(self.source.sender.send(Ok(rows)).await.is_ok())
    }

    /// Sends the pairs that are left; returns how many there were in all.
    async fn finish(mut self) -> Result<Sent> {
        if !self.pending.new.is_empty() {
            self.send().await?;
        }
        Ok(self.sent)
    }
}

#[cfg(test)]
mod tests;
