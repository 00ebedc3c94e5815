//! The plan of one table of sketches: the layout by which it is built, and its predicted size.

use super::field::Field;
use super::rule::SketchRule;
use super::sketch::Sketch;
use super::strips::STRIP;
use crate::ball::volume;
use crate::design::Block;

/// Most bits of a key.
const MAX_KEY_BITS: u32 = 24;
/// Most variants of a table: its offsets are 32-bit.
const MAX_VARIANTS: f64 = 4e9;
/// Most candidates that a query should meet: they lie in at most two adjacent cache lines, which cost one access.
const FEW_CANDIDATES: f64 = 16.0;

/// Bytes of a table from which on it is worth partitioning a chunk.
pub(super) const LARGE_TABLE: usize = 4 << 20;

/// The layout of a block's table, its predicted size, and the candidates that a query meets there.
#[derive(Debug, Clone)]
pub(crate) struct TablePlan {
    /// The bits of a fingerprint that name its bucket.
    pub(crate) key: Field,
    /// The sketches and their tests.
    pub(crate) rule: SketchRule,
    /// Entries in all buckets together: each in the bucket of every key within the block's radius.
    pub(crate) variants: f64,
    /// Candidates that a query meets.
    pub(crate) candidates: f64,
    /// Sketches of a cache line.
    pub(crate) lanes: usize,
    /// Candidates of a query that pass both tests.
    pub(crate) looked_up: f64,
    /// Cache lines that most buckets do not exceed.
    pub(crate) lines: usize,
    /// Whether few strips have a candidate that passes: then a strip is first tested as a whole.
    pub(crate) few: bool,
    /// Bytes of the table; `usize::MAX` when it cannot be built in any memory.
    pub(crate) bytes: usize,
    /// Further bytes while the table is built.
    pub(crate) building: usize,
}

impl TablePlan {
    /// Plans the table of `block` over `entries` entries, with the fewest key bits that leave a query at most
    /// [`FEW_CANDIDATES`]: with more bits, candidates are fewer and the table is larger.
    pub(crate) fn choose<S: Sketch>(block: &Block, rule: SketchRule, entries: usize) -> Self {
        (8..=MAX_KEY_BITS)
            .map(|bits| Self::with_key_bits::<S>(block, rule, entries, bits))
            .find(|plan| plan.candidates <= FEW_CANDIDATES)
            .unwrap_or_else(|| Self::with_key_bits::<S>(block, rule, entries, MAX_KEY_BITS))
    }

    /// Plans the table with a key of `bits` bits, or of the whole block when that has fewer.
    fn with_key_bits<S: Sketch>(
        block: &Block,
        rule: SketchRule,
        entries: usize,
        bits: u32,
    ) -> Self {
        let key = Field {
            before: block.mask.leading_zeros(),
            bits: bits.min(block.mask.count_ones()),
        };
        let variants = entries as f64 * volume(key.bits, block.radius);
        let candidates = variants / 2f64.powi(key.bits.cast_signed());
        // Nearly all candidates are as far away as the radius allows.
        let passing = candidates * rule.first_share();
        let most = candidates + 2.0 * candidates.sqrt();
        let lines = most as usize / S::LANES + 1;
        let of_strip = (lines.min(STRIP) * S::LANES) as f64;
        let bytes = if variants < MAX_VARIANTS {
            size_of::<S>() * (variants as usize + STRIP * S::LANES) + (4 << key.bits) + 4
        } else {
            usize::MAX
        };
        Self {
            key,
            rule,
            variants,
            candidates,
            lanes: S::LANES,
            looked_up: candidates * rule.both_share(),
            lines,
            few: passing * of_strip < 0.3 * candidates,
            bytes,
            building: 0,
        }
    }

    /// Adds what a mechanism keeps beside the buckets, and what it needs while it builds the table.
    pub(crate) fn with_more_bytes(mut self, bytes: usize, building: usize) -> Self {
        self.bytes = self.bytes.saturating_add(bytes);
        self.building = building;
        self
    }
}
