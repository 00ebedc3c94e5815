//! A table in memory of remembered documents, searched within k bits; entries are added one by one.

use std::collections::{HashMap, HashSet};

use twox_hash::XxHash3_64;

use super::{Near, Remembered};

/// Blocks of a fingerprint, as in the paper; not blocks of a table of the index.
const BLOCKS: usize = 4;
/// Bits of a block.
const BITS: u32 = 16;

/// The distinct fingerprints, listed four times: by the value of each block. Two fingerprints within k bits differ in at
/// most ⌊k/4⌋ bits of at least one block.
#[derive(Debug)]
pub(super) struct Table {
    /// In the order in which they came, with their times.
    entries: Vec<(u64, Remembered)>,
    /// The digest of each entry.
    known: HashSet<u128>,
    /// Each with the numbers of its entries: thousands of pages may have one fingerprint.
    distinct: Vec<(u64, Vec<u32>)>,
    numbers: HashMap<u64, u32>,
    blocks: [Vec<Vec<u32>>; BLOCKS],
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            known: HashSet::new(),
            distinct: Vec::new(),
            numbers: HashMap::new(),
            blocks: std::array::from_fn(|_| vec![Vec::new(); 1 << BITS]),
        }
    }
}

/// 128 bits of hash: two entries with one digest count as the same.
fn digest(entry: &Remembered) -> u128 {
    let half = |seed| u128::from(XxHash3_64::oneshot_with_seed(seed, entry.id.as_bytes()));
    half(entry.fingerprint) << 64 | half(!entry.fingerprint)
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
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an entry, unless the table has it. Times must not descend.
    pub(super) fn add(&mut self, time: u64, entry: Remembered) {
        if !self.known.insert(digest(&entry)) {
            return;
        }
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

    pub(super) fn has(&self, entry: &Remembered) -> bool {
        self.known.contains(&digest(entry))
    }

    /// The `limit` nearest entries within `k` bits, except those with the id `own`: by distance, then id.
    pub(super) fn within(&self, fingerprint: u64, k: u32, own: &str, limit: usize) -> Vec<Near> {
        let radius = k / BLOCKS as u32;
        let masks = differences(radius);
        let mut found: Vec<(u32, u32)> = Vec::new();
        for (at, table) in self.blocks.iter().enumerate() {
            for mask in &masks {
                for &number in &table[usize::from(block(fingerprint, at) ^ mask)] {
                    let difference = fingerprint ^ self.distinct[number as usize].0;
                    // Whether an earlier block has found it already.
                    let is_known =
                        (0..at).any(|before| block(difference, before).count_ones() <= radius);
                    if difference.count_ones() <= k && !is_known {
                        found.push((difference.count_ones(), number));
                    }
                }
            }
        }
        found.sort_unstable();
        let entries = found.iter().flat_map(|(distance, number)| {
            let (_, entries) = &self.distinct[*number as usize];
            entries
                .iter()
                .map(|entry| (*distance, &self.entries[*entry as usize].1))
        });
        let others = entries.filter(|(_, entry)| entry.id != own).take(limit);
        let mut near: Vec<Near> = others
            .map(|(distance, entry)| (distance, entry.clone()))
            .collect();
        near.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        near
    }

    /// Drops the entries from before `oldest`, once they are more than an eighth of all.
    pub(super) fn forget_before(&mut self, oldest: u64) {
        let old = self.entries.partition_point(|(time, _)| *time < oldest);
        // The lists are made again from all entries that stay: not worth it for a few.
        if old * 8 <= self.entries.len() {
            return;
        }
        let kept = self.entries.split_off(old);
        *self = Self::default();
        for (time, entry) in kept {
            self.add(time, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn answers_equal_brute_force(
            seeds in proptest::collection::vec((0_u64..4, proptest::collection::vec(0_u32..64, 0..10)), 0..60),
            k in 0_u32..=8,
            forgotten in 0_usize..60,
        ) {
            let near = |(seed, flips): &(u64, Vec<u32>)| {
                flips.iter().fold(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |value, bit| value ^ (1 << bit))
            };
            let all: Vec<Remembered> = seeds.iter().enumerate()
                .map(|(at, seed)| Remembered { fingerprint: near(seed), id: at.to_string() })
                .collect();
            let mut table = Table::default();
            for (at, entry) in all.iter().enumerate() {
                table.add(at as u64, entry.clone());
            }
            table.forget_before(forgotten as u64);
            let left = &all[all.len() - table.len()..];
            prop_assert!(table.len() + forgotten >= all.len());
            for own in &all {
                let mut found = table.within(own.fingerprint, k, &own.id, usize::MAX);
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
