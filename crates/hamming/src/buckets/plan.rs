//! [`TablePlan`]: the layout of one table of tags, and its predicted size.

use super::field::Field;
use super::strips::STRIP_LINES;
use super::tag::Tag;
use super::tag_scheme::TagScheme;
use crate::ball::volume;
use crate::design::Block;

/// The most bits of a key.
const MAX_KEY_BITS: u32 = 24;
/// The most variants of a table: the starts of its buckets are 32-bit numbers.
const MAX_VARIANTS: f64 = 4e9;
/// The most candidates that a bucket should have: they lie in at most two adjacent cache lines, which cost one access.
const FEW_CANDIDATES: f64 = 16.0;

/// Tables of at least this many bytes are large: it is worth partitioning a chunk by their keys.
pub(super) const LARGE_TABLE: usize = 4 << 20;

/// The layout of a block's table, its predicted size, and how many candidates a query has there.
#[derive(Debug, Clone)]
pub(crate) struct TablePlan {
    /// The bits of a fingerprint that select its bucket.
    pub(crate) key: Field,
    /// How the tags are made and tested.
    pub(crate) scheme: TagScheme,
    /// Tags in all buckets together: an entry has one in the bucket of every key within the block's radius.
    pub(crate) variants: f64,
    /// Candidates of a query: the tags in its bucket, on average.
    pub(crate) candidates: f64,
    /// How many tags a cache line holds.
    pub(crate) lanes: usize,
    /// Candidates of a query whose tags pass both tests, so that their entries are compared.
    pub(crate) compared: f64,
    /// The number of cache lines that most buckets do not exceed.
    pub(crate) lines: usize,
    /// Whether a strip is first tested as a whole, because few strips have survivors.
    pub(crate) strips_first: bool,
    /// Bytes of the table; `usize::MAX` when it cannot be built in any memory.
    pub(crate) bytes: usize,
    /// Further bytes while the table is built.
    pub(crate) building_bytes: usize,
}

impl TablePlan {
    /// Plans the table of `block` over `entries` entries, with the fewest key bits that leave a query at most
    /// [`FEW_CANDIDATES`]: with more bits, candidates are fewer and the table is larger.
    pub(crate) fn choose<T: Tag>(block: &Block, scheme: TagScheme, entries: usize) -> Self {
        (8..=MAX_KEY_BITS)
            .map(|bits| Self::with_key_bits::<T>(block, scheme, entries, bits))
            .find(|plan| plan.candidates <= FEW_CANDIDATES)
            .unwrap_or_else(|| Self::with_key_bits::<T>(block, scheme, entries, MAX_KEY_BITS))
    }

    /// Plans the table with a key of `bits` bits, or of the whole block when that has fewer.
    fn with_key_bits<T: Tag>(block: &Block, scheme: TagScheme, entries: usize, bits: u32) -> Self {
        let key = Field {
            before: block.mask.leading_zeros(),
            bits: bits.min(block.mask.count_ones()),
        };
        let variants = entries as f64 * volume(key.bits, block.radius);
        let candidates = variants / 2f64.powi(key.bits.cast_signed());
        // Nearly all candidates differ from the query's key in as many bits as the radius allows.
        let passing = candidates * scheme.first_share();
        let most = candidates + 2.0 * candidates.sqrt();
        let lines = most as usize / T::LANES + 1;
        let strip_tags = (lines.min(STRIP_LINES) * T::LANES) as f64;
        let bytes = if variants < MAX_VARIANTS {
            size_of::<T>() * (variants as usize + STRIP_LINES * T::LANES) + (4 << key.bits) + 4
        } else {
            usize::MAX
        };
        Self {
            key,
            scheme,
            variants,
            candidates,
            lanes: T::LANES,
            compared: candidates * scheme.both_share(),
            lines,
            strips_first: passing * strip_tags < 0.3 * candidates,
            bytes,
            building_bytes: 0,
        }
    }

    /// Adds the bytes that a mechanism keeps beside the buckets, and those that it needs while it builds the table.
    pub(crate) fn with_more_bytes(mut self, bytes: usize, building_bytes: usize) -> Self {
        self.bytes = self.bytes.saturating_add(bytes);
        self.building_bytes = building_bytes;
        self
    }
}
