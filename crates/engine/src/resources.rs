//! What a process holds for its tasks: the loaded batch, open files, progress.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use archive::fingerprints::FingerprintFile;
use archive::{FingerprintReader, Stores};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::prelude::SessionContext;
use tokio::sync::OnceCell;

use crate::batch::NewBatch;
use crate::error::{EngineError, Result};
use crate::probe::{BatchName, Probe};
use crate::progress::Progress;

/// Shared by all tasks of a process; reached through the session's configuration.
#[derive(Debug, Default)]
pub struct Resources {
    /// How far the run is.
    pub progress: Progress,
    /// The stores behind paths.
    pub stores: Stores,
    batches: Mutex<HashMap<String, Arc<OnceCell<Arc<NewBatch>>>>>,
    readers: Mutex<HashMap<String, FingerprintReader>>,
}

/// Bytes of the pool.
pub(crate) fn limit(pool: &Arc<dyn MemoryPool>) -> usize {
    match pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit,
        _ => usize::MAX,
    }
}

/// Bytes that are free in the pool.
pub(crate) fn free(pool: &Arc<dyn MemoryPool>) -> usize {
    limit(pool).saturating_sub(pool.reserved())
}

impl Resources {
    /// What a process has that reaches its data through `stores`.
    #[must_use]
    pub fn new(stores: Stores) -> Self {
        Self {
            stores,
            ..Self::default()
        }
    }

    /// What the process of a session has.
    ///
    /// # Errors
    /// When the session is none of this engine's.
    pub fn of(context: &SessionContext) -> Result<Arc<Self>> {
        let resources = context.state().config().get_extension::<Self>();
        resources.ok_or_else(|| EngineError::Internal("a session of another engine".into()))
    }

    /// The batch called `name`, loaded by the first that asks and shared with the others.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be loaded.
    pub async fn batch(
        &self,
        name: &BatchName,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Arc<NewBatch>> {
        let cell = {
            let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(batches.entry(name.digest.clone()).or_default())
        };
        let load = || async {
            let (file, pool) = (FingerprintFile::from(name), Arc::clone(pool));
            let loaded = tokio::task::spawn_blocking(move || NewBatch::load(&file, &pool)).await;
            loaded
                .unwrap_or_else(|error| {
                    Err(EngineError::Internal(format!(
                        "loading the new batch failed: {error}"
                    )))
                })
                .map(Arc::new)
        };
        cell.get_or_try_init(load).await.cloned()
    }

    /// Remembers an open file, so that tasks need not open it again.
    pub fn keep(&self, reader: FingerprintReader, path: &str) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.insert(path.to_owned(), reader);
    }

    /// The file at `path`, opened unless it is already.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be opened.
    pub async fn reader(&self, path: &str, size: u64, probe: &Probe) -> Result<FingerprintReader> {
        let open = self
            .readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned();
        if let Some(reader) = open {
            return Ok(reader);
        }
        let location = self.stores.locate(path)?;
        let reader = FingerprintReader::open(path, &location, size, &probe.columns).await?;
        self.keep(reader.clone(), path);
        Ok(reader)
    }
}
