//! What the readers need of a session.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use datafusion::prelude::SessionContext;
use storage::Stores;

use crate::error::{DocumentsError, Result};

/// Where the readers of a session find files, and count documents. It is an extension of the session's configuration.
#[derive(Debug, Default)]
pub struct Reading {
    /// The stores behind paths.
    pub stores: Stores,
    /// Documents read by the pass over all of them.
    pub documents: Arc<AtomicU64>,
}

impl Reading {
    /// The one of a session.
    ///
    /// # Errors
    /// [`DocumentsError::Internal`] when the session has none.
    pub(crate) fn in_session(context: &SessionContext) -> Result<Arc<Self>> {
        let reading = context.state().config().get_extension();
        reading.ok_or_else(|| DocumentsError::Internal("the session reads no documents".into()))
    }
}

/// A session of one thread with `memory` bytes, for tests.
#[cfg(test)]
pub(crate) fn test_session(memory: usize) -> SessionContext {
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionConfig;

    let pool = Arc::new(GreedyMemoryPool::new(memory));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool);
    let config = SessionConfig::new()
        .with_target_partitions(1)
        .with_extension(Arc::new(Reading::default()));
    SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap())
}
