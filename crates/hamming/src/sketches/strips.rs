//! The candidates of a bucket, in strips of cache lines that are compared before it is looked at whether any passes.

use super::probe::{Bucket, Survivor};
use super::{Buckets, Field, Nearness, Sketch};
use crate::kernels::Compare;

/// Strips with candidates that pass, from which on they are looked for.
const MANY: usize = 32;

/// Buckets as a probe needs them: what stays the same from query to query.
#[derive(Clone, Copy)]
pub(super) struct View<'a, S> {
    pub(super) key: Field,
    /// Lines that most buckets have no more than.
    pub(super) lines: usize,
    pub(super) starts: &'a [u32],
    pub(super) sketches: &'a [S],
    near: Nearness,
}

impl<S: Sketch> Buckets<S> {
    pub(super) fn view(&self) -> View<'_, S> {
        View {
            key: self.key,
            lines: self.lines,
            starts: &self.starts,
            sketches: &self.sketches,
            near: self.near,
        }
    }
}

impl<'a, S: Sketch> View<'a, S> {
    #[inline(always)]
    pub(super) fn sketch(&self, fingerprint: u64) -> S {
        S::of(self.near.sketch(fingerprint))
    }

    #[inline(always)]
    pub(super) fn bucket(&self, fingerprint: u64) -> Bucket {
        let key = self.key.of(fingerprint) as usize;
        let [start, end] = [0, 1].map(|next| self.starts[key + next]);
        Bucket { start, end }
    }

    /// The candidates of the strip that begins at `start`.
    #[inline(always)]
    fn strip(&self, start: u32, lines: usize) -> &'a [S] {
        &self.sketches[start as usize..][..lines * S::LANES]
    }

    /// Which of `sketches` any candidate of a strip is near: bit i for sketch i.
    ///
    /// # Safety
    /// As [`Compare::within`].
    #[inline(always)]
    pub(super) unsafe fn any_within<C: Compare, const N: usize>(
        &self,
        start: u32,
        lines: usize,
        sketches: [S; N],
    ) -> u32 {
        let lines = self.strip(start, lines).chunks_exact(S::LANES);
        // SAFETY: the caller vouches for the instruction set.
        unsafe { S::any_within::<C, N>(lines, sketches, self.near.first) }
    }

    /// Adds the candidates of a strip, before `end`, that are near `sketch`, which is that of `query`.
    ///
    /// # Safety
    /// As [`Compare::within`].
    #[inline(always)]
    pub(super) unsafe fn places<C: Compare>(
        &self,
        start: u32,
        lines: usize,
        end: u32,
        sketch: S,
        query: u32,
        survivors: &mut Vec<Survivor>,
    ) {
        let mut first = start;
        // As many at the same time as a mask has bits: it is not to be guessed in which line they are.
        for some in self.strip(start, lines).chunks(MASK) {
            let mut near = 0;
            for (line, lanes) in some.chunks_exact(S::LANES).enumerate() {
                // SAFETY: the caller vouches for the instruction set.
                let mask = unsafe { S::within::<C>(lanes, sketch, self.near.first) };
                near |= u64::from(mask) << (line * S::LANES);
            }
            // The last lines reach beyond the bucket.
            near &= before(end.saturating_sub(first));
            let count = near.count_ones() as usize;
            let mut next = || {
                let place = near.trailing_zeros().wrapping_add(first);
                near &= near.wrapping_sub(1);
                Survivor { query, place }
            };
            // Seldom more than two: to write that many always is faster than to ask.
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

/// A mask of the candidates before `end`.
#[inline(always)]
fn before(end: u32) -> u64 {
    ((1u128 << end.min(u64::BITS)) - 1) as u64
}

/// A strip that has candidates near some queries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strip {
    /// The number of the first query.
    pub(super) query: u32,
    /// Which it has candidates near to: bit i for number i from the first on.
    pub(super) any: u32,
    pub(super) start: u32,
    /// Where its bucket ends.
    pub(super) end: u32,
}

/// Strips that have candidates near a query. Which have is not to be guessed: all are written down, and those that have not
/// are written over.
#[derive(Debug)]
pub(super) struct Strips {
    strips: Box<[Strip; MANY]>,
    count: usize,
}

impl Default for Strips {
    fn default() -> Self {
        Self {
            strips: Box::new([Strip::default(); MANY]),
            count: 0,
        }
    }
}

impl Strips {
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a strip if it has any; false when there is no room for another.
    #[inline(always)]
    pub(super) fn push(&mut self, strip: Strip) -> bool {
        self.strips[self.count] = strip;
        self.count += usize::from(strip.any != 0);
        self.count < MANY
    }

    /// All of them, of which none is left.
    #[inline(always)]
    pub(super) fn drain(&mut self) -> &[Strip] {
        &self.strips[..std::mem::take(&mut self.count)]
    }
}
