//! The plan of `halves`: the layouts of its scan and of its tables of quarters, and their predicted cost.

use super::bitmap::Bitmap;
use super::filter_layout::FilterLayout;
use super::quarters::QuarterTable;
use super::run_entries::RunEntries;
use super::run_scan_plan::RunScanPlan;
use super::tail_filter::TailFilter;
use crate::buckets::{TablePlan, add_tables};
use crate::cost::{Cost, line_ns};
use crate::design::Design;

/// Scanning one fingerprint by halves, without the accesses that miss the first-level cache, in nanoseconds.
const SCAN_NS: f64 = 4.0;
/// Marking one half in a bitmap, in nanoseconds.
const MARK_NS: f64 = 1.0;

/// The layouts of the scan and of the tables over a number of entries.
#[derive(Debug)]
pub(super) struct HalvesPlan {
    entries: usize,
    /// The kind and the size of the two filters of halves.
    pub(super) layout: FilterLayout,
    /// Decides whether a chunk is dense enough to be scanned by runs before it is scanned by halves.
    pub(super) run_scan: RunScanPlan,
    /// The table of each quarter.
    pub(super) quarters: Vec<TablePlan>,
}

impl HalvesPlan {
    /// Plans the scan and the tables of `design` over `entries` entries.
    pub(super) fn new(design: &Design, entries: usize) -> Self {
        let layout = FilterLayout::choose(entries);
        let quarter = |block| QuarterTable::plan(block, entries);
        Self {
            entries,
            layout,
            run_scan: RunScanPlan::new(entries, layout),
            quarters: design.blocks().iter().map(quarter).collect(),
        }
    }

    /// The predicted cost: to scan, and to look up the fingerprints that the scan picks.
    pub(super) fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        let entries = self.entries as f64;
        // The share of fingerprints that pass on one half: the half is within 1 bit of an entry's,
        // or one of its keys is crowded.
        let near =
            (33.0 * entries / 2f64.powi(32)).min(1.0) + self.layout.crowded_share(self.entries);
        add_tables(&mut cost, &self.quarters, self.entries, near, false);
        cost.probe_ns += SCAN_NS + self.layout.accesses() * line_ns(self.layout.bytes() / 2);
        let scan = self.layout.bytes()
            + RunEntries::bytes_for(self.entries)
            + TailFilter::bytes_for(self.entries);
        cost.bytes = cost.bytes.saturating_add(scan);
        if self.layout == FilterLayout::Bitmap {
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
            self.run_scan.describe()
        )
    }
}
