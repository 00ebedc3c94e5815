//! [`Buckets`] of tags, and the [`View`] of them that a probe reads.

use super::field::Field;
use super::plan::TablePlan;
use super::queries::Survivor;
use super::strips::STRIP_LINES;
use super::tag::Tag;
use super::tag_scheme::TagScheme;
use crate::huge_array::HugeArray;
use crate::isa::Isa;

/// The tags of a block's table, in a bucket for each key.
#[derive(Debug)]
pub(crate) struct Buckets<T> {
    pub(crate) key: Field,
    pub(crate) scheme: TagScheme,
    /// See [`TablePlan::lines`].
    lines: usize,
    /// See [`TablePlan::strips_first`].
    pub(super) strips_first: bool,
    /// The bucket of key `k` is from `starts[k]` to `starts[k + 1]`.
    pub(crate) starts: HugeArray<u32>,
    /// The tags, and behind them room for a whole strip.
    pub(crate) tags: HugeArray<T>,
}

impl<T: Tag> Buckets<T> {
    /// Zeroed buckets, with room for all tags of the plan.
    ///
    /// # Panics
    /// When the table cannot be built, see [`TablePlan::bytes`].
    pub(crate) fn zeroed(plan: &TablePlan) -> Self {
        // With more variants, the 32-bit starts would overflow, and the join would miss pairs.
        assert!(
            plan.bytes < usize::MAX,
            "a table has less than 4e9 variants"
        );
        Self {
            key: plan.key,
            scheme: plan.scheme,
            lines: plan.lines,
            strips_first: plan.strips_first,
            starts: HugeArray::zeroed((1 << plan.key.bits) + 1),
            tags: HugeArray::zeroed(plan.variants as usize + STRIP_LINES * T::LANES),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.bytes() + self.tags.bytes()
    }

    /// The view of the buckets for a probe with `isa`.
    pub(super) fn view<I: Isa>(&self, isa: I) -> View<'_, I, T> {
        View {
            key: self.key,
            lines: self.lines,
            starts: &self.starts,
            tags: TagView {
                isa,
                tags: &self.tags,
                scheme: self.scheme,
            },
        }
    }
}

/// The range of indexes that a query's candidates have among the tags.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bucket {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What a probe reads of [`Buckets`], without indirections.
#[derive(Clone, Copy)]
pub(super) struct View<'a, I, T> {
    pub(super) key: Field,
    /// See [`TablePlan::lines`].
    pub(super) lines: usize,
    pub(super) starts: &'a [u32],
    pub(super) tags: TagView<'a, I, T>,
}

impl<I: Isa, T: Tag> View<'_, I, T> {
    /// The bucket of a query.
    #[inline(always)]
    pub(super) fn bucket(&self, fingerprint: u64) -> Bucket {
        let key = self.key.extract(fingerprint) as usize;
        let [start, end] = [0, 1].map(|next| self.starts[key + next]);
        Bucket { start, end }
    }
}

/// The tags of candidates, and how they are compared.
#[derive(Clone, Copy)]
pub(crate) struct TagView<'a, I, T> {
    pub(crate) isa: I,
    /// The tags, and behind those of the last bucket room for a whole strip.
    pub(crate) tags: &'a [T],
    pub(crate) scheme: TagScheme,
}

impl<'a, I: Isa, T: Tag> TagView<'a, I, T> {
    /// The tag of a query.
    #[inline(always)]
    pub(super) fn tag(&self, fingerprint: u64) -> T {
        T::from_bits(self.scheme.tag(fingerprint))
    }

    /// The tags of the strip of `lines` cache lines that begins at `start`.
    #[inline(always)]
    fn strip(&self, start: u32, lines: usize) -> &'a [T] {
        &self.tags[start as usize..][..lines * T::LANES]
    }

    /// For each of `tags`, whether any candidate of the strip that begins at `start` passes the first test against it:
    /// bit i for tag i.
    #[inline(always)]
    pub(super) fn any_passes<const N: usize>(&self, start: u32, lines: usize, tags: [T; N]) -> u32 {
        let lines = self.strip(start, lines).chunks_exact(T::LANES);
        T::any_within(self.isa, lines, tags, self.scheme.first)
    }

    /// Appends the survivors of a strip: the candidates before `end` that pass the first test against `tag`, the tag of
    /// `query`.
    #[inline(always)]
    pub(super) fn push_survivors(
        &self,
        start: u32,
        lines: usize,
        end: u32,
        tag: T,
        query: u32,
        survivors: &mut Vec<Survivor>,
    ) {
        let mut first = start;
        // Tests as many candidates at once as a mask has bits: a branch for each line would be
        // mispredicted.
        for tags in self.strip(start, lines).chunks(MASK_BITS) {
            let mut near = 0;
            for (line, lanes) in tags.chunks_exact(T::LANES).enumerate() {
                let mask = T::line_within(self.isa, lanes, tag, self.scheme.first);
                near |= u64::from(mask) << (line * T::LANES);
            }
            // The last line may reach beyond the bucket.
            near &= mask_before(end.saturating_sub(first));
            let count = near.count_ones() as usize;
            let mut next = || {
                let tag_index = near.trailing_zeros().wrapping_add(first);
                near &= near.wrapping_sub(1);
                Survivor { query, tag_index }
            };
            // More than two rarely pass: writing two unconditionally is faster than a branch on their number.
            let passed = survivors.len();
            survivors.extend_from_slice(&[next(), next()]);
            match count {
                0..=2 => survivors.truncate(passed + count),
                _ => survivors.extend((2..count).map(|_| next())),
            }
            first += MASK_BITS as u32;
        }
    }
}

/// How many candidates a mask has bits for.
const MASK_BITS: usize = u64::BITS as usize;

/// The mask with the first `end` candidates' bits set.
#[inline(always)]
fn mask_before(end: u32) -> u64 {
    ((1u128 << end.min(u64::BITS)) - 1) as u64
}
