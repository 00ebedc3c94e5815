//! Sets of rows of the inputs, and the positions that name rows.

/// Bits of a position that are the number of the row in its part.
const ROW_BITS: u32 = 40;

/// The position of a row in the inputs: the number of its part of a file, then its own number in the part. Positions sort in the
/// order of the inputs.
pub(super) fn position(part: usize, row: u64) -> i64 {
    ((part as u64) << ROW_BITS | row).cast_signed()
}

fn part_and_row(position: i64) -> (usize, u64) {
    let position = position.cast_unsigned();
    let part = (position >> ROW_BITS) as usize;
    (part, position & ((1 << ROW_BITS) - 1))
}

/// Gives positions 32-bit numbers, which sort as the positions do.
#[derive(Debug)]
pub enum InputNumbers {
    /// The number of the first row of each part, then that behind the last row.
    Rows { firsts: Vec<u64> },
    /// The positions in order, if there are too many rows, which need not all be documents.
    Ranks { positions: Vec<i64> },
}

impl InputNumbers {
    /// Gives numbers to fewer than 2^32 `positions`.
    pub fn new(positions: &[i64]) -> Self {
        let mut firsts = vec![0];
        for (part, row) in positions.iter().map(|position| part_and_row(*position)) {
            if firsts.len() < part + 2 {
                firsts.resize(part + 2, 0);
            }
            firsts[part + 1] = firsts[part + 1].max(row + 1);
        }
        for part in 1..firsts.len() {
            firsts[part] += firsts[part - 1];
        }
        if firsts.last().is_none_or(|rows| *rows <= 1 << 32) {
            return Self::Rows { firsts };
        }
        let mut positions = positions.to_vec();
        positions.sort_unstable();
        Self::Ranks { positions }
    }

    /// All numbers are below this.
    pub fn end(&self) -> usize {
        match self {
            Self::Rows { firsts } => firsts.last().map_or(0, |end| *end as usize),
            Self::Ranks { positions } => positions.len(),
        }
    }

    /// The number of a position. One that [`Self::new`] did not get may have none.
    pub fn number(&self, position: i64) -> Option<u32> {
        match self {
            Self::Rows { firsts } => {
                let (part, row) = part_and_row(position);
                let number = firsts.get(part)? + row;
                let end = firsts.get(part + 1)?;
                (number < *end).then_some(number as u32)
            }
            Self::Ranks { positions } => {
                let rank = positions.binary_search(&position).ok()?;
                Some(rank as u32)
            }
        }
    }
}

/// A set of rows of the inputs, one bit for each row.
#[derive(Debug, Clone, Default)]
pub struct RowSet {
    /// For each part of a file, the bits of its rows, 64 in a word.
    parts: Vec<Vec<u64>>,
}

impl RowSet {
    pub fn add(&mut self, position: i64) {
        let (part, row) = part_and_row(position);
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, Vec::new);
        }
        let words = &mut self.parts[part];
        let word = (row / 64) as usize;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (row % 64);
    }

    /// Whether the row of a part was added.
    pub(super) fn contains(&self, part: usize, row: u64) -> bool {
        let word = self
            .parts
            .get(part)
            .and_then(|words| words.get((row / 64) as usize));
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Whether the position was added.
    pub(super) fn has(&self, position: i64) -> bool {
        let (part, row) = part_and_row(position);
        self.contains(part, row)
    }

    pub fn count(&self) -> usize {
        let words = self.parts.iter().flatten();
        words.map(|word| word.count_ones() as usize).sum()
    }

    /// The set as bytes: for each part, the number of its words and the words, each as 8 bytes, little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self
            .parts
            .iter()
            .map(|words| words.len() + 1)
            .sum::<usize>();
        let mut bytes = Vec::with_capacity(8 * words);
        for words in &self.parts {
            bytes.extend((words.len() as u64).to_le_bytes());
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes
    }

    /// Reads the bytes of [`Self::to_bytes`]; `None` if they are others.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut parts = Vec::new();
        while let Some(count) = words.next() {
            let part: Vec<u64> = words.by_ref().take(usize::try_from(count).ok()?).collect();
            if part.len() as u64 != count {
                return None;
            }
            parts.push(part);
        }
        Some(Self { parts })
    }

    /// Heap bytes of a set that may hold any of `rows` rows.
    pub fn bytes_for(rows: u64) -> usize {
        usize::try_from(rows / 8).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_parts_are_kept_apart() {
        let mut kept = RowSet::default();
        for (part, row) in [(0, 0), (0, 64), (2, 1_000_000)] {
            kept.add(position(part, row));
        }
        assert!(kept.contains(0, 0) && kept.contains(0, 64) && kept.contains(2, 1_000_000));
        let read = RowSet::from_bytes(&kept.to_bytes()).unwrap();
        assert_eq!(read.parts, kept.parts);
        let bytes = kept.to_bytes();
        assert!(RowSet::from_bytes(&bytes[..bytes.len() - 8]).is_none());
        assert!(!kept.contains(0, 1) && !kept.contains(1, 0) && !kept.contains(2, 64));
        assert!(!kept.contains(9, 0) && position(0, 7) < position(1, 0));
    }

    #[test]
    fn numbers_have_the_order_of_the_inputs() {
        let places = [(2, 5), (0, 3), (0, 0), (2, 0), (5, 1)];
        let positions = places.map(|(part, row)| position(part, row));
        let numbers = InputNumbers::new(&positions);
        let found = positions.map(|position| numbers.number(position).unwrap());
        assert_eq!((found, numbers.end()), ([9, 3, 0, 4, 11], 12));
        // One between the others, and those that are behind the last of their parts.
        assert_eq!(numbers.number(position(2, 1)), Some(5));
        for (part, row) in [(0, 4), (1, 0), (2, 6), (5, 2), (6, 0)] {
            assert_eq!(numbers.number(position(part, row)), None);
        }
        assert_eq!(InputNumbers::new(&[]).end(), 0);
        // More rows than numbers.
        let far = [(1, 7), (0, 1 << 33), (1, 0), (0, 9)];
        let positions = far.map(|(part, row)| position(part, row));
        let numbers = InputNumbers::new(&positions);
        let found = positions.map(|position| numbers.number(position).unwrap());
        assert_eq!((found, numbers.end()), ([3, 1, 2, 0], 4));
        assert_eq!(numbers.number(position(0, 10)), None);
    }
}
