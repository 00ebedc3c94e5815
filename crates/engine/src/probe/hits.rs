//! From matches of fingerprints to hits of documents: every row of the one side with every row of the other.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use hamming::Match;

use crate::batch::NewBatch;
use crate::session::BATCH_ROWS;

/// Hits that wait to become a batch.
#[derive(Debug, Default)]
struct Pending {
    new: Vec<u32>,
    /// Rows of the batch (within) or indexes into the fetched ids (history).
    base: Vec<u32>,
    distance: Vec<i32>,
}

/// Builds batches of hits and hands each on as soon as it is full, so that a product of many rows with many is
/// never in memory.
pub(crate) struct HitBuilder<'a> {
    batch: &'a NewBatch,
    schema: SchemaRef,
    day: Option<i32>,
    pending: Pending,
}

/// A match whose rows on the other side are known.
#[derive(Debug, Clone)]
pub(crate) struct RowMatch {
    /// Index of the batch's distinct fingerprint.
    pub(crate) entry: u32,
    pub(crate) distance: u32,
    /// Where its rows stand among the fetched ids.
    pub(crate) rows: std::ops::Range<u32>,
}

impl<'a> HitBuilder<'a> {
    pub(crate) fn new(batch: &'a NewBatch, schema: SchemaRef, day: Option<i32>) -> Self {
        Self {
            batch,
            schema,
            day,
            pending: Pending::default(),
        }
    }

    /// Hits against rows of the history whose ids are `ids`.
    pub(crate) async fn history<F>(
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
            for new in self.batch.tables.batch().rows(found.entry) {
                for base in found.rows.clone() {
                    hits += 1;
                    if self.push(new, base, found.distance)
                        && !send(self.take(|rows| take(ids, rows))?).await
                    {
                        return Ok(hits);
                    }
                }
            }
        }
        if !self.pending.new.is_empty() {
            send(self.take(|rows| take(ids, rows))?).await;
        }
        Ok(hits)
    }

    /// Hits among the batch's own rows: of each pair the larger id is the new one.
    pub(crate) async fn within<F>(
        mut self,
        matches: &[Match],
        first: u32,
        mut send: impl FnMut(RecordBatch) -> F,
    ) -> Result<u64>
    where
        F: Future<Output = bool>,
    {
        let batch = self.batch;
        let mut hits = 0;
        for found in matches {
            let query = first + found.query;
            // Each pair of distinct fingerprints is found from both sides; equal ones once.
            if found.entry > query {
                continue;
            }
            for (at, a) in batch.tables.batch().rows(query).enumerate() {
                let before = if found.entry == query { at } else { usize::MAX };
                for b in batch.tables.batch().rows(found.entry).take(before) {
                    let (new, base) = match batch.compare_ids(a, b) {
                        std::cmp::Ordering::Greater => (a, b),
                        std::cmp::Ordering::Less => (b, a),
                        // Two documents with one id are no pair.
                        std::cmp::Ordering::Equal => continue,
                    };
                    hits += 1;
                    if self.push(new, base, found.distance)
                        && !send(self.take(|rows| batch.ids(rows))?).await
                    {
                        return Ok(hits);
                    }
                }
            }
        }
        if !self.pending.new.is_empty() {
            send(self.take(|rows| batch.ids(rows))?).await;
        }
        Ok(hits)
    }

    /// Adds a hit; true when the batch is full.
    fn push(&mut self, new: u32, base: u32, distance: u32) -> bool {
        self.pending.new.push(new);
        self.pending.base.push(base);
        self.pending.distance.push(distance.cast_signed());
        self.pending.new.len() == BATCH_ROWS
    }

    fn take(
        &mut self,
        base_ids: impl FnOnce(&[u32]) -> arrow::error::Result<ArrayRef>,
    ) -> Result<RecordBatch> {
        let pending = std::mem::take(&mut self.pending);
        let rows = pending.new.len();
        let days: Date32Array = std::iter::repeat_n(self.day, rows).collect();
        let columns: Vec<ArrayRef> = vec![
            self.batch.ids(&pending.new)?,
            base_ids(&pending.base)?,
            Arc::new(Int32Array::from(pending.distance)),
            Arc::new(days),
        ];
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

fn take(ids: &ArrayRef, rows: &[u32]) -> arrow::error::Result<ArrayRef> {
    arrow::compute::take(ids, &UInt32Array::from(rows.to_vec()), None)
}
