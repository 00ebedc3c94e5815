//! Looking fingerprints up in tables of sketches.

use super::partition::Partitioned;
use super::{CACHED, CROWDED, LANES, SketchTable};
use crate::kernels::{Compare, Kernel, Limit, Work};
use crate::probe::{Found, IN_FLIGHT, Match, prefetch, prefetch_far};

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

/// Buffers of a probe.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    partitioned: Partitioned,
    buckets: Vec<Bucket>,
    survivors: Vec<Survivor>,
}

/// A bucket to be compared with one query.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    start: u32,
    end: u32,
    counts: u32,
}

/// Groups of sketches that are compared before what passed is looked at.
const MASKS: usize = 32;

/// Candidates that are compared in full before more are gathered.
const GATHERED: usize = 1 << 14;

/// A candidate whose sketch is near.
#[derive(Debug, Clone, Copy, Default)]
struct Survivor {
    query: u32,
    /// Its place in the table, later its index.
    entry: u32,
}

/// Chunks are partitioned from this length on.
const PARTITION_FROM: usize = 1 << 14;

impl SketchTable {
    /// Looks up every fingerprint of the chunk. Appends what is near; tables of the same design find pairs that others find
    /// too.
    pub(crate) fn probe(
        &self,
        kernel: Kernel,
        entries: &Entries<'_>,
        chunk: &[u64],
        candidates: &mut Candidates,
        found: &mut Found<'_>,
    ) {
        // What is in the order of the table already needs no other.
        let in_order = self.key.shift + self.key.bits == 64 && chunk.is_sorted();
        if in_order || chunk.len() < PARTITION_FROM || self.bytes() < CACHED {
            return self.probe_some(kernel, entries, (chunk, None), candidates, found);
        }
        let mut partitioned = std::mem::take(&mut candidates.partitioned);
        let queries = partitioned.fill(self.key, chunk);
        self.probe_some(kernel, entries, queries, candidates, found);
        candidates.partitioned = partitioned;
    }

    /// As [`Self::probe`], of some fingerprints with, if it is not their index, the number of each.
    pub(crate) fn probe_some(
        &self,
        kernel: Kernel,
        entries: &Entries<'_>,
        (chunk, queries): (&[u64], Option<&[u32]>),
        candidates: &mut Candidates,
        found: &mut Found<'_>,
    ) {
        kernel.run(Probe {
            table: self,
            entries,
            chunk,
            queries,
            buckets: &mut candidates.buckets,
            survivors: &mut candidates.survivors,
            found,
        });
    }
}

struct Probe<'a, 'f> {
    table: &'a SketchTable,
    entries: &'a Entries<'a>,
    chunk: &'a [u64],
    /// The number of each fingerprint of the chunk, where that is not its index.
    queries: Option<&'a [u32]>,
    buckets: &'a mut Vec<Bucket>,
    survivors: &'a mut Vec<Survivor>,
    found: &'a mut Found<'f>,
}

/// Compares candidates in full and keeps those that are near.
#[inline(always)]
fn compare(
    table: &SketchTable,
    entries: &Entries<'_>,
    (chunk, queries): (&[u64], Option<&[u32]>),
    survivors: &mut [Survivor],
    found: &mut Found<'_>,
) {
    let indexes: &[u32] = &table.indexes;
    for survivor in survivors.iter() {
        prefetch(indexes, survivor.entry as usize);
    }
    for survivor in survivors.iter_mut() {
        survivor.entry = indexes[survivor.entry as usize];
        prefetch(entries.values, survivor.entry as usize);
    }
    let number = |query: u32| queries.map_or(query, |queries| queries[query as usize]);
    for &Survivor { query, entry } in survivors.iter() {
        let itself = |own: usize| own + number(query) as usize == entries.first + entry as usize;
        if entries.own.is_some_and(itself) {
            continue;
        }
        let difference = entries.values[entry as usize] ^ chunk[query as usize];
        let distance = difference.count_ones();
        if distance <= entries.max_distance {
            found.push(Match {
                query: number(query),
                entry: (entries.first + entry as usize) as u32,
                distance,
            });
        }
    }
}

