//! The plan of [`super::run_scan`]: how dense a chunk must be for a scan by runs, and how many bits
//! the maps cover.
//!
//! The map of a run costs the same however many fingerprints the run has. A map that covers fewer bits is made faster
//! and fits into a nearer cache, but more fingerprints pass it. So the best number of bits depends on the density of
//! the chunk: the planner computes both costs for each number of bits, and a probe only takes the minimum.

use super::filter_layout::FilterLayout;
use crate::ball::BIT_INDEX_BITS;
use crate::isa::{MAP_BITS, RUN_BITS};

/// Gathering the entries from which the map of a run is made, in nanoseconds.
const GATHER_NS: f64 = 2500.0;
/// Clearing a byte of a map, in nanoseconds.
const CLEAR_NS: f64 = 0.011;
/// Scanning by halves and looking up one fingerprint that passes, in nanoseconds: with lines, and with bitmaps.
const PICKED_NS: [f64; 2] = [40.0, 90.0];
/// What a scan by runs saves for one fingerprint, its own costs not subtracted, in nanoseconds: with lines, and with
/// bitmaps.
const SAVED_NS: [f64; 2] = [7.0, 20.0];

/// The cost of maps with a batch of a given size, for each number of bits that they may cover.
#[derive(Debug)]
pub(super) struct RunScanPlan {
    maps: Vec<MapCost>,
    /// Nanoseconds that a scan by runs saves for one fingerprint: maps that cost less are worth it.
    saved_ns: f64,
}

/// The cost of maps that cover `bits` bits.
#[derive(Debug, Clone, Copy)]
struct MapCost {
    bits: u32,
    /// Nanoseconds to make the map of one run.
    make_ns: f64,
    /// Nanoseconds for the fingerprints that pass, spread over all that are scanned.
    picked_ns: f64,
}

impl RunScanPlan {
    /// Computes the costs for a batch of `entries` entries, whose halves are looked up by `layout`.
    pub(super) fn new(entries: usize, layout: FilterLayout) -> Self {
        let bitmap = usize::from(layout == FilterLayout::Bitmap);
        let entries = entries as f64;
        let cost = |bits: u32| {
            let marks = entries / f64::from(1u32 << RUN_BITS) * f64::from(words_marked(bits));
            // Maps of 2¹⁹ bits and more fit only into the second-level cache.
            let mark = [0.6, 1.0][usize::from(bits > 18)];
            let lead = RUN_BITS + bits;
            let near_share =
                f64::from(1 + lead + lead * (lead - 1) / 2) / 2f64.powi(lead.cast_signed());
            MapCost {
                bits,
                make_ns: GATHER_NS + CLEAR_NS * f64::from(1u32 << (bits - 3)) + mark * marks,
                picked_ns: PICKED_NS[bitmap] * (entries * near_share).min(1.0),
            }
        };
        Self {
            maps: MAP_BITS.map(cost).collect(),
            saved_ns: SAVED_NS[bitmap],
        }
    }

    /// The number of bits that maps of `chunk` should cover; `None` when the chunk is too sparse
    /// for maps or not sorted, judged by its first and last fingerprint.
    pub(super) fn best_map_bits(&self, chunk: &[u64]) -> Option<u32> {
        let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
            return None;
        };
        if last < first {
            return None;
        }
        let span = ((last - first) as f64).max(1.0);
        let run_len = chunk.len() as f64 / span * 2f64.powi(64 - RUN_BITS.cast_signed());
        self.cheapest_map(run_len).map(|(map, _)| map.bits)
    }

    /// The cheapest map for runs of `run_len` fingerprints, and its cost for one of them; `None` if it is not worth it.
    fn cheapest_map(&self, run_len: f64) -> Option<(&MapCost, f64)> {
        let costs = (self.maps.iter()).map(|map| (map, map.make_ns / run_len + map.picked_ns));
        let best = costs.min_by(|(_, one), (_, other)| one.total_cmp(other));
        best.filter(|(_, cost)| *cost < self.saved_ns)
    }

    /// Describes in words how many archive fingerprints make a scan by runs worth it.
    pub(super) fn describe(&self) -> String {
        // The length of a run at which make_ns / run_len + picked_ns = saved_ns.
        let needed = |map: &MapCost| map.make_ns / (self.saved_ns - map.picked_ns);
        let from = (self.maps.iter())
            .map(needed)
            .filter(|&needed| needed > 0.0)
            .min_by(f64::total_cmp);
        match from {
            Some(from) => format!(
                "by runs first from {} archive fingerprints on",
                (from * 2f64.powi(RUN_BITS.cast_signed())).round()
            ),
            None => "never by runs first".to_owned(),
        }
    }
}

/// How many words one entry marks, in the maps of all runs together, if maps cover `bits` bits.
const fn words_marked(bits: u32) -> u32 {
    let high = bits - BIT_INDEX_BITS;
    let same_run = 1 + high + high * (high - 1) / 2;
    same_run + RUN_BITS * (1 + high) + RUN_BITS * (RUN_BITS - 1) / 2
}
