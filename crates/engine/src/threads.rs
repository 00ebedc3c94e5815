//! Threads for work that takes long: sorting, and what waits for the disk.

use datafusion::common::runtime::SpawnedTask;
use datafusion::prelude::SessionContext;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{EngineError, Result};

/// Starts as many threads as the session has partitions.
pub(crate) fn thread_pool(context: &SessionContext) -> Result<ThreadPool> {
    let threads = context.state().config().target_partitions();
    let started = ThreadPoolBuilder::new().num_threads(threads).build();
    started.map_err(|error| EngineError::Internal(error.to_string()))
}

/// Runs `work`, which takes long or waits for the disk, on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    ended(SpawnedTask::spawn_blocking(work)).await
}

/// Waits for a task, and returns its result. A panic of the task continues in the caller.
pub(crate) async fn ended<T: 'static>(task: SpawnedTask<Result<T>>) -> Result<T> {
    let done = task.join_unwind().await;
    done.map_err(|error| EngineError::Internal(format!("a task did not end: {error}")))?
}
