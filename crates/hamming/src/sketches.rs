//! Tables of sketches: a bucket for every value of a block that is within the block's radius of an entry's, so that a query
//! finds all its candidates in one place, whatever the order of the archive.
//!
//! A candidate is a [`Sketch`], bits of the entry beside the block; those of a cache line are compared at once, and the entries
//! of those that pass are compared in full. There are two kinds:
//!
//! - [`IndexedTable`], of `halves`: a sketch is the other quarter of the half, 16 bits, of which one may differ. The entry's
//!   index stands beside it.
//! - [`PinnedTable`], of `variants-N`: a sketch is up to 32 bits, less the radius, of the blocks that follow (the first
//!   follows the last). By the strong form of the pigeonhole principle (Qin and Xiao, "Pigeonring", VLDB 2018) a pair within k,
//!   with Σ(rᵢ + 1) = k + 1, has a block i with not only dᵢ ≤ rᵢ, but also dᵢ + dᵢ₊₁ ≤ rᵢ + rᵢ₊₁ + 1, and so on around the ring: dᵢ − (rᵢ + 1)
//!   sums to less than 0, so there is a place from which on all partial sums are less than 0. All candidates take the test for the next block or that
//!   for the next two, whichever is harder, and those that pass it the other ([`Nearness`]): at three blocks with radii of 2 one
//!   in 1,500, and of these 2 in 5. So few that no index is stored: the sketch tells which entries it can be of.

mod indexed;
mod nearness;
mod partition;
mod pinned;
mod probe;
mod strips;

use bytemuck::Pod;
pub(crate) use indexed::IndexedTable;
use nearness::Nearness;
pub(crate) use nearness::Test;
pub(crate) use pinned::PinnedTable;
use probe::STRIP;
pub(crate) use probe::{Candidates, Chunk, Entries, SketchTable};

use crate::cost::ball;
use crate::design::Block;
use crate::kernels::{Compare, any_each};
use crate::memory::Array;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bits of a fingerprint beside its key.
pub(crate) trait Sketch: Pod {
    /// Sketches of a cache line.
    const LANES: usize = LINE / size_of::<Self>();

    /// The lowest bits of `bits`.
    fn of(bits: u32) -> Self;

    /// Which of a line of sketches are near `x` by a test, which is of all bits where sketches have 16: bit i for sketch i.
    ///
    /// # Safety
    /// As [`Compare::within`].
    unsafe fn within<C: Compare>(line: &[Self], x: Self, test: Test) -> u32;

    /// To which of `xs` any sketch of some lines is near: bit i for sketch i of `xs`.
    ///
    /// # Safety
    /// As [`Compare::within`].
    unsafe fn any_within<'a, C: Compare, const N: usize>(
        lines: impl Iterator<Item = &'a [Self]> + Clone,
        xs: [Self; N],
        test: Test,
    ) -> u32;
}

impl Sketch for u16 {
    #[inline(always)]
    fn of(bits: u32) -> Self {
        bits as Self
    }

    #[inline(always)]
    unsafe fn within<C: Compare>(line: &[Self], x: Self, test: Test) -> u32 {
        let line = line.as_array().expect("a line");
        // SAFETY: the caller vouches for the instruction set.
        unsafe { C::narrow_within(line, x, test.limit) }
    }

    #[inline(always)]
    unsafe fn any_within<'a, C: Compare, const N: usize>(
        lines: impl Iterator<Item = &'a [Self]> + Clone,
        xs: [Self; N],
        test: Test,
    ) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        any_each(lines, xs, |line, x| unsafe {
            Self::within::<C>(line, x, test)
        })
    }
}

impl Sketch for u32 {
    #[inline(always)]
    fn of(bits: u32) -> Self {
        bits
    }

    #[inline(always)]
    unsafe fn within<C: Compare>(line: &[Self], x: Self, test: Test) -> u32 {
        let line = line.as_array().expect("a line");
        // SAFETY: the caller vouches for the instruction set.
        unsafe { C::wide_within(line, x, test.mask, test.limit) }
    }

    #[inline(always)]
    unsafe fn any_within<'a, C: Compare, const N: usize>(
        lines: impl Iterator<Item = &'a [Self]> + Clone,
        xs: [Self; N],
        test: Test,
    ) -> u32 {
        let lines = lines.map(|line| line.as_array().expect("a line"));
        // SAFETY: the caller vouches for the instruction set.
        unsafe { C::any_wide_within(lines, xs, test.mask, test.limit) }
    }
}

/// Bits that keys have at most, and whole tables of variants at most.
const MAX_KEY_BITS: u32 = 24;
const MAX_VARIANTS: f64 = 4e9;

/// Where the sketches of a block are.
#[derive(Debug)]
pub(crate) struct Buckets<S> {
    key: Field,
    near: Nearness,
    /// Lines that most buckets have no more than.
    lines: usize,
    /// Whether few strips of lines have any candidate that passes.
    few: bool,
    /// The bucket of key `k` is from `starts[k]` to `starts[k + 1]`.
    starts: Array<u32>,
    /// With as many more behind the last as are compared at once.
    sketches: Array<S>,
}

