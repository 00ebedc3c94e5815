//! Looking fingerprints up in buckets of sketches.

use super::partition::Partitioned;
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
    survivors: Vec<Survivor>,
}

/// Where the candidates of one query are.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    start: u32,
    end: u32,
}

/// Queries whose lines are on their way.
const AHEAD: usize = 32;

/// Lines of candidates that are compared before it is looked at whether any passes, at most.
pub(super) const STRIP: usize = 16;

/// Candidates from which on they are compared in full: enough that their cache misses overlap.
const GATHERED: usize = 64;

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

    /// Compares the entries of `survivors` in full and keeps those that are near; may change the survivors.
    fn compare<C: Compare>(
        &self,
        entries: &Entries<'_>,
        chunk: Chunk<'_>,
        survivors: &mut [Survivor],
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
        let mut partitioned = std::mem::take(&mut candidates.partitioned);
        let chunk = partitioned.fill(buckets.key, chunk);
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
    survivors: &'a mut Vec<Survivor>,
    found: &'a mut Found<'f>,
}

impl<T: SketchTable> Lookups<'_, '_, T> {
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
        let buckets = lookups.table.buckets();
        let starts: &[u32] = &buckets.starts;
        let sketches: &[T::Sketch] = &buckets.sketches;
        let lanes = T::Sketch::LANES;
        let mut looked_up = [Bucket::default(); AHEAD];
        let fingerprints = lookups.chunk.fingerprints;
        lookups.survivors.clear();
        // Where a bucket is, is asked for long before its lines are, and these long before they are looked at.
        for at in 0..fingerprints.len() + 2 * AHEAD {
            if let Some(&fingerprint) = fingerprints.get(at) {
                prefetch(starts, buckets.key.of(fingerprint) as usize);
            }
            let bucket = &mut looked_up[at % AHEAD];
            if let Some(query) = at.checked_sub(2 * AHEAD) {
                let (fingerprint, query) = (fingerprints[query], query as u32);
                let bucket = buckets.lanes(bucket, buckets.lines);
                // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                unsafe {
                    buckets.passing::<C, FEW, 1>(bucket, query, &[fingerprint], lookups.survivors);
                }
                if lookups.survivors.len() > GATHERED {
                    lookups.compare::<C>();
                    if lookups.found.is_full() {
                        return;
                    }
                }
            }
            let next = at
                .checked_sub(AHEAD)
                .and_then(|next| fingerprints.get(next));
            if let Some(&fingerprint) = next {
                let key = buckets.key.of(fingerprint) as usize;
                let (start, end) = (starts[key], starts[key + 1]);
                // As many lines as most buckets have, without a look at how many this one has: guesses would be wrong half
                // of the time, and what lies behind is asked for by others, mostly. Buckets do not begin at lines, so that
                // they reach into one more.
                let lines = buckets.lines + 1;
                for line in 0..lines {
                    prefetch_far(sketches, start as usize + line * lanes);
                }
                let more = start as usize + lines * lanes;
                for line in (more..end as usize + lanes).step_by(lanes) {
                    prefetch_far(sketches, line);
                }
                *bucket = Bucket { start, end };
            }
        }
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
        let buckets = lookups.table.buckets();
        let fingerprints = lookups.chunk.fingerprints;
        lookups.survivors.clear();
        let mut query = 0;
        while let Some(&first) = fingerprints.get(query) {
            let key = buckets.key.of(first);
            let [start, end] = [0, 1].map(|next| buckets.starts[key as usize + next]);
            let bucket = Bucket { start, end };
            let lines = ((end - start) as usize).div_ceil(T::Sketch::LANES);
            let bucket = buckets.lanes(&bucket, lines.max(1));
            // The last fingerprint with this key, which is of the leading bits.
            let last = first | (u64::MAX >> buckets.key.bits);
            loop {
                let rest = &fingerprints[query..];
                let survivors = &mut *lookups.survivors;
                let number = query as u32;
                let abreast = rest.first_chunk::<ABREAST>();
                if let Some(some) = abreast.filter(|some| some[ABREAST - 1] <= last) {
                    // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                    unsafe {
                        buckets.passing::<C, FEW, ABREAST>(bucket, number, some, survivors);
                    }
                    query += ABREAST;
                } else if let Some(one) = rest.first_chunk::<1>().filter(|one| one[0] <= last) {
                    // SAFETY: as above.
                    unsafe { buckets.passing::<C, FEW, 1>(bucket, number, one, survivors) };
                    query += 1;
                } else {
                    break;
                }
                if lookups.survivors.len() > GATHERED {
                    lookups.compare::<C>();
                    if lookups.found.is_full() {
                        return;
                    }
                }
            }
        }
        lookups.compare::<C>();
    }
}

