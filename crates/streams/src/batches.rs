//! Record batches between operators: their size, and how small ones are put together and large ones cut.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array as _, RecordBatch, UInt64Array};
use arrow::compute::{BatchCoalescer, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt as _;

/// Rows of a record batch between operators.
pub const BATCH_ROWS: usize = 8192;
/// Bytes of values at which a record batch between operators is full, however few rows it has: values may be long.
pub const BATCH_BYTES: usize = 4 << 20;

/// A stream of the record batches that an iterator makes.
pub fn of_batches(
    schema: SchemaRef,
    batches: impl Iterator<Item = RecordBatch> + Send + 'static,
) -> SendableRecordBatchStream {
    let batches = futures::stream::iter(batches.map(Ok));
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// The most rows and bytes of a record batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchSize {
    /// The most rows.
    pub rows: usize,
    /// The most bytes of all values. A single row may have more.
    pub bytes: usize,
}

impl Default for BatchSize {
    /// The size between operators.
    fn default() -> Self {
        Self {
            rows: BATCH_ROWS,
            bytes: BATCH_BYTES,
        }
    }
}

/// The same rows in record batches of about `size`: sorting and sending have a cost for each record batch, and memory is
/// reserved for whole record batches.
///
/// Small record batches are copied together, and those larger than `size` are cut into copies. A record batch of more than half
/// of `size` is passed on without a copy, unless it is a slice of much larger buffers.
pub fn coalesced(stream: SendableRecordBatchStream, size: BatchSize) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let begin = (Some(stream), Coalescer::new(Arc::clone(&schema), size));
    let batches = futures::stream::try_unfold(begin, |(mut stream, mut coalescer)| async move {
        loop {
            if let Some(batch) = coalescer.completed.next_completed_batch() {
                return Ok(Some((batch, (stream, coalescer))));
            }
            let Some(rows) = &mut stream else {
                return Ok(None);
            };
            match rows.next().await.transpose()? {
                Some(batch) => coalescer.push(batch)?,
                None => {
                    stream = None;
                    coalescer.finish()?;
                }
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Makes record batches of a size out of others.
struct Coalescer {
    size: BatchSize,
    completed: BatchCoalescer,
    /// The bytes of the rows that are not completed.
    held: usize,
}

impl Coalescer {
    fn new(schema: SchemaRef, size: BatchSize) -> Self {
        Self {
            size,
            completed: BatchCoalescer::new(schema, size.rows),
            held: 0,
        }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<(), ArrowError> {
        let (rows, bytes) = (batch.num_rows(), bytes(&batch)?);
        if bytes > self.size.bytes {
            return self.push_cut(&batch, bytes);
        }
        let is_large = rows > self.size.rows / 2 || bytes > self.size.bytes / 2;
        let is_part = batch.get_array_memory_size() / 2 > bytes;
        let batch = if is_part {
            copied(&batch, 0..rows)?
        } else {
            batch
        };
        if is_large && rows <= self.size.rows {
            return self.push_uncopied(batch);
        }
        if self.held + bytes > self.size.bytes {
            self.finish()?;
        }
        self.completed.push_batch(batch)?;
        let held = self.completed.get_buffered_rows();
        self.held = if held > rows {
            self.held + bytes
        } else {
            // Only rows of this record batch are left.
            bytes * held / rows.max(1)
        };
        Ok(())
    }

    /// Completes the rows that were pushed before.
    fn finish(&mut self) -> Result<(), ArrowError> {
        self.held = 0;
        self.completed.finish_buffered_batch()
    }

    fn push_cut(&mut self, batch: &RecordBatch, bytes: usize) -> Result<(), ArrowError> {
        self.finish()?;
        let rows = batch.num_rows();
        // Equal pieces: a small rest would stay by itself.
        let pieces = bytes.div_ceil(self.size.bytes.max(1)).clamp(1, rows.max(1));
        let rows_at_once = rows.div_ceil(pieces).clamp(1, self.size.rows);
        for start in (0..rows).step_by(rows_at_once) {
            let end = (start + rows_at_once).min(rows);
            self.push_uncopied(copied(batch, start..end)?)?;
        }
        Ok(())
    }

    fn push_uncopied(&mut self, batch: RecordBatch) -> Result<(), ArrowError> {
        self.finish()?;
        self.completed.set_biggest_coalesce_batch_size(Some(0));
        let pushed = self.completed.push_batch(batch);
        self.completed.set_biggest_coalesce_batch_size(None);
        pushed
    }
}

/// A copy of some rows of a record batch. A slice would keep the buffers of the whole record batch, and
/// its size would count them.
fn copied(batch: &RecordBatch, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
    let rows = UInt64Array::from_iter_values(rows.start as u64..rows.end as u64);
    take_record_batch(batch, &rows)
}

/// The bytes of the values in a record batch, without the rest of their buffers.
pub fn bytes(batch: &RecordBatch) -> std::result::Result<usize, ArrowError> {
    let columns = batch.columns().iter();
    columns
        .map(|column| column.to_data().get_slice_memory_size())
        .sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
    use futures::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn coalesced_batches_have_the_same_rows() {
        let batch = |first: i64, rows: i64| {
            let numbers: Int64Array = (first..first + rows).collect();
            let names: StringArray = (first..first + rows)
                .map(|number| (number % 3 > 0).then(|| number.to_string()))
                .collect();
            RecordBatch::try_from_iter_with_nullable([
                ("number", Arc::new(numbers) as ArrayRef, false),
                ("name", Arc::new(names), true),
            ])
        };
        let sizes = [1, 0, 700, 9000, 3, 20_000, 0];
        let mut first = 0;
        let batches: Vec<RecordBatch> = sizes
            .into_iter()
            .map(|rows| {
                first += rows;
                batch(first - rows, rows).unwrap()
            })
            .collect();
        let schema = batches[0].schema();
        let found = all_coalesced(batches, BatchSize::default()).await;
        let whole = arrow::compute::concat_batches(&schema, &found).unwrap();
        assert_eq!(whole, batch(0, first).unwrap());
        let (last, others) = found.split_last().unwrap();
        assert!(others.iter().all(|batch| batch.num_rows() == 8192));
        assert!((1..=8192).contains(&last.num_rows()));
    }

    /// The record batches of `batches`, coalesced to `size`.
    async fn all_coalesced(batches: Vec<RecordBatch>, size: BatchSize) -> Vec<RecordBatch> {
        let schema = batches[0].schema();
        let stream = of_batches(schema, batches.into_iter());
        coalesced(stream, size).try_collect().await.unwrap()
    }

    #[tokio::test]
    async fn parts_of_large_buffers_are_copied() {
        let values: StringArray = (0..6000).map(|row| Some(format!("{row:>100}"))).collect();
        let values: ArrayRef = Arc::new(values);
        let whole = RecordBatch::try_from_iter([("value", values)]).unwrap();
        let size = BatchSize {
            rows: 1000,
            bytes: 50_000,
        };
        // One record batch that must be cut, and twenty that refer to the same buffers.
        let parts = (0..6000).step_by(300).map(|start| whole.slice(start, 300));
        for batches in [vec![whole.clone()], parts.collect()] {
            let found = all_coalesced(batches, size).await;
            for batch in &found {
                assert!(batch.get_array_memory_size() < 2 * size.bytes);
            }
            let schema = whole.schema();
            assert!(arrow::compute::concat_batches(&schema, &found).unwrap() == whole);
        }
        // A record batch that fills its buffers is not copied.
        let found = all_coalesced(vec![whole.clone()], BatchSize::default()).await;
        let data = |batch: &RecordBatch| batch.column(0).as_string::<i32>().values().as_ptr();
        assert_eq!(data(&found[0]), data(&whole));
    }

    #[tokio::test]
    async fn coalesced_batches_of_long_values_have_few_rows() {
        // Values of 1 MiB, and every fifth a short one.
        fn value(number: usize) -> String {
            let rest = if number.is_multiple_of(5) { 0 } else { 1 << 20 };
            format!("{number} {}", "x".repeat(rest))
        }
        fn batch(first: usize) -> RecordBatch {
            let values = (first..first + 3).map(|number| Some(value(number)));
            let values: ArrayRef = Arc::new(values.collect::<StringArray>());
            RecordBatch::try_from_iter([("value", values)]).unwrap()
        }
        for rows in [2, 40] {
            let pushed = (0..60).step_by(3).map(batch);
            let bytes = 4 << 20;
            let found = all_coalesced(pushed.collect(), BatchSize { rows, bytes }).await;
            let mut next = 0;
            for batch in &found {
                assert!((1..=rows).contains(&batch.num_rows()));
                let values = batch.column(0).as_string::<i32>();
                assert!(values.values().len() <= bytes);
                for found in values {
                    assert!(found == Some(value(next).as_str()), "{next}");
                    next += 1;
                }
            }
            assert_eq!(next, 60);
        }
    }
}
