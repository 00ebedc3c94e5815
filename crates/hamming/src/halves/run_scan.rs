//! The scan by runs, which precedes the scan by halves in a dense archive. A run is the
//! fingerprints that share their leading 16 bits; in a dense archive, runs are long.
//!
//! It cuts fingerprints behind bit 36, not in the middle: of a pair within 3 bits, either the
//! trailing 28 bits agree, or at most 2 of the leading 36 differ (Σ(rᵢ + 1) = 1 + 3 > 3). The
//! trailing bits are tested with one access to a small Bloom filter. The leading bits are tested
//! with a bitmap that is made once for each run, the map. It has a bit for each value of the 20
//! bits that follow the run's leading 16 (or of fewer, see [`super::run_scan_plan`]); the bit is
//! set if the 36 bits together are within 2 bits of an entry's. A sorted run reads its map in
//! order. With a batch of a million, one fingerprint in 50 passes one of the tests, and is then
//! scanned by halves.

use std::sync::atomic::{AtomicU64, Ordering};

use super::append_passing::append_passing;
use super::run_entries::RunEntries;
use super::tail_filter::TailFilter;
use crate::ball::{BIT_INDEX_BITS, TWO_BIT_WORDS};
use crate::huge_array::HugeArray;
use crate::isa::{Isa, Kernel, MAP_WORDS, RUN_BITS, RunFilter, Work, tail_place};
use crate::prefetch::prefetch_l2;
use crate::unchecked::BallMap;

/// The entries from which the maps of runs are made, and the Bloom filter.
#[derive(Debug)]
pub(super) struct RunIndex {
    /// Unique in the process, so that a map is never reused with another index.
    id: u64,
    /// The leading bits of the entries, by run.
    pub(super) entries: RunEntries,
    tail: TailFilter,
}

impl RunIndex {
    /// Builds the index of `entries`, which are ascending.
    pub(super) fn build(entries: &[u64]) -> Self {
        static INDEXES: AtomicU64 = AtomicU64::new(0);
        Self {
            id: INDEXES.fetch_add(1, Ordering::Relaxed),
            entries: RunEntries::build(entries),
            tail: TailFilter::build(entries),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + self.tail.bytes()
    }
}

/// The map of one run, reused from run to run.
#[derive(Debug)]
pub(super) struct RunMap {
    /// What the map was made for: the index's id, the run, and the number of bits that it covers.
    made_for: Option<(u64, u16, u32)>,
    words: HugeArray<u64>,
    /// Entries of neighbouring runs, see [`RunEntries::gather`].
    gathered: Vec<u32>,
}

impl Default for RunMap {
    fn default() -> Self {
        Self {
            made_for: None,
            words: HugeArray::zeroed(MAP_WORDS),
            gathered: Vec::new(),
        }
    }
}

impl RunMap {
    /// Appends the indexes of the fingerprints of `chunk` that are within 2 bits of an entry on the leading bits, or
    /// that may have the trailing bits of an entry. The maps cover `bits` bits.
    pub(super) fn pick(
        &mut self,
        kernel: Kernel,
        index: &RunIndex,
        bits: u32,
        chunk: &[u64],
        indexes: &mut Vec<u32>,
    ) {
        let mut first = 0;
        while let Some(&leader) = chunk.get(first) {
            let run = (leader >> (64 - RUN_BITS)) as u16;
            let same = |fingerprint: &u64| (fingerprint ^ leader) >> (64 - RUN_BITS) == 0;
            let rest = &chunk[first..];
            let fingerprints = &rest[..rest.partition_point(same).max(1)];
            let begin = first as u32;
            first += fingerprints.len();
            let differences = fingerprints
                .iter()
                .fold(0, |all, f| all | f ^ fingerprints[0]);
            if differences >> (64 - RUN_BITS) != 0 {
                // The chunk is not sorted here: all pass.
                indexes.extend(begin..first as u32);
                continue;
            }
            let made_for = (index.id, run, bits);
            if self.made_for.replace(made_for) != Some(made_for) {
                macro_rules! make_map {
                    ($high:literal) => {
                        kernel.execute(MakeMap::<$high> {
                            words: &mut self.words,
                            entries: &index.entries,
                            run,
                            gathered: &mut self.gathered,
                        })
                    };
                }
                match bits - BIT_INDEX_BITS {
                    11 => make_map!(11),
                    12 => make_map!(12),
                    13 => make_map!(13),
                    _ => make_map!(14),
                }
            }
            kernel.execute(PickByRunFilter {
                words: &self.words,
                tail: &index.tail,
                bits,
                fingerprints,
                first: begin,
                indexes,
            });
        }
    }
}

/// Makes the map of a run, which covers `HIGH` + [`BIT_INDEX_BITS`] bits.
struct MakeMap<'a, const HIGH: u32> {
    words: &'a mut [u64],
    entries: &'a RunEntries,
    run: u16,
    gathered: &'a mut Vec<u32>,
}

