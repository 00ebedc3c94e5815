//! The planner: what each design would cost, and the choice among them.
//!
//! Each mechanism's own `plan.rs` decides the layout by which the mechanism builds its tables, and
//! predicts their bytes, build time and nanoseconds for one probed fingerprint. The planner adds
//! the passes over the archive: a batch whose tables do not fit is cut into parts, and each part
//! takes a pass over the archive. For each fingerprint that it probes, a mechanism pays:
//!
//! - Permuted tables: in each table, one permutation, one lookup for each directory prefix within
//!   the radius, and the comparison with the candidates there.
//! - `halves`: the scan, and lookups if the scan lets the fingerprint through, which is rare. The
//!   scan of the leading half is nearly free in a sorted archive.
//! - `variants-N`: one bucket in each table: its cache lines, and the comparison with the
//!   candidates whose tags pass.
//! - `trie`: the same in two smaller tables. The candidates of the leading block cost a little for each entry of the nodes
//!   that sorted queries visit, so it pays where many follow in ascending order.
//!
//! Predicted / measured nanoseconds of one core for one fingerprint of a sorted archive of 10⁹ (`bench designs`, two
//! threads of an Intel Xeon, AVX-512, at 2.9 GHz), by the size of the batch and k:
//!
//! | design       | 10⁴, k = 3 | 10⁶, k = 3 | 10⁷, k = 3 | 10⁶, k = 5 | 10⁶, k = 8 |
//! |--------------|-----------:|-----------:|-----------:|-----------:|-----------:|
//! | `halves`     | 6 / 3      | 8 / 6      | 16 / 20    |            |            |
//! | `variants-3` | 20 / 30    | 44 / 37    | 55 / 42    | 44 / 39    | 62 / 69    |
//! | `variants-4` | 26 / 35    | 62 / 52    | 97 / 80    | 93 / 94    | 239 / 219  |
//! | `variants-5` |            |            |            | 305 / 236  | 625 / 671  |
//! | `variants-6` |            |            |            | 375 / 462  |            |
//! | `blocks-4`   | 58 / 60    | 125 / 81   | 454 / 739  |            |            |
//! | `blocks-3`   | 104 / 105  | 319 / 173  | 369 / 232  |            |            |
//! | `blocks-2`   | 151 / 294  | 380 / 455  | 630 / 825  |            |            |
//! | `choose-5-2` | 154 / 142  | 226 / 232  | 264 / 278  |            |            |
//! | `choose-6-3` | 307 / 275  | 451 / 419  | 527 / 462  |            |            |
//! | `choose-7-2` |            |            |            | 503 / 477  |            |
//! | `nested-4`   | 246 / 227  | 361 / 371  | 422 / 414  |            |            |
//!
//! Beyond k = 8 most of the time goes into candidates whose tags pass, and the prediction is too low: at 10⁶ and
//! k = 12, 4.7 µs predicted and 18 µs measured for `variants-5`, 14 µs and 48 µs for `variants-6` (`--slowest 20000
//! --chunks 2`).
//!
//! Build times are predicted for one thread and for memory that the process has touched before. The first touch of
//! memory that a virtual machine has not used yet takes several times as long.

use crate::any_tables::AnyTables;
use crate::cost::Cost;
use crate::design::{Design, DesignError};
use crate::limits::Limits;

/// Reading and decoding one fingerprint of the archive, in nanoseconds; every pass pays it again.
const DECODE_NS: f64 = 3.0;
/// The planner takes more parts than memory requires only if they cut the time to less than this
/// share: every part reads the archive again, perhaps over a network.
const WORTH_A_PASS: f64 = 0.4;
/// The most parts that a batch is cut into.
const MAX_PARTS: usize = 64;

