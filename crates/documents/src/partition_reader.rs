//! Reads one partition of the table of documents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::IdType;
use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _};

use super::columns::Content;
use super::file::{Batches, NumberedRows};
use super::held_texts::HeldTexts;
use super::row_set::position;
use super::rows::limit::Limit;
use super::rows::{ReadRows, RowsToRead, WantedRows};
use super::splits::Split;
use super::wanted_rows::{Rows, are_wanted};
use super::{conform, parquet, rows};
use crate::error::Result;
use crate::read_counts::{Note, ReadCounters};
use crate::session::Reading;

/// Bytes of files in a store that a partition opens ahead.
const AHEAD_BYTES: u64 = 8 << 20;
/// Files in a store that a partition opens ahead at most. Each occupies a thread.
const MAX_AHEAD: u64 = 32;

/// One partition of the table of documents: reads its splits, one after the other.
#[derive(Clone)]
pub(super) struct PartitionReader {
    pub(super) splits: Arc<[Split]>,
    pub(super) schema: SchemaRef,
    pub(super) id_type: IdType,
    pub(super) rows: Rows,
    /// Count the records and take notes; `None` if another pass does.
    pub(super) counters: Option<Arc<ReadCounters>>,
    /// Holds texts that are read; `None` if another pass does.
    pub(super) held_texts: Option<Arc<HeldTexts>>,
    pub(super) context: SessionContext,
}

impl std::fmt::Debug for PartitionReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionReader")
            .field("splits", &self.splits.len())
            .finish_non_exhaustive()
    }
}

impl PartitionStream for PartitionReader {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let partition = self.clone();
        let all = Arc::clone(&self.splits);
        let splits = (0..all.len()).map(move |number| all[number].clone());
        let splits = futures::stream::iter(splits);
        let in_flight = in_flight(&self.splits);
        let batches = splits
            .map(move |split| {
                let partition = partition.clone();
                if !split.is_remote() {
                    return async move { partition.read(split).await }.boxed();
                }
                // As a task, it begins before the splits in front of it are read.
                let task = SpawnedTask::spawn(async move { partition.read(split).await });
                streams::ended(task).boxed()
            })
            .buffered(in_flight)
            .try_flatten();
        self.counted(batches, &context)
    }
}

/// Splits that a partition opens at the same time: of files in a store, the next ones while one is read; the more, the smaller they
/// are.
fn in_flight(splits: &[Split]) -> usize {
    if !splits.iter().any(Split::is_remote) {
        return 1;
    }
    // Every open file has a thread that parses it at once, and a small compressed file may decompress to a large record.
    if splits.iter().any(Split::is_compressed) {
        return 2;
    }
    let largest = splits.iter().map(Split::file_bytes).max().unwrap_or(0);
    (AHEAD_BYTES / largest.max(1)).clamp(2, MAX_AHEAD) as usize
}

