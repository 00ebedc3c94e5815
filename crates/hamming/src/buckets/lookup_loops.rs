//! The loops that look up queries in a table of tags, one by one or run by run.

use super::queries::{Queries, Survivor};
use super::strips::{STRIP_LINES, Strip, Strips};
use super::tag::Tag;
use super::tag_buckets::{Bucket, TagView};
use super::tag_table::{TagTable, TaggedEntries};
use crate::isa::{Isa, Work};
use crate::matches::Matches;
use crate::mechanism::BatchPart;
use crate::prefetch::{prefetch_l1, prefetch_l2};

/// How many queries lie between two stages of a pipeline, with their cache lines in flight.
const AHEAD: usize = 32;

/// The entries of survivors are compared once there are more than this: so many that their cache misses overlap.
const MANY_SURVIVORS: usize = 256;

/// Queries of a run that are compared with a strip at once.
const AT_ONCE: usize = 4;

/// The queries of a table, and where their matches go.
pub(crate) struct Lookups<'a, 'm, T> {
    pub(crate) table: &'a T,
    pub(super) part: &'a BatchPart<'a>,
    pub(crate) queries: Queries<'a>,
    pub(super) strips: &'a mut Strips,
    pub(super) survivors: &'a mut Vec<Survivor>,
    pub(super) matches: &'a mut Matches<'m>,
}

impl<T: TaggedEntries> Lookups<'_, '_, T> {
    /// Compares the tags in `bucket` with those of `fingerprints`, the first of which has index `query`, and collects
    /// the survivors. Returns true when `matches` is full, so that the probe should stop.
    ///
    /// With `STRIPS_FIRST`, a strip is first tested as a whole, and survivors are sought later in the strips that have
    /// any; without, they are sought at once.
    #[inline(always)]
    fn compare_bucket<I: Isa, const STRIPS_FIRST: bool, const N: usize>(
        &mut self,
        view: TagView<'_, I, T::Tag>,
        bucket: Bucket,
        lines: usize,
        query: u32,
        fingerprints: &[u64; N],
    ) -> bool {
        let tags = fingerprints.map(|fingerprint| view.tag(fingerprint));
        let mut start = bucket.start;
        loop {
            if STRIPS_FIRST {
                let any = view.any_passes::<N>(start, lines, tags);
                let end = bucket.end;
                if !self.strips.push_leaves_room(Strip {
                    query,
                    any,
                    start,
                    end,
                }) {
                    self.drain_strips(view, lines);
                }
            } else {
                for (at, &tag) in tags.iter().enumerate() {
                    let query = query + at as u32;
                    view.push_survivors(start, lines, bucket.end, tag, query, self.survivors);
                }
            }
            start += (lines * T::Tag::LANES) as u32;
            if start >= bucket.end {
                break;
            }
        }
        if self.survivors.len() > MANY_SURVIVORS {
            return self.compare_survivors(view);
        }
        false
    }

    /// Empties the list of strips, and collects their survivors.
    #[inline(always)]
    fn drain_strips<I: Isa>(&mut self, view: TagView<'_, I, T::Tag>, lines: usize) {
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
                let tag = view.tag(self.queries.fingerprints[query as usize]);
                view.push_survivors(start, lines, end, tag, query, self.survivors);
            }
        }
    }

    /// Compares the survivors' entries in full, and empties their list. Returns true when `matches` is full.
    #[inline(always)]
    pub(crate) fn compare_survivors<I: Isa>(&mut self, view: TagView<'_, I, T::Tag>) -> bool {
        self.table
            .compare(view, self.part, self.queries, self.survivors, self.matches);
        self.survivors.clear();
        self.matches.is_full()
    }

    /// Compares the tags in `bucket` with those of all queries from index `query` on that are at most `last`. Returns the
    /// index of the next query, or `None` when `matches` is full, so that the probe should stop.
    #[inline(always)]
    pub(crate) fn compare_run<I: Isa, const STRIPS_FIRST: bool>(
        &mut self,
        view: TagView<'_, I, T::Tag>,
        bucket: Bucket,
        mut query: usize,
        last: u64,
    ) -> Option<usize> {
        let lines = ((bucket.end - bucket.start) as usize).div_ceil(T::Tag::LANES);
        let lines = lines.clamp(1, STRIP_LINES);
        loop {
            let rest = &self.queries.fingerprints[query..];
            let index = query as u32;
            let many = rest.first_chunk::<AT_ONCE>();
            let full = if let Some(many) = many.filter(|many| many[AT_ONCE - 1] <= last) {
                query += AT_ONCE;
                self.compare_bucket::<I, STRIPS_FIRST, AT_ONCE>(view, bucket, lines, index, many)
            } else if let Some(one) = rest.first_chunk::<1>().filter(|one| one[0] <= last) {
                query += 1;
                self.compare_bucket::<I, STRIPS_FIRST, 1>(view, bucket, lines, index, one)
            } else {
                break;
            };
            if full {
                return None;
            }
        }
        self.drain_strips(view, lines);
        Some(query)
    }
}