/// A design with its predicted cost for a batch of a given size.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The design.
    pub design: Design,
    /// How many parts the batch is cut into. Each part takes one pass over the archive.
    pub parts: usize,
    /// Peak bytes of the tables of a part, while they are built.
    pub bytes: usize,
    /// Lookups in tables for one probed fingerprint, in one pass.
    pub lookups: f64,
    /// Candidates for one probed fingerprint, in one pass.
    pub candidates: f64,
    /// Nanoseconds of one core to probe one fingerprint in all passes, without decoding it.
    pub probe_ns: f64,
    /// Seconds of one core to build the tables of all parts.
    pub build_seconds: f64,
    /// Distinct fingerprints of a part.
    entries: usize,
}

/// Why no design could be chosen.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The distance or the name of the design is wrong.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The tables of every design considered take more memory than is allowed.
    #[error(
        "even in {MAX_PARTS} parts, the tables of {fingerprints} distinct fingerprints take {needed} bytes a part; {allowed} bytes are allowed"
    )]
    OutOfMemory {
        /// Distinct fingerprints in the batch.
        fingerprints: usize,
        /// Bytes of the smallest tables of a part.
        needed: usize,
        /// Bytes that may be used.
        allowed: usize,
    },
}

impl Plan {
    /// Predicts what `design` costs for a batch of `fingerprints` distinct values in `parts` parts, whatever memory `limits` allow.
    #[must_use]
    pub fn predict(design: Design, fingerprints: usize, parts: usize, limits: &Limits) -> Self {
        let parts = parts.max(1);
        let entries = fingerprints.div_ceil(parts);
        let Cost {
            bytes,
            lookups,
            candidates,
            probe_ns,
            build_seconds,
        } = AnyTables::predict(&design, entries, limits);
        Self {
            design,
            parts,
            bytes,
            lookups,
            candidates,
            probe_ns: probe_ns * parts as f64,
            build_seconds: build_seconds * parts as f64,
            entries,
        }
    }

    /// Describes in one line the layout of a part's tables, which depends on the number of entries.
    #[must_use]
    pub fn layout(&self) -> String {
        AnyTables::describe(&self.design, self.entries)
    }

    /// Plans every design for `max_distance` that fits `limits`, each in its cheapest number of parts, for random
    /// fingerprints. The cheapest plan is first.
    ///
    /// # Errors
    /// [`DesignError::DistanceTooLarge`].
    pub fn alternatives(
        fingerprints: usize,
        max_distance: u32,
        limits: &Limits,
    ) -> Result<Vec<Self>, DesignError> {
        let mut plans: Vec<Self> = Design::all(max_distance)?
            .into_iter()
            .filter_map(|design| Self::cheapest_parts(&design, fingerprints, limits))
            .collect();
        plans.sort_by(|a, b| {
            a.seconds(limits.queries)
                .total_cmp(&b.seconds(limits.queries))
        });
        Ok(plans)
    }

    /// Plans the cheapest design for `max_distance` that fits `limits`, given how related the fingerprints are.
    ///
    /// # Errors
    /// [`PlanError`] when the distance is too large or no tables fit.
    pub fn choose(
        fingerprints: usize,
        max_distance: u32,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        let mut best: Option<Self> = None;
        for mut plan in Self::alternatives(fingerprints, max_distance, limits)? {
            let seconds = |plan: &Self| plan.seconds(limits.queries);
            // Related fingerprints make no plan cheaper.
            if best
                .as_ref()
                .is_some_and(|best| seconds(best) <= seconds(&plan))
            {
                break;
            }
            // The parts have the entries together, however many they are.
            plan.probe_ns +=
                AnyTables::related_ns(&plan.design, &limits.related) * fingerprints as f64;
            if best
                .as_ref()
                .is_none_or(|best| seconds(&plan) < seconds(best))
            {
                best = Some(plan);
            }
        }
        best.ok_or_else(|| {
            Self::out_of_memory(
                &Design::all(max_distance).unwrap_or_default(),
                fingerprints,
                limits,
            )
        })
    }

    /// Plans `design` in its cheapest number of parts within `limits`.
    ///
    /// # Errors
    /// [`PlanError::OutOfMemory`] when it does not fit in any number of parts.
    pub fn choose_parts(
        design: Design,
        fingerprints: usize,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        Self::cheapest_parts(&design, fingerprints, limits)
            .ok_or_else(|| Self::out_of_memory(std::slice::from_ref(&design), fingerprints, limits))
    }

