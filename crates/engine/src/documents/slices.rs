//! What is read in one go, and which partition reads it.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use super::{InputFile, parquet};

/// Slices that a partition reads, at least, where row groups are large enough to be cut: so many are dealt out evenly
/// whatever the files' sizes, and few readers pass over rows of others.
const OF_A_PARTITION: u64 = 4;
/// Bytes of ids and content below which a row group is not cut.
const SMALL: u64 = 16 << 20;

/// A part of a file that is read in one go.
#[derive(Debug, Clone)]
pub(super) struct Slice {
    pub(super) file: Arc<InputFile>,
    /// For Parquet; other files are one slice.
    pub(super) rows: Option<RowRange>,
    /// Bytes of ids and content before compression, where the footer tells.
    bytes: u64,
}

/// Rows of one row group, by their numbers in it.
#[derive(Debug, Clone)]
pub(super) struct RowRange {
    pub(super) row_group: usize,
    pub(super) rows: Range<usize>,
}

impl Slice {
    /// A file's slices, in order: its row groups, or all of it.
    pub(super) fn all(file: &Arc<InputFile>) -> Vec<Self> {
        let Some(footer) = &file.footer else {
            return vec![Self {
                file: Arc::clone(file),
                rows: None,
                bytes: 0,
            }];
        };
        let groups = 0..footer.metadata().num_row_groups();
        let of_group = |row_group| {
            let (rows, bytes) = parquet::size(file, footer, row_group);
            let rows = 0..rows;
            Self {
                file: Arc::clone(file),
                rows: Some(RowRange { row_group, rows }),
                bytes,
            }
        };
        groups.map(of_group).collect()
    }

    pub(super) fn row_group(&self) -> Option<usize> {
        self.rows.as_ref().map(|rows| rows.row_group)
    }

    /// Whether it is in a store.
    pub(super) fn is_remote(&self) -> bool {
        self.file.location.local().is_none()
    }

    /// Ranges of its rows of `bytes` each, about.
    ///
    /// What a store has is left whole: a reader fetches all of a row group at once.
    fn cut(self, bytes: u64) -> Vec<Self> {
        let pieces = self.bytes.div_ceil(bytes.max(SMALL));
        let Some(whole) = self.rows.as_ref().filter(|_| !self.is_remote()) else {
            return vec![self];
        };
        if pieces < 2 {
            return vec![self];
        }
        let rows = whole.rows.len().div_ceil(pieces as usize).max(1);
        let range = |start| RowRange {
            row_group: whole.row_group,
            rows: start..whole.rows.end.min(start + rows),
        };
        let ranges = whole.rows.clone().step_by(rows).map(range);
        ranges
            .map(|range| Self {
                file: Arc::clone(&self.file),
                bytes: self.bytes / pieces,
                rows: Some(range),
            })
            .collect()
    }
}

/// The slices that each of some partitions reads, in order; as many bytes each as can be, and no partition without any.
///
/// Row groups are cut where the partitions could not share them evenly: what writes Parquet from memory often makes one
/// row group of all.
pub(super) fn dealt(slices: Vec<Slice>, partitions: usize) -> Vec<Vec<Slice>> {
    if partitions <= 1 {
        return vec![slices];
    }
    let total = slices
        .iter()
        .fold(0_u64, |sum, slice| sum.saturating_add(slice.bytes));
    let share = total / (OF_A_PARTITION * partitions as u64);
    let mut slices: Vec<Option<Slice>> = slices
        .into_iter()
        .flat_map(|slice| slice.cut(share))
        .map(Some)
        .collect();
    let bytes: Vec<u64> = slices.iter().flatten().map(|slice| slice.bytes).collect();
    let own = |numbers: Vec<usize>| {
        let own = numbers
            .into_iter()
            .filter_map(|number| slices[number].take());
        own.collect()
    };
    evenly(&bytes, partitions).into_iter().map(own).collect()
}

/// The numbers of the items that each of some partitions gets, ascending: the largest first, each to who has the least.
fn evenly(bytes: &[u64], partitions: usize) -> Vec<Vec<usize>> {
    let mut numbers: Vec<usize> = (0..bytes.len()).collect();
    numbers.sort_by_key(|&number| Reverse(bytes[number]));
    let mut partitions = vec![(0_u64, Vec::new()); partitions.clamp(1, bytes.len().max(1))];
    for number in numbers {
        // Of items without a size, each has as many.
        let least = partitions
            .iter_mut()
            .min_by_key(|(sum, own)| (*sum, own.len()));
        if let Some((sum, own)) = least {
            *sum = sum.saturating_add(bytes[number]);
            own.push(number);
        }
    }
    let sorted = |(_, mut own): (u64, Vec<usize>)| {
        own.sort_unstable();
        own
    };
    partitions.into_iter().map(sorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_dealt_first() {
        assert_eq!(evenly(&[1, 9, 5, 4], 2), [vec![0, 1], vec![2, 3]]);
        assert_eq!(evenly(&[3, 3, 3, 3], 3), [vec![0, 3], vec![1], vec![2]]);
    }

    #[test]
    fn items_without_a_size_are_dealt_in_turn() {
        assert_eq!(evenly(&[0; 5], 2), [vec![0, 2, 4], vec![1, 3]]);
    }

    #[test]
    fn no_partition_is_empty_unless_there_is_nothing() {
        assert_eq!(evenly(&[7, 8], 4), [[1], [0]]);
        assert_eq!(evenly(&[], 4), [[0_usize; 0]]);
    }

    #[test]
    fn sizes_that_no_file_has_do_no_harm() {
        assert_eq!(evenly(&[u64::MAX, u64::MAX, 1], 1), [[0, 1, 2]]);
    }
}
