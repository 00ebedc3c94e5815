//! [`RunCache`] holds what an executor's tasks of one run share: the batch with its tables, the
//! open files, and the fingerprint model.
//!
//! Ballista 55 shares nothing but a `RuntimeEnv` between the tasks of a session, and builds all
//! else anew for each task. The batch's tables take seconds to build, so the first task of a run
//! builds them, and the others find them here. Each run has its own connections to stores, because
//! a connection pins each object to the size and entity tag that it saw first, and the object may
//! change between runs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use datafusion::execution::TaskContext;
use datafusion::execution::object_store::DefaultObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use engine::documents::{Columns, Documents};
use engine::resources::Resources;
use engine::{EngineError, Result};
use simhash::{Model, Spec};
use storage::{StoreOptions, Stores};
use tokio::sync::{OnceCell, Semaphore};

/// How long the executor keeps an unused cache: the run's next slice may be on the way, and loading
/// the batch again takes seconds.
const KEEP: Duration = Duration::from_secs(60);
/// How long the executor keeps an unused cache once a task of another run starts.
const KEEP_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// The caches of the runs that an executor works for.
pub(crate) struct RunCaches {
    /// Id of the executor.
    pub(crate) executor: String,
    options: StoreOptions,
    /// Directory to which batches are downloaded before they are loaded.
    directory: PathBuf,
    /// Session that all tasks of the process share.
    context: SessionContext,
    /// One permit for each slot.
    cores: Arc<Semaphore>,
    /// Number of tasks that run at the same time.
    tasks: usize,
    /// The caches, by run name.
    caches: Mutex<HashMap<String, Entry>>,
}

/// A cache, and when it was last used.
struct Entry {
    cache: Arc<RunCache>,
    /// When a task last began to use it, or `drop_unused` last found it in use.
    last_use: Instant,
}

impl Entry {
    /// Returns whether a task uses the cache now.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.cache) > 1
    }
}

/// What the tasks of one run share.
pub(crate) struct RunCache {
    resources: Resources,
    model: OnceCell<Model>,
    documents: Mutex<HashMap<String, Arc<OnceCell<Documents>>>>,
    /// The memory and disk of the process, with the run's own connections to stores.
    runtime: Arc<RuntimeEnv>,
}

impl RunCaches {
    /// Creates an empty set for an executor with the limits of `context`.
    pub(crate) fn new(
        executor: String,
        options: StoreOptions,
        directory: PathBuf,
        context: SessionContext,
        slots: usize,
        tasks: usize,
    ) -> Self {
        Self {
            cores: Arc::new(Semaphore::new(slots)),
            tasks,
            executor,
            options,
            directory,
            context,
            caches: Mutex::default(),
        }
    }

    /// Returns the cache of the run called `run_name`; creates it if the run is new. Drops the
    /// caches of other runs that have been unused for [`KEEP_BESIDE_OTHERS`].
    pub(crate) fn get_or_create(&self, run_name: &str) -> datafusion::error::Result<Arc<RunCache>> {
        self.drop_unused(KEEP_BESIDE_OTHERS, Some(run_name));
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = caches.get_mut(run_name) {
            entry.last_use = Instant::now();
            return Ok(Arc::clone(&entry.cache));
        }
        let stores = Stores::new(self.options.clone());
        let cache = Arc::new(RunCache {
            resources: Resources::executor(
                stores,
                self.directory.clone(),
                Arc::clone(&self.cores),
                self.tasks,
            ),
            model: OnceCell::new(),
            documents: Mutex::default(),
            runtime: RuntimeEnvBuilder::from_runtime_env(&self.context.runtime_env())
                .with_object_store_registry(Arc::new(DefaultObjectStoreRegistry::new()))
                .build_arc()?,
        });
        let entry = Entry {
            cache: Arc::clone(&cache),
            last_use: Instant::now(),
        };
        caches.insert(run_name.to_owned(), entry);
        Ok(cache)
    }

