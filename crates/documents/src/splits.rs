//! Splits: parts of files that are read in one go, and how they are dealt to partitions.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::file::{InputFile, RowRange};
use super::parquet;
use super::rows::compression::Compression;

/// Splits that each partition gets of one large row group: enough to deal evenly, whatever the
/// sizes of other files.
const SPLITS_PER_PARTITION: u64 = 4;
/// A row group is cut only if it has more bytes of ids and content than this, and a file of rows only if it has more decompressed
/// bytes. Two splits that share a page both decode it, and some writers make pages of many megabytes.
pub(super) const MIN_SPLIT_BYTES: u64 = 32 << 20;
/// A row group with more rows is not cut, because its reader would keep large lists of rows. No
/// writer makes so many.
const MAX_ROWS: usize = 1 << 28;

/// A part of a file that is read in one go.
#[derive(Debug, Clone)]
pub(super) struct Split {
    pub(super) file: Arc<InputFile>,
    /// Number of the file among the files of the batch.
    pub(super) file_number: usize,
    /// Number of the part of a file among all parts of all files, in order; a file that is not cut is one part. Positions name it.
    pub(super) part_number: usize,
    /// The rows in a Parquet file; `None` for other formats.
    pub(super) rows: Option<RowRange>,
    /// The bytes of the part of a file that is cut; `None` for a whole file, and in Parquet.
    pub(super) bytes_of_part: Option<Range<u64>>,
    /// Estimated bytes of ids and content, before compression.
    pub(super) bytes: u64,
}

/// The splits of files that have the numbers 0, 1, 2, ..., in order.
pub(super) fn numbered_splits(files: &[Arc<InputFile>]) -> Vec<Split> {
    let files = files.iter().zip(first_parts(files)).enumerate();
    files
        .flat_map(|(number, (file, part))| Split::all(number, part, file))
        .collect()
}

/// The number of the first part of each file, among all parts of all files.
pub(super) fn first_parts(files: &[Arc<InputFile>]) -> impl Iterator<Item = usize> {
    files.iter().scan(0, |next, file| {
        let first = *next;
        *next += file.cuts().len() + 1;
        Some(first)
    })
}

/// Estimated bytes of ids and content of all splits, before compression.
pub(super) fn total_bytes(splits: &[Split]) -> u64 {
    let bytes = splits.iter().map(|split| split.bytes);
    bytes.fold(0, u64::saturating_add)
}

/// The name of the split, for messages.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = &self.file.location;
        if let Some(Range { start, end }) = &self.bytes_of_part {
            return write!(f, "{location}, bytes {start} to {end}");
        }
        match &self.rows {
            None => write!(f, "{location}"),
            Some(RowRange { row_group, cut }) => {
                write!(f, "{location}, row group {row_group}")?;
                match cut {
                    None => Ok(()),
                    Some(rows) => write!(f, ", rows {} to {}", rows.start, rows.end),
                }
            }
        }
    }
}

impl Split {
    /// The splits of a file, in order: its row groups, its parts, or the whole file. The first part is number `part_number` of all
    /// parts.
    pub(super) fn all(file_number: usize, part_number: usize, file: &Arc<InputFile>) -> Vec<Self> {
        let Some(footer) = &file.footer else {
            let parts = (part_number..).zip(file.parts());
            let of_part = |(number, part)| Self::of_part(file_number, number, file, part);
            return parts.map(of_part).collect();
        };
        let groups = 0..footer.metadata().num_row_groups();
        let of_row_group = |row_group| {
            let cut = None;
            Self::of_rows(file_number, part_number, file, RowRange { row_group, cut })
        };
        groups.filter_map(of_row_group).collect()
    }

    /// The split of a row group, or of some of its rows; `None` if the file has no such row group.
    pub(super) fn of_rows(
        file_number: usize,
        part_number: usize,
        file: &Arc<InputFile>,
        rows: RowRange,
    ) -> Option<Self> {
        let footer = file.footer.as_ref()?;
        let group = footer.metadata().row_groups().get(rows.row_group)?;
        let mut bytes = parquet::bytes(file, footer, rows.row_group);
        if let Some(cut) = &rows.cut {
            let all = group.num_rows().max(0).cast_unsigned();
            bytes = share(bytes, cut.len() as u64, all);
        }
        Some(Self {
            file: Arc::clone(file),
            file_number,
            part_number,
            rows: Some(rows),
            bytes_of_part: None,
            bytes,
        })
    }

