//! Searches the two compressed tables.

use super::table::Table;

/// Bits by which the tables are rotated.
const ROTATIONS: [u32; 2] = [0, 32];

/// The two tables.
pub struct Tables {
    tables: [Table; 2],
    /// Number of fingerprints.
    pub values: usize,
    /// How many leading bits of a query are varied in each table: two fingerprints within k bits differ in at most k / 2
    /// leading bits of one of the two tables.
    leading_bits: u32,
}

impl Tables {
    /// Compresses fingerprints, in any order, into blocks of `block_bytes`. Leaves them in another order, each once.
    pub fn new(fingerprints: &mut Vec<u64>, block_bytes: usize) -> Self {
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let tables = ROTATIONS.map(|rotation| {
            if rotation != 0 {
                let rotated = |value: &mut u64| *value = value.rotate_left(rotation);
                fingerprints.iter_mut().for_each(rotated);
                fingerprints.sort_unstable();
            }
            Table::new(fingerprints, block_bytes)
        });
        let last = ROTATIONS[ROTATIONS.len() - 1];
        let back = |value: &mut u64| *value = value.rotate_right(last);
        fingerprints.iter_mut().for_each(back);
        Self {
            tables,
            values: fingerprints.len(),
            leading_bits: fingerprints.len().max(2).ilog2().min(32),
        }
    }

    /// Bytes of both, with their keys.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }
}

/// Searches both tables for fingerprints within k bits.
pub struct Searcher<'a> {
    tables: &'a Tables,
    k: u32,
    /// Differences of the leading bits: all of at most k / 2 bits.
    masks: Vec<u64>,
    /// The least value of each range to visit, and its block.
    ranges: Vec<(u64, usize)>,
}

impl<'a> Searcher<'a> {
    pub fn new(tables: &'a Tables, k: u32) -> Self {
        let mut masks = vec![0];
        let mut last = 0..1;
        for _ in 0..k / 2 {
            for number in last.clone() {
                let mask: u64 = masks[number];
                // Higher bits only, so that each mask comes once.
                let from = (64 - mask.leading_zeros()).max(64 - tables.leading_bits);
                masks.extend((from..64).map(|bit| mask | 1 << bit));
            }
            last = last.end..masks.len();
        }
        Self {
            tables,
            k,
            masks,
            ranges: Vec::new(),
        }
    }

    /// Appends every fingerprint within k bits of the query, each once.
    pub fn search(&mut self, query: u64, found: &mut Vec<u64>) {
        let below = u64::MAX >> self.tables.leading_bits;
        for (table, rotation) in self.tables.tables.iter().zip(ROTATIONS) {
            let value = query.rotate_left(rotation);
            let lows = self.masks.iter().map(|mask| (value ^ mask) & !below);
            self.ranges.clear();
            self.ranges.extend(lows.map(|low| (low, 0)));
            self.ranges.sort_unstable();
            let mut before = usize::MAX;
            for (low, block) in &mut self.ranges {
                *block = table.block_of(*low);
                if *block != before {
                    table.prefetch(*block);
                    before = *block;
                }
            }
            let wanted = |candidate: u64| {
                let difference = candidate ^ value;
                let leading = difference.rotate_right(rotation) & !below;
                // The sorted table has found those whose leading bits are near.
                difference.count_ones() <= self.k
                    && (rotation == 0 || leading.count_ones() > self.k / 2)
            };
            visit(table, &self.ranges, below, |candidate| {
                if wanted(candidate) {
                    found.push(candidate.rotate_right(rotation));
                }
            });
        }
    }
}

/// Calls `each` with the values of each range, from its least value to that with all of the bits `below`. Ranges ascend; a block
/// that has several of them is decoded once.
fn visit(table: &Table, ranges: &[(u64, usize)], below: u64, mut each: impl FnMut(u64)) {
    let mut cursor = None;
    for &(low, block) in ranges {
        if block == table.blocks() {
            return;
        }
        let cursor = cursor.get_or_insert_with(|| table.cursor(block));
        if cursor.block() < block {
            *cursor = table.cursor(block);
        }
        // The block's last value is not less.
        while cursor.value < low {
            cursor.advance();
        }
        while cursor.value <= low | below {
            each(cursor.value);
            if !cursor.advance() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::tests::any_values;
    use super::*;

    proptest! {
        #[test]
        fn searches_find_all(
            values in any_values(),
            block in 3_usize..40,
            k in 0_u32..8,
            flips in proptest::collection::vec(any::<(prop::sample::Index, u64, u64)>(), 20),
        ) {
            let tables = Tables::new(&mut values.clone(), block * 8);
            let mut searcher = Searcher::new(&tables, k);
            for (origin, a, b) in flips {
                // About one in eight bits is flipped.
                let query = values[origin.index(values.len())] ^ (a & b & a.rotate_left(7));
                let mut found = Vec::new();
                searcher.search(query, &mut found);
                found.sort_unstable();
                let near = |value: &u64| (value ^ query).count_ones() <= k;
                let expected: Vec<u64> = values.iter().copied().filter(near).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
