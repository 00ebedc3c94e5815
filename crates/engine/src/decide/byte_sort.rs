//! Sorts rows by byte strings, with all threads of a pool.
//!
//! Beside each row stand eight bytes of its string, so that most comparisons read no string. Rows with the same eight bytes are
//! then sorted by the next eight in which they differ.

use rayon::prelude::*;

/// Fewer rows are sorted on one thread.
const PARALLEL_ROWS: usize = 1 << 14;
/// Bytes of a string that stand beside its row.
const PREFIX: usize = size_of::<u64>();

/// A row that is sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Eight bytes of its string: the first byte is the highest one. Zeros follow the end of the string.
    prefix: u64,
    /// Rows with equal strings are in the order of this number.
    tie: u32,
    pub(super) row: u32,
}

impl Entry {
    /// A row that is to be sorted by its string.
    pub(super) fn new(row: u32, tie: u32) -> Self {
        Self {
            row,
            tie,
            prefix: 0,
        }
    }

    /// A row that is to be sorted by a number.
    pub(super) fn with_number(row: u32, tie: u32, number: i64) -> Self {
        Self {
            // Negative numbers come first.
            prefix: number.cast_unsigned() ^ 1 << 63,
            ..Self::new(row, tie)
        }
    }

    fn key(&self) -> (u64, u32) {
        (self.prefix, self.tie)
    }
}

/// Sorts by the numbers of the rows, then by their ties.
pub(super) fn sort_by_number(entries: &mut [Entry]) {
    entries.par_sort_unstable_by_key(Entry::key);
}

/// Sorts by the strings that `bytes_of` gives for the rows, then by their ties.
pub(super) fn sort_by_bytes<'a>(
    entries: &mut [Entry],
    bytes_of: &(impl Fn(u32) -> &'a [u8] + Sync),
) {
    sort_from(entries, 0, bytes_of);
}

/// Sorts rows whose strings agree in their first `depth` bytes. Unless `depth` is 0, each string
/// has more bytes than that.
fn sort_from<'a>(
    mut entries: &mut [Entry],
    mut depth: usize,
    bytes_of: &(impl Fn(u32) -> &'a [u8] + Sync),
) {
    while entries.len() > 1 {
        depth += common_bytes(entries, depth, bytes_of);
        let set_prefix = |entry: &mut Entry| entry.prefix = prefix(&bytes_of(entry.row)[depth..]);
        let is_large = entries.len() >= PARALLEL_ROWS;
        if is_large {
            entries.par_iter_mut().for_each(set_prefix);
            entries.par_sort_unstable_by_key(Entry::key);
        } else {
            entries.iter_mut().for_each(set_prefix);
            entries.sort_unstable_by_key(Entry::key);
        }
        depth += PREFIX;
        let middle = entries[entries.len() / 2].prefix;
        let start = entries.partition_point(|entry| entry.prefix < middle);
        let end = entries.partition_point(|entry| entry.prefix <= middle);
        let (before, rest) = entries.split_at_mut(start);
        let (run, after) = rest.split_at_mut(end - start);
        let sort_run = |run: &mut [Entry]| {
            sort_from(longer_than(run, depth, bytes_of), depth, bytes_of);
        };
        for part in [before, after] {
            let has_same_prefix = |a: &Entry, b: &Entry| a.prefix == b.prefix;
            if is_large {
                part.par_chunk_by_mut(has_same_prefix).for_each(sort_run);
            } else {
                part.chunk_by_mut(has_same_prefix).for_each(sort_run);
            }
        }
        // The run of the middle is sorted by the loop, because it can be the largest. The others have at most half of the
        // rows: so the recursion is not deeper than the logarithm of their number, however long the strings are.
        entries = longer_than(run, depth, bytes_of);
    }
}

