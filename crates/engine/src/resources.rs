//! What the tasks of a process share: stores, the loaded batch, open files, progress.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use archive::{ArchiveError, ColumnNames, Encoded, FingerprintFile, FingerprintReader, Tail};
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::prelude::SessionContext;
use storage::{StorageError, Stores};
use tokio::sync::OnceCell;

use crate::batch::Batch;
use crate::error::{EngineError, Result};
use crate::progress::Progress;
use crate::work_items::WorkItem;
use streams::{ended, locked};

/// The most bytes of a row group that is fetched before its part is done.
const AHEAD_BYTES: u64 = 1 << 20;

/// The file of a row group, and what has its bytes.
pub(crate) type RowGroupBytes = (FingerprintReader, Encoded);
/// Row groups that are being fetched, by file and number.
type Ahead = HashMap<(String, u32), SpawnedTask<datafusion::error::Result<RowGroupBytes>>>;
/// Batches by digest; the first task that asks for one loads it.
type Batches = Mutex<HashMap<String, Arc<OnceCell<Arc<Batch>>>>>;

/// What the tasks of a run share within one process. It is an extension of the session's
/// configuration.
#[derive(Debug, Default)]
pub struct Resources {
    pub progress: Progress,
    pub stores: Stores,
    batches: Batches,
    readers: Mutex<HashMap<String, FingerprintReader>>,
    /// Those of the next parts.
    ahead: Mutex<Ahead>,
    /// Bytes of files that the system's cache can hold, besides everything else; `None` for any. Larger archives are read past it.
    pub cache: Option<u64>,
}

async fn load(file: &FingerprintFile, pool: &Arc<dyn MemoryPool>) -> Result<Arc<Batch>> {
    let (file, pool) = (file.clone(), Arc::clone(pool));
    let loaded = tokio::task::spawn_blocking(move || Batch::load(&file, &pool)).await;
    // The Parquet reader panics at some damaged files.
    let stopped = |error| EngineError::Internal(format!("loading the batch failed: {error}"));
    loaded.map_err(stopped)?.map(Arc::new)
}

impl Resources {
    pub fn new(stores: Stores) -> Self {
        Self {
            stores,
            ..Self::default()
        }
    }

    /// The resources of a session.
    ///
    /// # Errors
    /// [`EngineError::Internal`] when the session is not one of this engine's.
    pub fn from_session(context: &SessionContext) -> Result<Arc<Self>> {
        let resources = context.state().config().get_extension::<Self>();
        resources.ok_or_else(|| EngineError::Internal("a session of another engine".into()))
    }

    /// The batch of `file`; the first task that asks loads it.
    pub async fn batch(
        &self,
        file: &FingerprintFile,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Arc<Batch>> {
        let digest = file.digest.clone();
        let cell = Arc::clone(locked(&self.batches).entry(digest).or_default());
        cell.get_or_try_init(|| load(file, pool)).await.cloned()
    }

    /// Keeps the reader of an open file for the tasks that call [`Self::reader`] with its `path`.
    pub fn keep_reader(&self, reader: FingerprintReader, path: &str) {
        locked(&self.readers).insert(path.to_owned(), reader);
    }

    /// The reader of the file at `path`; opens the file unless it is open.
    pub async fn reader(
        &self,
        path: &str,
        size: u64,
        tail: Option<Tail>,
        columns: &ColumnNames,
    ) -> Result<FingerprintReader> {
        let open = locked(&self.readers).get(path).cloned();
        if let Some(reader) = open {
            return Ok(reader);
        }
        let location = self.stores.locate(path)?;
        let reader = FingerprintReader::open(path, &location, size, columns, tail).await;
        // It was there when the work was planned.
        let reader = reader.map_err(|error| match tail {
            _ if !error.is_not_found() => error,
            Some(_) => ArchiveError::missing(path),
            None => StorageError::Gone { path: path.into() }.into(),
        })?;
        self.keep_reader(reader.clone(), path);
        Ok(reader)
    }

    /// Fetches the row group of an item, or waits for what [`Self::fetch_ahead`] fetches.
    pub(crate) async fn row_group(
        &self,
        item: &WorkItem,
        columns: &ColumnNames,
    ) -> datafusion::error::Result<RowGroupBytes> {
        let key = item.row_group();
        let ahead = key.and_then(|key| locked(&self.ahead).remove(&key));
        match ahead {
            Some(task) => ended(task).await,
            None => self.fetch_row_group(item, columns).await,
        }
    }

    async fn fetch_row_group(
        &self,
        item: &WorkItem,
        columns: &ColumnNames,
    ) -> datafusion::error::Result<RowGroupBytes> {
        let WorkItem::RowGroup {
            file,
            size,
            row_group,
            tail,
            ..
        } = item
        else {
            return Err(EngineError::Internal("the batch is no row group".into()).into());
        };
        let reader = self.reader(file, *size, *tail, columns).await?;
        let encoded = reader.fetch(*row_group as usize).await;
        Ok((reader, encoded.map_err(EngineError::from)?))
    }

    /// Begins to fetch a small row group in a store.
    pub(crate) fn fetch_ahead(self: &Arc<Self>, item: &WorkItem, columns: &ColumnNames) {
        if let Some(key) = item.row_group()
            && item.is_remote()
            && item.bytes() <= AHEAD_BYTES
        {
            let (resources, item, columns) = (Arc::clone(self), item.clone(), columns.clone());
            let task = async move { resources.fetch_row_group(&item, &columns).await };
            // A round may probe the same row groups twice.
            let mut ahead = locked(&self.ahead);
            ahead.entry(key).or_insert_with(|| SpawnedTask::spawn(task));
        }
    }

    /// Drops what [`Self::fetch_ahead`] fetches of an item that is not needed any more.
    pub(crate) fn forget_ahead(&self, item: &WorkItem) {
        if let Some(key) = item.row_group() {
            locked(&self.ahead).remove(&key);
        }
    }
}
