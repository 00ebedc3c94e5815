//! Splits: parts of files that are read in one go, and how they are dealt to partitions.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::file::{InputFile, RowRange};
use super::parquet;
use super::rows::compression::Compression;

/// Parts that each reader gets of one large file of rows: enough to deal evenly, whatever the sizes of other files.
const SPLITS_PER_PARTITION: u64 = 4;
/// The fewest bytes of ids and content that a partition reads of row groups that are cut, and the fewest decompressed bytes of a
/// part of a file of rows. Two splits that share a page both decode it, and some writers make pages of many megabytes.
pub(super) const MIN_SPLIT_BYTES: u64 = 32 << 20;
/// Fewer bytes are not cut off.
const CRUMB_BYTES: u64 = MIN_SPLIT_BYTES / 8;
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

    /// Where it begins among all splits.
    fn place(&self) -> (usize, Option<usize>, u64) {
        let row_group = self.rows.as_ref().map(|rows| rows.row_group);
        (self.part_number, row_group, self.first_row())
    }

    /// Whether its file is in a store.
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

    /// Its rows among all of its row group, and their number; `None` if it cannot be cut into ranges of rows: its footer
    /// contradicts itself about them, or they are too few or too many.
    fn own_rows(&self) -> Option<(Range<usize>, usize)> {
        let (RowRange { row_group, cut }, footer) =
            self.rows.as_ref().zip(self.file.footer.as_ref())?;
        let all = parquet::rows(&self.file, footer, *row_group)?;
        let own = || cut.clone().unwrap_or(0..all);
        (2..=MAX_ROWS).contains(&all).then(|| (own(), all))
    }

    /// The rows `cut` of its row group, which has `all`.
    fn with_rows(&self, cut: Range<usize>, all: usize) -> Option<Self> {
        let cut = Some(cut).filter(|cut| cut.len() < all);
        let row_group = self.rows.as_ref()?.row_group;
        let rows = RowRange { row_group, cut };
        Self::of_rows(self.file_number, self.part_number, &self.file, rows)
    }

    /// Cuts it into ranges of its rows, of at most about `bytes` each, if it can be cut.
    pub(super) fn cut_rows(self, bytes: u64) -> Vec<Self> {
        let Some((own, all)) = self.own_rows() else {
            return vec![self];
        };
        let ranges = ranges(own.len(), self.bytes, bytes);
        let of_group = |range: Range<usize>| own.start + range.start..own.start + range.end;
        let split = |range| self.with_rows(of_group(range), all);
        ranges.filter_map(split).collect()
    }

    /// The rows at a range of its bytes, if there are any.
    fn rows_at(&self, bytes: Range<u64>) -> Option<Self> {
        let Some((own, all)) = self.own_rows() else {
            return Some(self.clone());
        };
        let row = |byte| own.start + share(own.len() as u64, byte, self.bytes) as usize;
        let cut = match bytes {
            bytes if bytes == (0..self.bytes) => own.clone(),
            bytes => row(bytes.start)..row(bytes.end),
        };
        (!cut.is_empty()).then(|| self.with_rows(cut, all))?
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
/// Row groups are cut where one partition has its share and the next begins: programs that write Parquet from memory often make
/// one row group of all rows.
pub(super) fn deal(splits: Vec<Split>, partitions: usize) -> Vec<Vec<Split>> {
    if partitions <= 1 {
        return vec![splits];
    }
    // A reader of a row group in a store fetches all of it at once.
    let is_cut = |split: &Split| !split.is_remote() && split.own_rows().is_some();
    let (cut, whole): (Vec<Split>, Vec<Split>) = splits.into_iter().partition(is_cut);
    let bytes = |splits: &[Split]| splits.iter().map(|split| split.bytes).collect::<Vec<_>>();
    let of_whole = deal_evenly(&bytes(&whole), partitions);
    let of_whole = of_whole
        .into_iter()
        .map(|own| own.into_iter().map(|at| whole[at].clone()));
    let mut dealt: Vec<Vec<Split>> = of_whole.map(Iterator::collect).collect();
    dealt.resize_with(partitions, Vec::new);
    let loads: Vec<u64> = dealt.iter().map(|own| total_bytes(own)).collect();
    for (own, ranges) in dealt.iter_mut().zip(fill(&loads, &bytes(&cut))) {
        let ranges = ranges.into_iter();
        own.extend(ranges.filter_map(|(at, bytes)| cut[at].rows_at(bytes)));
        own.sort_by_key(Split::place);
    }
    dealt.retain(|own| !own.is_empty());
    if dealt.is_empty() {
        dealt.push(Vec::new());
    }
    dealt
}

/// Deals items, which have `sizes` bytes, to partitions, which have `loads` bytes before, so that all partitions end with about as
/// many bytes. Returns for each partition its items, and the ranges of their bytes. It cuts an item only where a partition is full.
fn fill(loads: &[u64], sizes: &[u64]) -> Vec<Vec<(usize, Range<u64>)>> {
    let mut ascending = loads.to_vec();
    ascending.sort_unstable();
    // What each partition has in the end, unless it has more already.
    let (mut all, mut level) = (sizes.iter().copied().fold(0, u64::saturating_add), 0);
    for (number, load) in (1..).zip(ascending) {
        if number > 1 && load >= level {
            break;
        }
        all = all.saturating_add(load);
        level = all.div_ceil(number);
    }
    let least = if level < MIN_SPLIT_BYTES {
        MIN_SPLIT_BYTES
    } else {
        CRUMB_BYTES
    };
    let mut dealt = vec![Vec::new(); loads.len()];
    let (mut item, mut start, mut given, mut due) = (0, 0, 0_u64, 0_u64);
    let mut last = 0;
    for (partition, load) in loads.iter().enumerate().filter(|(_, load)| **load < level) {
        due = due.saturating_add(level - load);
        last = partition;
        while item < sizes.len() && given < due {
            let (left, room) = (sizes[item] - start, due - given);
            let taken = if left <= room.max(least) || left - room < CRUMB_BYTES {
                left
            } else {
                room.max(least)
            };
            if taken / 2 > room {
                // The next partition has more room for it.
                break;
            }
            dealt[partition].push((item, start..start + taken));
            given = given.saturating_add(taken);
            start += taken;
            if start == sizes[item] {
                (item, start) = (item + 1, 0);
            }
        }
    }
    let rest = sizes.iter().enumerate().skip(item);
    dealt[last].extend(rest.map(|(at, size)| (at, if at == item { start } else { 0 }..*size)));
    dealt
}

/// The most bytes of a part of a file, for `total` bytes in all. If one file has all these bytes, every reader then gets the same
/// number of parts.
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
    fn row_groups_are_cut_where_partitions_have_their_shares() {
        const MIB: u64 = 1 << 20;
        let dealt = fill(&[0, 0], &[160 * MIB, 160 * MIB, 160 * MIB]);
        let first = vec![(0, 0..160 * MIB), (1, 0..80 * MIB)];
        let second = vec![(1, 80 * MIB..160 * MIB), (2, 0..160 * MIB)];
        assert_eq!(dealt, [first, second]);
        // A partition that has more already gets nothing, and crumbs are not cut off.
        let dealt = fill(&[400 * MIB, 0, 100 * MIB], &[203 * MIB, 97 * MIB]);
        assert_eq!(
            dealt,
            [vec![], vec![(0, 0..203 * MIB)], vec![(1, 0..97 * MIB)]]
        );
        // Too few bytes to give every partition a split.
        let dealt = fill(&[0; 8], &[MIN_SPLIT_BYTES / 2]);
        assert_eq!(dealt.iter().filter(|own| !own.is_empty()).count(), 1);
        let dealt = fill(&[0; 8], &[2 * MIN_SPLIT_BYTES]);
        assert_eq!(dealt.iter().filter(|own| !own.is_empty()).count(), 2);
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_range(rows in 0usize..500, bytes in 0u64..2000, most in 0u64..500) {
            let all: Vec<usize> = ranges(rows, bytes, most).flatten().collect();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }

        #[test]
        fn every_byte_is_dealt_once_and_evenly(
            loads in proptest::collection::vec(0u64..1000, 1..9),
            sizes in proptest::collection::vec(0u64..2000, 0..20),
        ) {
            let mib = |numbers: Vec<u64>| numbers.into_iter().map(|number| number << 20).collect::<Vec<_>>();
            let (loads, sizes) = (mib(loads), mib(sizes));
            let dealt = fill(&loads, &sizes);
            let mut next = vec![0; sizes.len()];
            for (item, bytes) in dealt.iter().flatten() {
                prop_assert_eq!(bytes.start, next[*item]);
                next[*item] = bytes.end;
            }
            prop_assert_eq!(&next, &sizes);
            let all: u64 = loads.iter().chain(&sizes).sum();
            let even = (all / loads.len() as u64).max(loads.iter().copied().max().unwrap_or(0));
            for (load, own) in loads.iter().zip(&dealt) {
                let own: u64 = own.iter().map(|(_, bytes)| bytes.end - bytes.start).sum();
                prop_assert!(load + own <= even + MIN_SPLIT_BYTES + 2 * CRUMB_BYTES);
            }
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
