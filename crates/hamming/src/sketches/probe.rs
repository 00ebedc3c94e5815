//! Looking fingerprints up in buckets of sketches.

use std::time::{Duration, Instant};

use super::partition::Partitioned;
use super::strips::{Strip, Strips, View};
use super::{Buckets, CACHED, Sketch};
use crate::kernels::{Compare, Kernel, Work};
use crate::probe::{Found, prefetch, prefetch_far};

/// What tables were built of.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    pub(crate) values: &'a [u64],
    /// The index of the first of them in the batch.
    pub(crate) first: usize,
    /// Where the queries are values of the batch, the index there of the first of them: none is compared with itself.
    pub(crate) own: Option<usize>,
    pub(crate) max_distance: u32,
}

impl Entries<'_> {
    /// Whether the query of this number is the entry of that index.
    #[inline(always)]
    pub(super) fn is_own(&self, query: u32, index: u32) -> bool {
        self.own
            .is_some_and(|own| own + query as usize == self.first + index as usize)
    }
}

/// Fingerprints that are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    pub(crate) fingerprints: &'a [u64],
    /// The number of each, where that is not its index.
    pub(crate) numbers: Option<&'a [u32]>,
}

impl Chunk<'_> {
    #[inline(always)]
    pub(super) fn number(&self, index: u32) -> u32 {
        self.numbers
            .map_or(index, |numbers| numbers[index as usize])
    }
}

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    partitioned: Partitioned,
    partitioning: Duration,
    strips: Strips,
    survivors: Vec<Survivor>,
}

impl Candidates {
    /// Time spent on partitioning since this was asked for last.
    pub(crate) fn take_partitioning(&mut self) -> Duration {
        std::mem::take(&mut self.partitioning)
    }
}

/// Where the candidates of one query are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Queries whose lines are on their way.
const AHEAD: usize = 32;

/// Lines of candidates that are compared before it is looked at whether any passes, at most.
pub(super) const STRIP: usize = 16;

/// Candidates from which on they are compared in full: enough that their cache misses overlap.
const GATHERED: usize = 256;

/// A candidate whose sketch is near.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Survivor {
    /// The index of the fingerprint.
    pub(super) query: u32,
    /// Where the sketch is.
    pub(super) place: u32,
}

/// Fingerprints of a chunk that have the same key, in the mean, from which on a bucket is looked up for all of them.
const RUN: usize = 4;

/// Fingerprints with the same key whose candidates are compared at the same time.
const ABREAST: usize = 4;

/// Chunks are partitioned from this length on.
const PARTITION_FROM: usize = 1 << 14;

/// A table of a block: buckets of sketches, and the entries that they are of.
pub(crate) trait SketchTable: Sized {
    /// What candidates are compared by first.
    type Sketch: Sketch;

    /// The sketches.
    fn buckets(&self) -> &Buckets<Self::Sketch>;

    /// Compares the entries of `survivors` that pass the second test in full, and adds those that are near to `found`; may
    /// change the survivors.
    fn compare<C: Compare>(
        &self,
        entries: &Entries<'_>,
        chunk: Chunk<'_>,
        survivors: &mut Vec<Survivor>,
        found: &mut Found<'_>,
    );

    /// Looks up every fingerprint of the chunk. Appends what is near; tables of the same design find pairs that others find
    /// too.
    fn probe(
        &self,
        kernel: Kernel,
        entries: &Entries<'_>,
        chunk: &[u64],
        candidates: &mut Candidates,
        found: &mut Found<'_>,
    ) {
        let buckets = self.buckets();
        let given = Chunk {
            fingerprints: chunk,
            numbers: None,
        };
        // What is in the order of the table already needs no other.
        let in_order = buckets.key.before == 0 && chunk.is_sorted();
        if in_order && buckets.has_runs(chunk) {
            let lookups = Lookups {
                table: self,
                entries,
                chunk: given,
                strips: &mut candidates.strips,
                survivors: &mut candidates.survivors,
                found,
            };
            return match buckets.few {
                true => kernel.run(InRuns::<_, true>(lookups)),
                false => kernel.run(InRuns::<_, false>(lookups)),
            };
        }
        if in_order || chunk.len() < PARTITION_FROM || buckets.bytes() < CACHED {
            return self.probe_some(kernel, entries, given, candidates, found);
        }
        let begin = Instant::now();
        let mut partitioned = std::mem::take(&mut candidates.partitioned);
        let chunk = partitioned.fill(kernel, buckets.key, chunk);
        candidates.partitioning += begin.elapsed();
        self.probe_some(kernel, entries, chunk, candidates, found);
        candidates.partitioned = partitioned;
    }

