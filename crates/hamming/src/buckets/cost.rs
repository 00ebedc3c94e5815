//! The predicted cost of tables of tags: to look up fingerprints in them, and to build them.

use super::plan::{LARGE_TABLE, TablePlan};
use crate::cost::{BUILD_NS, Cost, line_ns};

/// Looking up one bucket of tags, in nanoseconds.
const BUCKET_NS: f64 = 5.0;
/// Partitioning one fingerprint by the key of a table, in nanoseconds.
const PARTITION_NS: f64 = 5.0;
/// Comparing a prefetched cache line of tags, in nanoseconds.
pub(crate) const CACHE_LINE_NS: f64 = 1.0;
/// Finding the entry of a tag that passes, and comparing it in full, in nanoseconds.
pub(crate) const COMPARE_NS: f64 = 20.0;
/// Putting one variant into a bucket, in nanoseconds.
const VARIANT_NS: f64 = 7.0;

/// Adds the cost of `tables` over `entries` entries to `cost`. `share` is the share of the archive's fingerprints that
/// are looked up; `partitioned` says whether chunks are partitioned for large tables.
pub(crate) fn add_tables(
    cost: &mut Cost,
    tables: &[TablePlan],
    entries: usize,
    share: f64,
    partitioned: bool,
) {
    for table in tables {
        // A sorted archive reads the table of the leading block in order: its lines stay in the cache.
        let is_leading = table.key.before == 0;
        let line = if is_leading {
            0.5
        } else {
            line_ns(table.bytes)
        };
        // All tables may be built at the same time.
        cost.bytes = cost
            .bytes
            .saturating_add(table.bytes)
            .saturating_add(table.building_bytes);
        cost.lookups += share;
        cost.candidates += share * table.candidates;
        let lines = table.candidates / table.lanes as f64 + 0.5;
        cost.probe_ns +=
            share * (BUCKET_NS + line + CACHE_LINE_NS * lines + COMPARE_NS * table.compared);
        if !is_leading && table.bytes > LARGE_TABLE && partitioned {
            cost.probe_ns += PARTITION_NS;
        }
        cost.build_seconds += 1e-9 * (BUILD_NS * entries as f64 + VARIANT_NS * table.variants);
    }
}