impl<const HIGH: u32> Work for MakeMap<'_, HIGH> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, _isa: I) {
        let Self {
            words,
            entries,
            run,
            gathered,
        } = self;
        // A loop over indexes: iterators of closures compile to calls here, and took three times as long.
        let mut at = 0;
        while at < RUN_BITS as usize + TWO_BIT_WORDS.len() {
            let other = match at.checked_sub(RUN_BITS as usize) {
                None => run ^ 1 << at,
                Some(flips) => run ^ TWO_BIT_WORDS[flips],
            };
            let (start, end) = entries.range(other);
            prefetch_l2(&entries.next_bits, start);
            prefetch_l2(&entries.next_bits, end);
            at += 1;
        }
        let mut map = BallMap::<HIGH>::cleared(words);
        for &next_bits in entries.of_run(run) {
            map.mark_within_2(next_bits);
        }
        // Entries of other runs differ in 1 or 2 of the leading 16 bits, which leaves 1 or 0 for
        // the bits of the map.
        for &next_bits in entries.gather((0..RUN_BITS).map(|bit| run ^ 1 << bit), gathered) {
            map.mark_within_1(next_bits);
        }
        for &next_bits in entries.gather(TWO_BIT_WORDS.iter().map(|flips| run ^ flips), gathered) {
            map.mark_exactly(next_bits);
        }
    }
}

/// Picks the fingerprints of a run that the map or the Bloom filter contains.
struct PickByRunFilter<'a> {
    words: &'a [u64],
    tail: &'a TailFilter,
    bits: u32,
    fingerprints: &'a [u64],
    first: u32,
    indexes: &'a mut Vec<u32>,
}

impl Work for PickByRunFilter<'_> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) {
        let tail = self.tail.words();
        let filter = RunFilter::new(self.words, self.bits, tail);
        let word_index_bits = filter.word_index_bits();
        let fetch = |f| prefetch_l2(tail, tail_place(f, word_index_bits).0);
        append_passing(
            self.fingerprints,
            self.first as usize,
            self.indexes,
            fetch,
            |tile| isa.passing(&filter, tile),
        );
    }
}

#[cfg(test)]
mod tests {
    use rand::seq::SliceRandom as _;
    use rand::{Rng as _, RngCore as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::isa::{MAP_BITS, TAIL_BITS};

    #[test]
    fn maps_and_filter_pass_what_is_near() {
        for entries in [0, 1, 40, 3000] {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            // Few runs, so that they have neighbours, and more entries than `gather` copies
            // unconditionally.
            let mut values: Vec<u64> = (0..entries)
                .map(|_| rng.next_u64() & 0x0111_ffff_ffff_ffff | 0x4000 << 48)
                .collect();
            values.sort_unstable();
            values.dedup();
            let index = RunIndex::build(&values);
            let mut chunk: Vec<u64> = (0..2000)
                .map(|at| {
                    if values.is_empty() || at % 4 == 0 {
                        rng.next_u64() & 0x0333_ffff_ffff_ffff | 0x4000 << 48
                    } else {
                        let near = values[rng.random_range(0..values.len())];
                        (0..at % 5).fold(near, |near, _| near ^ 1 << rng.random_range(0..64))
                    }
                })
                .collect();
            let mut map = RunMap::default();
            for bits in MAP_BITS {
                let mut of_scalar = None;
                for (kernel, in_order) in Kernel::available()
                    .into_iter()
                    .flat_map(|kernel| [(kernel, true), (kernel, false)])
                {
                    if in_order {
                        chunk.sort_unstable()
                    } else {
                        chunk.shuffle(&mut rng)
                    }
                    let mut indexes = Vec::new();
                    map.pick(kernel, &index, bits, &chunk, &mut indexes);
                    let near = |fingerprint: u64| {
                        let mut differences = values.iter().map(|value| value ^ fingerprint);
                        differences.any(|all| {
                            let trailing = all & ((1 << TAIL_BITS) - 1);
                            (all >> (64 - RUN_BITS - bits)).count_ones() <= 2 || trailing == 0
                        })
                    };
                    let mut others = 0;
                    for (at, &fingerprint) in (0..).zip(&chunk) {
                        let passes = indexes.binary_search(&at).is_ok();
                        let is_near = near(fingerprint);
                        assert!(passes || !is_near, "{bits} {fingerprint:x}");
                        others += u32::from(passes && !is_near);
                    }
                    assert!(!in_order || others < 60, "{others} pass for nothing");
                    if in_order {
                        let scalar = of_scalar.get_or_insert_with(|| indexes.clone());
                        assert_eq!(*scalar, indexes, "{}", kernel.name());
                    }
                }
            }
        }
    }
}