/// Moves the rows whose strings end at `depth` or before to the front of `run`, sorts them, and returns the others. The
/// strings agree up to `depth`, but for zeros at the end: the shorter comes first.
fn longer_than<'e, 'a>(
    run: &'e mut [Entry],
    depth: usize,
    bytes_of: &impl Fn(u32) -> &'a [u8],
) -> &'e mut [Entry] {
    if run.len() < 2 {
        return &mut [];
    }
    let length = |entry: &Entry| bytes_of(entry.row).len().min(depth + 1);
    let first = length(&run[0]);
    // They are in the order of their ties already.
    if run.iter().any(|entry| length(entry) != first) {
        run.sort_unstable_by_key(|entry| (length(entry), entry.tie));
    }
    let ended = run.partition_point(|entry| length(entry) <= depth);
    &mut run[ended..]
}

/// The number of bytes, behind the first `depth`, that all strings share.
fn common_bytes<'a>(
    entries: &[Entry],
    depth: usize,
    bytes_of: &(impl Fn(u32) -> &'a [u8] + Sync),
) -> usize {
    let Some(first) = entries.first() else {
        return 0;
    };
    let first = &bytes_of(first.row)[depth..];
    let common = |entry: &Entry| {
        let own = &bytes_of(entry.row)[depth..];
        first.iter().zip(own).take_while(|(a, b)| a == b).count()
    };
    let least = if entries.len() >= PARALLEL_ROWS {
        entries.par_iter().map(common).min()
    } else {
        entries.iter().map(common).min()
    };
    least.unwrap_or(0)
}

/// The first eight bytes, the first one highest, filled up with zeros.
fn prefix(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; PREFIX];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(strings: &[Vec<u8>], ties: &[u32]) -> Vec<u32> {
        let mut entries: Vec<Entry> = (0..strings.len() as u32)
            .map(|row| Entry::new(row, ties[row as usize]))
            .collect();
        sort_by_bytes(&mut entries, &|row| &strings[row as usize][..]);
        entries.iter().map(|entry| entry.row).collect()
    }

    fn expected(strings: &[Vec<u8>], ties: &[u32]) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..strings.len() as u32).collect();
        rows.sort_by_key(|&row| (&strings[row as usize], ties[row as usize]));
        rows
    }

    proptest! {
        #[test]
        fn strings_of_few_bytes_have_their_order(
            strings in proptest::collection::vec(
                proptest::collection::vec(0_u8..3, 0..30), 0..200),
            seed: u64,
        ) {
            let number = |at: u64| (seed.wrapping_mul(2 * at + 1) >> 40) as u32 % 8 * 1000 + at as u32;
            let ties: Vec<u32> = (0..strings.len() as u64).map(number).collect();
            prop_assert_eq!(sorted(&strings, &ties), expected(&strings, &ties));
        }
    }

    #[test]
    fn many_strings_are_sorted_by_several_threads() {
        let names = ["https://example.org/", "https://example.org/a\0", "b"];
        let strings: Vec<Vec<u8>> = (0..50_000_usize)
            .map(|at| {
                let number = at * 7919 % 20_011;
                let name = names[number % 3];
                format!("{name}{:0width$}", number / 5, width = number % 13).into_bytes()
            })
            .collect();
        let ties: Vec<u32> = (0..50_000).map(|at| 50_000 - at).collect();
        assert_eq!(sorted(&strings, &ties), expected(&strings, &ties));
    }

    /// Each string is a prefix of the next. A sort that recursed for every eight bytes would
    /// recurse once for each string.
    #[test]
    fn long_strings_do_not_overflow_the_stack() {
        let strings: Vec<Vec<u8>> = (0..6000_usize).rev().map(|at| vec![b'a'; 8 * at]).collect();
        let ties = vec![0; strings.len()];
        assert_eq!(sorted(&strings, &ties), expected(&strings, &ties));
    }

    #[test]
    fn numbers_have_their_order() {
        let numbers = [3, i64::MIN, -1, i64::MAX, 0, 3];
        let ties = [1, 0, 0, 0, 0, 0];
        let entry = |at: usize| Entry::with_number(at as u32, ties[at], numbers[at]);
        let mut entries: Vec<Entry> = (0..numbers.len()).map(entry).collect();
        sort_by_number(&mut entries);
        let rows: Vec<u32> = entries.iter().map(|entry| entry.row).collect();
        assert_eq!(rows, [1, 2, 4, 5, 0, 3]);
    }
}
