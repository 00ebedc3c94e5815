//! Threads for work that takes long: sorting, and what waits for the disk; and what threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads did not start, or one was stopped before its work ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Stopped(String);

impl From<Stopped> for DataFusionError {
    fn from(error: Stopped) -> Self {
        Self::External(Box::new(error))
    }
}

/// Locks what threads share, though one may have panicked meanwhile.
pub fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts as many threads as the session has partitions.
///
/// # Errors
/// [`Stopped`] when the system starts none.
pub fn thread_pool(context: &SessionContext) -> Result<ThreadPool, Stopped> {
    let threads = context.state().config().target_partitions();
    let started = ThreadPoolBuilder::new().num_threads(threads).build();
    started.map_err(|error| Stopped(error.to_string()))
}

/// Runs `work`, which takes long or waits for the disk, on a thread of its own.
///
/// # Errors
/// Those of `work`, and [`Stopped`].
pub async fn blocking<T: Send + 'static, E: From<Stopped> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    ended(SpawnedTask::spawn_blocking(work)).await
}

/// Waits for a task, and returns its result. A panic of the task continues in the caller.
///
/// # Errors
/// Those of the task, and [`Stopped`].
pub async fn ended<T: 'static, E: From<Stopped> + 'static>(
    task: SpawnedTask<Result<T, E>>,
) -> Result<T, E> {
    let done = task.join_unwind().await;
    done.map_err(|error| Stopped(format!("a task did not end: {error}")))?
}
