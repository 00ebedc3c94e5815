//! The plan of permuted tables: the sizes of their directories, and their predicted cost.
//!
//! For a table over n entries with a directory of d bits, a query makes V(d, r) lookups (the directory prefixes within
//! radius r; V is the volume of a Hamming ball) and compares n·V/2ᵈ candidates. The plan takes the d at which lookups
//! and candidates together cost least.

use crate::ball::volume;
use crate::cost::{BUILD_NS, Cost, access_ns};
use crate::design::{Block, Design};

/// Permuting one fingerprint for a table, in nanoseconds.
const TABLE_NS: f64 = 10.0;
/// One lookup in the first-level cache, in nanoseconds.
const LOOKUP_NS: f64 = 4.0;
/// Comparing one candidate of a bucket, in nanoseconds.
pub(super) const CANDIDATE_NS: f64 = 0.6;
/// The most bits of a directory (2²⁸ starts of 4 bytes: 1 GiB).
const MAX_DIRECTORY_BITS: u32 = 28;

/// The directory sizes of the tables of a design over a number of entries.
#[derive(Debug)]
pub(super) struct PermutedPlan {
    entries: usize,
    /// The plan of each block's table.
    pub(super) tables: Vec<PermutedTablePlan>,
}

/// The directory size of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct PermutedTablePlan {
    /// The block that is permuted to the top.
    pub(super) block: Block,
    /// How many leading bits of the block make a directory prefix.
    pub(super) directory_bits: u32,
}

impl PermutedPlan {
    /// Plans the tables of `design` over `entries` entries.
    pub(super) fn new(design: &Design, entries: usize) -> Self {
        let table = |block: &Block| PermutedTablePlan {
            block: *block,
            directory_bits: cheapest_directory_bits(block, entries),
        };
        Self {
            entries,
            tables: design.blocks().iter().map(table).collect(),
        }
    }

    /// The predicted cost.
    pub(super) fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        let tables = self.tables.len();
        for table in &self.tables {
            let (bits, radius) = (table.directory_bits, table.block.radius);
            let lookups = volume(bits, radius);
            cost.bytes += 8 * self.entries + 4 * ((1 << bits) + 1) + 4 * lookups as usize;
            cost.lookups += lookups;
            cost.candidates += candidates(bits, radius, self.entries);
        }
        cost.probe_ns = TABLE_NS * tables as f64
            + (LOOKUP_NS + access_ns(cost.bytes)) * cost.lookups
            + CANDIDATE_NS * cost.candidates;
        cost.build_seconds = BUILD_NS * 1e-9 * (self.entries * tables) as f64;
        cost
    }

    /// Describes the layout in one line.
    pub(super) fn describe(&self) -> String {
        let bits = || self.tables.iter().map(|table| table.directory_bits);
        let (least, most) = (bits().min().unwrap_or(0), bits().max().unwrap_or(0));
        if least == most {
            format!("directories of {least} bits")
        } else {
            format!("directories of {least} to {most} bits")
        }
    }
}

/// The directory bits at which a probe of `block` is cheapest.
fn cheapest_directory_bits(block: &Block, entries: usize) -> u32 {
    let width = block.mask.count_ones().min(MAX_DIRECTORY_BITS);
    // With more bits than the number of entries has in binary, most prefixes would have no entry.
    let useful = usize::BITS - entries.leading_zeros();
    let cost = |bits: u32| {
        let lookup = LOOKUP_NS + access_ns(8 * entries + (4 << bits));
        lookup * volume(bits, block.radius) + CANDIDATE_NS * candidates(bits, block.radius, entries)
    };
    (0..=width.min(useful))
        .min_by(|&a, &b| cost(a).total_cmp(&cost(b)))
        .unwrap_or(0)
}

/// How many candidates a query has in a table.
fn candidates(bits: u32, radius: u32, entries: usize) -> f64 {
    entries as f64 * volume(bits, radius) / 2f64.powi(bits.cast_signed())
}
