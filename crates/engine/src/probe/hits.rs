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

/// A match with a row of the history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowMatch {
    /// Index of the batch's distinct fingerprint.
    pub(crate) entry: u32,
    pub(crate) distance: u32,
    /// Where the row stands among the fetched ids.
    pub(crate) row: u32,
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

    /// Hits among the batch's own rows: of each pair the larger id is the new one.
    pub(crate) async fn within<F>(
        mut self,
        matches: &[Match],
        mut send: impl FnMut(RecordBatch) -> F,
    ) -> Result<u64>
    where
        F: Future<Output = bool>,
    {
        let batch = self.batch;
        let mut hits = 0;
        for found in matches {
            let query = found.query;
            // Each pair of distinct fingerprints is found from both sides; equal ones once.
            if found.entry > query {
                continue;
            }
            for (at, a) in batch.distinct.rows(query).enumerate() {
                let before = if found.entry == query { at } else { usize::MAX };
                for b in batch.distinct.rows(found.entry).take(before) {
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

    /// As [`Self::within`], but for each document at most the nearest `limit` of the others; gives the number of
    /// hits, and of pairs left out.
    pub(crate) async fn nearest_within<F>(
        mut self,
        matches: &[Match],
        limit: usize,
        mut send: impl FnMut(RecordBatch) -> F,
    ) -> Result<(u64, u64)>
    where
        F: Future<Output = bool>,
    {
        let batch = self.batch;
        let (mut hits, mut left_out) = (0, 0);
        for of_query in matches.chunk_by(|a, b| a.query == b.query) {
            for new in batch.distinct.rows(of_query[0].query) {
                let mut nearest: Vec<(u32, u32)> = Vec::new();
                let mut pairs = 0;
                for found in of_query {
                    // Rows of one fingerprint ascend by id, as the day's file does; so the smallest come first.
                    let rows = batch.distinct.rows(found.entry);
                    let smaller = partition(rows.len(), |at| {
                        let row = batch.distinct.row(found.entry, at);
                        batch.compare_ids(row, new).is_lt()
                    });
                    pairs += smaller;
                    let rows = rows.take(smaller.min(limit));
                    nearest.extend(rows.map(|row| (found.distance, row)));
                }
                nearest.sort_unstable_by(|a, b| {
                    a.0.cmp(&b.0).then_with(|| batch.compare_ids(a.1, b.1))
                });
                nearest.truncate(limit);
                left_out += (pairs - nearest.len()) as u64;
                for (distance, base) in nearest {
                    hits += 1;
                    if self.push(new, base, distance)
                        && !send(self.take(|rows| batch.ids(rows))?).await
                    {
                        return Ok((hits, left_out));
                    }
                }
            }
        }
        if !self.pending.new.is_empty() {
            send(self.take(|rows| batch.ids(rows))?).await;
        }
        Ok((hits, left_out))
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

/// How many of `0..length` come before the first for which `before` is false.
fn partition(length: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn take(ids: &ArrayRef, rows: &[u32]) -> arrow::error::Result<ArrayRef> {
    arrow::compute::take(ids, &UInt32Array::from(rows.to_vec()), None)
}
