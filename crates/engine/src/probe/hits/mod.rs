//! Builds rows of pairs from matches: pairs every document of the one fingerprint with every document of the other.

mod within;

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;

use crate::batch::Batch;
use crate::pairs::{self, BASE_DAY, BASE_ID, DISTANCE, NEW_ID};
use crate::stream::BATCH_ROWS;

/// Pairs that wait to become a batch of rows.
#[derive(Debug, Default)]
struct Pending {
    new: Vec<u32>,
    /// Rows of the batch, or indexes into the ids of the archive's rows.
    base: Vec<u32>,
    distance: Vec<i32>,
}

/// Builds rows of pairs, and sends each batch of them as soon as it is full: a product of many documents with many others is
/// never in memory as a whole.
pub(super) struct HitBuilder<'a> {
    batch: &'a Batch,
    schema: SchemaRef,
    day: Option<i32>,
    pending: Pending,
}

/// A match with a row of the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowMatch {
    /// Index of the batch's distinct fingerprint.
    pub(super) entry: u32,
    pub(super) distance: u32,
    /// Index of the row among the rows whose ids were read.
    pub(super) row: u32,
}

impl<'a> HitBuilder<'a> {
    pub(super) fn new(batch: &'a Batch, schema: SchemaRef, day: Option<i32>) -> Self {
        Self {
            batch,
            schema,
            day,
            pending: Pending::default(),
        }
    }

    /// Sends pairs with rows of the archive whose ids are `ids`; returns how many.
    pub(super) async fn archive<F>(
        mut self,
        matches: &[RowMatch],
        ids: &ArrayRef,
        mut send: impl FnMut(RecordBatch) -> F,
    ) -> Result<u64>
    where
        F: Future<Output = bool>,
    {
        let mut hits = 0;
        for found in matches {
            for new in self.batch.distinct.rows(found.entry) {
                hits += 1;
                if self.push(new, found.row, found.distance)
                    && !send(self.take(|rows| take(ids, rows))?).await
                {
                    return Ok(hits);
                }
            }
        }
        if !self.pending.new.is_empty() {
            send(self.take(|rows| take(ids, rows))?).await;
        }
        Ok(hits)
    }

    /// Adds a pair; true when the batch of rows is full.
    fn push(&mut self, new: u32, base: u32, distance: u32) -> bool {
        self.pending.new.push(new);
        self.pending.base.push(base);
        self.pending.distance.push(distance.cast_signed());
        self.pending.new.len() == BATCH_ROWS
    }

    /// Takes the rows that were added; `base_ids` looks up the ids of their other documents.
    fn take(
        &mut self,
        base_ids: impl FnOnce(&[u32]) -> arrow::error::Result<ArrayRef>,
    ) -> Result<RecordBatch> {
        let pending = std::mem::take(&mut self.pending);
        let rows = pending.new.len();
        let days: Date32Array = std::iter::repeat_n(self.day, rows).collect();
        let columns: [(&str, ArrayRef); 4] = [
            (NEW_ID, self.batch.ids(&pending.new)?),
            (BASE_ID, base_ids(&pending.base)?),
            (DISTANCE, Arc::new(Int32Array::from(pending.distance))),
            (BASE_DAY, Arc::new(days)),
        ];
        Ok(pairs::batch(&self.schema, &columns, None)?)
    }
}

fn take(ids: &ArrayRef, rows: &[u32]) -> arrow::error::Result<ArrayRef> {
    arrow::compute::take(ids, &UInt32Array::from(rows.to_vec()), None)
}

#[cfg(test)]
mod tests;
