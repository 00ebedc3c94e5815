//! Sets of rows of the inputs, and the positions that name rows.

/// Bits of a position that are the number of the row in its file.
const ROW_BITS: u32 = 40;

/// The position of a row in the inputs: its file's number, then its own number in the file.
/// Positions sort in the order of the inputs.
pub(super) fn position(file: usize, row: u64) -> i64 {
    ((file as u64) << ROW_BITS | row).cast_signed()
}

/// The number of the file of a position, and that of the row in it.
fn file_and_row(position: i64) -> (usize, u64) {
    let position = position.cast_unsigned();
    let file = (position >> ROW_BITS) as usize;
    (file, position & ((1 << ROW_BITS) - 1))
}

/// Gives positions 32-bit numbers, which sort as the positions do.
#[derive(Debug)]
pub(crate) struct InputNumbers {
    /// The number of the first row of each file, then that behind the last row.
    firsts: Vec<u64>,
}

impl InputNumbers {
    /// Numbers for `positions`, and for those between them.
    pub(crate) fn new(positions: &[i64]) -> Self {
        let mut firsts = vec![0];
        for (file, row) in positions.iter().map(|position| file_and_row(*position)) {
            if firsts.len() < file + 2 {
                firsts.resize(file + 2, 0);
            }
            firsts[file + 1] = firsts[file + 1].max(row + 1);
        }
        for file in 1..firsts.len() {
            firsts[file] += firsts[file - 1];
        }
        Self { firsts }
    }

    /// All numbers are below this.
    pub(crate) fn end(&self) -> usize {
        self.firsts.last().map_or(0, |end| *end as usize)
    }

    /// The number of a position; `None` if it is behind the last one of its file that [`Self::new`] got.
    pub(crate) fn number(&self, position: i64) -> Option<u32> {
        let (file, row) = file_and_row(position);
        let number = self.firsts.get(file)? + row;
        let end = self.firsts.get(file + 1)?;
        // A batch has fewer than 2^32 documents.
        (number < *end).then_some(number as u32)
    }
}

/// A set of rows of the inputs, one bit for each row.
#[derive(Debug, Clone, Default)]
pub struct RowSet {
    /// For each file, the bits of its rows, 64 in a word.
    files: Vec<Vec<u64>>,
}

impl RowSet {
    /// Adds the row at a position.
    pub(crate) fn add(&mut self, position: i64) {
        let (file, row) = file_and_row(position);
        if self.files.len() <= file {
            self.files.resize_with(file + 1, Vec::new);
        }
        let words = &mut self.files[file];
        let word = (row / 64) as usize;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (row % 64);
    }

    /// Whether the row of a file was added.
    pub(super) fn contains(&self, file: usize, row: u64) -> bool {
        let word = self
            .files
            .get(file)
            .and_then(|words| words.get((row / 64) as usize));
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Heap bytes of a set that may hold any of `rows` rows.
    pub(crate) fn bytes_for(rows: u64) -> usize {
        usize::try_from(rows / 8).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_files_are_kept_apart() {
        let mut kept = RowSet::default();
        for (file, row) in [(0, 0), (0, 64), (2, 1_000_000)] {
            kept.add(position(file, row));
        }
        assert!(kept.contains(0, 0) && kept.contains(0, 64) && kept.contains(2, 1_000_000));
        assert!(!kept.contains(0, 1) && !kept.contains(1, 0) && !kept.contains(2, 64));
        assert!(!kept.contains(9, 0) && position(0, 7) < position(1, 0));
    }

    #[test]
    fn numbers_have_the_order_of_the_inputs() {
        let places = [(2, 5), (0, 3), (0, 0), (2, 0), (5, 1)];
        let positions = places.map(|(file, row)| position(file, row));
        let numbers = InputNumbers::new(&positions);
        let found = positions.map(|position| numbers.number(position).unwrap());
        assert_eq!((found, numbers.end()), ([9, 3, 0, 4, 11], 12));
        // One between the others, and those that are behind the last of their files.
        assert_eq!(numbers.number(position(2, 1)), Some(5));
        for (file, row) in [(0, 4), (1, 0), (2, 6), (5, 2), (6, 0)] {
            assert_eq!(numbers.number(position(file, row)), None);
        }
        assert_eq!(InputNumbers::new(&[]).end(), 0);
    }
}
