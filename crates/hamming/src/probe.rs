//! Streaming fingerprints past the tables, a chunk at a time.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::kernels::{Compare, Kernel, Work};
use crate::scan::{Part, Scan, Survivors};
use crate::sketches::{Candidates, Entries, IndexedTable, SketchTable};
use crate::tables::{Index, Table, Tables, prefix};

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

/// Matches found before repeated ones are dropped, from which on a chunk is probed in parts.
const MANY_MATCHES: usize = 1 << 20;

/// Values of the batch itself that are probed at once: enough that tables are worth reading in order.
const OWN_CHUNK: usize = 1 << 18;

/// Buffers of a probe, reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Time spent so far on picking fingerprints that are worth a lookup, in designs that do.
    pub filtering: Duration,
    /// Time spent so far on bringing fingerprints into the order of a table, in designs that do.
    pub partitioning: Duration,
    /// Time spent so far on lookups and comparisons.
    pub verifying: Duration,
    lookups: Vec<Lookup>,
    survivors: Survivors,
    candidates: Candidates,
    /// How many fingerprints may be probed at once; 0 is any number.
    together: usize,
}

/// Matches of one probe, as many as there is room for.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    matches: &'a mut Vec<Match>,
    most: usize,
}

impl Found<'_> {
    #[inline(always)]
    pub(crate) fn push(&mut self, found: Match) {
        self.matches.push(found);
    }

    /// Whether there are more than there is room for, so that the probe had better be given up.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.matches.len() > self.most
    }
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
        let mut done = 0;
        while done < chunk.len() {
            done += self.probe_some(kernel, chunk, done, scratch, matches);
        }
    }

    /// As [`Self::probe`], of the fingerprints of `chunk` from index `from` on, as many as have a bounded number of matches
    /// (at least one). Gives how many that were. What a caller does with the matches in between bounds its memory.
    ///
    /// # Panics
    /// When `chunk` has 2³² or more fingerprints, or less than `from`.
    pub fn probe_some(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        self.probe_bounded(kernel, chunk, None, from, scratch, matches)
    }

    /// As [`Self::probe_some`], of the batch's own values in `range`, which saves most of the work: that each is within the
    /// distance of itself is known. The queries of the matches are indexes into `range`; all matches of one come together.
    ///
    /// # Panics
    /// When the batch has no such values, or less than `from`.
    pub fn probe_own(
        &self,
        kernel: Kernel,
        range: Range<usize>,
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        let (own, most) = match self.index {
            // Here a value is found once, with little to save.
            Index::Permuted(_) => (None, self.chunk()),
            Index::Scanned(..) | Index::Variants(_) => (Some(range.start), OWN_CHUNK),
        };
        let chunk = &self.batch().values()[range];
        let chunk = &chunk[..chunk.len().min(from + most)];
        let before = matches.len();
        let done = self.probe_bounded(kernel, chunk, own, from, scratch, matches);
        let Some(own) = own.filter(|_| !self.is_empty()) else {
            return done;
        };
        let found = matches.split_off(before);
        let mut found = found.into_iter().peekable();
        for query in from..from + done {
            let itself = Match {
                query: query as u32,
                entry: (own + query) as u32,
                distance: 0,
            };
            matches.extend(std::iter::from_fn(|| {
                found.next_if(|other| *other < itself)
            }));
            if self.part().contains(&(own + query)) {
                matches.push(itself);
            }
        }
        matches.extend(found);
        done
    }

    /// As [`Self::probe_some`]. Where `own` is the index in the batch of the first of `chunk`, matches with itself may be
    /// left out.
    fn probe_bounded(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        own: Option<usize>,
        from: usize,
        scratch: &mut Scratch,
        matches: &mut Vec<Match>,
    ) -> usize {
        assert!(
            u32::try_from(chunk.len()).is_ok(),
            "a chunk has less than 2^32 fingerprints"
        );
        let rest = &chunk[from..];
        let own = own.map(|own| own + from);
        if self.is_empty() {
            return rest.len();
        }
        // What was too much for one chunk is for the next, most likely; from there on it grows again.
        let allowed = match scratch.together {
            0 => usize::MAX,
            allowed => allowed,
        };
        scratch.together = allowed.saturating_mul(2);
        let mut together = rest.len().min(allowed);
        let before = matches.len();
        loop {
            let most = match together {
                1 => usize::MAX,
                _ => before + MANY_MATCHES,
            };
            let mut found = Found { matches, most };
            self.probe_at_once(kernel, &rest[..together], own, scratch, &mut found);
            if !found.is_full() {
                break;
            }
            matches.truncate(before);
            together = together.div_ceil(2);
            scratch.together = together;
        }
        let new = &mut matches[before..];
        for found in &mut *new {
            found.query += from as u32;
        }
        new.sort_unstable();
        if !matches!(self.index, Index::Permuted(_)) {
            // A fingerprint can find the same entry by several ways.
            let mut kept = before;
            for at in before..matches.len() {
                if kept == before || matches[kept - 1] != matches[at] {
                    matches[kept] = matches[at];
                    kept += 1;
                }
            }
            matches.truncate(kept);
        }
        together
    }

    /// All matches of a chunk, in no order and some repeatedly, unless they are too many.
    fn probe_at_once(
        &self,
        kernel: Kernel,
        chunk: &[u64],
        own: Option<usize>,
        scratch: &mut Scratch,
        found: &mut Found<'_>,
    ) {
        match &self.index {
            Index::Permuted(tables) => {
                let begin = Instant::now();
                kernel.run(EveryTable {
                    tables: self,
                    permuted: tables,
                    chunk,
                    lookups: &mut scratch.lookups,
                    found,
                });
                scratch.verifying += begin.elapsed();
            }
            Index::Scanned(tables, scan) if own.is_none() => {
                self.probe_scanned(kernel, tables, scan, chunk, scratch, found);
            }
            // Of the batch's own values the scan would let all through.
            Index::Scanned(tables, _) => {
                self.probe_each(kernel, tables, chunk, own, scratch, found)
            }
            Index::Variants(tables) => self.probe_each(kernel, tables, chunk, own, scratch, found),
        }
    }

    /// Looks every fingerprint up in each table, until there are too many matches.
    fn probe_each<T: SketchTable>(
        &self,
        kernel: Kernel,
        tables: &[T],
        chunk: &[u64],
        own: Option<usize>,
        scratch: &mut Scratch,
        found: &mut Found<'_>,
    ) {
        let begin = Instant::now();
        let entries = self.entries(own);
        for table in tables {
            table.probe(kernel, &entries, chunk, &mut scratch.candidates, found);
            if found.is_full() {
                break;
            }
        }
        let partitioning = scratch.candidates.take_partitioning();
        scratch.partitioning += partitioning;
        scratch.verifying += begin.elapsed().saturating_sub(partitioning);
    }

    /// Looks up only what the scan lets through, each half in the tables of its two quarters.
    fn probe_scanned(
        &self,
        kernel: Kernel,
        quarters: &[IndexedTable],
        scan: &Scan,
        chunk: &[u64],
        scratch: &mut Scratch,
        found: &mut Found<'_>,
    ) {
        for (part, quarters) in [Part::Leading, Part::Trailing]
            .into_iter()
            .zip(quarters.chunks(2))
        {
            let begin = Instant::now();
            let survivors = &mut scratch.survivors;
            scan.survivors(kernel, part, self, chunk, survivors);
            let filtered = Instant::now();
            scratch.filtering += filtered - begin;
            let survivors = survivors.of(chunk);
            for quarter in quarters {
                quarter.probe_some(
                    kernel,
                    &self.entries(None),
                    survivors,
                    &mut scratch.candidates,
                    found,
                );
            }
            scratch.verifying += filtered.elapsed();
            if found.is_full() {
                return;
            }
        }
    }

    /// What the tables are of, as their probe needs it.
    fn entries(&self, own: Option<usize>) -> Entries<'_> {
        Entries {
            values: self.values(),
            first: self.first(),
            own,
            max_distance: self.design.max_distance(),
        }
    }
}

