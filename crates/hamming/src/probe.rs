//! Streaming fingerprints past the tables, a chunk at a time.

use crate::kernels::{Compare, Isa, Kernel};
use crate::tables::{Table, Tables, prefix};

/// A verified pair: a fingerprint of the chunk and one of the batch, within the design's distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// Index into the chunk.
    pub query: u32,
    /// Index into [`crate::Distinct::values`] of the batch.
    pub entry: u32,
    /// Bits in which they differ.
    pub distance: u32,
}

/// How many lookups are in flight at once: enough to overlap cache misses, few enough for the L1 cache.
const IN_FLIGHT: usize = 64;

/// Buffers of a probe, reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct Scratch {
    lookups: Vec<Lookup>,
}

/// One bucket to be compared with one permuted query.
#[derive(Debug, Clone, Copy)]
struct Lookup {
    permuted: u64,
    query: u32,
    prefix: u32,
    start: u32,
    end: u32,
}

impl Tables {
    /// Finds every pair of a fingerprint in `chunk` and one in the batch within the design's distance.
    /// Appends each pair once, ordered by query, then entry.
    ///
    /// # Panics
    /// When `chunk` has 2³² or more fingerprints.
    pub fn probe(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) {
        assert!(
            u32::try_from(chunk.len()).is_ok(),
            "a chunk has less than 2^32 fingerprints"
        );
        let before = matches.len();
        match kernel.0 {
            Isa::Scalar => probe::<crate::kernels::scalar::Scalar>(self, chunk, scratch, matches),
            // SAFETY: a `Kernel` exists only where its instructions do.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { probe_avx2(self, chunk, scratch, matches) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { probe_avx512(self, chunk, scratch, matches) },
        }
        matches[before..].sort_unstable();
    }
}

/// # Safety
/// The machine has AVX2 and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn probe_avx2(
    tables: &Tables,
    chunk: &[u64],
    scratch: &mut Scratch,
    matches: &mut Vec<Match>,
) {
    probe::<crate::kernels::x86::Avx2>(tables, chunk, scratch, matches);
}

/// # Safety
/// The machine has AVX-512 F and VPOPCNTDQ.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
unsafe fn probe_avx512(
    tables: &Tables,
    chunk: &[u64],
    scratch: &mut Scratch,
    matches: &mut Vec<Match>,
) {
    probe::<crate::kernels::x86::Avx512>(tables, chunk, scratch, matches);
}

/// Inlined into the functions above, so that it is compiled for their instruction set.
#[inline(always)]
fn probe<C: Compare>(
    tables: &Tables,
    chunk: &[u64],
    scratch: &mut Scratch,
    matches: &mut Vec<Match>,
) {
    if tables.batch.values().is_empty() {
        return;
    }
    let lookups = &mut scratch.lookups;
    lookups.clear();
    for (at, table) in tables.tables.iter().enumerate() {
        for (query, &fingerprint) in chunk.iter().enumerate() {
            let permuted = table.permutation.apply(fingerprint);
            let own = prefix(permuted, table.directory_bits);
            for flip in &table.flips {
                let prefix = own ^ flip;
                prefetch(&table.starts, prefix as usize);
                lookups.push(Lookup {
                    permuted,
                    query: query as u32,
                    prefix,
                    start: 0,
                    end: 0,
                });
                if lookups.len() == IN_FLIGHT {
                    look_up::<C>(tables, at, chunk, lookups, matches);
                }
            }
        }
        look_up::<C>(tables, at, chunk, lookups, matches);
    }
}

/// Performs the lookups in table `at` and empties the list.
#[inline(always)]
fn look_up<C: Compare>(
    tables: &Tables,
    at: usize,
    chunk: &[u64],
    lookups: &mut Vec<Lookup>,
    matches: &mut Vec<Match>,
) {
    let table = &tables.tables[at];
    for lookup in lookups.iter_mut() {
        lookup.start = table.starts[lookup.prefix as usize];
        lookup.end = table.starts[lookup.prefix as usize + 1];
        if lookup.start < lookup.end {
            prefetch(&table.entries, lookup.start as usize);
            prefetch(&table.entries, lookup.end as usize - 1);
        }
    }
    let max_distance = tables.design.max_distance();
    for lookup in lookups.iter() {
        let bucket = &table.entries[lookup.start as usize..lookup.end as usize];
        for candidates in bucket.chunks(64) {
            // SAFETY: the function this is inlined into is compiled for the instruction set, see `Tables::probe`.
            let mut near = unsafe { C::within(lookup.permuted, candidates, max_distance) };
            while near != 0 {
                let candidate = candidates[near.trailing_zeros() as usize];
                near &= near - 1;
                let fingerprint = chunk[lookup.query as usize];
                matches.extend(verified(tables, at, table, lookup, fingerprint, candidate));
            }
        }
    }
    lookups.clear();
}

/// The match of a candidate within the distance, unless it belongs to another table: a pair is reported by
/// the first table on whose block it agrees, and so exactly once.
#[cold]
fn verified(
    tables: &Tables,
    at: usize,
    table: &Table,
    lookup: &Lookup,
    fingerprint: u64,
    candidate: u64,
) -> Option<Match> {
    // The permutation is linear over xor: the difference can be carried back by itself.
    let difference = table.permutation.reverse(lookup.permuted ^ candidate);
    let blocks = tables.design.blocks();
    let owner = blocks.iter().position(|block| block.agrees(difference))?;
    if owner != at {
        return None;
    }
    let value = fingerprint ^ difference;
    let entry = tables.batch.values().binary_search(&value).ok()?;
    Some(Match {
        query: lookup.query,
        entry: entry as u32,
        distance: difference.count_ones(),
    })
}

/// Asks for the cache line of `slice[index]`, if there is one.
#[inline(always)]
fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        // SAFETY: a prefetch of a valid address has no effect but on the cache; SSE is part of x86-64.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
