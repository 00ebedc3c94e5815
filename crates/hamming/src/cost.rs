//! The cost model: what a design would cost, and the choice among designs.
//!
//! For a table over `n` fingerprints with a directory of `d` bits, a query makes V(d, r) lookups (the
//! directory prefixes within radius r, V the volume of a Hamming ball) and compares n·V/2ᵈ candidates. A table costs
//! [`TABLE_NS`], a lookup [`LOOKUP_NS`] and what the cache level costs that holds the tables ([`access_ns`]), a candidate
//! [`CANDIDATE_NS`], building [`BUILD_NS`] for each entry of each table and some more for each variant. `d` is the number of
//! bits for which the sum is smallest.
//!
//! The design of halves looks up only what its scan lets through; the scan costs [`SCAN_NS`] and the accesses to the lines
//! (or the bit) of the trailing half. The leading half is nearly free in a sorted archive.
//!
//! A lookup in a table of sketches costs [`BUCKET_NS`] and one access ([`line_ns`]), [`CACHE_LINE_NS`] for each line of
//! candidates, and [`PASS_NS`] for each that passes both of its tests; tables of variants [`PARTITION_NS`] besides.
//!
//! Predicted and measured (`bench designs`, two threads of an Intel Xeon, AVX-512, at 2.9 GHz; nanoseconds of one core for one
//! fingerprint of an archive of 10⁹ in order):
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
//! Beyond k = 8 most of the time goes into candidates that pass, and it says too little: at k = 12 4.7 and 14 µs of `variants-5`
//! and `variants-6` for a million, which took 18 and 48 (`--slowest 20000 --chunks 2`).
//!
//! Building is predicted for one thread and memory that the process had before; the first touch of memory that a
//! virtual machine has not used takes several times as long.
//!
//! A batch whose tables do not fit is cut into parts, and the archive is passed over once for each.

use crate::design::{Block, Design, DesignError};
use crate::scan::{Bitmap, Layout, Lead, Tail};
use crate::sketches::{CACHED, Size};

/// Permuting one fingerprint for a table, in nanoseconds.
pub const TABLE_NS: f64 = 10.0;
/// One lookup in the first-level cache, in nanoseconds.
pub const LOOKUP_NS: f64 = 4.0;
/// Comparing one candidate of a bucket, in nanoseconds.
pub const CANDIDATE_NS: f64 = 0.6;
/// Permuting or placing, sorting and indexing one entry of a table, in nanoseconds.
pub const BUILD_NS: f64 = 40.0;
/// Looking up one bucket of sketches, in nanoseconds.
pub const BUCKET_NS: f64 = 5.0;
/// Bringing one fingerprint into the order of a table of variants, in nanoseconds.
pub const PARTITION_NS: f64 = 5.0;
/// Comparing a cache line of sketches, which is on its way when it is needed, in nanoseconds.
pub const CACHE_LINE_NS: f64 = 1.0;
/// Finding the entry of a sketch that passed, and comparing it in full, in nanoseconds.
pub const PASS_NS: f64 = 20.0;
/// Putting one variant into a bucket, in nanoseconds.
const VARIANT_NS: f64 = 7.0;
/// Marking one half in a bitmap, in nanoseconds.
const MARK_NS: f64 = 1.0;
/// Scanning one fingerprint by halves, without the accesses beyond the first-level cache, in nanoseconds.
pub const SCAN_NS: f64 = 4.0;
/// Reading and decoding one fingerprint of the archive, which each pass does again, in nanoseconds.
pub const DECODE_NS: f64 = 3.0;
/// More passes over the archive, which may be far away, are made without need only if they take less than this share of
/// the time.
const WORTH_A_PASS: f64 = 0.4;
/// Most parts that a batch is cut into.
const MAX_PARTS: usize = 64;

/// A random access to tables of so many bytes whose cache misses overlap with those of others, beyond the first-level cache,
/// in nanoseconds.
#[must_use]
pub fn access_ns(bytes: usize) -> f64 {
    match bytes >> 20 {
        0 => 0.0,
        1..8 => 1.0,
        8..28 => 4.0,
        28..512 => 8.0,
        _ => 12.0,
    }
}

