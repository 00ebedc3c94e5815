//! What a process holds for its tasks: the loaded batch, open files, progress.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use archive::{FingerprintReader, Stores};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::prelude::SessionContext;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::batch::NewBatch;
use crate::error::{EngineError, Result};
use crate::probe::{BatchName, Probe};
use crate::progress::Progress;

/// Batches by digest; each is loaded by the first that asks.
type Batches = Arc<Mutex<HashMap<String, Arc<OnceCell<Arc<NewBatch>>>>>>;

/// Shared by all tasks of a run in a process; reached through the session's configuration.
#[derive(Debug, Default)]
pub struct Resources {
    /// How far the run is; in an executor, how far one task of it is.
    pub progress: Progress,
    /// The stores behind paths.
    pub stores: Stores,
    batches: Batches,
    readers: Arc<Mutex<HashMap<String, FingerprintReader>>>,
    /// Where batches are put that another process made; `None` where this one made them.
    received: Option<PathBuf>,
    /// Permits to compute, where more tasks run than there are cores for.
    cores: Option<Arc<Semaphore>>,
    /// Tasks that run at the same time, where each fetches ahead for itself.
    tasks: Option<usize>,
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

    /// What an executor has for a run: batches come from another process, by way of `directory` where they are in a store,
    /// and are checked; as many of its tasks, of which `tasks` run at the same time, compute as `cores` has permits.
    #[must_use]
    pub fn executor(
        stores: Stores,
        directory: PathBuf,
        cores: Arc<Semaphore>,
        tasks: usize,
    ) -> Self {
        Self {
            stores,
            received: Some(directory),
            cores: Some(cores),
            tasks: Some(tasks),
            ..Self::default()
        }
    }

    /// Threads and bytes for what is fetched ahead together.
    pub(crate) fn ahead(&self, threads: usize, pool: &Arc<dyn MemoryPool>) -> (usize, usize) {
        match self.tasks {
            Some(tasks) => (1, limit(pool) / tasks.max(1)),
            None => (threads, limit(pool)),
        }
    }

    /// Lets go of the batches that are loaded.
    pub fn release_batches(&self) {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.clear();
    }

    /// Waits until there is a core to compute on.
    pub async fn core(&self) -> Option<OwnedSemaphorePermit> {
        match &self.cores {
            // It is never closed.
            Some(cores) => Arc::clone(cores).acquire_owned().await.ok(),
            None => None,
        }
    }

    /// The same, with a progress of its own.
    #[must_use]
    pub fn another_task(&self) -> Self {
        Self {
            progress: Progress::default(),
            stores: self.stores.clone(),
            batches: Arc::clone(&self.batches),
            readers: Arc::clone(&self.readers),
            received: self.received.clone(),
            cores: self.cores.clone(),
            tasks: self.tasks,
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
        cell.get_or_try_init(|| self.load(name, pool))
            .await
            .cloned()
    }

    async fn load(&self, name: &BatchName, pool: &Arc<dyn MemoryPool>) -> Result<Arc<NewBatch>> {
        let location = self.stores.locate(&name.location)?;
        let mut copy = None;
        let path = match (location.local(), &self.received) {
            (Some(local), _) => local.to_owned(),
            (None, None) => {
                return Err(EngineError::Internal("a batch of another process".into()));
            }
            (None, Some(directory)) => {
                let io = |source| EngineError::Io {
                    path: directory.display().to_string(),
                    source,
                };
                let file = tempfile::NamedTempFile::new_in(directory).map_err(io)?;
                let (file, path) = file.into_parts();
                let copied = location.copy_to(file).await?;
                if copied != name.bytes {
                    return Err(EngineError::BadData {
                        object: location.to_string(),
                        reason: format!("it has {copied} bytes, and should have {}", name.bytes),
                    });
                }
                copy.insert(path).to_path_buf()
            }
        };
        let (file, pool) = (name.file(path), Arc::clone(pool));
        let is_received = self.received.is_some();
        let loaded = tokio::task::spawn_blocking(move || match is_received {
            true => NewBatch::load_checked(&file, &pool),
            false => NewBatch::load(&file, &pool),
        });
        let loaded = loaded.await.unwrap_or_else(|error| {
            Err(EngineError::Internal(format!(
                "loading the new batch failed: {error}"
            )))
        });
        drop(copy);
        loaded.map(Arc::new)
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
