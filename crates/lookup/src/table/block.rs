//! Encodes a block of a table, and reads an encoded one.

use std::ops::Range;

use super::{BLOCK_BITS, BLOCK_BUCKETS, UNIT};
use crate::paged::{u32_at, u64_at};

/// Bytes before a block's counts.
pub(crate) const HEADER: usize = 8;

/// The values of one block, to be encoded.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bucket_bits: u32,
    values: Vec<u64>,
    /// Values with several rows, by number in the block, and their rows beyond the first.
    repeats: Vec<(u32, u32)>,
}

impl Encoder {
    pub(crate) fn new(bucket_bits: u32) -> Self {
        Self {
            bucket_bits,
            ..Self::default()
        }
    }

    /// Appends a value, which must be larger than the one before, with its number of rows.
    pub(crate) fn push(&mut self, value: u64, rows: u32) {
        if rows > 1 {
            self.repeats.push((self.values.len() as u32, rows - 1));
        }
        self.values.push(value);
    }

    /// Encodes the block, appends it to `bytes`, and empties the encoder. A block without values takes no bytes.
    pub(crate) fn encode(&mut self, first_row: u32, bytes: &mut Vec<u8>) {
        if self.values.is_empty() {
            return;
        }
        bytes.extend_from_slice(&first_row.to_le_bytes());
        bytes.extend_from_slice(&(self.values.len() as u32).to_le_bytes());
        let width = 64 - self.bucket_bits;
        let mut bits = BitWriter::new(bytes);
        let mut bucket = 0;
        for value in &self.values {
            let wanted = (value >> width) as u32 & (BLOCK_BUCKETS - 1);
            bits.push(0, wanted - bucket);
            bucket = wanted;
            bits.push(1, 1);
        }
        bits.push(0, BLOCK_BUCKETS - bucket);
        bits.finish();
        let mut bits = BitWriter::new(bytes);
        for value in &self.values {
            bits.push(value & ((1 << width) - 1), width);
        }
        bits.finish();
        // `bytes` may have blocks before this one; they are whole units, too.
        bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
        for (value, rows) in &self.repeats {
            bytes.extend_from_slice(&value.to_le_bytes());
            bytes.extend_from_slice(&rows.to_le_bytes());
        }
        self.values.clear();
        self.repeats.clear();
    }
}

/// Appends numbers of any width to bytes, lowest bit first.
struct BitWriter<'a> {
    bytes: &'a mut Vec<u8>,
    word: u128,
    bits: u32,
}

impl<'a> BitWriter<'a> {
    fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self {
            bytes,
            word: 0,
            bits: 0,
        }
    }

    /// Appends a number below 2^`width`.
    #[inline(always)]
    fn push(&mut self, number: u64, width: u32) {
        self.word |= u128::from(number) << self.bits;
        self.bits += width;
        while self.bits >= 64 {
            self.bytes
                .extend_from_slice(&(self.word as u64).to_le_bytes());
            self.word >>= 64;
            self.bits -= 64;
        }
    }

    /// Appends the last bits, to a whole byte.
    fn finish(self) {
        let left = self.bits.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(&self.word.to_le_bytes()[..left]);
    }
}

/// An encoded block. Its methods return `None` if a damaged length leads outside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    bytes: &'a [u8],
    pub(crate) first_row: u32,
    pub(crate) values: u32,
    /// Bits of a remainder.
    width: u32,
    /// The byte at which the remainders begin.
    remainders: usize,
}

