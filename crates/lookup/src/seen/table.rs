//! A table in memory of remembered documents, searched within k bits; entries are added one by one.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest, Sha256};

use super::{Near, Remembered};

/// Blocks of a fingerprint, as in the paper; not blocks of a table of the index.
const BLOCKS: usize = 4;
/// Bits of a block.
const BITS: u32 = 16;

/// Remembered documents, in generations by the time at which they came: those of a whole generation are forgotten at once, so
/// that no request waits for it.
#[derive(Debug)]
pub(super) struct Table {
    generations: VecDeque<Generation>,
    /// Seconds after which a new generation begins.
    span: u64,
}

/// The generations of the time for which a document is remembered.
const GENERATIONS: u64 = 4;

/// The documents of some time. Their distinct fingerprints are listed four times: by the value of each block. Two fingerprints
/// within k bits differ in at most ⌊k/4⌋ bits of at least one block.
#[derive(Debug)]
pub(super) struct Generation {
    /// The time of the first entry.
    begun: u64,
    /// In the order in which they came, with their times.
    entries: Vec<(u64, Remembered)>,
    /// The number of each entry, by its digest.
    known: HashMap<u128, u32>,
    /// Each with the numbers of its entries: thousands of pages may have one fingerprint.
    distinct: Vec<(u64, Vec<u32>)>,
    numbers: HashMap<u64, u32>,
    blocks: [Vec<Vec<u32>>; BLOCKS],
}

/// The first 128 bits of SHA-256: two entries with one digest count as the same. A hash with the fingerprint as its seed is not
/// enough: those of short ids collide where the seeds differ as the ids do.
fn digest(entry: &Remembered) -> u128 {
    let hash = Sha256::new()
        .chain_update(entry.fingerprint.to_le_bytes())
        .chain_update(&entry.id)
        .finalize();
    u128::from_le_bytes(std::array::from_fn(|at| hash[at]))
}

fn block(fingerprint: u64, number: usize) -> u16 {
    (fingerprint >> (BITS as usize * number)) as u16
}

/// All masks with at most `radius` ones; `radius` is at most 2.
fn differences(radius: u32) -> Vec<u16> {
    let mut masks = vec![0];
    for bit in 0..BITS {
        if radius >= 1 {
            masks.push(1 << bit);
        }
        if radius >= 2 {
            masks.extend((bit + 1..BITS).map(|other| 1 << bit | 1 << other));
        }
    }
    masks
}

impl Table {
    /// A table of documents that are remembered for `keep` seconds.
    pub(super) fn new(keep: u64) -> Self {
        Self {
            generations: VecDeque::new(),
            span: keep.div_ceil(GENERATIONS).max(1),
        }
    }

    /// The number of entries that are not from before `oldest`.
    pub(super) fn len(&self, oldest: u64) -> usize {
        let lengths = self.generations.iter().map(|generation| {
            let old = generation
                .entries
                .partition_point(|(time, _)| *time < oldest);
            generation.entries.len() - old
        });
        lengths.sum()
    }

    /// Adds an entry, unless the table has it. Times must not descend.
    pub(super) fn add(&mut self, time: u64, entry: Remembered, oldest: u64) {
        if self.has(&entry, oldest) {
            return;
        }
        let span = self.span;
        let is_current = |generation: &&mut Generation| time < generation.begun + span;
        match self.generations.back_mut().filter(is_current) {
            Some(generation) => generation.add(time, entry),
            None => {
                let mut generation = Generation::new(time);
                generation.add(time, entry);
                self.generations.push_back(generation);
            }
        }
    }

    /// Whether it has an entry that is not from before `oldest`.
    pub(super) fn has(&self, entry: &Remembered, oldest: u64) -> bool {
        let digest = digest(entry);
        self.generations.iter().any(|generation| {
            let number = generation.known.get(&digest);
            number.is_some_and(|number| generation.entries[*number as usize].0 >= oldest)
        })
    }

