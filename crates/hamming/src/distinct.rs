//! [`Distinct`]: the distinct fingerprints of a batch, and the rows of each; [`EntriesByRow`], the
//! inverse.

use crate::huge_array::HugeArray;

/// The distinct fingerprints of a batch in ascending order, and the rows that hold each.
///
/// A document copied a million times is one value with a million rows, so that neither the tables nor the probe grow
/// with the copies.
#[derive(Debug)]
pub struct Distinct {
    /// The number of values.
    count: usize,
    /// The values; zeros after them.
    values: HugeArray<u64>,
    /// Value `i` has the rows `rows[starts[i]..starts[i + 1]]`.
    starts: HugeArray<u32>,
    rows: RowOrder,
}

/// The batch's rows in the order of their values.
#[derive(Debug, Clone)]
enum RowOrder {
    /// The rows from `first` on, then the rows before it. If the fingerprints are sorted, `first`
    /// is 0. If they are sorted as signed numbers, `first` is the row of the first that is not
    /// negative.
    Rotated { first: u32, count: u32 },
    /// Any order.
    Listed(Vec<u32>),
}

impl RowOrder {
    fn row(&self, at: u32) -> u32 {
        match self {
            // Not `(first + at) % count`: the sum may be 2³² or more.
            Self::Rotated { first, count } if at >= count - first => at - (count - first),
            Self::Rotated { first, .. } => first + at,
            Self::Listed(rows) => rows[at as usize],
        }
    }
}

/// The least bits of the number of fingerprints in a bucket, if they are spread evenly: they fit into the processor's cache.
const BUCKET_BITS: u32 = 9;
/// The most bits of the number of buckets: that many places are written to in turn.
const MOST_BUCKETS_BITS: u32 = 14;

