//! Tables of tags, which the mechanisms `halves` and `variants` share.
//!
//! The key of a table is some bits of a block; each value of the key has a bucket. A query finds all its candidates in
//! the bucket of its own key, whether the archive is sorted or not. A bucket holds a candidate as a [`Tag`](tag::Tag):
//! bits of the entry beside the key, as in cuckoo filters and Swiss tables. All tags of a cache line are compared at
//! once, and those of several lines (a strip) before the first branch. Only the survivors, the candidates whose tag
//! passes, are compared in full.
//!
//! ```text
//! query ─ key ─▶ starts ─▶ strips of tags ─ pass? ─▶ survivors ─ TaggedEntries::compare ─▶ matches
//! ```

mod cost;
mod field;
mod lookup_loops;
mod partition;
mod plan;
mod probe;
mod queries;
mod strips;
mod tag;
mod tag_buckets;
mod tag_scheme;
mod tag_table;

pub(crate) use cost::{CACHE_LINE_NS, COMPARE_NS, add_tables};
pub(crate) use field::{Field, counting_sort};
pub(crate) use lookup_loops::Lookups;
pub(crate) use plan::TablePlan;
pub(crate) use probe::{ProbeBuffers, probe_in_given_order, probe_tables};
pub(crate) use queries::{Queries, Survivor};
pub(crate) use strips::STRIP_LINES;
pub(crate) use tag::{Tag, TagTest};
pub(crate) use tag_buckets::{Bucket, Buckets, TagView};
pub(crate) use tag_scheme::TagScheme;
pub(crate) use tag_table::{TagTable, TaggedEntries};