/// Looks up one query after the other, with prefetches for the next ones in flight.
pub(super) struct OneByOne<'a, 'm, T, const STRIPS_FIRST: bool>(pub(super) Lookups<'a, 'm, T>);

impl<T: TagTable, const STRIPS_FIRST: bool> Work for OneByOne<'_, '_, T, STRIPS_FIRST> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) {
        let Self(mut lookups) = self;
        let view = lookups.table.buckets().view(isa);
        // All strips have the number of lines that most buckets have: a branch on each bucket's own number would be
        // mispredicted half of the time.
        let lines = view.lines.min(STRIP_LINES);
        let lanes = T::Tag::LANES;
        let mut buckets = [Bucket::default(); AHEAD];
        let fingerprints = lookups.queries.fingerprints;
        // A pipeline of three stages, each AHEAD queries behind the one before: prefetch the bucket's start, prefetch
        // its lines, compare its tags.
        for at in 0..fingerprints.len() + 2 * AHEAD {
            if let Some(&fingerprint) = fingerprints.get(at) {
                prefetch_l1(view.starts, view.key.extract(fingerprint) as usize);
            }
            let bucket = &mut buckets[at % AHEAD];
            if let Some(query) = at.checked_sub(2 * AHEAD) {
                let one = &[fingerprints[query]];
                let full = lookups.compare_bucket::<I, STRIPS_FIRST, 1>(
                    view.tags,
                    *bucket,
                    lines,
                    query as u32,
                    one,
                );
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
                // Prefetch as many lines as most buckets have, again without a branch on this
                // bucket's own number, and one more because buckets do not begin at line
                // boundaries.
                let lines = view.lines + 1;
                for line in 0..lines {
                    prefetch_l2(view.tags.tags, start as usize + line * lanes);
                }
                let more = start as usize + lines * lanes;
                for line in (more..end as usize + lanes).step_by(lanes) {
                    prefetch_l2(view.tags.tags, line);
                }
            }
        }
        lookups.drain_strips(view.tags, lines);
        lookups.compare_survivors(view.tags);
    }
}

/// Looks up sorted queries run by run: the bucket of a key once, for all queries that have the key.
pub(super) struct RunByRun<'a, 'm, T, const STRIPS_FIRST: bool>(pub(super) Lookups<'a, 'm, T>);

impl<T: TagTable, const STRIPS_FIRST: bool> Work for RunByRun<'_, '_, T, STRIPS_FIRST> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) {
        let Self(mut lookups) = self;
        let view = lookups.table.buckets().view(isa);
        let fingerprints = lookups.queries.fingerprints;
        let mut query = 0;
        while let Some(&first) = fingerprints.get(query) {
            let bucket = view.bucket(first);
            // The largest fingerprint with this key: only tables whose key is the leading bits are
            // looked up run by run.
            let last = first | (u64::MAX >> view.key.bits);
            match lookups.compare_run::<I, STRIPS_FIRST>(view.tags, bucket, query, last) {
                Some(next) => query = next,
                None => return,
            }
        }
        lookups.compare_survivors(view.tags);
    }
}
