//! Counts how often each feature occurs in a text.

use std::hint::select_unpredictable;

/// Distinct hashes and the number of occurrences of each. Reused from text to text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count {
    /// The distinct hashes in the order of their first occurrence.
    pub(crate) distinct: Vec<u64>,
    /// The number of occurrences of each.
    pub(crate) occurrences: Vec<u32>,
    /// A hash table with open addressing: each slot is 0 (free) or 1 + an index into `distinct`.
    slots: Vec<u32>,
}

impl Count {
    /// Counts `hashes`, and forgets all earlier counts.
    pub(crate) fn fill(&mut self, hashes: &[u64]) {
        // A quarter full at most: a slot that another hash has costs a wrong prediction.
        let bits = (4 * hashes.len() as u64 + 1).next_power_of_two().ilog2();
        self.slots.clear();
        self.slots.resize(1 << bits, 0);
        // Room for one more than all, so that the place behind the last can be written.
        self.distinct.resize(hashes.len() + 1, 0);
        self.occurrences.clear();
        self.occurrences.resize(hashes.len() + 1, 0);
        let mask = self.slots.len() - 1;
        let mut len = 0;
        // Branches only if another hash has the slot, which is rare: whether a hash is new is
        // unpredictable.
        for &hash in hashes {
            // Written first, so that a free slot, which leads here, holds an equal hash.
            self.distinct[len] = hash;
            // The highest `bits` bits choose the slot. Two shifts, because `bits` may be 0.
            let mut at = (hash >> 1 >> (63 - bits)) as usize;
            let index = loop {
                let slot = self.slots[at] as usize;
                let index = select_unpredictable(slot == 0, len, slot.wrapping_sub(1));
                if self.distinct[index] == hash {
                    break index;
                }
                at = (at + 1) & mask;
            };
            self.slots[at] = index as u32 + 1;
            let count = &mut self.occurrences[index];
            *count = count.saturating_add(1);
            len += usize::from(index == len);
        }
        self.distinct.truncate(len);
        self.occurrences.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_equal_a_hash_maps(hashes in proptest::collection::vec(prop_oneof![0u64..20, any::<u64>()], 0..300)) {
            let mut expected: HashMap<u64, u32> = HashMap::new();
            for &hash in &hashes {
                *expected.entry(hash).or_default() += 1;
            }
            let mut count = Count::default();
            count.fill(&[1; 9]);
            count.fill(&hashes);
            let found: HashMap<u64, u32> =
                count.distinct.iter().copied().zip(count.occurrences.iter().copied()).collect();
            prop_assert_eq!(count.distinct.len(), expected.len());
            prop_assert_eq!(found, expected);
        }
    }
}