    /// As [`Self::probe`], of fingerprints in the order they have.
    fn probe_some(
        &self,
        kernel: Kernel,
        entries: &Entries<'_>,
        chunk: Chunk<'_>,
        candidates: &mut Candidates,
        found: &mut Found<'_>,
    ) {
        let lookups = Lookups {
            table: self,
            entries,
            chunk,
            strips: &mut candidates.strips,
            survivors: &mut candidates.survivors,
            found,
        };
        match self.buckets().few {
            true => kernel.run(InTurn::<_, true>(lookups)),
            false => kernel.run(InTurn::<_, false>(lookups)),
        }
    }
}

/// The fingerprints of a chunk, to be looked up in a table.
struct Lookups<'a, 'f, T> {
    table: &'a T,
    entries: &'a Entries<'a>,
    chunk: Chunk<'a>,
    strips: &'a mut Strips,
    survivors: &'a mut Vec<Survivor>,
    found: &'a mut Found<'f>,
}

impl<T: SketchTable> Lookups<'_, '_, T> {
    /// Compares the candidates in `bucket` with `fingerprints`, the first of which is number `query`. Gives whether there
    /// are so many matches that the probe had better be given up.
    ///
    /// # Safety
    /// As [`Compare::within`].
    #[inline(always)]
    unsafe fn look<C: Compare, const FEW: bool, const N: usize>(
        &mut self,
        view: &View<'_, T::Sketch>,
        bucket: Bucket,
        lines: usize,
        query: u32,
        fingerprints: &[u64; N],
    ) -> bool {
        let sketches = fingerprints.map(|fingerprint| view.sketch(fingerprint));
        let mut start = bucket.start;
        loop {
            // SAFETY: the caller vouches for the instruction set.
            unsafe {
                if FEW {
                    let any = view.any_within::<C, N>(start, lines, sketches);
                    let end = bucket.end;
                    if !self.strips.push(Strip {
                        query,
                        any,
                        start,
                        end,
                    }) {
                        self.places::<C>(view, lines);
                    }
                } else {
                    for (at, &sketch) in sketches.iter().enumerate() {
                        let query = query + at as u32;
                        view.places::<C>(start, lines, bucket.end, sketch, query, self.survivors);
                    }
                }
            }
            start += (lines * T::Sketch::LANES) as u32;
            if start >= bucket.end {
                break;
            }
        }
        if self.survivors.len() > GATHERED {
            self.compare::<C>();
            return self.found.is_full();
        }
        false
    }

    /// Adds the survivors of the strips that have any.
    ///
    /// # Safety
    /// As [`Compare::within`].
    #[inline(always)]
    unsafe fn places<C: Compare>(&mut self, view: &View<'_, T::Sketch>, lines: usize) {
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
                let sketch = view.sketch(self.chunk.fingerprints[query as usize]);
                // SAFETY: the caller vouches for the instruction set.
                unsafe { view.places::<C>(start, lines, end, sketch, query, self.survivors) };
            }
        }
    }

    /// Compares the survivors in full.
    #[inline(always)]
    fn compare<C: Compare>(&mut self) {
        self.table
            .compare::<C>(self.entries, self.chunk, self.survivors, self.found);
        self.survivors.clear();
    }
}

