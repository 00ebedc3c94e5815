//! Buckets of sketches, and a probe's view of them.

use super::field::Field;
use super::plan::TablePlan;
use super::queries::Survivor;
use super::rule::SketchRule;
use super::sketch::Sketch;
use super::strips::STRIP;
use crate::isa::Isa;
use crate::memory::Array;

/// The sketches of a block's table, by key.
#[derive(Debug)]
pub(crate) struct Buckets<S> {
    pub(crate) key: Field,
    pub(crate) rule: SketchRule,
    /// See [`TablePlan::lines`].
    lines: usize,
    /// See [`TablePlan::few`].
    pub(super) few: bool,
    /// The bucket of key `k` is from `starts[k]` to `starts[k + 1]`.
    pub(crate) starts: Array<u32>,
    /// The sketches, followed by room for a whole strip.
    pub(crate) sketches: Array<S>,
}

impl<S: Sketch> Buckets<S> {
    /// Zeroed buckets, with room for all sketches of the plan.
    ///
    /// # Panics
    /// When the table cannot be built, see [`TablePlan::bytes`].
    pub(crate) fn zeroed(plan: &TablePlan) -> Self {
        // Otherwise the 32-bit offsets would overflow, and pairs be missed.
        assert!(
            plan.bytes < usize::MAX,
            "a table has less than 4e9 variants"
        );
        Self {
            key: plan.key,
            rule: plan.rule,
            lines: plan.lines,
            few: plan.few,
            starts: Array::zeroed((1 << plan.key.bits) + 1),
            sketches: Array::zeroed(plan.variants as usize + STRIP * S::LANES),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.bytes() + self.sketches.bytes()
    }

    /// The buckets as a probe reads them.
    pub(super) fn view<I: Isa>(&self, isa: I) -> View<'_, I, S> {
        View {
            isa,
            key: self.key,
            lines: self.lines,
            starts: &self.starts,
            sketches: &self.sketches,
            rule: self.rule,
        }
    }
}

/// The range of a query's candidates among the sketches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// What a probe reads of [`Buckets`], without indirections: the same for all queries of a probe.
#[derive(Clone, Copy)]
pub(super) struct View<'a, I, S> {
    pub(super) isa: I,
    pub(super) key: Field,
    /// See [`TablePlan::lines`].
    pub(super) lines: usize,
    pub(super) starts: &'a [u32],
    pub(super) sketches: &'a [S],
    rule: SketchRule,
}

impl<'a, I: Isa, S: Sketch> View<'a, I, S> {
    /// The sketch of a query.
    #[inline(always)]
    pub(super) fn sketch(&self, fingerprint: u64) -> S {
        S::from_bits(self.rule.sketch(fingerprint))
    }

    /// The bucket of a query.
    #[inline(always)]
    pub(super) fn bucket(&self, fingerprint: u64) -> Bucket {
        let key = self.key.extract(fingerprint) as usize;
        let [start, end] = [0, 1].map(|next| self.starts[key + next]);
        Bucket { start, end }
    }

    /// The candidates of the strip that begins at `start`.
    #[inline(always)]
    fn strip(&self, start: u32, lines: usize) -> &'a [S] {
        &self.sketches[start as usize..][..lines * S::LANES]
    }

    /// For each of `sketches`, whether any candidate of a strip passes the first test against it: bit i for sketch i.
    #[inline(always)]
    pub(super) fn any_passes<const N: usize>(
        &self,
        start: u32,
        lines: usize,
        sketches: [S; N],
    ) -> u32 {
        let lines = self.strip(start, lines).chunks_exact(S::LANES);
        S::any_within(self.isa, lines, sketches, self.rule.first)
    }

    /// Appends the candidates of a strip, before `end`, that pass the first test against `sketch`, the sketch of `query`.
    #[inline(always)]
    pub(super) fn push_survivors(
        &self,
        start: u32,
        lines: usize,
        end: u32,
        sketch: S,
        query: u32,
        survivors: &mut Vec<Survivor>,
    ) {
        let mut first = start;
        // 64 candidates at once, as a mask has bits: a branch on each line would be mispredicted.
        for some in self.strip(start, lines).chunks(MASK) {
            let mut near = 0;
            for (line, lanes) in some.chunks_exact(S::LANES).enumerate() {
                let mask = S::line_within(self.isa, lanes, sketch, self.rule.first);
                near |= u64::from(mask) << (line * S::LANES);
            }
            // The last lines reach beyond the bucket.
            near &= mask_before(end.saturating_sub(first));
            let count = near.count_ones() as usize;
            let mut next = || {
                let place = near.trailing_zeros().wrapping_add(first);
                near &= near.wrapping_sub(1);
                Survivor { query, place }
            };
            // Seldom do more than two pass: writing two unconditionally is faster than a branch.
            let passed = survivors.len();
            survivors.extend_from_slice(&[next(), next()]);
            match count {
                0..=2 => survivors.truncate(passed + count),
                _ => survivors.extend((2..count).map(|_| next())),
            }
            first += MASK as u32;
        }
    }
}

/// Bits of a mask of candidates.
const MASK: usize = u64::BITS as usize;

/// The mask of the first `end` candidates.
#[inline(always)]
fn mask_before(end: u32) -> u64 {
    ((1u128 << end.min(u64::BITS)) - 1) as u64
}
