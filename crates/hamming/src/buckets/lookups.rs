//! The loops over the queries of a table: from the key to the survivors of its bucket.

use super::queries::{Queries, Survivor};
use super::sketch::Sketch;
use super::sketched::{Bucket, View};
use super::strips::{STRIP, Strip, Strips};
use super::table::SketchTable;
use crate::isa::{Isa, Work};
use crate::matches::Matches;
use crate::mechanism::BatchPart;
use crate::prefetch::{prefetch_l1, prefetch_l2};

/// Queries whose cache lines are in flight.
const AHEAD: usize = 32;

/// Survivors that are collected before they are compared in full: enough that their cache misses overlap.
const GATHERED: usize = 256;

/// Queries with the same key whose candidates are compared at the same time.
const ABREAST: usize = 4;

/// The queries of a table, and where their matches go.
pub(super) struct Lookups<'a, 'm, T> {
    pub(super) table: &'a T,
    pub(super) part: &'a BatchPart<'a>,
    pub(super) queries: Queries<'a>,
    pub(super) strips: &'a mut Strips,
    pub(super) survivors: &'a mut Vec<Survivor>,
    pub(super) matches: &'a mut Matches<'m>,
}

impl<T: SketchTable> Lookups<'_, '_, T> {
    /// Compares the candidates in `bucket` with `fingerprints`, the first of which has index `query`. Returns true when
    /// `matches` is full, so that the probe should give up.
    ///
    /// With `FEW`, a strip is first tested for any candidate that passes; without, each candidate is looked at right away.
    #[inline(always)]
    fn look_up<I: Isa, const FEW: bool, const N: usize>(
        &mut self,
        view: &View<'_, I, T::Sketch>,
        bucket: Bucket,
        lines: usize,
        query: u32,
        fingerprints: &[u64; N],
    ) -> bool {
        let sketches = fingerprints.map(|fingerprint| view.sketch(fingerprint));
        let mut start = bucket.start;
        loop {
            if FEW {
                let any = view.any_passes::<N>(start, lines, sketches);
                let end = bucket.end;
                if !self.strips.push(Strip {
                    query,
                    any,
                    start,
                    end,
                }) {
                    self.drain_strips(view, lines);
                }
            } else {
                for (at, &sketch) in sketches.iter().enumerate() {
                    let query = query + at as u32;
                    view.push_survivors(start, lines, bucket.end, sketch, query, self.survivors);
                }
            }
            start += (lines * T::Sketch::LANES) as u32;
            if start >= bucket.end {
                break;
            }
        }
        if self.survivors.len() > GATHERED {
            self.compare(view.isa);
            return self.matches.is_full();
        }
        false
    }

    /// Empties the list of strips, and appends their survivors.
    #[inline(always)]
    fn drain_strips<I: Isa>(&mut self, view: &View<'_, I, T::Sketch>, lines: usize) {
        for &Strip {
            query,
            mut any,
            start,
            end,
        } in self.strips.drain()
        {
            while any != 0 {
                let query = query + any.trailing_zeros();
                any &= any - 1;
                let sketch = view.sketch(self.queries.fingerprints[query as usize]);
                view.push_survivors(start, lines, end, sketch, query, self.survivors);
            }
        }
    }

    /// Compares the survivors in full, and empties their list.
    #[inline(always)]
    fn compare<I: Isa>(&mut self, isa: I) {
        self.table
            .compare(isa, self.part, self.queries, self.survivors, self.matches);
        self.survivors.clear();
    }
}

/// Looks up each query by itself, with several in flight.
pub(super) struct InTurn<'a, 'm, T, const FEW: bool>(pub(super) Lookups<'a, 'm, T>);

impl<T: SketchTable, const FEW: bool> Work for InTurn<'_, '_, T, FEW> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self(mut lookups) = self;
        let view = lookups.table.buckets().view(isa);
        // Every strip has as many lines as most buckets: a branch on each bucket's number of lines would be mispredicted
        // half of the time.
        let lines = view.lines.min(STRIP);
        let lanes = T::Sketch::LANES;
        let mut looked_up = [Bucket::default(); AHEAD];
        let fingerprints = lookups.queries.fingerprints;
        lookups.survivors.clear();
        lookups.strips.clear();
        // Three stages, AHEAD queries apart: prefetch the bucket's start, prefetch its lines, compare.
        for at in 0..fingerprints.len() + 2 * AHEAD {
            if let Some(&fingerprint) = fingerprints.get(at) {
                prefetch_l1(view.starts, view.key.extract(fingerprint) as usize);
            }
            let bucket = &mut looked_up[at % AHEAD];
            if let Some(query) = at.checked_sub(2 * AHEAD) {
                let some = &[fingerprints[query]];
                let full = lookups.look_up::<I, FEW, 1>(&view, *bucket, lines, query as u32, some);
                if full {
                    return;
                }
            }
            let next = at
                .checked_sub(AHEAD)
                .and_then(|next| fingerprints.get(next));
            if let Some(&fingerprint) = next {
                *bucket = view.bucket(fingerprint);
                let Bucket { start, end } = *bucket;
                // As many lines as most buckets have, without a branch on this one's number, and one more because buckets
                // do not begin at line boundaries.
                let lines = view.lines + 1;
                for line in 0..lines {
                    prefetch_l2(view.sketches, start as usize + line * lanes);
                }
                let more = start as usize + lines * lanes;
                for line in (more..end as usize + lanes).step_by(lanes) {
                    prefetch_l2(view.sketches, line);
                }
            }
        }
        lookups.drain_strips(&view, lines);
        lookups.compare(isa);
    }
}

/// Looks up sorted queries, many of which share a bucket: each bucket once for all of them.
pub(super) struct InRuns<'a, 'm, T, const FEW: bool>(pub(super) Lookups<'a, 'm, T>);

impl<T: SketchTable, const FEW: bool> Work for InRuns<'_, '_, T, FEW> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self(mut lookups) = self;
        let view = lookups.table.buckets().view(isa);
        let fingerprints = lookups.queries.fingerprints;
        lookups.survivors.clear();
        lookups.strips.clear();
        let mut query = 0;
        while let Some(&first) = fingerprints.get(query) {
            let bucket = view.bucket(first);
            let lines = ((bucket.end - bucket.start) as usize).div_ceil(T::Sketch::LANES);
            let lines = lines.clamp(1, STRIP);
            // The largest fingerprint with this key: in a sorted chunk, the key is the leading bits.
            let last = first | (u64::MAX >> view.key.bits);
            loop {
                let rest = &fingerprints[query..];
                let number = query as u32;
                let abreast = rest.first_chunk::<ABREAST>();
                let full = if let Some(some) = abreast.filter(|some| some[ABREAST - 1] <= last) {
                    query += ABREAST;
                    lookups.look_up::<I, FEW, ABREAST>(&view, bucket, lines, number, some)
                } else if let Some(one) = rest.first_chunk::<1>().filter(|one| one[0] <= last) {
                    query += 1;
                    lookups.look_up::<I, FEW, 1>(&view, bucket, lines, number, one)
                } else {
                    break;
                };
                if full {
                    return;
                }
            }
            lookups.drain_strips(&view, lines);
        }
        lookups.compare(isa);
    }
}
