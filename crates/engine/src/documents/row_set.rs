//! Sets of rows of the inputs, and the positions that name rows.

/// Bits of a position that are the number of the row in its part.
const ROW_BITS: u32 = 40;

/// The position of a row in the inputs: the number of its part of a file, then its own number in the part. Positions sort in the
/// order of the inputs.
pub(super) fn position(part: usize, row: u64) -> i64 {
    ((part as u64) << ROW_BITS | row).cast_signed()
}

/// Gives each of at most 2^32 positions a 32-bit number; the numbers sort as the positions do.
pub(crate) fn input_numbers(positions: &[i64]) -> Vec<u32> {
    let split = |position: i64| {
        let position = position.cast_unsigned();
        let part = (position >> ROW_BITS) as usize;
        (part, position & ((1 << ROW_BITS) - 1))
    };
    // The number of the first row of each part.
    let mut firsts = vec![0];
    for (part, row) in positions.iter().map(|position| split(*position)) {
        if firsts.len() < part + 2 {
            firsts.resize(part + 2, 0);
        }
        firsts[part + 1] = firsts[part + 1].max(row + 1);
    }
    for part in 1..firsts.len() {
        firsts[part] += firsts[part - 1];
    }
    if firsts.last().is_some_and(|rows| *rows > 1 << 32) {
        // Not every row is a document.
        return ranks(positions);
    }
    let number = |position: &i64| {
        let (part, row) = split(*position);
        (firsts[part] + row) as u32
    };
    positions.iter().map(number).collect()
}

/// The rank of each position.
fn ranks(positions: &[i64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(positions.len()).collect();
    order.sort_unstable_by_key(|at| positions[*at as usize]);
    let mut ranks = vec![0; positions.len()];
    for (rank, at) in (0..).zip(order) {
        ranks[at as usize] = rank;
    }
    ranks
}

/// A set of rows of the inputs, one bit for each row.
#[derive(Debug, Clone, Default)]
pub struct RowSet {
    /// For each part of a file, the bits of its rows, 64 in a word.
    parts: Vec<Vec<u64>>,
}

impl RowSet {
    /// Adds the row at a position.
    pub(crate) fn add(&mut self, position: i64) {
        let position = position.cast_unsigned();
        let part = (position >> ROW_BITS) as usize;
        let row = position & ((1 << ROW_BITS) - 1);
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

    /// Heap bytes of a set that may hold any of `rows` rows.
    pub(crate) fn bytes_for(rows: u64) -> usize {
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
        assert!(!kept.contains(0, 1) && !kept.contains(1, 0) && !kept.contains(2, 64));
        assert!(!kept.contains(9, 0) && position(0, 7) < position(1, 0));
    }

    #[test]
    fn numbers_have_the_order_of_the_inputs() {
        let places = [(2, 5), (0, 3), (0, 0), (2, 0), (5, 1)];
        let positions = places.map(|(part, row)| position(part, row));
        assert_eq!(input_numbers(&positions), [9, 3, 0, 4, 11]);
        assert!(input_numbers(&[]).is_empty());
        let far = [(1, 7), (0, 1 << 33), (1, 0), (0, 9)];
        let positions = far.map(|(part, row)| position(part, row));
        assert_eq!(input_numbers(&positions), [3, 1, 2, 0]);
    }
}