/// The rows of fingerprints, by value and then by row. Divides them into buckets by the first bits, and sorts each bucket.
fn sorted_rows(fingerprints: &[u64], count: u32) -> Vec<u32> {
    let bits = count.checked_ilog2().unwrap_or(0);
    let bits = bits.saturating_sub(BUCKET_BITS).min(MOST_BUCKETS_BITS);
    // Two shifts, because a shift by 64 bits is none.
    let bucket = |value: u64| ((value >> 1) >> (63 - bits)) as usize;
    let mut ends = vec![0_u32; (1 << bits) + 1];
    for &value in fingerprints {
        ends[bucket(value) + 1] += 1;
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    // What is the start of each bucket now is its end when all rows are in their places.
    let mut rows = vec![0; fingerprints.len()];
    for (row, &value) in (0..count).zip(fingerprints) {
        let end = &mut ends[bucket(value)];
        rows[*end as usize] = row;
        *end += 1;
    }
    let mut start = 0;
    let mut sorted = Vec::new();
    for &end in &ends[..1 << bits] {
        let rows = &mut rows[start as usize..end as usize];
        sorted.clear();
        sorted.extend(rows.iter().map(|&row| (fingerprints[row as usize], row)));
        sorted.sort_unstable();
        for (row, &(_, of)) in rows.iter_mut().zip(&sorted) {
            *row = of;
        }
        start = end;
    }
    rows
}

impl Distinct {
    /// Collects the distinct values of `fingerprints`, which may have any order. A row is an index into `fingerprints`.
    ///
    /// # Panics
    /// When there are 2³² or more fingerprints.
    #[must_use]
    pub fn new(fingerprints: &[u64]) -> Self {
        let count = u32::try_from(fingerprints.len()).expect("a batch has less than 2^32 rows");
        let descent = fingerprints.windows(2).position(|pair| pair[0] > pair[1]);
        let (before, after) = fingerprints.split_at(descent.map_or(0, |at| at + 1));
        // Strictly less: if both ends held the same value, its rows would not be ascending.
        let is_rotated = before.is_empty() || (after.is_sorted() && after.last() < before.first());
        let mut distinct = Self {
            count: 0,
            values: HugeArray::zeroed(fingerprints.len()),
            starts: HugeArray::zeroed(fingerprints.len() + 1),
            rows: RowOrder::Rotated {
                first: before.len() as u32,
                count,
            },
        };
        if is_rotated {
            distinct.fill(after.iter().chain(before).copied());
        } else {
            let rows = sorted_rows(fingerprints, count);
            distinct.fill(rows.iter().map(|&row| fingerprints[row as usize]));
            distinct.rows = RowOrder::Listed(rows);
        }
        distinct
    }

    /// Takes the values from all fingerprints, ascending.
    fn fill(&mut self, sorted: impl Iterator<Item = u64>) {
        let (values, starts): (&mut [u64], &mut [u32]) = (&mut self.values, &mut self.starts);
        let (mut count, mut length) = (0, 0);
        let mut last = None;
        for value in sorted {
            if last != Some(value) {
                (values[count], starts[count]) = (value, length);
                count += 1;
                last = Some(value);
            }
            length += 1;
        }
        starts[count] = length;
        self.count = count;
    }

    /// The distinct fingerprints, ascending.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values[..self.count]
    }

    /// The rows that have the value with index `entry`, ascending.
    pub fn rows(&self, entry: u32) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        let entry = entry as usize;
        (self.starts[entry]..self.starts[entry + 1]).map(|at| self.rows.row(at))
    }

    /// The row at index `at` among the [`Self::rows`] of `entry`.
    ///
    /// # Panics
    /// When the value has too few rows.
    #[must_use]
    pub fn row(&self, entry: u32, at: usize) -> u32 {
        let entry = entry as usize;
        let range = self.starts[entry]..self.starts[entry + 1];
        let at = range.start + at as u32;
        assert!(range.contains(&at), "a row that the value has");
        self.rows.row(at)
    }

    /// Builds the map from each row to its entry.
    #[must_use]
    pub fn entries_by_row(&self) -> EntriesByRow {
        let entries = 0..self.count as u32;
        match &self.rows {
            RowOrder::Rotated { first, count } => {
                let mut starts = vec![0_u64; (*count as usize).div_ceil(64)];
                for &at in &self.starts[..self.count] {
                    starts[at as usize / 64] |= 1 << (at % 64);
                }
                let mut before = 0;
                let counts = starts.chunks(WORDS_A_COUNT).map(|words| {
                    let count = before;
                    before += words.iter().map(|word| word.count_ones()).sum::<u32>();
                    count
                });
                EntriesByRow::Ranked {
                    first: *first,
                    count: *count,
                    counts: counts.collect(),
                    starts,
                }
            }
            RowOrder::Listed(rows) => {
                let mut entry_of = vec![0; rows.len()];
                for entry in entries {
                    for row in self.rows(entry) {
                        entry_of[row as usize] = entry;
                    }
                }
                EntriesByRow::Listed(entry_of)
            }
        }
    }

    /// Heap bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let rows = match &self.rows {
            RowOrder::Rotated { .. } => 0,
            RowOrder::Listed(rows) => 4 * rows.capacity(),
        };
        self.values.bytes() + self.starts.bytes() + rows
    }
}

/// How many words of `starts` each count of [`EntriesByRow::Ranked`] covers.
const WORDS_A_COUNT: usize = 8;

/// For each row, the index of its value in [`Distinct::values`]. For sorted fingerprints, it takes 17/16 bits a row.
#[derive(Debug, Clone)]
pub enum EntriesByRow {
    /// A bitmap with rank counts. A row's place is its index in the order of fingerprints. Its
    /// entry is the last value that starts at that place or before it.
    Ranked {
        /// The row at the first place.
        first: u32,
        /// The number of rows.
        count: u32,
        /// Bit `i` is set if a value starts at place `i`.
        starts: Vec<u64>,
        /// For each group of [`WORDS_A_COUNT`] words: how many values start before it.
        counts: Vec<u32>,
    },
    /// The entry of each row.
    Listed(Vec<u32>),
}

