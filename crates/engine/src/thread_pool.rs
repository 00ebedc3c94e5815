//! Threads that sort.

use datafusion::prelude::SessionContext;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{EngineError, Result};

/// Starts as many threads as the session has partitions.
pub(crate) fn thread_pool(context: &SessionContext) -> Result<ThreadPool> {
    let threads = context.state().config().target_partitions();
    let started = ThreadPoolBuilder::new().num_threads(threads).build();
    started.map_err(|error| EngineError::Internal(error.to_string()))
}