    /// The `limit` nearest entries within `k` bits, except those from before `oldest` and those with the id `own`: by
    /// distance, then id. Among entries at one distance it keeps any.
    pub(super) fn within(
        &self,
        fingerprint: u64,
        k: u32,
        own: &str,
        limit: usize,
        oldest: u64,
    ) -> Vec<Near> {
        let radius = k / BLOCKS as u32;
        let masks = differences(radius);
        let mut found: Vec<(u32, &Generation, u32)> = Vec::new();
        for generation in &self.generations {
            for (at, table) in generation.blocks.iter().enumerate() {
                for mask in &masks {
                    for &number in &table[usize::from(block(fingerprint, at) ^ mask)] {
                        let difference = fingerprint ^ generation.distinct[number as usize].0;
                        // Whether an earlier block has found it already.
                        let is_known =
                            (0..at).any(|before| block(difference, before).count_ones() <= radius);
                        if difference.count_ones() <= k && !is_known {
                            found.push((difference.count_ones(), generation, number));
                        }
                    }
                }
            }
        }
        found.sort_by_key(|(distance, ..)| *distance);
        let entries = found.iter().flat_map(|(distance, generation, number)| {
            let (_, entries) = &generation.distinct[*number as usize];
            entries
                .iter()
                .map(|entry| (*distance, &generation.entries[*entry as usize]))
        });
        let others = entries.filter(|(_, (time, entry))| *time >= oldest && entry.id != own);
        let mut near: Vec<Near> = others
            .take(limit)
            .map(|(distance, (_, entry))| (distance, entry.clone()))
            .collect();
        near.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        near
    }

    /// Takes out the generations whose entries are all from before `oldest`. To drop them takes a while.
    pub(super) fn forget_before(&mut self, oldest: u64) -> Vec<Generation> {
        let is_old = |generation: &Generation| {
            let last = generation.entries.last();
            last.is_none_or(|(time, _)| *time < oldest)
        };
        let old = self
            .generations
            .iter()
            .take_while(|one| is_old(one))
            .count();
        self.generations.drain(..old).collect()
    }
}

impl Generation {
    fn new(begun: u64) -> Self {
        Self {
            begun,
            entries: Vec::new(),
            known: HashMap::new(),
            distinct: Vec::new(),
            numbers: HashMap::new(),
            blocks: std::array::from_fn(|_| vec![Vec::new(); 1 << BITS]),
        }
    }

    fn add(&mut self, time: u64, entry: Remembered) {
        self.known.insert(digest(&entry), self.entries.len() as u32);
        let fingerprint = entry.fingerprint;
        let next = self.distinct.len() as u32;
        let number = *self.numbers.entry(fingerprint).or_insert(next);
        if number == next {
            for (at, table) in self.blocks.iter_mut().enumerate() {
                table[usize::from(block(fingerprint, at))].push(number);
            }
            self.distinct.push((fingerprint, Vec::new()));
        }
        let (_, entries) = &mut self.distinct[number as usize];
        entries.push(self.entries.len() as u32);
        self.entries.push((time, entry));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_ids_of_close_fingerprints_are_told_apart() {
        let entries = (0..64).flat_map(|bit| {
            let fingerprint = 0x3c6e_f372_fe94_f82a ^ 1 << bit;
            (0..200).map(move |id| Remembered {
                fingerprint,
                id: format!("{id}"),
            })
        });
        let digests: std::collections::HashSet<u128> = entries.map(|one| digest(&one)).collect();
        assert_eq!(digests.len(), 64 * 200);
    }

    proptest! {
        #[test]
        fn answers_equal_brute_force(
            seeds in proptest::collection::vec((0_u64..4, proptest::collection::vec(0_u32..64, 0..10)), 0..60),
            k in 0_u32..=8,
            forgotten in 0_usize..60,
            keep in 0_u64..200,
        ) {
            let near = |(seed, flips): &(u64, Vec<u32>)| {
                flips.iter().fold(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |value, bit| value ^ (1 << bit))
            };
            let all: Vec<Remembered> = seeds.iter().enumerate()
                .map(|(at, seed)| Remembered { fingerprint: near(seed), id: at.to_string() })
                .collect();
            let mut table = Table::new(keep);
            for (at, entry) in all.iter().enumerate() {
                table.add(at as u64, entry.clone(), 0);
                table.add(at as u64, entry.clone(), 0);
            }
            let oldest = forgotten as u64;
            drop(table.forget_before(oldest));
            let left = &all[forgotten.min(all.len())..];
            prop_assert_eq!(table.len(oldest), left.len());
            for (at, entry) in all.iter().enumerate() {
                prop_assert_eq!(table.has(entry, oldest), at >= forgotten);
            }
            for own in &all {
                let mut found = table.within(own.fingerprint, k, &own.id, usize::MAX, oldest);
                let mut expected: Vec<Near> = left.iter()
                    .map(|other| ((other.fingerprint ^ own.fingerprint).count_ones(), other.clone()))
                    .filter(|(distance, other)| *distance <= k && other.id != own.id)
                    .collect();
                let by_id = |near: &Near| near.1.id.clone();
                found.sort_by_key(by_id);
                expected.sort_by_key(by_id);
                prop_assert_eq!(found, expected);
            }
        }
    }
}