/// A cache line of a table of so many bytes that is read in its order, or nearly so, in nanoseconds.
#[must_use]
pub fn line_ns(bytes: usize) -> f64 {
    match bytes >> 20 {
        0 => 0.5,
        1..16 => 2.0,
        _ => 7.0,
    }
}
/// Directories have at most this many bits (2²⁸ starts of 4 bytes: 1 GiB).
const MAX_DIRECTORY_BITS: u32 = 28;

/// What the choice of a design has to keep to.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes that the tables may take.
    pub memory: usize,
    /// How many fingerprints will be probed: many make larger tables worth building.
    pub queries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: usize::MAX,
            queries: u64::MAX,
        }
    }
}

/// A design with its predicted cost for a batch of a given size.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The design.
    pub design: Design,
    /// Parts that the batch is cut into, and passes over the archive.
    pub parts: usize,
    /// Bytes of the tables of a part, while they are built.
    pub bytes: usize,
    /// Directory lookups for one probed fingerprint, in a pass.
    pub lookups: f64,
    /// Candidates compared with one probed fingerprint, in a pass.
    pub candidates: f64,
    /// Nanoseconds of one core for one probed fingerprint, all passes, without decoding it.
    pub probe_ns: f64,
    /// Seconds of one core to build the tables, all parts.
    pub build_seconds: f64,
}

/// Why no design could be chosen.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The distance or the name of the design is wrong.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// No tables fit.
    #[error(
        "the smallest tables for {fingerprints} distinct fingerprints take {needed} bytes even in {MAX_PARTS} parts, {allowed} are allowed"
    )]
    OutOfMemory {
        /// Distinct fingerprints in the batch.
        fingerprints: usize,
        /// Bytes of the smallest tables.
        needed: usize,
        /// Bytes that may be used.
        allowed: usize,
    },
}

impl Plan {
    /// What `design` costs for a batch of `fingerprints` distinct values in `parts` parts.
    #[must_use]
    pub fn of(design: Design, fingerprints: usize, parts: usize) -> Self {
        let (parts, all) = (parts.max(1), fingerprints);
        let fingerprints = all.div_ceil(parts);
        let mut plan = Self {
            parts,
            bytes: 0,
            lookups: 0.0,
            candidates: 0.0,
            probe_ns: 0.0,
            build_seconds: 0.0,
            design,
        };
        if plan.design.is_variants() {
            plan.add_sketched(fingerprints, 1.0);
        } else if plan.design.is_halves() {
            plan.add_scan(fingerprints);
        } else {
            plan.add_permuted(fingerprints);
        }
        plan.probe_ns *= parts as f64;
        plan.build_seconds *= parts as f64;
        plan
    }

    /// Adds the cost of permuted tables over so many fingerprints.
    fn add_permuted(&mut self, fingerprints: usize) {
        let tables = self.design.blocks().len();
        for block in self.design.blocks() {
            let bits = directory_bits(block, fingerprints);
            let lookups = ball(bits, block.radius);
            self.bytes += 8 * fingerprints + 4 * ((1 << bits) + 1) + 4 * lookups as usize;
            self.lookups += lookups;
            self.candidates += candidates(bits, block.radius, fingerprints);
        }
        self.probe_ns = TABLE_NS * tables as f64
            + (LOOKUP_NS + access_ns(self.bytes)) * self.lookups
            + CANDIDATE_NS * self.candidates;
        self.build_seconds = BUILD_NS * 1e-9 * (fingerprints * tables) as f64;
    }