impl Work for Probe<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        let Self {
            table,
            entries,
            chunk,
            queries,
            buckets,
            survivors,
            found,
        } = self;
        let heads: &[[u32; 2]] = &table.heads;
        let sketches: &[u16] = &table.sketches;
        let mut masks = [0; MASKS + 1];
        for (at, block) in chunk.chunks(IN_FLIGHT).enumerate() {
            // Each pass asks for what the next one needs.
            for &fingerprint in block {
                prefetch(heads, table.key.of(fingerprint) as usize);
            }
            buckets.clear();
            for &fingerprint in block {
                let key = table.key.of(fingerprint) as usize;
                let ([start, counts], [end, _]) = (heads[key], heads[key + 1]);
                prefetch_far(sketches, start as usize);
                for line in (start + LANES as u32..end).step_by(LANES) {
                    prefetch_far(sketches, line as usize);
                }
                // Buckets do not begin at lines.
                prefetch_far(sketches, end as usize);
                buckets.push(Bucket { start, end, counts });
            }
            let mut passed = 0;
            for (query, (bucket, &fingerprint)) in buckets.iter().zip(block).enumerate() {
                let sketch = table.sketch.of(fingerprint) as u16;
                let query = (IN_FLIGHT * at + query) as u32;
                let (near, nearest) = match bucket.counts & 0xffff {
                    CROWDED => (u32::MAX, u32::MAX),
                    near => (near, bucket.counts >> 16),
                };
                let mut from = bucket.start;
                while from < bucket.end {
                    let candidates = (bucket.end - from).min((MASKS * LANES) as u32);
                    let groups = (candidates as usize).div_ceil(LANES);
                    let limit = Limit {
                        bits: table.limit,
                        near: near.saturating_sub(from - bucket.start),
                        nearest: nearest.saturating_sub(from - bucket.start),
                    };
                    let lanes = &sketches[from as usize..][..groups * LANES];
                    // SAFETY: the function this is inlined into is compiled for the instruction set, see `Kernel::run`.
                    unsafe { C::sketches(lanes, sketch, limit, &mut masks[..groups]) };
                    // The last group reaches beyond the bucket.
                    masks[groups - 1] &= u32::MAX >> ((groups * LANES) as u32 - candidates);
                    // Two groups a step.
                    masks[groups] = 0;
                    for pair in 0..groups.div_ceil(2) {
                        let mut lanes =
                            u64::from(masks[2 * pair + 1]) << 32 | u64::from(masks[2 * pair]);
                        let first = from + (2 * LANES * pair) as u32;
                        if survivors.len() < passed + 2 * LANES {
                            survivors.resize(2 * (passed + 2 * LANES), Survivor::default());
                        }
                        let count = lanes.count_ones() as usize;
                        // Seldom more than two pass: to write that many always is faster than to ask.
                        for place in &mut survivors[passed..passed + 2] {
                            *place = Survivor {
                                query,
                                entry: first.wrapping_add(lanes.trailing_zeros()),
                            };
                            lanes &= lanes.wrapping_sub(1);
                        }
                        if count > 2 {
                            for place in &mut survivors[passed + 2..passed + count] {
                                *place = Survivor {
                                    query,
                                    entry: first + lanes.trailing_zeros(),
                                };
                                lanes &= lanes - 1;
                            }
                        }
                        passed += count;
                    }
                    from += candidates;
                    if passed > GATHERED {
                        let survivors = &mut survivors[..passed];
                        compare(table, entries, (chunk, queries), survivors, found);
                        passed = 0;
                        if found.is_full() {
                            return;
                        }
                    }
                }
            }
            let survivors = &mut survivors[..passed];
            compare(table, entries, (chunk, queries), survivors, found);
            if found.is_full() {
                return;
            }
        }
    }
}