/// Every fingerprint of the chunk in every table.
struct EveryTable<'a, 'f> {
    tables: &'a Tables,
    permuted: &'a [Table],
    chunk: &'a [u64],
    lookups: &'a mut Vec<Lookup>,
    found: &'a mut Found<'f>,
}

impl Work for EveryTable<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<C: Compare>(self) {
        for (at, table) in self.permuted.iter().enumerate() {
            let starts: &[u32] = &table.starts;
            for (query, &fingerprint) in self.chunk.iter().enumerate() {
                let permuted = table.permutation.apply(fingerprint);
                let own = prefix(permuted, table.directory_bits);
                for flip in &table.flips {
                    let prefix = own ^ flip;
                    prefetch(starts, prefix as usize);
                    self.lookups.push(Lookup {
                        permuted,
                        query: query as u32,
                        prefix,
                        start: 0,
                        end: 0,
                    });
                    if self.lookups.len() == IN_FLIGHT {
                        look_up::<C>(
                            self.tables,
                            self.permuted,
                            at,
                            self.chunk,
                            self.lookups,
                            self.found,
                        );
                        if self.found.is_full() {
                            return;
                        }
                    }
                }
            }
            look_up::<C>(
                self.tables,
                self.permuted,
                at,
                self.chunk,
                self.lookups,
                self.found,
            );
        }
    }
}

