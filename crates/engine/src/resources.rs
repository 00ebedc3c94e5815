//! What a process holds for its tasks: the loaded batch, open files, progress.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use archive::fingerprints::FingerprintFile;
use archive::{FingerprintReader, Location};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool};
use tokio::sync::OnceCell;

use crate::batch::{NewBatch, TableOptions};
use crate::error::{EngineError, Result};
use crate::probe::Probe;
use crate::progress::Progress;

/// Shared by all tasks of a process; reached through the session's configuration.
#[derive(Debug, Default)]
pub struct Resources {
    /// How far the run is.
    pub progress: Progress,
    batches: Mutex<HashMap<String, Arc<OnceCell<Arc<NewBatch>>>>>,
    readers: Mutex<HashMap<String, FingerprintReader>>,
}

impl Resources {
    /// The batch that `probe` names, loaded by the first that asks and shared with the others.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be loaded.
    pub async fn batch(&self, probe: &Probe, pool: &Arc<dyn MemoryPool>) -> Result<Arc<NewBatch>> {
        let cell = {
            let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(batches.entry(probe.batch.digest.clone()).or_default())
        };
        let load = || async {
            let file = FingerprintFile::from(&probe.batch);
            let options = TableOptions {
                max_distance: probe.max_distance,
                design: probe.design.clone(),
                queries: probe.queries,
            };
            let free = match pool.memory_limit() {
                MemoryLimit::Finite(limit) => limit.saturating_sub(pool.reserved()),
                _ => usize::MAX,
            };
            let memory = MemoryConsumer::new("new batch").register(pool);
            let loaded =
                tokio::task::spawn_blocking(move || NewBatch::load(&file, &options, memory, free))
                    .await;
            loaded
                .unwrap_or_else(|error| {
                    Err(EngineError::Usage(format!(
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
        let location = Location::parse(path)?;
        let (store, object) = (location.store().clone(), location.path().clone());
        let reader = FingerprintReader::open(path, store, object, size, &probe.columns).await?;
        self.keep(reader.clone(), path);
        Ok(reader)
    }
}
