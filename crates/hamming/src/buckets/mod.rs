//! Tables of sketches, which the mechanisms `halves` and `variants` share.
//!
//! The key of a table is some bits of a block; each value of the key has a bucket. A query finds all its candidates in the
//! bucket of its own key, whether the archive is sorted or not. A bucket holds a candidate as a [`Sketch`](sketch::Sketch):
//! bits of the entry beside the key (not the minhash sketch of a document). The sketches of a cache line are compared at
//! once, those of several lines (a strip) before the first branch; only entries whose sketch passes are compared in full.
//!
//! ```text
//! query ─ key ─▶ starts ─▶ strips of sketches ─ pass? ─▶ survivors ─ SketchTable::compare ─▶ matches
//! ```

mod cost;
mod field;
mod lookups;
mod partition;
mod plan;
mod probe;
mod queries;
mod rule;
mod sketch;
mod sketched;
mod strips;
mod table;

pub(crate) use cost::add_tables;
pub(crate) use field::{Field, counting_sort};
pub(crate) use plan::TablePlan;
pub(crate) use probe::{ProbeBuffers, probe_in_given_order, probe_tables};
pub(crate) use queries::{Queries, Survivor};
pub(crate) use rule::SketchRule;
pub(crate) use sketch::Test;
pub(crate) use sketched::Buckets;
pub(crate) use table::SketchTable;
