//! The plan of [`super::dense`]: how dense a chunk must be for it, and over how many bits its maps are.
//!
//! The map of a run costs the same however many fingerprints the run has; a map over fewer bits is made faster and fits into
//! a nearer cache, but lets more pass. So the best number of bits depends on the density of the chunk: the planner computes
//! both costs for each number of bits, and a probe only takes the minimum.

use super::layout::Layout;
use crate::isa::{MAP_BITS, RUN_BITS, WORD_BITS};

/// Finding the entries that the map of a run is made of, in nanoseconds.
const RUN_NS: f64 = 2500.0;
/// Clearing a byte of a map, in nanoseconds.
const CLEAR_NS: f64 = 0.011;
/// Scanning by halves and looking up one fingerprint that passes, in nanoseconds: with lines, and with bitmaps.
const PASS_NS: [f64; 2] = [40.0, 90.0];
/// What a scan by runs saves for one fingerprint, before the costs below, in nanoseconds: with lines, and with bitmaps.
const WORTH_NS: [f64; 2] = [7.0, 20.0];

/// The costs of maps over each number of bits, for a batch.
#[derive(Debug)]
pub(super) struct DensePlan {
    maps: Vec<MapCost>,
    /// Nanoseconds for one fingerprint: maps that cost less are worth it.
    worth_ns: f64,
}

/// What maps over some number of bits cost.
#[derive(Debug, Clone, Copy)]
struct MapCost {
    bits: u32,
    /// Nanoseconds to make the map of one run.
    run_ns: f64,
    /// Nanoseconds for those that pass, spread over all fingerprints scanned.
    pass_ns: f64,
}

impl DensePlan {
    /// Computes the costs for a batch of `entries` entries, whose halves are looked up by `layout`.
    pub(super) fn new(entries: usize, layout: Layout) -> Self {
        let by = usize::from(layout == Layout::Bitmap);
        let entries = entries as f64;
        let cost = |bits: u32| {
            let marks = entries / f64::from(1u32 << RUN_BITS) * f64::from(words_marked(bits));
            // From 2¹⁹ bits on, maps are in the second-level cache.
            let mark = [0.6, 1.0][usize::from(bits > 18)];
            let lead = RUN_BITS + bits;
            let near = f64::from(1 + lead + lead * (lead - 1) / 2) / 2f64.powi(lead.cast_signed());
            MapCost {
                bits,
                run_ns: RUN_NS + CLEAR_NS * f64::from(1u32 << (bits - 3)) + mark * marks,
                pass_ns: PASS_NS[by] * (entries * near).min(1.0),
            }
        };
        Self {
            maps: MAP_BITS.map(cost).collect(),
            worth_ns: WORTH_NS[by],
        }
    }

    /// The best number of bits for the maps of `chunk`; `None` when the chunk is not sorted, judged by its ends, or not dense
    /// enough for maps.
    pub(super) fn map_bits(&self, chunk: &[u64]) -> Option<u32> {
        let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
            return None;
        };
        if last < first {
            return None;
        }
        let span = ((last - first) as f64).max(1.0);
        let of_run = chunk.len() as f64 / span * 2f64.powi(64 - RUN_BITS.cast_signed());
        self.cheapest_map(of_run).map(|(map, _)| map.bits)
    }

    /// The cheapest map when a run has `of_run` fingerprints, and its cost for one of them; `None` if it is not worth it.
    fn cheapest_map(&self, of_run: f64) -> Option<(&MapCost, f64)> {
        let costs = (self.maps.iter()).map(|map| (map, map.run_ns / of_run + map.pass_ns));
        let best = costs.min_by(|(_, one), (_, other)| one.total_cmp(other));
        best.filter(|(_, cost)| *cost < self.worth_ns)
    }

    /// Describes in words from which density on maps are used.
    pub(super) fn describe(&self) -> String {
        // Where run_ns / of_run + pass_ns = worth_ns.
        let needed = |map: &MapCost| map.run_ns / (self.worth_ns - map.pass_ns);
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

/// How many words one entry marks, in the maps over `bits` bits of all runs together.
const fn words_marked(bits: u32) -> u32 {
    let high = bits - WORD_BITS;
    let own = 1 + high + high * (high - 1) / 2;
    own + RUN_BITS * (1 + high) + RUN_BITS * (RUN_BITS - 1) / 2
}
