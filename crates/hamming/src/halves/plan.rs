//! The plan of `halves`: the layouts of its scan and of the tables of quarters, and their predicted cost.

use super::bitmap::Bitmap;
use super::dense_plan::DensePlan;
use super::layout::Layout;
use super::quarters::QuarterTable;
use super::run_entries::RunEntries;
use super::tail_filter::TailFilter;
use crate::buckets::{TablePlan, add_tables};
use crate::cost::{Cost, line_ns};
use crate::design::Design;

/// Scanning one fingerprint by halves, without the accesses beyond the first-level cache, in nanoseconds.
const SCAN_NS: f64 = 4.0;
/// Marking one half in a bitmap, in nanoseconds.
const MARK_NS: f64 = 1.0;

/// The planner's decisions about the scan and the tables over some entries.
#[derive(Debug)]
pub(super) struct HalvesPlan {
    entries: usize,
    /// The filter that halves are looked up in.
    pub(super) layout: Layout,
    /// When a chunk is so dense that it is scanned by runs before it is scanned by halves.
    pub(super) dense: DensePlan,
    /// The table of each quarter.
    pub(super) quarters: Vec<TablePlan>,
}

impl HalvesPlan {
    /// Plans the scan and the tables of `design` over `entries` entries.
    pub(super) fn new(design: &Design, entries: usize) -> Self {
        let layout = Layout::choose(entries);
        let quarter = |block| QuarterTable::plan(block, entries);
        Self {
            entries,
            layout,
            dense: DensePlan::new(entries, layout),
            quarters: design.blocks().iter().map(quarter).collect(),
        }
    }

    /// The predicted cost: that of the scan, and of looking up what it lets through.
    pub(super) fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        let entries = self.entries as f64;
        // The share of the fingerprints that pass on a half of 32 bits: within 1 bit of an entry's, or with a crowded key.
        let near =
            (33.0 * entries / 2f64.powi(32)).min(1.0) + self.layout.crowded_share(self.entries);
        add_tables(&mut cost, &self.quarters, self.entries, near, false);
        cost.probe_ns += SCAN_NS + self.layout.accesses() * line_ns(self.layout.bytes() / 2);
        let scan = self.layout.bytes()
            + RunEntries::bytes_for(self.entries)
            + TailFilter::bytes_for(self.entries);
        cost.bytes = cost.bytes.saturating_add(scan);
        if self.layout == Layout::Bitmap {
            // Both bitmaps may be built at the same time.
            let building = 2 * Bitmap::building_bytes(self.entries);
            cost.bytes = cost.bytes.saturating_add(building);
            cost.build_seconds += 0.2 + 2e-9 * MARK_NS * 33.0 * entries;
        }
        cost
    }

    /// Describes the layout in one line.
    pub(super) fn describe(&self) -> String {
        format!(
            "scan by {}; {}",
            self.layout.describe(),
            self.dense.describe()
        )
    }
}