    /// Adds the cost of the scan of halves, and of looking up what it lets through.
    fn add_scan(&mut self, fingerprints: usize) {
        let layout = Layout::choose(fingerprints);
        // Of two halves of 32 bits, the share within 1 bit of an entry's.
        let near =
            (33.0 * fingerprints as f64 / 2f64.powi(32)).min(1.0) + layout.crowded(fingerprints);
        self.add_sketched(fingerprints, near);
        self.probe_ns += SCAN_NS + layout.accesses() * line_ns(layout.bytes() / 2);
        let scan = layout.bytes() + Lead::bytes_for(fingerprints) + Tail::bytes_for(fingerprints);
        self.bytes = self.bytes.saturating_add(scan);
        if layout == Layout::Bitmap {
            // Both may be built at the same time.
            self.bytes = self
                .bytes
                .saturating_add(2 * Bitmap::building(fingerprints));
            self.build_seconds += 0.2 + 2e-9 * MARK_NS * 33.0 * fingerprints as f64;
        }
    }

    /// Adds the cost of tables of sketches over so many fingerprints, in which a share of the queries is looked up.
    fn add_sketched(&mut self, fingerprints: usize, share: f64) {
        let blocks = self.design.blocks();
        for (at, block) in blocks.iter().enumerate() {
            let size = Size::of(blocks, at, fingerprints);
            // What an archive in order finds in the first table stays in the cache.
            let line = if at == 0 { 0.5 } else { line_ns(size.bytes) };
            // All may be built at the same time.
            self.bytes = self
                .bytes
                .saturating_add(size.bytes)
                .saturating_add(size.building);
            self.lookups += share;
            self.candidates += share * size.candidates;
            let lines = size.candidates / size.lanes as f64 + 0.5;
            self.probe_ns +=
                share * (BUCKET_NS + line + CACHE_LINE_NS * lines + PASS_NS * size.looked_up);
            if at > 0 && size.bytes > CACHED && self.design.is_variants() {
                self.probe_ns += PARTITION_NS;
            }
            let variants = fingerprints as f64 * ball(size.key.bits, block.radius);
            self.build_seconds += 1e-9 * (BUILD_NS * fingerprints as f64 + VARIANT_NS * variants);
        }
    }

    /// Every design for `max_distance` whose tables take at most `memory` bytes, in as many parts as are cheapest, the
    /// cheapest for `queries` probed fingerprints first.
    ///
    /// # Errors
    /// [`DesignError::DistanceTooLarge`].
    pub fn alternatives(
        fingerprints: usize,
        max_distance: u32,
        limits: &Limits,
    ) -> Result<Vec<Self>, DesignError> {
        let mut plans: Vec<Self> = Design::candidates(max_distance)?
            .into_iter()
            .filter_map(|design| Self::fitting(&design, fingerprints, limits))
            .collect();
        plans.sort_by(|a, b| {
            a.seconds(limits.queries)
                .total_cmp(&b.seconds(limits.queries))
        });
        Ok(plans)
    }

    /// The cheapest design that keeps to `limits`.
    ///
    /// # Errors
    /// [`PlanError`] when the distance is too large or no tables fit.
    pub fn choose(
        fingerprints: usize,
        max_distance: u32,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        let best = Self::alternatives(fingerprints, max_distance, limits)?
            .into_iter()
            .next();
        best.ok_or_else(|| {
            Self::out_of_memory(
                &Design::candidates(max_distance).unwrap_or_default(),
                fingerprints,
                limits,
            )
        })
    }

    /// `design` in as many parts as are cheapest within `limits`.
    ///
    /// # Errors
    /// [`PlanError::OutOfMemory`] when it does not fit in any.
    pub fn within(design: Design, fingerprints: usize, limits: &Limits) -> Result<Self, PlanError> {
        Self::fitting(&design, fingerprints, limits)
            .ok_or_else(|| Self::out_of_memory(std::slice::from_ref(&design), fingerprints, limits))
    }