/// Performs the lookups in table `at` and empties the list.
#[inline(always)]
fn look_up<C: Compare>(
    tables: &Tables,
    permuted: &[Table],
    at: usize,
    chunk: &[u64],
    lookups: &mut Vec<Lookup>,
    found: &mut Found<'_>,
) {
    let table = &permuted[at];
    let (starts, entries): (&[u32], &[u64]) = (&table.starts, &table.entries);
    for lookup in lookups.iter_mut() {
        lookup.start = starts[lookup.prefix as usize];
        lookup.end = starts[lookup.prefix as usize + 1];
        if lookup.start < lookup.end {
            prefetch(entries, lookup.start as usize);
            prefetch(entries, lookup.end as usize - 1);
        }
    }
    let max_distance = tables.design.max_distance();
    for lookup in lookups.iter() {
        if found.is_full() {
            break;
        }
        let bucket = &entries[lookup.start as usize..lookup.end as usize];
        for candidates in bucket.chunks(64) {
            // SAFETY: the function this is inlined into is compiled for the instruction set, see `Tables::probe`.
            let mut near = unsafe { C::within(lookup.permuted, candidates, max_distance) };
            while near != 0 {
                let candidate = candidates[near.trailing_zeros() as usize];
                near &= near - 1;
                let fingerprint = chunk[lookup.query as usize];
                if let Some(verified) =
                    verified(tables, permuted, at, lookup, fingerprint, candidate)
                {
                    found.push(verified);
                }
            }
        }
    }
    lookups.clear();
}

/// The match of a candidate within the distance, unless it belongs to another table: a pair is reported by
/// the first table on whose block it agrees, and so exactly once.
fn verified(
    tables: &Tables,
    permuted: &[Table],
    at: usize,
    lookup: &Lookup,
    fingerprint: u64,
    candidate: u64,
) -> Option<Match> {
    // The permutation is linear over xor: the difference can be carried back by itself.
    let difference = permuted[at]
        .permutation
        .reverse(lookup.permuted ^ candidate);
    let blocks = tables.design.blocks();
    let owner = blocks.iter().position(|block| block.agrees(difference))?;
    if owner != at {
        return None;
    }
    let value = fingerprint ^ difference;
    // The first block is the leading one in every design, so that the first table is the batch itself in order.
    let first = &permuted[0];
    let own = prefix(value, first.directory_bits) as usize;
    let start = first.starts[own] as usize;
    let bucket = &first.entries[start..first.starts[own + 1] as usize];
    let entry = start + bucket.binary_search(&value).ok()?;
    Some(Match {
        query: lookup.query,
        entry: (tables.first() + entry) as u32,
        distance: difference.count_ones(),
    })
}

/// Asks for the cache line of `slice[index]`. An index past the end does no harm.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    let address = slice.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect but on the cache; SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch of any address has no effect but on the cache.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// As [`prefetch`], into the second-level cache only: more of these can be under way at once.
#[inline(always)]
pub(crate) fn prefetch_far<T>(slice: &[T], index: usize) {
    let address = slice.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `prefetch`.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `prefetch`.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
