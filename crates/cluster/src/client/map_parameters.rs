//! [`MapParameters`]: the parameters in which map 1 and map 2 of a run differ.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use engine::map_counters::MapCounters;

/// A record batch of rows of a map, or the error that ends them.
pub(super) type Rows = Result<RecordBatch>;

/// Builds the operator of a map over its table of items.
pub(super) type BuildMap<'a> =
    &'a (dyn Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> + Sync);

/// The parameters of a map over items of type `T`.
pub(super) struct MapParameters<'a, T> {
    /// Returns the number of an item, unique in the map.
    pub(super) number: fn(&T) -> u32,
    /// Returns what an item costs, relative to others.
    pub(super) weight: &'a (dyn Fn(&T) -> u64 + Sync),
    /// Returns the group of an item; items of different groups are in different slices.
    pub(super) group: fn(&T) -> u32,
    /// Schema of a table of items.
    pub(super) item_schema: SchemaRef,
    /// Encodes items as rows of a table of items.
    pub(super) encode: fn(&[T]) -> Result<RecordBatch>,
    /// Names an item in messages.
    pub(super) describe: fn(&T) -> String,
    /// Builds the operator.
    pub(super) build: BuildMap<'a>,
    /// Whether every row must come exactly once; otherwise repeated rows do no harm.
    pub(super) exactly_once: bool,
    /// Counts of the texts and records that map 1 reads.
    pub(super) counters: MapCounters,
}
