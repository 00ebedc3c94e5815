//! Builds rows of pairs from matches: pairs each document of one fingerprint with each document of the other.

mod within;

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use hamming::Match;

use crate::batch::{Batch, Id};
use crate::pairs::{self, BASE_DAY, BASE_ID, DISTANCE, NEW_ID};
use crate::stream::BATCH_ROWS;

/// What the join says about a match besides its rows: the values of those columns of pairs that differ from pair to pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct PairValues {
    pub(super) distance: u32,
}

impl From<&Match> for PairValues {
    fn from(found: &Match) -> Self {
        Self {
            distance: found.distance,
        }
    }
}

/// A match with a row of the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowMatch {
    /// Index of the batch's distinct fingerprint.
    pub(super) entry: u32,
    pub(super) values: PairValues,
    /// Index of the row among [`ArchiveRows`].
    pub(super) row: u32,
}

/// Rows of the archive, with the columns that pairs have of them.
///
/// A new column is a field here and in [`ArchiveRow`]. The ids stage reads it, and the other stages pass it on.
#[derive(Debug)]
pub(super) struct ArchiveRows {
    /// The id of each row.
    pub(super) ids: ArrayRef,
    /// Day of the rows, in days since 1970.
    pub(super) day: Option<i32>,
}

impl ArchiveRows {
    /// The row at an index.
    pub(super) fn row(&self, index: u32) -> ArchiveRow {
        ArchiveRow {
            id: Id::read(&self.ids, index as usize),
            day: self.day,
        }
    }

    /// Rows of `day`, with text ids if `text_ids`, else with integers.
    pub(super) fn from_rows(day: Option<i32>, rows: Vec<ArchiveRow>, text_ids: bool) -> Self {
        let ids: Vec<Id> = rows.into_iter().map(|row| row.id).collect();
        Self {
            ids: Id::array(&ids, text_ids),
            day,
        }
    }
}

/// One row of [`ArchiveRows`]. Ordered by id, then by day, as the output is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ArchiveRow {
    id: Id,
    /// Day of the row, in days since 1970.
    pub(super) day: Option<i32>,
}

impl ArchiveRow {
    /// Whether both rows are of one document: they have the same id and day.
    pub(super) fn is_same_document(&self, other: &Self) -> bool {
        self.id == other.id && self.day == other.day
    }

    /// Bytes that the row takes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.id.bytes()
    }
}

/// Pairs that wait to become a batch of rows.
#[derive(Debug, Default)]
struct Pending {
    /// Rows of the batch.
    new: Vec<u32>,
    /// Rows of the batch, or indexes of [`ArchiveRows`].
    base: Vec<u32>,
    values: Vec<PairValues>,
}

/// Builds rows of pairs, and sends each batch of them as soon as it is full: a product of many documents with many others is
/// never in memory as a whole.
pub(super) struct PairBuilder<'a> {
    batch: &'a Batch,
    schema: SchemaRef,
    /// Day of the batch, in days since 1970.
    day: Option<i32>,
    pending: Pending,
}

impl<'a> PairBuilder<'a> {
    pub(super) fn new(batch: &'a Batch, schema: SchemaRef, day: Option<i32>) -> Self {
        Self {
            batch,
            schema,
            day,
            pending: Pending::default(),
        }
    }

    /// Sends the pairs of the batch with `rows` of the archive; returns how many.
    pub(super) async fn send_archive_pairs<F>(
        mut self,
        matches: &[RowMatch],
        rows: &ArchiveRows,
        mut send: impl FnMut(RecordBatch) -> F,
    ) -> Result<u64>
    where
        F: Future<Output = bool>,
    {
        let mut sent = 0;
        for found in matches {
            for new in self.batch.distinct.rows(found.entry) {
                sent += 1;
                if self.push(new, found.row, found.values)
                    && !send(self.take_archive_pairs(rows)?).await
                {
                    return Ok(sent);
                }
            }
        }
        if !self.pending.new.is_empty() {
            send(self.take_archive_pairs(rows)?).await;
        }
        Ok(sent)
    }

    /// Adds a pair; true when the batch of rows is full.
    fn push(&mut self, new: u32, base: u32, values: PairValues) -> bool {
        self.pending.new.push(new);
        self.pending.base.push(base);
        self.pending.values.push(values);
        self.pending.new.len() == BATCH_ROWS
    }

    /// Takes the pairs that were added, whose other documents are `rows` of the archive.
    fn take_archive_pairs(&mut self, rows: &ArchiveRows) -> Result<RecordBatch> {
        let indexes = UInt32Array::from(self.pending.base.clone());
        let base_ids = arrow::compute::take(&rows.ids, &indexes, None)?;
        self.take(base_ids, rows.day)
    }

    /// Takes the pairs that were added, whose other documents are in the batch too.
    fn take_pairs_within(&mut self) -> Result<RecordBatch> {
        let base_ids = self.batch.ids(&self.pending.base)?;
        self.take(base_ids, self.day)
    }

    /// Takes the pairs that were added, with the columns of their other documents.
    fn take(&mut self, base_ids: ArrayRef, base_day: Option<i32>) -> Result<RecordBatch> {
        let pending = std::mem::take(&mut self.pending);
        let rows = pending.new.len();
        let distances = pending
            .values
            .iter()
            .map(|pair| pair.distance.cast_signed());
        let base_days: Date32Array = std::iter::repeat_n(base_day, rows).collect();
        let columns: [(&str, ArrayRef); 4] = [
            (NEW_ID, self.batch.ids(&pending.new)?),
            (BASE_ID, base_ids),
            (DISTANCE, Arc::new(Int32Array::from_iter_values(distances))),
            (BASE_DAY, Arc::new(base_days)),
        ];
        Ok(pairs::batch(&self.schema, &columns, None)?)
    }
}

#[cfg(test)]
mod tests;
