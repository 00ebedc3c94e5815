//! The session: its limits, and the one registration of everything that our plans need.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use documents::Reading;
use simhash::{Model, Spec};

use crate::error::{EngineError, Result};
use crate::memory::{self, SortPool};
use crate::resources::Resources;
use crate::udf::{hamming_distance, simhash};
use streams::{BATCH_ROWS, free_bytes};

/// The bytes of a pair with long ids, such as web addresses.
const BYTES_OF_ROW: usize = 512;
/// The fewest rows of a record batch between operators, however little memory there is.
const LEAST_ROWS: usize = 64;

/// The threads, memory and spill directory that a process may use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Threads, and partitions of a plan.
    pub threads: usize,
    /// Bytes of memory. One eighth stays outside the pool, for memory that no reservation counts:
    /// decoded pages, and freed memory that the allocator keeps.
    pub memory: usize,
    /// Directory to which sorts and aggregates spill; it must exist.
    pub spill: PathBuf,
}

impl Limits {
    /// Bytes that the memory pool hands out: for the batch, its tables, sorts and aggregates.
    pub fn pool_bytes(&self) -> usize {
        self.memory - self.memory / 8
    }
}

/// Creates a session within `limits`, with our functions registered.
///
/// # Errors
/// [`EngineError`] when the spill directory cannot be used.
pub fn session(limits: &Limits, resources: Arc<Resources>) -> Result<SessionContext> {
    let failed = EngineError::query("setting up the session");
    let (bytes, threads) = (limits.pool_bytes(), limits.threads);
    let reading = Reading {
        stores: resources.stores.clone(),
        documents: Arc::clone(&resources.progress.documents),
    };
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_batch_size(rows_within(bytes, threads))
        // Our own code reads footers.
        .with_collect_statistics(false)
        // The default of 10 MB for each partition does not fit small limits.
        .with_sort_spill_reservation_bytes((limits.memory / 64 / threads.max(1)).min(8 << 20))
        .with_extension(Arc::new(reading))
        .with_extension(resources);
    let parquet = &mut config.options_mut().execution.parquet;
    parquet.schema_force_view_types = false;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(SortPool::new(bytes)))
        .with_disk_manager_builder(
            DiskManagerBuilder::default()
                .with_mode(DiskManagerMode::Directories(vec![limits.spill.clone()]))
                .with_max_spill_merge_fan_in(memory::merged_runs(bytes, threads))
                // The disk itself is the limit.
                .with_max_temp_directory_size(u64::MAX >> 1),
        )
        .build_arc()
        .map_err(failed)?;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features();
    let context = SessionContext::new_with_state(state.build());
    let model = Model::plain(Spec::default()).map_err(EngineError::internal)?;
    context.register_udf(simhash(model));
    context.register_udf(hamming_distance());
    Ok(context)
}

/// Rows of a record batch between operators in `partitions` partitions that share `bytes` bytes of memory: fewer if there is
/// little of it.
fn rows_within(bytes: usize, partitions: usize) -> usize {
    let bytes = memory::sorted_bytes(bytes, partitions);
    (bytes / BYTES_OF_ROW).clamp(LEAST_ROWS, BATCH_ROWS)
}

/// The same plan, with record batches and merges for the memory that is free now: the tables of the batch may leave little.
pub(crate) fn within_free_memory(plan: DataFrame) -> DataFrame {
    let (mut state, plan) = plan.into_parts();
    let runtime = state.runtime_env();
    let free = free_bytes(&runtime.memory_pool);
    let partitions = state.config().target_partitions();
    let disk = &runtime.disk_manager;
    disk.set_max_spill_merge_fan_in(memory::merged_runs(free, partitions));
    let rows = rows_within(free, partitions);
    *state.config_mut() = state.config().clone().with_batch_size(rows);
    DataFrame::new(state, plan)
}

/// The same plan, whose partitions are not dealt again: batches of long texts would be joined to larger ones.
pub(crate) fn with_own_partitions(plan: DataFrame) -> DataFrame {
    let (mut state, plan) = plan.into_parts();
    let mut config = state.config().clone();
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.enable_round_robin_repartition = false;
    *state.config_mut() = config;
    DataFrame::new(state, plan)
}

/// A session of one thread with `memory` bytes that spills to `directory`, for tests.
#[cfg(test)]
pub(crate) fn test_session(directory: &std::path::Path, memory: usize) -> SessionContext {
    let resources = Resources::new(storage::Stores::new(storage::StoreOptions::default()));
    let limits = Limits {
        threads: 1,
        memory,
        spill: directory.to_owned(),
    };
    session(&limits, Arc::new(resources)).unwrap()
}