impl EntriesByRow {
    /// The entry of a row; `None` after the last row.
    #[must_use]
    pub fn entry(&self, row: u32) -> Option<u32> {
        match self {
            Self::Ranked {
                first,
                count,
                starts,
                counts,
            } => {
                if row >= *count {
                    return None;
                }
                let place = match row.checked_sub(*first) {
                    Some(place) => place,
                    None => row + (count - first),
                } as usize;
                let (word, bit) = (place / 64, place % 64);
                let group = word / WORDS_A_COUNT;
                let whole = &starts[group * WORDS_A_COUNT..word];
                let before: u32 = whole.iter().map(|word| word.count_ones()).sum();
                let last = starts[word] & (u64::MAX >> (63 - bit));
                Some(counts[group] + before + last.count_ones() - 1)
            }
            Self::Listed(entries) => entries.get(row as usize).copied(),
        }
    }

    /// Heap bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Ranked { starts, counts, .. } => 8 * starts.capacity() + 4 * counts.capacity(),
            Self::Listed(entries) => 4 * entries.capacity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_held_once_with_their_rows() {
        for batch in [
            vec![7u64, 3, 7, u64::MAX, 3, 7],
            vec![3, 3, 7, 7, 7, u64::MAX],
            // Sorted as signed numbers.
            vec![u64::MAX, 3, 3, 7, 7, 7],
            vec![7, 7, 7, u64::MAX, 3, 3],
            // Equal values at both ends.
            vec![7, 7, u64::MAX, 3, 3, 7],
        ] {
            let distinct = Distinct::new(&batch);
            assert_eq!(distinct.values(), [3, 7, u64::MAX]);
            for (entry, value) in distinct.values().iter().enumerate() {
                let expected: Vec<u32> = (0..6).filter(|&r| batch[r as usize] == *value).collect();
                assert_eq!(distinct.rows(entry as u32).collect::<Vec<_>>(), expected);
                let entries = distinct.entries_by_row();
                for (at, &row) in expected.iter().enumerate() {
                    assert_eq!(distinct.row(entry as u32, at), row);
                    assert_eq!(entries.entry(row), Some(entry as u32));
                }
                assert_eq!(entries.entry(6), None);
            }
        }
        let none = Distinct::new(&[]);
        assert!(none.values().is_empty() && none.entries_by_row().entry(0).is_none());
    }

    #[test]
    fn rows_are_in_the_order_of_values_and_rows() {
        let random = |at: u64| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Spread, in few places, with copies, and of one value.
        let shapes: [fn(u64) -> u64; 4] = [|x| x, |x| x >> 40, |x| x & (0x11 << 59), |_| 5];
        for shape in shapes {
            for count in [0, 1, 511, 512, 1023, 40_000] {
                let batch: Vec<u64> = (0..count).map(|at| shape(random(at))).collect();
                let mut expected: Vec<u32> = (0..count as u32).collect();
                expected.sort_by_key(|&row| batch[row as usize]);
                assert_eq!(sorted_rows(&batch, count as u32), expected);
            }
        }
    }

    #[test]
    fn entries_are_found_by_row() {
        for rotated_by in [0, 1, 700, 1999] {
            // Values with 1 to 7 copies each.
            let mut batch: Vec<u64> = (0..2000).map(|row: u64| row * row / 7000).collect();
            batch.rotate_left(rotated_by);
            let distinct = Distinct::new(&batch);
            let entries = distinct.entries_by_row();
            for (row, value) in batch.iter().enumerate() {
                let entry = entries.entry(row as u32).unwrap();
                assert_eq!(
                    distinct.values()[entry as usize],
                    *value,
                    "{rotated_by} {row}"
                );
            }
        }
    }
}