/// Each for itself, some at the same time.
struct InTurn<'a, 'f, T, const FEW: bool>(Lookups<'a, 'f, T>);

impl<T: SketchTable, const FEW: bool> Work for InTurn<'_, '_, T, FEW> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self(mut lookups) = self;
        let view = lookups.table.buckets().view();
        // All strips have as many lines as most buckets: to ask how many one has would be a wrong guess half of the time.
        let lines = view.lines.min(STRIP);
        let lanes = T::Sketch::LANES;
        let mut looked_up = [Bucket::default(); AHEAD];
        let fingerprints = lookups.chunk.fingerprints;
        lookups.survivors.clear();
        lookups.strips.clear();
        // Where a bucket is, is asked for long before its lines are, and these long before they are looked at.
        for at in 0..fingerprints.len() + 2 * AHEAD {
            if let Some(&fingerprint) = fingerprints.get(at) {
                prefetch(view.starts, view.key.of(fingerprint) as usize);
            }
            let bucket = &mut looked_up[at % AHEAD];
            if let Some(query) = at.checked_sub(2 * AHEAD) {
                let some = &[fingerprints[query]];
                // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                let full =
                    unsafe { lookups.look::<C, FEW, 1>(&view, *bucket, lines, query as u32, some) };
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
                // As many lines as most buckets have, without a look at how many this one has: guesses would be wrong half
                // of the time, and what lies behind is asked for by others, mostly. Buckets do not begin at lines, so that
                // they reach into one more.
                let lines = view.lines + 1;
                for line in 0..lines {
                    prefetch_far(view.sketches, start as usize + line * lanes);
                }
                let more = start as usize + lines * lanes;
                for line in (more..end as usize + lanes).step_by(lanes) {
                    prefetch_far(view.sketches, line);
                }
            }
        }
        // SAFETY: as above.
        unsafe { lookups.places::<C>(&view, lines) };
        lookups.compare::<C>();
    }
}

/// In the order of the buckets, of which many have the same one: that is looked up once for all of them.
struct InRuns<'a, 'f, T, const FEW: bool>(Lookups<'a, 'f, T>);

impl<T: SketchTable, const FEW: bool> Work for InRuns<'_, '_, T, FEW> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self(mut lookups) = self;
        let view = lookups.table.buckets().view();
        let fingerprints = lookups.chunk.fingerprints;
        lookups.survivors.clear();
        lookups.strips.clear();
        let mut query = 0;
        while let Some(&first) = fingerprints.get(query) {
            let bucket = view.bucket(first);
            let lines = ((bucket.end - bucket.start) as usize).div_ceil(T::Sketch::LANES);
            let lines = lines.clamp(1, STRIP);
            // The last fingerprint with this key, which is of the leading bits.
            let last = first | (u64::MAX >> view.key.bits);
            loop {
                let rest = &fingerprints[query..];
                let number = query as u32;
                let abreast = rest.first_chunk::<ABREAST>();
                // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                let full = unsafe {
                    if let Some(some) = abreast.filter(|some| some[ABREAST - 1] <= last) {
                        query += ABREAST;
                        lookups.look::<C, FEW, ABREAST>(&view, bucket, lines, number, some)
                    } else if let Some(one) = rest.first_chunk::<1>().filter(|one| one[0] <= last) {
                        query += 1;
                        lookups.look::<C, FEW, 1>(&view, bucket, lines, number, one)
                    } else {
                        break;
                    }
                };
                if full {
                    return;
                }
            }
            // SAFETY: as above.
            unsafe { lookups.places::<C>(&view, lines) };
        }
        lookups.compare::<C>();
    }
}

impl<S: Sketch> Buckets<S> {
    /// Whether many of a chunk in order have the same key.
    fn has_runs(&self, chunk: &[u64]) -> bool {
        let (Some(&first), Some(&last)) = (chunk.first(), chunk.last()) else {
            return false;
        };
        let keys = self.key.of(last).abs_diff(self.key.of(first)) as usize + 1;
        chunk.len() / keys >= RUN
    }
}
