//! What an executor holds for each run that it works for: the batch with its tables, open files, the fingerprint model.
//!
//! A run has its own connections to stores, too: what an object was is remembered as long as a run lasts, and no
//! longer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive::{StoreOptions, Stores};
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::DefaultObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use engine::documents::{Columns, Documents};
use engine::resources::Resources;
use engine::{EngineError, Result};
use simhash::{Model, Spec};
use tokio::sync::{OnceCell, Semaphore};

/// How long the things of a run are kept that nobody works for: its next slice may be on its way, and to load them
/// again takes seconds.
const KEPT: Duration = Duration::from_secs(60);
/// How long, when another run wants room.
const KEPT_BESIDE_OTHERS: Duration = Duration::from_secs(5);

/// The runs of an executor.
pub(crate) struct Runs {
    /// Name of the executor.
    pub(crate) executor: String,
    options: StoreOptions,
    /// Where batches are put on their way into memory.
    directory: PathBuf,
    /// What all tasks of the process have in common.
    context: SessionContext,
    /// One permit a slot.
    cores: Arc<Semaphore>,
    /// Tasks that run at the same time.
    tasks: usize,
    runs: Mutex<HashMap<String, Held>>,
}

struct Held {
    run: Arc<Run>,
    used: Instant,
}

impl Held {
    /// Whether a task holds it.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.run) > 1
    }
}

/// One run.
pub(crate) struct Run {
    resources: Resources,
    model: OnceCell<Model>,
    documents: Mutex<HashMap<String, Arc<OnceCell<Documents>>>>,
    /// The process's memory and disk, with the run's own stores.
    runtime: Arc<RuntimeEnv>,
}

impl Runs {
    /// No runs yet, in an executor with the limits of `context`.
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

    /// The run called `id`.
    pub(crate) fn enter(&self, id: &str) -> datafusion::error::Result<Arc<Run>> {
        self.drop_idle(KEPT_BESIDE_OTHERS, Some(id));
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

    /// Whether there is a run that somebody works for, or has a moment ago.
    pub(crate) fn are_going_on(&self) -> bool {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values()
            .any(|held| held.is_used() || held.used.elapsed() < KEPT_BESIDE_OTHERS)
    }

    /// Lets go of all runs that nobody works for, to make room.
    pub(crate) fn make_room(&self) {
        self.drop_idle(Duration::ZERO, None);
    }

    /// Lets go of runs that nobody has worked for in a while.
    pub(crate) fn drop_old(&self) {
        self.drop_idle(KEPT, None);
    }

    fn drop_idle(&self, kept: Duration, but: Option<&str>) {
        let mut dropped = Vec::new();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|id, held| {
            let is_used = held.is_used();
            if is_used {
                held.used = Instant::now();
            }
            let stays = is_used || Some(id.as_str()) == but || held.used.elapsed() < kept;
            if !stays {
                dropped.push(Arc::clone(&held.run));
            }
            stays
        });
        drop(runs);
        // Gigabytes are given back here, with nobody waiting for the lock.
        drop(dropped);
    }

    /// The context of one task of `run`.
    pub(crate) fn task(&self, run: &Arc<Run>, identity: Option<String>) -> Task {
        let resources = Arc::new(run.resources.another_task());
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

/// What a task works with.
pub(crate) struct Task {
    pub(crate) resources: Arc<Resources>,
    pub(crate) context: Arc<TaskContext>,
}

impl Run {
    /// The model of `spec`, whose tables are kept at `tables`; loaded by the first that asks.
    pub(crate) async fn model(&self, spec: &Spec, tables: &str) -> Result<Model> {
        let load = || async {
            let location = self.resources.stores.locate(tables)?;
            Ok::<_, EngineError>(archive::model::load(&location, spec).await?)
        };
        self.model.get_or_try_init(load).await.cloned()
    }

    /// The documents in a file of so many bytes, opened by the first that asks.
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
        let given = [file.to_owned()];
        let open = || async {
            match self.resources.stores.locate(file)?.size().await? == size {
                true => Documents::open(context, &given, columns).await,
                false => Err(changed(file)),
            }
        };
        cell.get_or_try_init(open).await.cloned()
    }
}

/// That a file is no longer the one whose slices were dealt out.
pub(crate) fn changed(file: &str) -> EngineError {
    let path = file.to_owned();
    archive::ArchiveError::Changed { path }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_of_what_nobody_uses() {
        let directory = std::env::temp_dir();
        let (options, context) = (StoreOptions::default(), SessionContext::new());
        let runs = Runs::new("executor".into(), options, directory, context, 1, 2);
        let used = runs.enter("used").unwrap();
        let idle = Arc::downgrade(&runs.enter("idle").unwrap());
        runs.make_room();
        assert!(idle.upgrade().is_none());
        assert!(Arc::ptr_eq(&used, &runs.enter("used").unwrap()));
        assert!(runs.are_going_on());
    }
}