    /// Plans `design` in its cheapest number of parts; `None` if no number fits.
    fn cheapest_parts(design: &Design, fingerprints: usize, limits: &Limits) -> Option<Self> {
        (0..=MAX_PARTS.ilog2())
            .map(|doublings| Self::predict(design.clone(), fingerprints, 1 << doublings, limits))
            // Some tables cannot be built in any memory.
            .filter(|plan| plan.bytes <= limits.memory && plan.bytes < usize::MAX)
            .reduce(|fewer, more| {
                let seconds = |plan: &Self| plan.seconds(limits.queries);
                if seconds(&more) < WORTH_A_PASS * seconds(&fewer) {
                    more
                } else {
                    fewer
                }
            })
    }

    /// Returns the error that none of `designs` fits; it holds the bytes of the smallest tables.
    fn out_of_memory(designs: &[Design], fingerprints: usize, limits: &Limits) -> PlanError {
        let needed = designs
            .iter()
            .map(|design| Self::predict(design.clone(), fingerprints, MAX_PARTS, limits).bytes)
            .min();
        PlanError::OutOfMemory {
            fingerprints,
            needed: needed.unwrap_or(0),
            allowed: limits.memory,
        }
    }

    /// Seconds of one core to build the tables of all parts, and to decode and probe `queries`
    /// fingerprints in each pass.
    #[must_use]
    pub fn seconds(&self, queries: u64) -> f64 {
        let decode = DECODE_NS * self.parts as f64;
        self.build_seconds + 1e-9 * (decode + self.probe_ns) * queries as f64
    }

