//! What an executor keeps for each run: the batch with its tables, open files, the fingerprint model.
//!
//! Ballista 55 shares nothing but a `RuntimeEnv` between the tasks of a session, and builds all else anew for each task. The
//! batch's tables take seconds to build, so the tasks of a run find them here. A run also has its own
//! connections to stores, which cache what they learn of an object only until the run ends.

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

/// How long an idle run is kept: its next slice may be on the way, and loading it again takes seconds.
const KEEP: Duration = Duration::from_secs(60);
/// How long an idle run is kept when another run needs room.
const KEEP_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// The runs that an executor works for.
pub(crate) struct Runs {
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
    runs: Mutex<HashMap<String, Held>>,
}

struct Held {
    run: Arc<Run>,
    /// When a task last held it.
    used: Instant,
}

impl Held {
    /// Returns whether a task holds the run.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.run) > 1
    }
}

/// What an executor keeps for one run.
pub(crate) struct Run {
    resources: Resources,
    model: OnceCell<Model>,
    documents: Mutex<HashMap<String, Arc<OnceCell<Documents>>>>,
    /// The memory and disk of the process, with stores of the run's own.
    runtime: Arc<RuntimeEnv>,
}

impl Runs {
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
            runs: Mutex::default(),
        }
    }

    /// Returns the run called `id`, created if it is new; other runs that have been idle for a while are dropped.
    pub(crate) fn get_or_create(&self, id: &str) -> datafusion::error::Result<Arc<Run>> {
        self.drop_idle(KEEP_BESIDE_OTHERS, Some(id));
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = runs.get_mut(id) {
            held.used = Instant::now();
            return Ok(Arc::clone(&held.run));
        }
        let stores = Stores::new(self.options.clone());
        let run = Arc::new(Run {
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
        let held = Held {
            run: Arc::clone(&run),
            used: Instant::now(),
        };
        runs.insert(id.to_owned(), held);
        Ok(run)
    }

    /// Returns whether a task of any run is running, or was a few seconds ago.
    pub(crate) fn any_active(&self) -> bool {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values()
            .any(|held| held.is_used() || held.used.elapsed() < KEEP_BESIDE_OTHERS)
    }

    /// Drops all idle runs, to free their memory.
    pub(crate) fn drop_all_idle(&self) {
        self.drop_idle(Duration::ZERO, None);
    }

    /// Drops runs that have been idle for a minute.
    pub(crate) fn drop_expired(&self) {
        self.drop_idle(KEEP, None);
    }

    /// Drops runs that have been idle for `keep`, except the run called `except`.
    fn drop_idle(&self, keep: Duration, except: Option<&str>) {
        let mut dropped = Vec::new();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|id, held| {
            let is_used = held.is_used();
            if is_used {
                held.used = Instant::now();
            }
            let stays = is_used || Some(id.as_str()) == except || held.used.elapsed() < keep;
            if !stays {
                dropped.push(Arc::clone(&held.run));
            }
            stays
        });
        drop(runs);
        // Frees gigabytes, so not under the lock.
        drop(dropped);
    }

    /// Returns the resources and the context of a new task of `run`.
    pub(crate) fn new_task(&self, run: &Arc<Run>, identity: Option<String>) -> Task {
        let resources = Arc::new(run.resources.for_another_task());
        let session = &self.context;
        let config: SessionConfig = session
            .copied_config()
            .with_extension(Arc::clone(&resources))
            .with_extension(Arc::clone(run));
        let state = session.state();
        let context = TaskContext::new(
            identity,
            session.session_id(),
            config,
            state.scalar_functions().clone(),
            HashMap::default(),
            state.aggregate_functions().clone(),
            state.window_functions().clone(),
            Arc::clone(&run.runtime),
        );
        Task {
            resources,
            context: Arc::new(context),
        }
    }
}

/// Resources and context of one task.
pub(crate) struct Task {
    pub(crate) resources: Arc<Resources>,
    pub(crate) context: Arc<TaskContext>,
}

impl Run {
    /// Returns the model of `spec`, whose tables are kept at `tables`; the first call loads it.
    pub(crate) async fn model(&self, spec: &Spec, tables: &str) -> Result<Model> {
        let load = || async {
            let location = self.resources.stores.locate(tables)?;
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
                return Err(file_changed(file));
            }
            // One file: the client has resolved directories, patterns and tables.
            Documents::open_files(context, file.to_owned(), vec![location], columns).await
        };
        cell.get_or_try_init(open).await.cloned()
    }
}

/// Returns the error for a file that is no longer the one that the client sliced.
pub(crate) fn file_changed(file: &str) -> EngineError {
    let path = file.to_owned();
    storage::StorageError::Changed { path }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_runs_are_dropped() {
        let directory = std::env::temp_dir();
        let (options, context) = (StoreOptions::default(), SessionContext::new());
        let runs = Runs::new("executor".into(), options, directory, context, 1, 2);
        let used = runs.get_or_create("used").unwrap();
        let idle = Arc::downgrade(&runs.get_or_create("idle").unwrap());
        runs.drop_all_idle();
        assert!(idle.upgrade().is_none());
        assert!(Arc::ptr_eq(&used, &runs.get_or_create("used").unwrap()));
        assert!(runs.any_active());
    }
}
