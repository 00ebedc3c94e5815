//! The distinct fingerprints of a batch, and the rows that have each.

/// The distinct values of a batch in ascending order, and the rows that have each.
///
/// A document copied a million times is one value with a million rows, so that neither the tables nor the probe grow
/// with the copies.
#[derive(Debug, Clone, Default)]
pub struct Distinct {
    values: Vec<u64>,
    /// Value `i` has the rows `rows[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    /// The batch's rows in the order of their values; `None` when the batch was sorted: then `rows[i]` is `i`.
    rows: Option<Vec<u32>>,
}

impl Distinct {
    /// Collects the distinct values of `fingerprints`, which may have any order. A row is an index into `fingerprints`.
    ///
    /// # Panics
    /// When there are 2³² or more fingerprints.
    #[must_use]
    pub fn new(fingerprints: &[u64]) -> Self {
        let count = u32::try_from(fingerprints.len()).expect("a batch has less than 2^32 rows");
        if fingerprints.is_sorted() {
            let (values, starts) = distinct_with_starts(fingerprints.iter().copied());
            return Self {
                values,
                starts,
                rows: None,
            };
        }
        let mut rows: Vec<u32> = (0..count).collect();
        // A stable sort keeps the rows of equal values ascending. It also merges sorted sequences fast: fingerprints
        // sorted as signed numbers are two of them.
        rows.sort_by_key(|&row| fingerprints[row as usize]);
        let (values, starts) =
            distinct_with_starts(rows.iter().map(|&row| fingerprints[row as usize]));
        Self {
            values,
            starts,
            rows: Some(rows),
        }
    }

    /// The distinct fingerprints, ascending.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// The rows that have the value with index `entry`, ascending.
    pub fn rows(&self, entry: u32) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        let entry = entry as usize;
        (self.starts[entry]..self.starts[entry + 1]).map(|at| match &self.rows {
            Some(rows) => rows[at as usize],
            None => at,
        })
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
        self.rows.as_ref().map_or(at, |rows| rows[at as usize])
    }

    /// Heap bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * self.values.capacity()
            + 4 * self.starts.capacity()
            + self.rows.as_ref().map_or(0, |rows| 4 * rows.capacity())
    }
}

/// The distinct values of an ascending sequence, and the index at which the copies of each start, followed by the
/// length of the sequence.
fn distinct_with_starts(sorted: impl Iterator<Item = u64>) -> (Vec<u64>, Vec<u32>) {
    let mut values: Vec<u64> = Vec::with_capacity(sorted.size_hint().0);
    let mut starts = Vec::with_capacity(sorted.size_hint().0 + 1);
    let mut length = 0;
    for value in sorted {
        if values.last() != Some(&value) {
            values.push(value);
            starts.push(length);
        }
        length += 1;
    }
    starts.push(length);
    (values, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_held_once_with_their_rows() {
        for batch in [
            vec![7u64, 3, 7, u64::MAX, 3, 7],
            vec![3, 3, 7, 7, 7, u64::MAX],
        ] {
            let distinct = Distinct::new(&batch);
            assert_eq!(distinct.values(), [3, 7, u64::MAX]);
            for (entry, value) in distinct.values().iter().enumerate() {
                let expected: Vec<u32> = (0..6).filter(|&r| batch[r as usize] == *value).collect();
                assert_eq!(distinct.rows(entry as u32).collect::<Vec<_>>(), expected);
                for (at, &row) in expected.iter().enumerate() {
                    assert_eq!(distinct.row(entry as u32, at), row);
                }
            }
        }
        assert!(Distinct::new(&[]).values().is_empty());
    }
}
