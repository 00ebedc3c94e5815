//! The cost model: what a design would cost, and the choice among designs.
//!
//! For a table over `n` fingerprints with a directory of `d` bits, a query makes V(d, r) lookups (the
//! directory prefixes within radius r, V the volume of a Hamming ball) and compares n·V/2ᵈ candidates. A
//! lookup costs [`LOOKUP_NS`], a candidate [`CANDIDATE_NS`], building [`BUILD_NS`] for each entry of each table.
//! `d` is the number of bits for which the sum is smallest.

use crate::design::{Block, Design, DesignError};

/// A directory lookup whose cache misses overlap with those of others, in nanoseconds.
pub const LOOKUP_NS: f64 = 6.0;
/// Comparing one candidate of a bucket, in nanoseconds.
pub const CANDIDATE_NS: f64 = 0.3;
/// Permuting, sorting and indexing one entry, in nanoseconds.
pub const BUILD_NS: f64 = 60.0;
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
    /// Bytes of its tables.
    pub bytes: usize,
    /// Directory lookups for one probed fingerprint.
    pub lookups: f64,
    /// Candidates compared with one probed fingerprint.
    pub candidates: f64,
    /// Nanoseconds of one core for one probed fingerprint.
    pub probe_ns: f64,
    /// Seconds of one core to build the tables.
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
        "the smallest tables for {fingerprints} distinct fingerprints take {needed} bytes, {allowed} are allowed"
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
    /// What `design` costs for a batch of `fingerprints` distinct values.
    #[must_use]
    pub fn of(design: Design, fingerprints: usize) -> Self {
        let mut plan = Self {
            bytes: 0,
            lookups: 0.0,
            candidates: 0.0,
            probe_ns: 0.0,
            build_seconds: BUILD_NS * 1e-9 * (fingerprints * design.blocks().len()) as f64,
            design,
        };
        for block in plan.design.blocks() {
            let bits = directory_bits(block, fingerprints);
            let lookups = ball(bits, block.radius);
            plan.bytes += 8 * fingerprints + 4 * ((1 << bits) + 1) + 4 * lookups as usize;
            plan.lookups += lookups;
            plan.candidates += candidates(bits, block.radius, fingerprints);
        }
        plan.probe_ns = LOOKUP_NS * plan.lookups + CANDIDATE_NS * plan.candidates;
        plan
    }

    /// Every design for `max_distance`, the cheapest for `queries` probed fingerprints first.
    ///
    /// # Errors
    /// [`DesignError::DistanceTooLarge`].
    pub fn alternatives(
        fingerprints: usize,
        max_distance: u32,
        queries: u64,
    ) -> Result<Vec<Self>, DesignError> {
        let mut plans: Vec<Self> = Design::candidates(max_distance)?
            .into_iter()
            .map(|design| Self::of(design, fingerprints))
            .collect();
        plans.sort_by(|a, b| a.seconds(queries).total_cmp(&b.seconds(queries)));
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
        let plans = Self::alternatives(fingerprints, max_distance, limits.queries)?;
        let needed = plans.iter().map(|plan| plan.bytes).min().unwrap_or(0);
        plans
            .into_iter()
            .find(|plan| plan.bytes <= limits.memory)
            .ok_or(PlanError::OutOfMemory {
                fingerprints,
                needed,
                allowed: limits.memory,
            })
    }

    /// Seconds of one core to build the tables and probe `queries` fingerprints.
    #[must_use]
    pub fn seconds(&self, queries: u64) -> f64 {
        self.build_seconds + 1e-9 * self.probe_ns * queries as f64
    }
}

/// The directory bits for which a probe of `block` is cheapest.
pub(crate) fn directory_bits(block: &Block, fingerprints: usize) -> u32 {
    let width = block.mask.count_ones().min(MAX_DIRECTORY_BITS);
    // A directory of more bits than the entries have would be mostly empty.
    let useful = usize::BITS - fingerprints.leading_zeros();
    let cost = |bits: u32| {
        LOOKUP_NS * ball(bits, block.radius)
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

    #[test]
    fn choices_are_sensible() {
        let large = Plan::choose(1 << 20, 3, &Limits::default()).unwrap();
        assert_ne!(large.design.name(), "exhaustive");
        assert!(large.candidates < 1000.0);
        let tiny = Plan::choose(2, 3, &Limits::default()).unwrap();
        assert_eq!((tiny.design.blocks().len(), tiny.lookups), (1, 1.0));
        let frugal = Limits {
            memory: 9 << 20,
            ..Limits::default()
        };
        let small = Plan::choose(1 << 20, 3, &frugal).unwrap();
        assert!(small.bytes <= 9 << 20);
        assert!(matches!(
            Plan::choose(
                1 << 20,
                3,
                &Limits {
                    memory: 1 << 20,
                    ..Limits::default()
                }
            ),
            Err(PlanError::OutOfMemory { .. })
        ));
        for k in 0..=16 {
            for n in [1000, 1 << 20, 100_000_000] {
                let free = Plan::choose(n, k, &Limits::default()).unwrap();
                let less = Limits {
                    memory: free.bytes - 1,
                    ..Limits::default()
                };
                // With less memory the choice is smaller, and slower.
                if let Ok(tight) = Plan::choose(n, k, &less) {
                    assert!(
                        tight.bytes < free.bytes && tight.probe_ns >= free.probe_ns,
                        "k = {k}, {n}"
                    );
                }
            }
        }
    }
}