    /// The split of a part of a row file, or of the whole file.
    pub(super) fn of_part(
        file_number: usize,
        part_number: usize,
        file: &Arc<InputFile>,
        part: Option<Range<u64>>,
    ) -> Self {
        // The footer of Parquet has the sizes.
        let sizes = file.rows().map(|rows| (rows.bytes, rows.size));
        let (bytes, encoded) = sizes.unwrap_or_default();
        let bytes = match &part {
            None => bytes,
            Some(part) => share(bytes, part.end.saturating_sub(part.start), encoded),
        };
        Self {
            file: Arc::clone(file),
            file_number,
            part_number,
            rows: None,
            bytes_of_part: part,
            bytes,
        }
    }

    /// The number of its first row in the file.
    pub(super) fn first_row(&self) -> u64 {
        let (Some(range), Some(footer)) = (&self.rows, &self.file.footer) else {
            return 0;
        };
        let groups = footer.metadata().row_groups()[..range.row_group].iter();
        let rows = groups.map(|group| group.num_rows().max(0).cast_unsigned());
        let before: u64 = rows.sum();
        before + range.cut.as_ref().map_or(0, |cut| cut.start as u64)
    }

    pub(super) fn row_count(&self) -> Option<u64> {
        let (range, footer) = self.rows.as_ref().zip(self.file.footer.as_ref())?;
        let rows = footer.metadata().row_group(range.row_group).num_rows();
        let all = || rows.max(0).cast_unsigned();
        Some(range.cut.as_ref().map_or_else(all, |cut| cut.len() as u64))
    }

    pub(super) fn is_remote(&self) -> bool {
        self.file.location.local().is_none()
    }

    pub(super) fn is_compressed(&self) -> bool {
        let rows = self.file.rows();
        rows.is_some_and(|rows| rows.compression != Compression::None)
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file.location.known_size().unwrap_or(u64::MAX)
    }

    /// Cuts it into ranges of its rows, of at most about `bytes` each. One whose footer contradicts itself about its rows is left
    /// whole.
    pub(super) fn cut_rows(self, bytes: u64) -> Vec<Self> {
        let footer = self.file.footer.as_ref();
        let Some((RowRange { row_group, cut }, footer)) = self.rows.as_ref().zip(footer) else {
            return vec![self];
        };
        let row_group = *row_group;
        match parquet::rows(&self.file, footer, row_group) {
            Some(rows @ 2..=MAX_ROWS) => {
                let own = cut.clone().unwrap_or(0..rows);
                let ranges = ranges(own.len(), self.bytes, bytes);
                let ranges = ranges.map(|range| own.start + range.start..own.start + range.end);
                let split = |cut: Range<usize>| Self {
                    bytes: share(self.bytes, cut.len() as u64, own.len() as u64),
                    rows: Some(RowRange {
                        row_group,
                        cut: Some(cut).filter(|cut| cut.len() < rows),
                    }),
                    ..self.clone()
                };
                ranges.map(split).collect()
            }
            _ => vec![self],
        }
    }
}

/// Cuts `rows` rows, which have `bytes` bytes in all, into ranges of at most about `most` bytes
/// each.
fn ranges(rows: usize, bytes: u64, most: u64) -> impl Iterator<Item = Range<usize>> {
    let pieces = usize::try_from(bytes.div_ceil(most.max(1))).unwrap_or(usize::MAX);
    let each = rows.div_ceil(pieces.max(1)).max(1);
    (0..rows)
        .step_by(each)
        .map(move |start| start..rows.min(start + each))
}

/// The bytes of a part of something that has `bytes` bytes in all, by the sizes of both.
fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    (u128::from(bytes) * u128::from(part) / u128::from(whole.max(1))) as u64
}

/// Deals the splits to partitions, as evenly by bytes as possible; each partition has its splits in order, and none is
/// empty.
///
/// Row groups are cut if the partitions could not share them evenly otherwise: programs that write Parquet from memory
/// often make one row group of all rows.
pub(super) fn deal(splits: Vec<Split>, partitions: usize) -> Vec<Vec<Split>> {
    if partitions <= 1 {
        return vec![splits];
    }
    let most = split_bytes(total_bytes(&splits), partitions as u64);
    let cut = splits.into_iter().flat_map(|split| {
        // A reader of a row group in a store fetches all of it at once.
        if split.is_remote() {
            vec![split]
        } else {
            split.cut_rows(most)
        }
    });
    let mut splits: Vec<Option<Split>> = cut.map(Some).collect();
    let bytes: Vec<u64> = splits.iter().flatten().map(|split| split.bytes).collect();
    let take = |numbers: Vec<usize>| {
        let numbers = numbers.into_iter();
        numbers.filter_map(|number| splits[number].take()).collect()
    };
    let dealt = deal_evenly(&bytes, partitions).into_iter();
    dealt.map(take).collect()
}