/// The candidates of a bucket, in strips of lines that are compared before it is looked at whether any passes.
#[derive(Clone, Copy)]
struct Lanes<'a, S> {
    /// All of them, and what follows to the end of the last strip.
    lanes: &'a [S],
    strip: usize,
    start: u32,
    count: usize,
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

    /// The candidates in `bucket`, in strips of so many `lines` but for [`STRIP`] at most.
    #[inline(always)]
    fn lanes(&self, bucket: &Bucket, lines: usize) -> Lanes<'_, S> {
        let strip = lines.min(STRIP) * S::LANES;
        let count = (bucket.end - bucket.start) as usize;
        let mut all = strip;
        while all < count {
            all += strip;
        }
        Lanes {
            lanes: &self.sketches[bucket.start as usize..][..all],
            strip,
            start: bucket.start,
            count,
        }
    }

    /// Adds the candidates in `bucket` whose sketches are near those of `fingerprints`, the first of which is number `query`.
    ///
    /// # Safety
    /// As [`Compare::within`].
    #[inline(always)]
    unsafe fn passing<C: Compare, const FEW: bool, const N: usize>(
        &self,
        bucket: Lanes<'_, S>,
        query: u32,
        fingerprints: &[u64; N],
        survivors: &mut Vec<Survivor>,
    ) {
        let of = |fingerprint: u64| S::of(self.sketch.of(fingerprint) << self.room);
        let sketches = fingerprints.map(of);
        let mut first = 0;
        // All strips have as many lines as most buckets: to ask how many this one has would be a wrong guess half of the time.
        let mut rest = bucket.lanes;
        // `chunks_exact` would divide.
        while !rest.is_empty() {
            let (strip, behind) = rest.split_at(bucket.strip);
            rest = behind;
            let lines = strip.chunks_exact(S::LANES);
            // Where few strips have any that pass, which they are is found out when that is known.
            let mut any = match FEW {
                // SAFETY: the caller vouches for the instruction set.
                true => unsafe { S::any_within::<C, N>(lines.clone(), sketches, self.limit) },
                false => (1 << N) - 1,
            };
            while any != 0 {
                let at = any.trailing_zeros();
                any &= any - 1;
                for (line, lanes) in lines.clone().enumerate() {
                    let first = first + line * S::LANES;
                    let sketch = sketches[at as usize];
                    // SAFETY: as above.
                    let near = unsafe { S::within::<C>(lanes, sketch, self.limit) };
                    // The last lines reach beyond the bucket.
                    let mut near = near & before(bucket.count.saturating_sub(first));
                    let count = near.count_ones() as usize;
                    let mut next = || {
                        let place = near
                            .trailing_zeros()
                            .wrapping_add(bucket.start + first as u32);
                        near &= near.wrapping_sub(1);
                        let query = query + at;
                        Survivor { query, place }
                    };
                    if FEW {
                        survivors.extend((0..count).map(|_| next()));
                        continue;
                    }
                    // Seldom more than two: to write that many always is faster than to ask.
                    let passed = survivors.len();
                    survivors.extend_from_slice(&[next(), next()]);
                    match count {
                        0..=2 => survivors.truncate(passed + count),
                        _ => survivors.extend((2..count).map(|_| next())),
                    }
                }
            }
            first += bucket.strip;
        }
    }
}

/// A mask of the lanes before `end`.
#[inline(always)]
fn before(end: usize) -> u32 {
    ((1u64 << end.min(32)) - 1) as u32
}