impl<'a> Block<'a> {
    /// Reads the header of a block, which must not be empty.
    #[inline(always)]
    pub(crate) fn parse(bytes: &'a [u8], bucket_bits: u32) -> Option<Self> {
        let (first_row, values) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?);
        let width = 64 - bucket_bits;
        let remainders = HEADER + (BLOCK_BUCKETS as usize + values as usize).div_ceil(8);
        let block = Self {
            bytes,
            first_row,
            values,
            width,
            remainders,
        };
        (block.repeats_start() <= bytes.len()).then_some(block)
    }

    /// Length of the header and the counts, in bytes.
    #[inline(always)]
    pub(crate) fn counts_end(&self) -> usize {
        self.remainders
    }

    #[inline(always)]
    fn repeats_start(&self) -> usize {
        let bits = self.values as usize * self.width as usize;
        (self.remainders + bits.div_ceil(8)).next_multiple_of(UNIT)
    }

    /// The bit at which the remainder of a value begins, from the block's start.
    #[inline(always)]
    pub(crate) fn remainder_bit(&self, value: u32) -> usize {
        8 * self.remainders + value as usize * self.width as usize
    }

    /// The values of a bucket, by their numbers in the block.
    #[inline(always)]
    pub(crate) fn bucket(&self, bucket: u32) -> Option<Range<u32>> {
        let counts = self.bytes.get(HEADER..)?;
        let (start, first_bit) = match bucket.checked_sub(1) {
            None => (0, 0),
            Some(before) => {
                let zero = nth_zero(counts, before)?;
                (zero - before, zero + 1)
            }
        };
        let end = start + ones_from(counts, first_bit)?;
        (end <= self.values).then_some(start..end)
    }

    /// The remainder of a value: its bits after the bucket bits.
    #[inline(always)]
    pub(crate) fn remainder(&self, value: u32) -> Option<u64> {
        remainder(self.bytes, self.remainder_bit(value), self.width)
    }

    #[inline(always)]
    pub(crate) fn rows(&self, value: u32) -> Option<Range<u32>> {
        let repeats = &self.bytes[self.repeats_start()..];
        if repeats.is_empty() {
            let row = self.first_row.checked_add(value)?;
            return Some(row..row.checked_add(1)?);
        }
        let (mut row, mut rows) = (self.first_row.checked_add(value)?, 1u32);
        for at in (0..repeats.len()).step_by(8) {
            let (repeated, more) = (u32_at(repeats, at)?, u32_at(repeats, at + 4)?);
            if repeated > value {
                break;
            }
            if repeated == value {
                rows = rows.checked_add(more)?
            } else {
                row = row.checked_add(more)?
            }
        }
        Some(row..row.checked_add(rows)?)
    }

    /// Calls `each` with every value, in order, and its number of rows. `block` is the number of this block in the
    /// table.
    pub(crate) fn for_each(&self, block: u32, mut each: impl FnMut(u64, u32)) -> Option<()> {
        let repeats = &self.bytes[self.repeats_start()..];
        let mut repeats = repeats
            .chunks_exact(8)
            .map_while(|entry| Some((u32_at(entry, 0)?, u32_at(entry, 4)?)))
            .peekable();
        let counts = self.bytes.get(HEADER..self.remainders)?;
        let (mut bucket, mut value) = (0u64, 0u32);
        let leading = u64::from(block) << BLOCK_BITS;
        for (at, byte) in counts.iter().enumerate() {
            let mut byte = *byte;
            for _ in 0..(u64::from(BLOCK_BUCKETS) + u64::from(self.values) - 8 * at as u64).min(8) {
                match byte & 1 {
                    1 => {
                        let rows = repeats.next_if(|(repeated, _)| *repeated == value);
                        let rows = rows.map_or(1, |(_, more)| more.saturating_add(1));
                        let found = self.remainder(value)?;
                        each((leading | bucket) << self.width | found, rows);
                        value += 1;
                    }
                    _ => bucket += 1,
                }
                byte >>= 1;
            }
        }
        (value == self.values && bucket == u64::from(BLOCK_BUCKETS)).then_some(())
    }
}

/// The `width` bits from bit `bit` on; `width` is at most 57, so that they lie within 8 bytes.
#[inline(always)]
pub(crate) fn remainder(bytes: &[u8], bit: usize, width: u32) -> Option<u64> {
    let word = match u64_at(bytes, bit / 8) {
        Some(word) => word,
        None => last_word(bytes.get(bit / 8..)?),
    };
    Some(word >> (bit % 8) & ((1 << width) - 1))
}

/// The last bytes, fewer than 8, as a number.
#[cold]
fn last_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    u64::from_le_bytes(word)
}

/// The 64 bits from bit `64 * number` on; zeros after the end.
#[inline(always)]
fn word(bits: &[u8], number: usize) -> Option<u64> {
    match u64_at(bits, 8 * number) {
        Some(word) => Some(word),
        None => bits
            .get(8 * number..)
            .filter(|rest| !rest.is_empty())
            .map(last_word),
    }
}

/// The position of the zero with `n` zeros before it.
#[inline(always)]
fn nth_zero(bits: &[u8], n: u32) -> Option<u32> {
    let mut before = n;
    let mut number = 0;
    loop {
        let zeros = !word(bits, number)?;
        let count = zeros.count_ones();
        if before < count {
            return Some(64 * number as u32 + select(zeros, before));
        }
        before -= count;
        number += 1;
    }
}