/// Consecutive bits of a fingerprint; its lowest bit is followed by its highest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Bits before it.
    before: u32,
    /// From 1 to 32.
    pub(crate) bits: u32,
}

impl Field {
    #[inline(always)]
    fn of(self, fingerprint: u64) -> u32 {
        (fingerprint.rotate_left(self.before) >> (64 - self.bits)) as u32
    }
}

/// What the table of a block takes.
pub(crate) struct Size {
    pub(crate) key: Field,
    near: Nearness,
    /// Candidates that a query meets.
    pub(crate) candidates: f64,
    /// How many of them a cache line has.
    pub(crate) lanes: usize,
    /// How many pass by their sketches.
    pub(crate) passing: f64,
    /// How many of these are looked up.
    pub(crate) looked_up: f64,
    /// Bytes of the table; `usize::MAX` when it cannot be built, in however much memory.
    pub(crate) bytes: usize,
    /// More bytes, while it is built.
    pub(crate) building: usize,
}

impl Size {
    /// What the table of block `at` over so many entries takes. More bits of the key are fewer candidates, in a larger table.
    pub(crate) fn of(blocks: &[Block], at: usize, entries: usize) -> Self {
        (8..=MAX_KEY_BITS)
            .map(|bits| Self::with(blocks, at, entries, bits))
            // Two lines of candidates are one access.
            .find(|size| size.candidates <= 16.0)
            .unwrap_or_else(|| Self::with(blocks, at, entries, MAX_KEY_BITS))
    }

    /// As [`Self::of`], with `bits` bits of the key at most.
    fn with(blocks: &[Block], at: usize, entries: usize, bits: u32) -> Self {
        let block = &blocks[at];
        let key = Field {
            before: block.mask.leading_zeros(),
            bits: bits.min(block.mask.count_ones()),
        };
        let near = Nearness::of(blocks, at);
        let variants = entries as f64 * ball(key.bits, block.radius);
        let candidates = variants / 2f64.powi(key.bits.cast_signed());
        let bytes = if variants < MAX_VARIANTS {
            let others = match block.beside {
                0 => pinned::bytes(entries, variants as usize),
                _ => indexed::bytes(variants as usize),
            };
            others + (4 << key.bits) + 4
        } else {
            usize::MAX
        };
        Self {
            candidates,
            lanes: match block.beside {
                0 => u32::LANES,
                _ => u16::LANES,
            },
            // Nearly all are as far away as the radius allows.
            passing: candidates * near.share(),
            looked_up: candidates * near.share_of_both(),
            bytes,
            building: match block.beside {
                0 => size_of::<Entry>() * entries + (8 << key.bits),
                _ => 0,
            },
            key,
            near,
        }
    }
}

impl<S: Sketch> Buckets<S> {
    /// Those of block `at`, with no sketches but room for them.
    ///
    /// # Panics
    /// When they cannot be built, see [`Size::bytes`].
    fn empty(entries: usize, blocks: &[Block], at: usize) -> Self {
        let size = Size::of(blocks, at, entries);
        // Offsets would be cut off, and pairs missed.
        assert!(
            size.bytes < usize::MAX,
            "a table has less than 4e9 variants"
        );
        let variants = entries * ball(size.key.bits, blocks[at].radius) as usize;
        let most = size.candidates + 2.0 * size.candidates.sqrt();
        let lines = most as usize / S::LANES + 1;
        let of_strip = (lines.min(STRIP) * S::LANES) as f64;
        Self {
            key: size.key,
            near: size.near,
            lines,
            few: size.passing * of_strip < 0.3 * size.candidates,
            starts: Array::zeroed((1 << size.key.bits) + 1),
            sketches: Array::zeroed(variants + STRIP * S::LANES),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.starts.bytes() + self.sketches.bytes()
    }
}

/// Where, for each value of `field`, those of `values` that have it come to stand in the order of these, and calls
/// `put(place, index)` for each.
fn place_by(field: Field, values: &[u64], starts: &mut [u32], mut put: impl FnMut(usize, usize)) {
    for &value in values {
        starts[field.of(value) as usize] += 1;
    }
    // From the counts to where each ends, and back from there while they are filled.
    let mut end = 0;
    for start in &mut *starts {
        end += *start;
        *start = end;
    }
    for (index, &value) in values.iter().enumerate().rev() {
        let place = &mut starts[field.of(value) as usize];
        *place -= 1;
        put(*place as usize, index);
    }
}

/// What a table of variants is built of.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    value: u64,
    /// Its sketch.
    sketch: u32,
}

/// Tables of more bytes are worth a partitioned chunk.
pub(crate) const CACHED: usize = 4 << 20;
