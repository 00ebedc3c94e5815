//! The outputs of pairs and of decisions: whole or not at all, and the same bytes for the same pairs.

mod encode;
mod existing;
mod read;
mod target;

use std::path::Path;
use std::time::{Duration, Instant};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use encode::{Encoder, arrow_error};
use futures::StreamExt as _;
use storage::Draft;

pub use existing::{COMPONENT_COLUMNS, OutputKind, Present, REPORT_START, may_replace, present};
pub use read::{ReadPair, ReadRow, read_rows};
pub use target::{OutputFormat, OutputTarget};

use crate::error::{EngineError, Result};
use crate::pairs::{self, Pairs};
use documents::DocumentId;

/// Rows of a page, and of a record batch that the encoder gets. So the bytes do not depend on the
/// sizes of the incoming record batches.
const PAGE_ROWS: usize = 8192;
/// Rows of a row group, a multiple of [`PAGE_ROWS`].
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Bytes of a row group, about: it is in memory until it is complete, and carried columns may have long values.
const ROW_GROUP_BYTES: usize = 256 << 20;

/// An output whose rows are all written, but which is not published yet.
#[derive(Debug)]
pub struct DraftOutput {
    pub draft: Draft,
    pub rows: u64,
    pub bytes: u64,
    /// Pairs left out because their document has `max_hits` nearer ones.
    pub left_out: u64,
    /// Seconds spent on encoding and writing.
    pub seconds: f64,
}

/// Writes rows of `schema` as a draft of `target`. With `max_hits`, the rows must be pairs, of
/// which only the first `max_hits` of each new id are written.
///
/// # Errors
/// [`EngineError`] when the stream fails or the file cannot be written; no file is left behind.
pub async fn write_draft(
    mut pairs: SendableRecordBatchStream,
    schema: &SchemaRef,
    target: &OutputTarget,
    scratch: &Path,
    max_hits: Option<u32>,
) -> Result<DraftOutput> {
    let mut draft = match target.location() {
        Some(location) => Draft::new(location, scratch)?,
        None => Draft::to_stdout(scratch)?,
    };
    let mut writer = Writer {
        encoder: Encoder::new(target.format, draft.open()?, schema, target.to_string())?,
        coalescer: BatchCoalescer::new(schema.clone(), PAGE_ROWS),
        schema: schema.clone(),
        rows: 0,
    };
    let mut limit = max_hits.map(|limit| FirstRows {
        limit,
        left_out: 0,
        last: None,
    });
    let mut spent = Duration::ZERO;
    while let Some(batch) = pairs.next().await {
        let mut batch = batch.map_err(EngineError::query("making the output"))?;
        let begin = Instant::now();
        if let Some(limit) = &mut limit {
            batch = limit.keep(&batch).map_err(|e| writer.arrow_error(e))?;
        }
        writer.write(batch)?;
        spent += begin.elapsed();
    }
    let begin = Instant::now();
    let rows = writer.finish()?;
    let bytes = draft.send().await?;
    spent += begin.elapsed();
    Ok(DraftOutput {
        draft,
        rows,
        bytes,
        left_out: limit.map_or(0, |limit| limit.left_out),
        seconds: spent.as_secs_f64(),
    })
}

/// Passes on the first rows of each new id, in a stream where the rows of an id are adjacent.
struct FirstRows {
    limit: u32,
    left_out: u64,
    /// The last id, and the number of its rows so far.
    last: Option<(DocumentId, u32)>,
}

impl FirstRows {
    fn keep(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let ids = Pairs::read(batch)?.new_ids;
        let keep: BooleanArray = (0..batch.num_rows())
            .map(|row| {
                let id = DocumentId::read(ids, row);
                let before = match &self.last {
                    Some((last, rows)) if *last == id => *rows,
                    _ => 0,
                };
                self.last = Some((id, before + 1));
                self.left_out += u64::from(before >= self.limit);
                Some(before < self.limit)
            })
            .collect();
        arrow::compute::filter_record_batch(batch, &keep)
    }
}

/// Hands rows to the encoder in record batches of [`PAGE_ROWS`] rows, whatever the sizes of the
/// incoming ones.
struct Writer {
    encoder: Encoder,
    coalescer: BatchCoalescer,
    schema: SchemaRef,
    rows: u64,
}

impl Writer {
    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        // The plan's fields may be nullable where ours are not.
        let batch = pairs::record_batch(&self.schema, &[], Some(&batch));
        let batch = batch.map_err(|e| self.arrow_error(e))?;
        let pushed = self.coalescer.push_batch(batch);
        pushed.map_err(|e| self.arrow_error(e))?;
        self.drain()
    }

    fn finish(mut self) -> Result<u64> {
        let finished = self.coalescer.finish_buffered_batch();
        finished.map_err(|e| self.arrow_error(e))?;
        self.drain()?;
        self.encoder.finish()?;
        Ok(self.rows)
    }

    fn drain(&mut self) -> Result<()> {
        while let Some(batch) = self.coalescer.next_completed_batch() {
            self.encoder.write(&batch)?;
        }
        Ok(())
    }

    fn arrow_error(&self, error: ArrowError) -> EngineError {
        arrow_error(&self.encoder.object)(error)
    }
}
