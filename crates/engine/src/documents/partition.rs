//! One partition of the table of documents.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::IdType;
use arrow::array::{Array as _, ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};

use super::file::Batches;
use super::position::position;
use super::rows::limit::Limit;
use super::splits::Split;
use super::{conform, parquet, rows};
use crate::batch::Id;
use crate::error::Result;
use crate::memory;
use crate::resources::Resources;
use crate::stream;

/// The rows of a table of documents.
#[derive(Debug, Clone)]
pub(super) enum Rows {
    /// All.
    All,
    /// All, with the columns of [`KEY_COLUMNS`](super::KEY_COLUMNS).
    WithKeys,
    /// Those with these ids.
    Wanted(Arc<HashSet<Id>>),
}

impl Rows {
    /// The ids that are read; `None` for all.
    fn wanted(&self) -> Option<&Arc<HashSet<Id>>> {
        match self {
            Self::Wanted(wanted) => Some(wanted),
            Self::All | Self::WithKeys => None,
        }
    }
}

/// One partition of the table of documents: reads its splits, one after the other.
#[derive(Clone)]
pub(super) struct Partition {
    pub(super) splits: Vec<Split>,
    /// Whether there are fewer partitions than cores.
    pub(super) cores_to_spare: bool,
    pub(super) schema: SchemaRef,
    pub(super) id_type: IdType,
    pub(super) rows: Rows,
    pub(super) context: SessionContext,
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Partition")
            .field("splits", &self.splits.len())
            .finish_non_exhaustive()
    }
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        // Documents are read by id only after all were read, and counted.
        let counts = self.rows.wanted().is_none();
        let resources = context.session_config().get_extension::<Resources>();
        let resources = resources.filter(|_| counts);
        let partition = self.clone();
        let splits = futures::stream::iter(self.splits.clone());
        let remote = self.splits.iter().any(Split::is_remote);
        let batches = splits
            .map(move |split| {
                let partition = partition.clone();
                async move {
                    let reads_ahead = split.is_remote() && split.rows.is_some();
                    let batches = partition.read(split).await;
                    batches.map(|batches| match reads_ahead {
                        true => stream::read_ahead(batches),
                        false => batches,
                    })
                }
            })
            // In a store, the next split is opened while one is read.
            .buffered(if remote { 2 } else { 1 })
            .try_flatten()
            .inspect_ok(move |batch| {
                if let Some(resources) = &resources {
                    let rows = batch.num_rows() as u64;
                    resources
                        .progress
                        .documents
                        .fetch_add(rows, Ordering::Relaxed);
                }
            })
            .map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

impl Partition {
    /// Reads the rows of a split, in the table's schema.
    async fn read(&self, split: Split) -> Result<Batches> {
        let file = Arc::clone(&split.file);
        let object = split.to_string();
        let conformed = self.conformed(&split, object.clone());
        let Some(rows) = &split.rows else {
            let limit = row_limit(&self.context);
            // A row without an id is an error, but not when only wanted ids are read: it is none of them.
            let by_id = self.rows.wanted().is_some();
            let batches = rows::batches(file, limit, by_id).map(conformed);
            // A separate thread parses the file while another core fingerprints. A file in a store must be read by a
            // thread that may block.
            return Ok(match self.cores_to_spare || split.is_remote() {
                true => stream::read_ahead_on_thread(batches),
                false => futures::stream::iter(batches).boxed(),
            });
        };
        let bytes = memory::limit_bytes(&self.context.runtime_env().memory_pool);
        // Without a column of ids, the rows must be counted, so all are read.
        let wanted = self.wanted_rows().filter(|_| file.columns.id.is_some());
        let raw = parquet::read(&file, rows, object, wanted, bytes).await?;
        Ok(raw.map(conformed).boxed())
    }

    /// A function that converts the batches of a split, in their order, to the table's schema, and keeps the wanted rows.
    /// Errors call the batches `object`.
    fn conformed(
        &self,
        split: &Split,
        object: String,
    ) -> impl FnMut(Result<RecordBatch>) -> Result<RecordBatch> + Send + use<> {
        let (schema, id_type) = (Arc::clone(&self.schema), self.id_type);
        let file = Arc::clone(&split.file);
        let wanted = self.rows.wanted().cloned();
        let (file_number, mut next_row) = (split.file_number, split.first_row());
        move |batch: Result<RecordBatch>| {
            let mut batch = batch?;
            let first = next_row;
            next_row += batch.num_rows() as u64;
            let columns = &file.columns;
            let mut ids = conform::ids(&batch, columns, &file.short_name, first, &object)?;
            if let Some(wanted) = &wanted {
                let failed = |source| archive::ArchiveError::Arrow {
                    object: object.clone(),
                    source,
                };
                let kept = are_wanted(&ids, id_type, wanted).map_err(failed)?;
                batch = arrow::compute::filter_record_batch(&batch, &kept).map_err(failed)?;
                ids = arrow::compute::filter(&ids, &kept).map_err(failed)?;
            }
            let place = position(file_number, first);
            conform::conform(&batch, &ids, &schema, id_type, columns, place, &object)
        }
    }

    /// The filter that tells which ids of a Parquet file are wanted; `None` when all are.
    fn wanted_rows(&self) -> Option<parquet::WantedRows> {
        let (wanted, id_type) = (self.rows.wanted().cloned()?, self.id_type);
        Some(Box::new(move |ids: &ArrayRef| {
            are_wanted(ids, id_type, &wanted)
        }))
    }
}

/// Which ids of a file are wanted. An id that cannot be converted to `id_type` is not.
fn are_wanted(
    ids: &ArrayRef,
    id_type: IdType,
    wanted: &HashSet<Id>,
) -> Result<BooleanArray, ArrowError> {
    let lossy = || arrow::compute::cast(ids, &id_type.data_type());
    let ids = archive::reader::to_id_type(ids, id_type).or_else(|_| lossy())?;
    let is_wanted = |row| ids.is_valid(row) && wanted.contains(&Id::read(&ids, row));
    Ok((0..ids.len()).map(|row| Some(is_wanted(row))).collect())
}

/// The limits of each reader of rows, when as many read as can do so at the same time.
pub(super) fn row_limit(context: &SessionContext) -> Limit {
    let runtime = context.runtime_env();
    let pool = &runtime.memory_pool;
    let bytes = memory::limit_bytes(pool);
    let config = context.copied_config();
    let threads = config.target_partitions();
    let (threads, share) = match config.get_extension::<Resources>() {
        Some(resources) => resources.fetch_limits(threads, pool),
        None => (threads, bytes),
    };
    // A task of an executor has one thread and a share of the memory, so there are as many threads as shares.
    Limit::from_memory(bytes, threads.saturating_mul(bytes / share.max(1)))
}
