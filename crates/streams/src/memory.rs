//! The memory that a session has.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};

/// The pool's limit in bytes; `usize::MAX` if it has none.
pub fn limit_bytes(pool: &Arc<dyn MemoryPool>) -> usize {
    match pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit,
        _ => usize::MAX,
    }
}

/// Bytes that the pool has left.
pub fn free_bytes(pool: &Arc<dyn MemoryPool>) -> usize {
    limit_bytes(pool).saturating_sub(pool.reserved())
}
