//! Looking up fingerprints in permuted tables.

use super::table::{PermutedTable, prefix};
use crate::design::Block;
use crate::isa::{Isa, Work};
use crate::matches::{Match, Matches};
use crate::mechanism::BatchPart;
use crate::prefetch::prefetch_l1;

/// Lookups in flight at once: enough that their cache misses overlap, few enough for the first-level cache.
const IN_FLIGHT: usize = 64;

/// The lookup of one permuted query under one directory prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lookup {
    permuted: u64,
    query: u32,
    prefix: u32,
    start: u32,
    end: u32,
}

/// The tables, their blocks, and the part of the batch that they index.
#[derive(Clone, Copy)]
pub(super) struct Indexed<'a> {
    pub(super) tables: &'a [PermutedTable],
    pub(super) blocks: &'a [Block],
    pub(super) part: &'a BatchPart<'a>,
}

/// Looks up every fingerprint of the chunk in every table.
pub(super) struct ProbeEveryTable<'a, 'm> {
    pub(super) indexed: Indexed<'a>,
    pub(super) chunk: &'a [u64],
    pub(super) lookups: &'a mut Vec<Lookup>,
    pub(super) matches: &'a mut Matches<'m>,
}

impl Work for ProbeEveryTable<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) {
        let Self {
            indexed,
            chunk,
            lookups,
            matches,
        } = self;
        for (at, table) in indexed.tables.iter().enumerate() {
            let starts: &[u32] = &table.starts;
            for (query, &fingerprint) in chunk.iter().enumerate() {
                let permuted = table.permutation.apply(fingerprint);
                let query_prefix = prefix(permuted, table.directory_bits);
                for flip in &table.flips {
                    let prefix = query_prefix ^ flip;
                    prefetch_l1(starts, prefix as usize);
                    lookups.push(Lookup {
                        permuted,
                        query: query as u32,
                        prefix,
                        start: 0,
                        end: 0,
                    });
                    if lookups.len() == IN_FLIGHT {
                        perform_lookups(isa, &indexed, at, chunk, lookups, matches);
                        if matches.is_full() {
                            return;
                        }
                    }
                }
            }
            perform_lookups(isa, &indexed, at, chunk, lookups, matches);
        }
    }
}

/// Performs `lookups` in table `at`, and empties the list.
#[inline(always)]
fn perform_lookups<I: Isa>(
    isa: I,
    indexed: &Indexed<'_>,
    at: usize,
    chunk: &[u64],
    lookups: &mut Vec<Lookup>,
    matches: &mut Matches<'_>,
) {
    let table = &indexed.tables[at];
    let (starts, entries): (&[u32], &[u64]) = (&table.starts, &table.entries);
    for lookup in lookups.iter_mut() {
        lookup.start = starts[lookup.prefix as usize];
        lookup.end = starts[lookup.prefix as usize + 1];
        if lookup.start < lookup.end {
            prefetch_l1(entries, lookup.start as usize);
            prefetch_l1(entries, lookup.end as usize - 1);
        }
    }
    let max_distance = indexed.part.max_distance;
    for lookup in lookups.iter() {
        if matches.is_full() {
            break;
        }
        let bucket = &entries[lookup.start as usize..lookup.end as usize];
        for candidates in bucket.chunks(64) {
            let mut near = isa.within(lookup.permuted, candidates, max_distance);
            while near != 0 {
                let candidate = candidates[near.trailing_zeros() as usize];
                near &= near - 1;
                let fingerprint = chunk[lookup.query as usize];
                if let Some(found) = owned_match(indexed, at, lookup, fingerprint, candidate) {
                    matches.push(found);
                }
            }
        }
    }
    lookups.clear();
}

/// The match of a candidate that is within the distance, or `None` when another table owns the pair.
///
/// The owner of a pair is the first table on whose block the pair agrees, so that each pair is reported once.
fn owned_match(
    indexed: &Indexed<'_>,
    at: usize,
    lookup: &Lookup,
    fingerprint: u64,
    candidate: u64,
) -> Option<Match> {
    // A permutation of bits commutes with xor: reversing the permuted difference gives the
    // difference of the fingerprints.
    let difference = indexed.tables[at]
        .permutation
        .reverse(lookup.permuted ^ candidate);
    let owner = (indexed.blocks.iter()).position(|block| block.agrees(difference))?;
    if owner != at {
        return None;
    }
    let value = fingerprint ^ difference;
    // In every design the first block has the leading bits, so the entries of the first table are the batch's values in
    // order.
    let first = &indexed.tables[0];
    let value_prefix = prefix(value, first.directory_bits) as usize;
    let start = first.starts[value_prefix] as usize;
    let bucket = &first.entries[start..first.starts[value_prefix + 1] as usize];
    let entry = start + bucket.binary_search(&value).ok()?;
    Some(Match {
        query: lookup.query,
        entry: (indexed.part.first + entry) as u32,
        distance: difference.count_ones(),
    })
}