/// The most bytes of a split, for `total` bytes in all. If one row group has all these bytes, every
/// partition then gets the same number of splits.
pub(super) fn split_bytes(total: u64, partitions: u64) -> u64 {
    let each = (total / partitions / MIN_SPLIT_BYTES).clamp(1, SPLITS_PER_PARTITION);
    total.div_ceil(each * partitions).max(MIN_SPLIT_BYTES)
}

/// The numbers of the items of each partition, ascending: the largest items are dealt first, each to the partition with the
/// fewest bytes.
fn deal_evenly(bytes: &[u64], partitions: usize) -> Vec<Vec<usize>> {
    let mut numbers: Vec<usize> = (0..bytes.len()).collect();
    numbers.sort_by_key(|&number| Reverse(bytes[number]));
    let mut partitions = vec![(0_u64, Vec::new()); partitions.clamp(1, bytes.len().max(1))];
    for number in numbers {
        let least = partitions.iter_mut().min_by_key(|(sum, _)| *sum);
        if let Some((sum, own)) = least {
            // An item without a size counts, too.
            *sum = sum.saturating_add(bytes[number].max(1));
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_are_dealt_first() {
        assert_eq!(deal_evenly(&[1, 9, 5, 4], 2), [vec![0, 1], vec![2, 3]]);
        assert_eq!(
            deal_evenly(&[3, 3, 3, 3], 3),
            [vec![0, 3], vec![1], vec![2]]
        );
    }

    #[test]
    fn items_without_a_size_are_dealt_in_turn() {
        assert_eq!(deal_evenly(&[0; 5], 2), [vec![0, 2, 4], vec![1, 3]]);
    }

    #[test]
    fn no_partition_is_empty_unless_there_is_nothing() {
        assert_eq!(deal_evenly(&[7, 8], 4), [[1], [0]]);
        assert_eq!(deal_evenly(&[], 4), [[0_usize; 0]]);
    }

    #[test]
    fn sizes_that_no_file_has_do_no_harm() {
        assert_eq!(deal_evenly(&[u64::MAX, u64::MAX, 1], 1), [[0, 1, 2]]);
        assert_eq!(ranges(3, u64::MAX, 1).count(), 3);
        assert_eq!(ranges(0, u64::MAX, 0).count(), 0);
    }

    #[test]
    fn one_row_group_is_dealt_evenly() {
        for (bytes, partitions) in [
            (5_000_000_001, 2),
            (5_000_000_001, 7),
            (5_000_000_001, 61),
            (3 * MIN_SPLIT_BYTES + 1, 2),
            (3 * MIN_SPLIT_BYTES + 1, 3),
        ] {
            let rows = 1_000_000;
            let most = split_bytes(bytes, partitions);
            let sizes: Vec<u64> = ranges(rows, bytes, most)
                .map(|range| share(bytes, range.len() as u64, rows as u64))
                .collect();
            let loads = deal_evenly(&sizes, partitions as usize).into_iter();
            let load = |own: Vec<usize>| own.into_iter().map(|number| sizes[number]).sum::<u64>();
            let most = loads.map(load).max().unwrap() as f64;
            let ideal = bytes as f64 / partitions as f64;
            assert!(most / ideal < 1.001, "{bytes}, {partitions}: {most}");
        }
        // Too few bytes to give every partition a split.
        let cuts = |bytes| ranges(1000, bytes, split_bytes(bytes, 8)).count();
        assert_eq!(cuts(MIN_SPLIT_BYTES / 2), 1);
        assert_eq!(cuts(2 * MIN_SPLIT_BYTES), 2);
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_range(rows in 0usize..500, bytes in 0u64..2000, most in 0u64..500) {
            let all: Vec<usize> = ranges(rows, bytes, most).flatten().collect();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }

        #[test]
        fn every_item_is_dealt_once(bytes in proptest::collection::vec(0u64..9, 0..40), partitions in 1usize..9) {
            let dealt = deal_evenly(&bytes, partitions);
            prop_assert!(dealt.iter().all(|own| own.is_sorted()));
            let mut all = dealt.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..bytes.len()).collect::<Vec<_>>());
        }
    }
}