impl PartitionReader {
    /// The stream of record batches, whose documents are counted.
    pub(super) fn counted(
        &self,
        batches: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
        context: &TaskContext,
    ) -> SendableRecordBatchStream {
        // A run reads and counts all documents once: do not count some of them, or their carried columns, again.
        let has_content = |split: &Split| split.file.columns.content.is_some();
        let counts = matches!(self.rows, Rows::All | Rows::WithDecisionColumns)
            && self.splits.iter().all(has_content);
        let reading = context.session_config().get_extension::<Reading>();
        let reading = reading.filter(|_| counts);
        let held_texts = self.held_texts.clone();
        let batches = batches.inspect_ok(move |batch| {
            if let Some(held_texts) = &held_texts {
                held_texts.add(batch);
            }
            if let Some(reading) = &reading {
                let rows = batch.num_rows() as u64;
                reading.documents.fetch_add(rows, Ordering::Relaxed);
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches.map_err(Into::into),
        ))
    }

    /// The rows of a split of a row file. A file in a store must be read on a blocking thread.
    pub(super) fn rows_of(
        &self,
        split: &Split,
    ) -> impl Iterator<Item = Result<ReadRows>> + Send + use<> {
        let reading = RowsToRead {
            part: split.bytes_of_part.clone(),
            limit: row_limit(&self.context),
            id_type: self.id_type,
            // A row without an id is an error, unless only wanted ids are read: such a row is not wanted.
            null_ids: matches!(self.rows, Rows::Wanted(_)),
            wanted: self.wanted_numbers(split),
            counters: self.counters.clone(),
        };
        rows::batches(Arc::clone(&split.file), reading)
    }

    /// Which rows of a split are wanted, by their numbers in its part; `None` if their numbers do not say it.
    fn wanted_numbers(&self, split: &Split) -> Option<WantedRows> {
        let Rows::At(set) = &self.rows else {
            return None;
        };
        let (set, part_number) = (Arc::clone(set), split.part_number);
        Some(Arc::new(move |row: u64| set.contains(part_number, row)))
    }

    /// Reads the rows of a split, in the table's schema.
    async fn read(&self, split: Split) -> Result<Batches> {
        let file = Arc::clone(&split.file);
        let object = split.to_string();
        let conformed = self.conformed(&split, object.clone());
        let Some(rows) = &split.rows else {
            let rows = self.rows_of(&split);
            let rows = rows.map(|rows| rows.and_then(|rows| rows()));
            let batches = rows.filter_map(Result::transpose).map(conformed);
            // A file in a store must be read on a blocking thread.
            return Ok(if split.is_remote() {
                streams::read_ahead_on_thread(batches)
            } else {
                futures::stream::iter(batches).boxed()
            });
        };
        let bytes = streams::limit_bytes(&self.context.runtime_env().memory_pool);
        let raw = parquet::read(&file, rows, object, self.wanted_rows(&split), bytes).await?;
        // The reader skips the other rows.
        let wanted = self.wanted_numbers(&split);
        let is_read = move |row: &u64| wanted.as_ref().is_none_or(|wanted| wanted(*row));
        let mut numbers = (split.first_row()..).filter(is_read);
        let numbered = move |rows: RecordBatch| {
            let numbers = numbers.by_ref().take(rows.num_rows()).collect();
            NumberedRows { rows, numbers }
        };
        let batches = raw.map_ok(numbered).map(conformed).boxed();
        Ok(if split.is_remote() {
            streams::read_ahead(batches)
        } else {
            batches
        })
    }

    /// Returns a function that converts the rows of a split to the table's schema, and keeps the selected ones. Errors name the
    /// split `object`.
    pub(super) fn conformed(
        &self,
        split: &Split,
        object: String,
    ) -> impl Fn(Result<NumberedRows>) -> Result<RecordBatch> + Send + Sync + use<> {
        let (schema, id_type) = (Arc::clone(&self.schema), self.id_type);
        let file = Arc::clone(&split.file);
        let (selected, wanted_numbers) = (self.rows.clone(), self.wanted_numbers(split));
        let counters = self.counters.clone();
        let (file_number, part_number) = (split.file_number, split.part_number);
        move |batch: Result<NumberedRows>| {
            let batch = batch?;
            let (mut batch, mut rows) = (batch.rows, batch.numbers);
            let failed = archive::ArchiveError::arrow(&object);
            let columns = &file.columns;
            let positions = |rows: &[u64]| {
                let positions = rows.iter().map(|&row| position(part_number, row));
                Int64Array::from_iter_values(positions)
            };
            if columns.content.is_none() {
                let positions = positions(&rows);
                return conform::conform_carried(&batch, &schema, columns, positions, &object);
            }
            let mut ids = conform::ids(&batch, columns, &file.short_name, &rows, &object)?;
            let kept: Option<BooleanArray> = match (&selected, &wanted_numbers) {
                (Rows::Wanted(ids_wanted), _) => {
                    Some(are_wanted(&ids, id_type, ids_wanted).map_err(&failed)?)
                }
                (_, Some(wanted)) => Some(rows.iter().map(|row| Some(wanted(*row))).collect()),
                _ => None,
            };
            if let Some(kept) = kept {
                batch = arrow::compute::filter_record_batch(&batch, &kept).map_err(&failed)?;
                ids = arrow::compute::filter(&ids, &kept).map_err(&failed)?;
                let mut kept = kept.values().iter();
                rows.retain(|_| kept.next().unwrap_or(false));
            }
            let positions = positions(&rows);
            let places = (file_number, positions);
            let table = conform::conform(&batch, &ids, &schema, id_type, columns, places, &object)?;
            if let (Some(counters), Some(Content::Text(_))) = (&counters, &columns.content) {
                let file = file.location.to_string();
                for (note, number) in unread(table.column(1)) {
                    counters.note(note, number, &file);
                }
            }
            Ok(table)
        }
    }

    /// Which rows of a split the Parquet reader returns; `None` for all.
    fn wanted_rows(&self, split: &Split) -> Option<parquet::WantedRows> {
        match &self.rows {
            Rows::All | Rows::WithDecisionColumns => None,
            // In a file without an id column, the ids are row numbers, so the reader returns all
            // rows.
            Rows::Wanted(_) if split.file.columns.id.is_none() => None,
            Rows::Wanted(wanted) => {
                let (wanted, id_type) = (Arc::clone(wanted), self.id_type);
                let accept = move |ids: &ArrayRef| are_wanted(ids, id_type, &wanted);
                Some(parquet::WantedRows::WithIds(Box::new(accept)))
            }
            Rows::At(_) => {
                let (wanted, first) = (self.wanted_numbers(split)?, split.first_row());
                let accept = move |row: u64| wanted(first + row);
                Some(parquet::WantedRows::AtRows(Box::new(accept)))
            }
        }
    }
}

/// How many texts are missing or empty, or were read in a wrong encoding.
fn unread(texts: &ArrayRef) -> [(Note, u64); 3] {
    let texts = texts.as_binary_view();
    let is_empty = |text: &&[u8]| text.trim_ascii_start().is_empty();
    let is_garbled = |text: &&[u8]| match simdutf8::basic::from_utf8(text) {
        Ok(text) => simhash::is_garbled(text),
        Err(_) => simhash::is_garbled(&String::from_utf8_lossy(text)),
    };
    let garbled = texts.iter().flatten().filter(is_garbled).count();
    let empty = texts.iter().flatten().filter(is_empty).count();
    [
        (Note::WithoutText, texts.null_count() as u64),
        (Note::Empty, empty as u64),
        (Note::Garbled, garbled as u64),
    ]
}

/// The memory limits of one reader of a row file, if all threads of the process read row files.
pub(super) fn row_limit(context: &SessionContext) -> Limit {
    let runtime = context.runtime_env();
    let pool = &runtime.memory_pool;
    let threads = context.state().config().target_partitions();
    Limit::from_memory(streams::limit_bytes(pool), threads)
}