/// The number of ones from bit `from` to the next zero.
#[inline(always)]
fn ones_from(bits: &[u8], from: u32) -> Option<u32> {
    let mut number = from as usize / 64;
    let within = (word(bits, number)? >> (from % 64)).trailing_ones();
    let mut ones = within;
    // A zero of the word ends the run, not one that the shift brought in.
    if within < 64 - from % 64 {
        return Some(ones);
    }
    loop {
        number += 1;
        let more = word(bits, number)?.trailing_ones();
        ones += more;
        if more < 64 {
            return Some(ones);
        }
    }
}

/// For each byte and n, the position of the one with n ones before it.
static SELECT_IN_BYTE: [[u8; 8]; 256] = select_in_byte();

const fn select_in_byte() -> [[u8; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut n) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][n] = bit as u8;
                n += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// The position of the one with `n` ones before it, in a word with more than `n` ones (Vigna, "Broadword implementation
/// of rank/select queries", 2008). `pdep` would be shorter, but takes hundreds of cycles on some processors.
#[inline(always)]
fn select(word: u64, n: u32) -> u32 {
    const BYTES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    // In each byte, the number of ones in it and in all lower bytes.
    let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(BYTES);
    // The top bit of a byte is set if that number is at most n: the wanted one is in a higher byte.
    let below = (((u64::from(n) * BYTES) | TOPS) - sums) & TOPS;
    let place = below.count_ones() * 8;
    // In a word with too few ones, `place` would be 64.
    let place = place.min(56);
    let before = (sums << 8 >> place) as u8;
    let within = n.wrapping_sub(before.into()) & 7;
    place + u32::from(SELECT_IN_BYTE[(word >> place & 0xff) as usize][within as usize])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn selected_ones_have_n_before_them(word: u64) {
            let ones = (0..64).filter(|bit| word >> bit & 1 == 1);
            for (n, bit) in ones.enumerate() {
                prop_assert_eq!(select(word, n as u32), bit);
            }
        }

        #[test]
        fn blocks_give_back_their_values(
            bucket_bits in 7_u32..=32,
            number in 0_u64..1 << 25,
            values in proptest::collection::btree_map(any::<(u8, u64)>(), 1_u32..4, 1..600),
            few in 0_u8..8,
        ) {
            let width = 64 - bucket_bits;
            let block = number & ((1 << (bucket_bits - BLOCK_BITS)) - 1);
            let values: BTreeMap<u64, u32> = values.into_iter().map(|((bucket, low), rows)| {
                // In some cases, few buckets have many values.
                let bucket = u64::from(bucket & 127) >> few;
                ((block << BLOCK_BITS | bucket) << width | low & ((1 << width) - 1), rows)
            }).collect();
            let mut encoder = Encoder::new(bucket_bits);
            for (value, rows) in &values {
                encoder.push(*value, *rows);
            }
            let mut bytes = Vec::new();
            encoder.encode(9, &mut bytes);
            prop_assert_eq!(bytes.len() % UNIT, 0);
            let parsed = Block::parse(&bytes, bucket_bits).unwrap();
            let mut all = Vec::new();
            parsed.for_each(block as u32, |value, rows| all.push((value, rows))).unwrap();
            prop_assert_eq!(&all, &values.clone().into_iter().collect::<Vec<_>>());
            let (mut at, mut row) = (0, 9);
            for bucket in 0..BLOCK_BUCKETS {
                let leading = (block << BLOCK_BITS | u64::from(bucket)) << width;
                let range = parsed.bucket(bucket).unwrap();
                prop_assert_eq!(range.start, at);
                for number in range {
                    let (value, rows) = all[number as usize];
                    prop_assert_eq!(leading | parsed.remainder(number).unwrap(), value);
                    prop_assert_eq!(parsed.rows(number).unwrap(), row..row + rows);
                    row += rows;
                    at += 1;
                }
            }
            prop_assert_eq!(at as usize, all.len());
        }

        #[test]
        fn forged_blocks_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            values in 0_u32..64,
            bucket_bits in 7_u32..=32,
        ) {
            let mut bytes = bytes;
            if let Some(length) = bytes.get_mut(4..8) {
                length.copy_from_slice(&values.to_le_bytes());
            }
            if let Some(block) = Block::parse(&bytes, bucket_bits) {
                for bucket in 0..BLOCK_BUCKETS {
                    for value in block.bucket(bucket).into_iter().flatten() {
                        let _ = (block.remainder(value), block.rows(value));
                    }
                }
                let _ = block.for_each(0, |_, _| {});
            }
        }
    }
}