    /// The index range of part `part` (counted from 0) of `fingerprints` distinct values that are
    /// cut into `parts` parts.
    #[must_use]
    pub fn part_range(parts: usize, part: usize, fingerprints: usize) -> std::ops::Range<usize> {
        let start =
            |part: usize| (fingerprints as u128 * part as u128 / parts.max(1) as u128) as usize;
        start(part)..start(part + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Mechanism;
    use crate::related::Related;
    use crate::variants::VariantsPlan;

    fn limited(memory: usize, queries: u64) -> Limits {
        Limits {
            memory,
            queries,
            ..Limits::default()
        }
    }

    #[test]
    fn the_cheapest_design_suits_batch_archive_and_memory() {
        for (fingerprints, design) in [
            (10_000, "halves"),
            (1_000_000, "halves"),
            (10_000_000, "halves"),
        ] {
            let plan = Plan::choose(fingerprints, 3, &limited(usize::MAX, 1_000_000_000)).unwrap();
            assert_eq!((plan.design.name().as_str(), plan.parts), (design, 1));
        }
        let tiny = Plan::choose(2, 3, &Limits::default()).unwrap();
        assert!(tiny.bytes < 1 << 19);
        // Bitmaps of a gigabyte are not worth it for a short archive.
        let short = Plan::choose(10_000_000, 3, &limited(usize::MAX, 10_000)).unwrap();
        assert!(short.bytes < 1 << 30);
        assert!(matches!(
            Plan::choose(1 << 20, 3, &limited(1000, 1)),
            Err(PlanError::OutOfMemory { .. })
        ));
        let exhaustive = Design::named("exhaustive", 3).unwrap();
        assert!(matches!(
            Plan::choose_parts(exhaustive, 1 << 20, &limited(1000, 1)),
            Err(PlanError::OutOfMemory { .. })
        ));
    }

    #[test]
    fn long_sorted_archives_are_probed_by_a_trie() {
        let choose = |sorted_run| {
            let limits = Limits {
                queries: 1_000_000_000,
                sorted_run,
                ..Limits::default()
            };
            Plan::choose(1_000_000, 7, &limits).unwrap()
        };
        let [long, short] = [1_000_000_000, 1_000_000].map(choose);
        assert_eq!(long.design.name(), "trie");
        assert_eq!(short.design.name(), "variants-3");
        assert!(long.bytes < short.bytes / 4);
    }

    #[test]
    fn related_fingerprints_are_probed_by_longer_keys() {
        // Bits of most values are equal, as those of texts of one language.
        let values: Vec<u64> = (1..300_000u64)
            .map(|at| {
                let draw = |times: u64| {
                    (times * at)
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        .swap_bytes()
                };
                draw(1) & draw(3) & draw(7)
            })
            .collect();
        let limits = |related| Limits {
            queries: 300_000,
            related,
            ..Limits::default()
        };
        let choose = |related| {
            Plan::choose(values.len(), 7, &limits(related))
                .unwrap()
                .design
        };
        let tables = |design: Design| design.blocks().len();
        assert!(tables(choose(Related::of(&values))) < tables(choose(Related::default())));
    }

    #[test]
    fn tables_that_cannot_be_built_are_not_planned() {
        for fingerprints in [21_000_000, 40_000_000, 600_000_000] {
            for k in 0..=16 {
                for plan in Plan::alternatives(fingerprints, k, &Limits::default()).unwrap() {
                    if plan.design.mechanism() != Mechanism::Variants {
                        continue;
                    }
                    let part = fingerprints.div_ceil(plan.parts);
                    for table in VariantsPlan::new(&plan.design, part).tables {
                        assert!(
                            table.variants < f64::from(u32::MAX),
                            "k = {k}, {}",
                            plan.design.name()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn less_memory_is_slower_and_cuts_the_batch_into_parts() {
        for k in 0..=16 {
            for n in [1000, 1 << 20, 100_000_000] {
                let queries = 1_000_000_000;
                let free = Plan::choose(n, k, &limited(usize::MAX, queries)).unwrap();
                // In unlimited memory, a batch is cut only when its tables cannot be built as a whole.
                let whole = Plan::predict(free.design.clone(), n, 1, &Limits::default());
                assert!(
                    free.parts == 1 || whole.bytes == usize::MAX,
                    "k = {k}, {n}, {}",
                    free.design.name()
                );
                let mut before = free.seconds(queries);
                for memory in [free.bytes - 1, free.bytes / 3, free.bytes / 10] {
                    let Ok(tight) = Plan::choose(n, k, &limited(memory, queries)) else {
                        break;
                    };
                    // Parts forced by the memory limit may even save time, but not enough for the
                    // planner to have chosen them without the limit.
                    assert!(
                        tight.bytes <= memory && tight.seconds(queries) >= WORTH_A_PASS * before,
                        "k = {k}, {n}"
                    );
                    before = before.max(tight.seconds(queries));
                }
            }
        }
        let cut = Plan::choose(100_000_000, 3, &limited(1 << 30, 1_000_000_000)).unwrap();
        assert!(cut.parts > 1 && cut.bytes <= 1 << 30);
    }

    #[test]
    fn layouts_are_described_by_the_size_of_the_batch() {
        for (name, fingerprints, layout) in [
            ("exhaustive", 1000, "directories of 0 bits"),
            (
                "halves",
                1_000_000,
                "scan by lines of 32 tags, keys of 16 bits; by runs first from ",
            ),
            (
                "halves",
                10_000_000,
                "scan by bitmaps of all halves; by runs first from ",
            ),
            ("variants-3", 1_000_000, "keys of "),
        ] {
            let plan = Plan::predict(
                Design::named(name, 3).unwrap(),
                fingerprints,
                1,
                &Limits::default(),
            );
            assert!(plan.layout().starts_with(layout), "{}", plan.layout());
        }
    }

    #[test]
    fn parts_cover_the_batch() {
        for (parts, n) in [(1, 0), (1, 5), (3, 10), (7, 3), (64, 100_000_001)] {
            let mut next = 0;
            for part in 0..parts {
                let range = Plan::part_range(parts, part, n);
                assert_eq!(range.start, next);
                assert!(range.len() <= n.div_ceil(parts));
                next = range.end;
            }
            assert_eq!(next, n);
        }
    }
}
