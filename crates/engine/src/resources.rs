//! What the tasks of a process share: stores, the loaded batch, open files, progress.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use archive::{ColumnNames, FingerprintReader, TailFacts};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::prelude::SessionContext;
use storage::Stores;
use tokio::sync::OnceCell;

use crate::batch::{Batch, BatchRef};
use crate::error::{EngineError, Result};
use crate::progress::Progress;

/// Batches by digest; the first task that asks for one loads it.
type Batches = Mutex<HashMap<String, Arc<OnceCell<Arc<Batch>>>>>;

/// What the tasks of a run share within one process. It is an extension of the session's
/// configuration.
#[derive(Debug, Default)]
pub struct Resources {
    /// Progress of the command.
    pub progress: Progress,
    /// The stores behind paths.
    pub stores: Stores,
    batches: Batches,
    readers: Mutex<HashMap<String, FingerprintReader>>,
    /// Bytes of files that the system's cache can hold, besides everything else; `None` for any.
    cache: Option<u64>,
    /// Directory for copies of batches that another process made; unset if this process makes them.
    received: OnceLock<PathBuf>,
}

/// Calls `load` on a blocking thread, and turns its panic into an error. `received` names the file
/// if another process wrote it. A panic then means bad data, because the Parquet reader panics at
/// some damaged files; otherwise it is an internal error.
async fn load_on_thread(
    load: impl FnOnce() -> Result<Batch> + Send + 'static,
    received: Option<String>,
) -> Result<Batch> {
    let loaded = tokio::task::spawn_blocking(load).await;
    loaded.unwrap_or_else(|error| {
        Err(match received {
            Some(object) if error.is_panic() => EngineError::BadData {
                object,
                reason: "it is damaged: its reader panicked".into(),
            },
            _ => EngineError::Internal(format!("loading the batch failed: {error}")),
        })
    })
}

impl Resources {
    /// The resources of a process that reads and writes through `stores`.
    #[must_use]
    pub fn new(stores: Stores) -> Self {
        Self {
            stores,
            ..Self::default()
        }
    }

    /// The same for a system whose cache can hold `bytes` bytes of files: larger archives are read past it.
    #[must_use]
    pub fn with_cache(self, bytes: u64) -> Self {
        Self {
            cache: Some(bytes),
            ..self
        }
    }

    /// Whether files of `bytes` bytes are more than the system's cache can hold.
    pub(crate) fn exceeds_cache(&self, bytes: u64) -> bool {
        self.cache.is_some_and(|cache| bytes > cache)
    }

    /// Notes that another process made the batches, as for parts of a job: this process checks them, and copies those in a store to
    /// `directory`.
    pub fn receive_batches(&self, directory: PathBuf) {
        // The directory of a process is always the same.
        let _ = self.received.set(directory);
    }

    /// Forgets the loaded batches; the last task that uses one frees it.
    pub fn release_batches(&self) {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches.clear();
    }

    /// The resources of a session.
    ///
    /// # Errors
    /// [`EngineError::Internal`] when the session is not one of this engine's.
    pub fn from_session(context: &SessionContext) -> Result<Arc<Self>> {
        let resources = context.state().config().get_extension::<Self>();
        resources.ok_or_else(|| EngineError::Internal("a session of another engine".into()))
    }

    /// The batch of `reference`; the first task that asks loads it.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be loaded.
    pub async fn batch(
        &self,
        reference: &BatchRef,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Arc<Batch>> {
        let cell = {
            let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(batches.entry(reference.digest.clone()).or_default())
        };
        cell.get_or_try_init(|| self.load(reference, pool))
            .await
            .cloned()
    }

    async fn load(&self, reference: &BatchRef, pool: &Arc<dyn MemoryPool>) -> Result<Arc<Batch>> {
        let location = self.stores.locate(&reference.location)?;
        let mut copy = None;
        let path = match (location.local(), self.received.get()) {
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
                if copied != reference.bytes {
                    return Err(EngineError::BadData {
                        object: location.to_string(),
                        reason: format!(
                            "it has {copied} bytes, and should have {}",
                            reference.bytes
                        ),
                    });
                }
                copy.insert(path).to_path_buf()
            }
        };
        let (file, pool) = (reference.file(path), Arc::clone(pool));
        let is_received = self.received.get().is_some();
        let load = move || {
            if is_received {
                Batch::load_checked(&file, &pool)
            } else {
                Batch::load(&file, &pool)
            }
        };
        let received = is_received.then(|| location.to_string());
        let loaded = load_on_thread(load, received).await;
        drop(copy);
        loaded.map(Arc::new)
    }

    /// Keeps the reader of an open file for the tasks that call [`Self::reader`] with its `path`.
    pub fn keep_reader(&self, reader: FingerprintReader, path: &str) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.insert(path.to_owned(), reader);
    }

    /// The reader of the file at `path`; opens the file unless it is open.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be opened.
    pub async fn reader(
        &self,
        path: &str,
        size: u64,
        facts: &TailFacts,
        columns: &ColumnNames,
    ) -> Result<FingerprintReader> {
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
        let reader = FingerprintReader::open(path, &location, size, columns, facts).await?;
        self.keep_reader(reader.clone(), path);
        Ok(reader)
    }
}

#[cfg(test)]
mod tests {
    use storage::ErrorKind;

    use super::*;

    /// A damaged batch from another process is bad data, not an internal error.
    #[tokio::test]
    async fn a_panic_at_a_received_batch_is_bad_data() {
        let load = |received: Option<String>| {
            load_on_thread(|| panic!("a panic that the test expects"), received)
        };
        let error = load(Some("s3://crawl/batch".into())).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("s3://crawl/batch"), "{error}");
        let error = load(None).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
