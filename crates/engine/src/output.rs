//! The output file: whole or not at all, and the same bytes for the same hits.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::{Duration, Instant};

use archive::Location;
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::batch::Id;
use crate::draft::Draft;
use crate::error::{EngineError, Result};

/// Rows handed to the writer at once, a page's rows, and a row group's: multiples of each other, so that the
/// bytes do not depend on how the rows came in.
const PAGE_ROWS: usize = 8192;
const ROW_GROUP_ROWS: usize = 1 << 20;

/// Hits that are complete, but not yet under their name.
#[derive(Debug)]
pub struct StagedOutput {
    draft: Draft,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// Hits that were left out.
    pub left_out: u64,
    /// Seconds spent on encoding and writing.
    pub seconds: f64,
}

/// Writes the stream, whose first column is the new id, as a draft of `target`; of each new document at most its first
/// `max_hits` rows.
///
/// # Errors
/// [`EngineError`] when the stream fails or the file cannot be written; nothing stays behind.
pub async fn stage(
    mut hits: SendableRecordBatchStream,
    schema: &SchemaRef,
    target: &Location,
    scratch: &Path,
    max_hits: Option<u32>,
) -> Result<StagedOutput> {
    let mut draft = Draft::new(target, scratch)?;
    let mut writer = Writer::new(draft.open()?, schema, target)?;
    let mut limit = max_hits.map(FirstRows::new);
    let mut spent = Duration::ZERO;
    while let Some(batch) = hits.next().await {
        let mut batch = batch.map_err(EngineError::query("finding hits"))?;
        let begin = Instant::now();
        if let Some(limit) = &mut limit {
            batch = limit
                .keep(&batch)
                .map_err(|error| writer.arrow_error(error))?;
        }
        writer.write(batch)?;
        spent += begin.elapsed();
    }
    let begin = Instant::now();
    let rows = writer.finish()?;
    let bytes = draft.send().await?;
    spent += begin.elapsed();
    Ok(StagedOutput {
        draft,
        rows,
        bytes,
        left_out: limit.map_or(0, |limit| limit.left_out),
        seconds: spent.as_secs_f64(),
    })
}

/// Keeps the first rows of each new document, in a stream where they stand together.
struct FirstRows {
    limit: u32,
    left_out: u64,
    /// The last new id, and how many rows it has had.
    last: Option<(Id, u32)>,
}

impl FirstRows {
    fn new(limit: u32) -> Self {
        Self {
            limit,
            left_out: 0,
            last: None,
        }
    }

    fn keep(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let ids = batch.column(0);
        let keep: BooleanArray = (0..batch.num_rows())
            .map(|row| {
                let id = Id::of(ids, row);
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

impl StagedOutput {
    /// Where it is for now.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.draft.path()
    }

    /// Gives the file its name, in place of any that had it.
    ///
    /// # Errors
    /// As [`Draft::publish`].
    pub async fn publish(self) -> Result<()> {
        self.draft.publish().await
    }
}

struct Writer {
    writer: ArrowWriter<BufWriter<File>>,
    coalescer: BatchCoalescer,
    schema: SchemaRef,
    object: String,
    rows: u64,
}

impl Writer {
    fn new(file: File, schema: &SchemaRef, target: &Location) -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD))
            .set_write_batch_size(PAGE_ROWS)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("dedup-job ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let object = target.to_string();
        let writer =
            ArrowWriter::try_new_with_options(BufWriter::new(file), schema.clone(), options)
                .map_err(|error| parquet_error(&object, error))?;
        Ok(Self {
            writer,
            coalescer: BatchCoalescer::new(schema.clone(), PAGE_ROWS),
            schema: schema.clone(),
            object,
            rows: 0,
        })
    }

    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        // The plan's fields may be nullable where ours are not.
        let batch = RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())
            .map_err(|e| self.arrow_error(e))?;
        self.coalescer
            .push_batch(batch)
            .map_err(|e| arrow_error(&self.object, e))?;
        self.drain()
    }

    fn finish(mut self) -> Result<u64> {
        self.coalescer
            .finish_buffered_batch()
            .map_err(|e| arrow_error(&self.object, e))?;
        self.drain()?;
        let Self {
            writer,
            object,
            rows,
            ..
        } = self;
        let buffered = writer
            .into_inner()
            .map_err(|error| parquet_error(&object, error))?;
        buffered.into_inner().map_err(|error| EngineError::Io {
            path: object,
            source: error.into_error(),
        })?;
        Ok(rows)
    }

    fn drain(&mut self) -> Result<()> {
        while let Some(batch) = self.coalescer.next_completed_batch() {
            self.writer
                .write(&batch)
                .map_err(|error| parquet_error(&self.object, error))?;
        }
        Ok(())
    }

    fn arrow_error(&self, error: arrow::error::ArrowError) -> EngineError {
        arrow_error(&self.object, error)
    }
}

fn parquet_error(object: &str, source: parquet::errors::ParquetError) -> EngineError {
    archive::ArchiveError::Parquet {
        object: object.to_owned(),
        source,
    }
    .into()
}

fn arrow_error(object: &str, source: arrow::error::ArrowError) -> EngineError {
    archive::ArchiveError::Arrow {
        object: object.to_owned(),
        source,
    }
    .into()
}
