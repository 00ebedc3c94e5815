//! The tables of a batch: planned for a memory limit, built one part at a time, shared by all tasks.

use std::ops::Range;
use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hamming::{Design, Limits, Plan, PlanError, Related, Tables};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::Batch;
use crate::error::{EngineError, Result};
use crate::memory::reserve;
use streams::free_bytes;

/// The tables to build: their design, and the part of the batch that they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TablePart<'a> {
    pub design: &'a str,
    /// Largest distance that the tables find.
    pub max_distance: u32,
    /// Parts that the batch is cut into.
    pub parts: u32,
    /// Number of the part, from 0 on.
    pub part: u32,
}

/// The tables that are in memory: those of one part, or none.
pub(super) type Slot = Arc<RwLock<Option<Built>>>;

/// The tables of one part. Their bytes are reserved as long as they live.
#[derive(Debug)]
pub struct Built {
    part: u32,
    tables: Tables,
    _memory: MemoryReservation,
}

/// The tables of a part, which stay in memory as long as this is held.
pub type PartTables = OwnedRwLockReadGuard<Option<Built>, Tables>;

impl Batch {
    /// Plans tables within `limits`, to which it adds a sample of the batch: of this `design` or, if it is `None`, of the
    /// cheapest one.
    ///
    /// # Errors
    /// [`PlanError`] when the design does not fit the distance, or no tables fit the memory.
    pub fn plan(
        &self,
        max_distance: u32,
        design: Option<&str>,
        limits: Limits,
    ) -> Result<Plan, PlanError> {
        let values = self.distinct.values();
        let limits = Limits {
            related: Related::of(values),
            ..limits
        };
        let values = values.len();
        match design {
            Some(name) => Plan::choose_parts(Design::named(name, max_distance)?, values, &limits),
            None => Plan::choose(values, max_distance, &limits),
        }
    }

    /// The tables of a part; builds them unless they are in memory. Before it builds, it waits
    /// until no task uses the tables of another part, and drops those.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when the pool has too few bytes.
    pub async fn tables(
        &self,
        request: TablePart<'_>,
        pool: &Arc<dyn MemoryPool>,
        threads: usize,
    ) -> Result<PartTables> {
        let part = request.part;
        loop {
            let built = Arc::clone(&self.built).read_owned().await;
            let tables = OwnedRwLockReadGuard::try_map(built, |built| {
                built
                    .as_ref()
                    .filter(|built| built.part == part)
                    .map(|built| &built.tables)
            });
            match tables {
                Ok(tables) => return Ok(tables),
                // Release the read lock before asking for the write lock.
                Err(built) => drop(built),
            }
            let mut built = Arc::clone(&self.built).write_owned().await;
            if built.as_ref().is_some_and(|built| built.part == part) {
                continue;
            }
            *built = None;
            *built = Some(self.build(request, pool, threads).await?);
        }
    }

    async fn build(
        &self,
        request: TablePart<'_>,
        pool: &Arc<dyn MemoryPool>,
        threads: usize,
    ) -> Result<Built> {
        let part = request.part;
        let design = Design::named(request.design, request.max_distance)?;
        let values = self.distinct.values().len();
        let range: Range<usize> = Plan::part_range(request.parts as usize, part as usize, values);
        let limits = Limits {
            threads,
            ..Limits::default()
        };
        let plan = Plan::predict(design, range.len(), 1, &limits);
        let memory = MemoryConsumer::new("tables").register(pool);
        let (name, bytes) = (plan.design.name(), plan.bytes);
        reserve(&memory, bytes, || {
            let (values, free) = (range.len(), free_bytes(pool));
            format!("the tables of {values} fingerprints take {bytes} bytes, {free} are free")
        })?;
        tracing::info!(
            design = name,
            part,
            values = range.len(),
            bytes,
            "building tables"
        );
        let distinct = Arc::clone(&self.distinct);
        let tables = tokio::task::spawn_blocking(move || {
            Tables::build(distinct, range, plan.design, threads)
        })
        .await;
        let tables = tables.map_err(|error| {
            EngineError::Internal(format!("building the tables failed: {error}"))
        })?;
        Ok(Built {
            part,
            tables,
            _memory: memory,
        })
    }
}