    /// Returns whether a task uses a cache now, or the last known use of a cache is younger than
    /// [`KEEP_BESIDE_OTHERS`].
    pub(crate) fn any_active(&self) -> bool {
        let caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches
            .values()
            .any(|entry| entry.is_in_use() || entry.last_use.elapsed() < KEEP_BESIDE_OTHERS)
    }

    /// Drops all unused caches, to free their memory.
    pub(crate) fn drop_all_unused(&self) {
        self.drop_unused(Duration::ZERO, None);
    }

    /// Drops the caches that have been unused for [`KEEP`].
    pub(crate) fn drop_expired(&self) {
        self.drop_unused(KEEP, None);
    }

    /// Drops the caches that have been unused for `keep`, except that of the run called `except`.
    fn drop_unused(&self, keep: Duration, except: Option<&str>) {
        let mut dropped = Vec::new();
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches.retain(|run_name, entry| {
            let is_in_use = entry.is_in_use();
            if is_in_use {
                entry.last_use = Instant::now();
            }
            let stays =
                is_in_use || Some(run_name.as_str()) == except || entry.last_use.elapsed() < keep;
            if !stays {
                dropped.push(Arc::clone(&entry.cache));
            }
            stays
        });
        drop(caches);
        // This frees gigabytes, so it happens after the lock is released.
        drop(dropped);
    }

    /// Returns the resources and the context of a new task of the run that owns `cache`.
    pub(crate) fn new_task(&self, cache: &Arc<RunCache>, identity: Option<String>) -> TaskParts {
        let resources = Arc::new(cache.resources.for_another_task());
        let session = &self.context;
        let config: SessionConfig = session
            .copied_config()
            .with_extension(Arc::clone(&resources))
            .with_extension(Arc::clone(cache));
        let state = session.state();
        let context = TaskContext::new(
            identity,
            session.session_id(),
            config,
            state.scalar_functions().clone(),
            HashMap::default(),
            state.aggregate_functions().clone(),
            state.window_functions().clone(),
            Arc::clone(&cache.runtime),
        );
        TaskParts {
            resources,
            context: Arc::new(context),
        }
    }
}

/// Resources and context of one task.
pub(crate) struct TaskParts {
    pub(crate) resources: Arc<Resources>,
    pub(crate) context: Arc<TaskContext>,
}

impl RunCache {
    /// Returns the model of `spec`, whose IDF table and stop words are stored under `spec_files`;
    /// the first call loads it.
    pub(crate) async fn model(&self, spec: &Spec, spec_files: &str) -> Result<Model> {
        let load = || async {
            let location = self.resources.stores.locate(spec_files)?;
            Ok::<_, EngineError>(archive::spec_files::load(&location, spec).await?)
        };
        self.model.get_or_try_init(load).await.cloned()
    }

    /// Returns the documents of `file`, which must have `size` bytes; the first call opens it.
    pub(crate) async fn documents(
        &self,
        context: &SessionContext,
        file: &str,
        size: u64,
        columns: &Columns,
    ) -> Result<Documents> {
        let cell = {
            let mut documents = self
                .documents
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(documents.entry(file.to_owned()).or_default())
        };
        let open = || async {
            let location = self.resources.stores.locate(file)?;
            if location.size().await? != size {
                return Err(file_changed_error(file));
            }
            // One file: the client has resolved directories, patterns and tables.
            Documents::open_files(context, file.to_owned(), vec![location], columns).await
        };
        cell.get_or_try_init(open).await.cloned()
    }
}

/// Returns the error for a file that changed after the client cut it into work items.
pub(crate) fn file_changed_error(file: &str) -> EngineError {
    let path = file.to_owned();
    storage::StorageError::Changed { path }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_caches_are_dropped() {
        let directory = std::env::temp_dir();
        let (options, context) = (StoreOptions::default(), SessionContext::new());
        let caches = RunCaches::new("executor".into(), options, directory, context, 1, 2);
        let used = caches.get_or_create("used").unwrap();
        let idle = Arc::downgrade(&caches.get_or_create("idle").unwrap());
        caches.drop_all_unused();
        assert!(idle.upgrade().is_none());
        assert!(Arc::ptr_eq(&used, &caches.get_or_create("used").unwrap()));
        assert!(caches.any_active());
    }
}
