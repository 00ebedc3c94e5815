//! A table in memory of remembered documents, searched within k bits; entries are added one by one.

use super::{Near, Remembered};

/// Blocks of a fingerprint, as in the paper; not blocks of a table of the index.
const BLOCKS: usize = 4;
/// Bits of a block.
const BITS: u32 = 16;

/// The entries, listed four times: by the value of each block. Two fingerprints within k bits differ in at most ⌊k/4⌋
/// bits of at least one block.
#[derive(Debug)]
pub(super) struct Table {
    /// In the order in which they came, with their times.
    entries: Vec<(u64, Remembered)>,
    blocks: [Vec<Vec<u32>>; BLOCKS],
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            blocks: std::array::from_fn(|_| vec![Vec::new(); 1 << BITS]),
        }
    }
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

    pub(super) fn add(&mut self, time: u64, entry: Remembered) {
        let number = self.entries.len() as u32;
        for (at, table) in self.blocks.iter_mut().enumerate() {
            table[usize::from(block(entry.fingerprint, at))].push(number);
        }
        self.entries.push((time, entry));
    }

    pub(super) fn has(&self, entry: &Remembered) -> bool {
        let same = &self.blocks[0][usize::from(block(entry.fingerprint, 0))];
        same.iter()
            .any(|number| self.entries[*number as usize].1 == *entry)
    }

    /// The entries within `k` bits, except those with the id `own`.
    pub(super) fn within(&self, fingerprint: u64, k: u32, own: &str) -> Vec<Near> {
        let radius = k / BLOCKS as u32;
        let masks = differences(radius);
        let mut near = Vec::new();
        for (at, table) in self.blocks.iter().enumerate() {
            for mask in &masks {
                for number in &table[usize::from(block(fingerprint, at) ^ mask)] {
                    let entry = &self.entries[*number as usize].1;
                    let difference = fingerprint ^ entry.fingerprint;
                    // Whether an earlier block has found it already.
                    let found =
                        (0..at).any(|before| block(difference, before).count_ones() <= radius);
                    if difference.count_ones() <= k && !found && entry.id != own {
                        near.push((difference.count_ones(), entry.clone()));
                    }
                }
            }
        }
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
                let mut found = table.within(own.fingerprint, k, &own.id);
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