    /// The cheapest number of parts that fits.
    fn fitting(design: &Design, fingerprints: usize, limits: &Limits) -> Option<Self> {
        (0..=MAX_PARTS.ilog2())
            .map(|doublings| Self::of(design.clone(), fingerprints, 1 << doublings))
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

    fn out_of_memory(designs: &[Design], fingerprints: usize, limits: &Limits) -> PlanError {
        let needed = designs
            .iter()
            .map(|design| Self::of(design.clone(), fingerprints, MAX_PARTS).bytes)
            .min();
        PlanError::OutOfMemory {
            fingerprints,
            needed: needed.unwrap_or(0),
            allowed: limits.memory,
        }
    }

    /// Seconds of one core to build the tables, and to decode and probe `queries` fingerprints.
    #[must_use]
    pub fn seconds(&self, queries: u64) -> f64 {
        let decode = DECODE_NS * self.parts as f64;
        self.build_seconds + 1e-9 * (decode + self.probe_ns) * queries as f64
    }

    /// The indexes of part `part` of a batch of `fingerprints` distinct values.
    #[must_use]
    pub fn part(parts: usize, part: usize, fingerprints: usize) -> std::ops::Range<usize> {
        let start =
            |part: usize| (fingerprints as u128 * part as u128 / parts.max(1) as u128) as usize;
        start(part)..start(part + 1)
    }
}

/// The directory bits for which a probe of `block` is cheapest.
pub(crate) fn directory_bits(block: &Block, fingerprints: usize) -> u32 {
    let width = block.mask.count_ones().min(MAX_DIRECTORY_BITS);
    // A directory of more bits than the entries have would be mostly empty.
    let useful = usize::BITS - fingerprints.leading_zeros();
    let cost = |bits: u32| {
        let lookup = LOOKUP_NS + access_ns(8 * fingerprints + (4 << bits));
        lookup * ball(bits, block.radius)
            + CANDIDATE_NS * candidates(bits, block.radius, fingerprints)
    };
    (0..=width.min(useful))
        .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
        .unwrap_or(0)
}

/// Candidates that one query meets in a table.
fn candidates(bits: u32, radius: u32, fingerprints: usize) -> f64 {
    fingerprints as f64 * ball(bits, radius) / 2f64.powi(bits.cast_signed())
}

/// How many words of `bits` bits are within `radius` of a given one.
pub(crate) fn ball(bits: u32, radius: u32) -> f64 {
    let mut choose = 1.0;
    let mut sum = 1.0;
    for i in 0..radius.min(bits) {
        choose *= f64::from(bits - i) / f64::from(i + 1);
        sum += choose;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balls() {
        assert_eq!(ball(16, 0), 1.0);
        assert_eq!(ball(16, 2), 1.0 + 16.0 + 120.0);
        assert_eq!(ball(3, 9), 8.0);
    }

    fn limited(memory: usize, queries: u64) -> Limits {
        Limits { memory, queries }
    }

    #[test]
    fn choices_are_sensible() {
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
            Plan::within(exhaustive, 1 << 20, &limited(1000, 1)),
            Err(PlanError::OutOfMemory { .. })
        ));
    }

    #[test]
    fn tables_that_cannot_be_built_are_not_planned() {
        for fingerprints in [21_000_000, 40_000_000, 600_000_000] {
            for k in 0..=16 {
                for plan in Plan::alternatives(fingerprints, k, &Limits::default()).unwrap() {
                    let part = fingerprints.div_ceil(plan.parts);
                    let blocks = plan.design.blocks();
                    for (at, block) in blocks.iter().enumerate() {
                        if !plan.design.is_variants() {
                            continue;
                        }
                        let key_bits = Size::of(blocks, at, part).key.bits;
                        let variants = part as f64 * ball(key_bits, block.radius);
                        assert!(
                            variants < f64::from(u32::MAX),
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
                // Only what cannot be built at once is cut.
                let whole = Plan::of(free.design.clone(), n, 1);
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
                    // What is forced into parts can be better off than it would be by choice.
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
    fn parts_cover_the_batch() {
        for (parts, n) in [(1, 0), (1, 5), (3, 10), (7, 3), (64, 100_000_001)] {
            let mut next = 0;
            for part in 0..parts {
                let range = Plan::part(parts, part, n);
                assert_eq!(range.start, next);
                assert!(range.len() <= n.div_ceil(parts));
                next = range.end;
            }
            assert_eq!(next, n);
        }
    }
}
