//! A sorted table, compressed in blocks as the paper says.
//!
//! ```text
//! first value of the block   64 bits
//! each further value         the code word of h, the most significant bit in which it differs from the one before;
//!                            then the h bits below, of the difference
//! ```
//!
//! A block is full when the next value does not fit. Its key is its last value; the keys of all blocks are held beside them.

use hamming::prefetch::prefetch_l1;

use super::code::Code;

/// Bits of a word of the table.
const WORD: usize = 64;

/// A compressed table of distinct values.
#[derive(Debug)]
pub struct Table {
    code: Code,
    /// The blocks, each of `block_words` words, lowest bit first, and one word more, so that two can be read anywhere.
    words: Vec<u64>,
    block_words: usize,
    /// The last value of each block.
    keys: Vec<u64>,
}

impl Table {
    /// Compresses values, which ascend, into blocks of `block_bytes` bytes: a multiple of 8, and at least 24.
    pub fn new(values: &[u64], block_bytes: usize) -> Self {
        assert!(block_bytes >= 24 && block_bytes.is_multiple_of(8));
        let mut counts = [0; 64];
        for pair in values.windows(2) {
            counts[(pair[0] ^ pair[1]).ilog2() as usize] += 1;
        }
        let code = Code::new(&counts);
        let (block_words, mut words, mut keys) = (block_bytes / 8, Vec::new(), Vec::new());
        // Where the next bits go, and where the block ends.
        let (mut bit, mut end) = (0, 0);
        let mut last = None;
        for &value in values {
            if let Some(last) = last {
                let difference: u64 = value ^ last;
                let h = difference.ilog2();
                let (word, length) = code.word(h);
                let below = difference & ((1 << h) - 1);
                if bit + (length + h) as usize <= end {
                    put(&mut words, bit, word);
                    put(&mut words, bit + length as usize, below);
                    bit += (length + h) as usize;
                } else {
                    keys.push(last);
                    end = 0;
                }
            }
            if end == 0 {
                bit = words.len() * WORD;
                words.resize(words.len() + block_words, 0);
                end = words.len() * WORD;
                put(&mut words, bit, value);
                bit += WORD;
            }
            last = Some(value);
        }
        keys.extend(last);
        words.push(0);
        Self {
            code,
            words,
            block_words,
            keys,
        }
    }

    /// Bytes of the blocks and the keys.
    pub fn bytes(&self) -> usize {
        8 * (self.words.len() + self.keys.len())
    }

    /// Searches by interpolation for the first block with a value of at least `value`. If all values are smaller, returns
    /// the number of blocks.
    pub fn block_of(&self, value: u64) -> usize {
        let keys = &self.keys;
        let guess = ((u128::from(value) * keys.len() as u128) >> 64) as usize;
        let mut step = 8;
        let range = match keys.get(guess) {
            None => guess..guess,
            Some(&key) if key < value => {
                let mut low = guess + 1;
                loop {
                    let high = low + step;
                    if keys.get(high).is_none_or(|&key| key >= value) {
                        break low..high.min(keys.len());
                    }
                    (low, step) = (high + 1, 2 * step);
                }
            }
            Some(_) => {
                let mut high = guess;
                loop {
                    let low = high.saturating_sub(step);
                    if low == 0 || keys[low] < value {
                        break low..high;
                    }
                    (high, step) = (low, 2 * step);
                }
            }
        };
        range.start + keys[range].partition_point(|&key| key < value)
    }

    pub fn blocks(&self) -> usize {
        self.keys.len()
    }

    /// Prefetches the start of a block. What follows, the processor prefetches by itself.
    #[inline(always)]
    pub fn prefetch(&self, block: usize) {
        let start = block * self.block_words;
        prefetch_l1(&self.words, start);
        prefetch_l1(&self.words, start + 8);
    }

    /// The values from the first of a block on.
    #[inline(always)]
    pub fn cursor(&self, block: usize) -> Cursor<'_> {
        let start = block * self.block_words;
        Cursor {
            table: self,
            block,
            bit: (start + 1) * WORD,
            value: self.words[start],
            key: self.keys[block],
        }
    }

    /// 64 bits from bit `bit` on.
    #[inline(always)]
    fn bits(&self, bit: usize) -> u64 {
        let (word, within) = (bit / WORD, bit % WORD);
        self.words[word] >> within | self.words[word + 1] << 1 << (WORD - 1 - within)
    }
}

/// Writes the ones of `number` from bit `bit` on. Bits beyond the last word must be zeros.
fn put(words: &mut [u64], bit: usize, number: u64) {
    if number == 0 {
        // The bit may lie behind the last word.
        return;
    }
    let (word, within) = (bit / WORD, bit % WORD);
    words[word] |= number << within;
    let rest = number >> 1 >> (WORD - 1 - within);
    if rest != 0 {
        words[word + 1] |= rest;
    }
}

/// A value of a table, and its place.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    table: &'a Table,
    block: usize,
    /// The bit after the value.
    bit: usize,
    pub value: u64,
    /// The last value of the block.
    key: u64,
}

impl Cursor<'_> {
    /// The value's block.
    #[inline(always)]
    pub fn block(&self) -> usize {
        self.block
    }

    /// Goes on to the next value; returns false after the last.
    #[inline(always)]
    pub fn advance(&mut self) -> bool {
        let table = self.table;
        if self.value == self.key {
            if self.block + 1 == table.keys.len() {
                return false;
            }
            *self = table.cursor(self.block + 1);
            return true;
        }
        let bits = table.bits(self.bit);
        let (h, length) = table.code.decode(bits);
        let below = if length + h <= WORD as u32 {
            bits >> length
        } else {
            table.bits(self.bit + length as usize)
        };
        self.value ^= 1 << h | below & ((1 << h) - 1);
        self.bit += (length + h) as usize;
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Distinct values: random ones, and some close to each other.
    pub(crate) fn any_values() -> impl Strategy<Value = Vec<u64>> {
        let each = (any::<u64>(), 0_u64..300, any::<bool>());
        proptest::collection::vec(each, 1..400).prop_map(|drawn| {
            let each = |(random, small, dense)| if dense { small } else { random };
            let values: BTreeSet<u64> = drawn.into_iter().map(each).collect();
            values.into_iter().collect()
        })
    }

    proptest! {
        #[test]
        fn tables_give_back_their_values(
            values in any_values(),
            block in 3_usize..40,
            wanted: u64,
            near in 0_u64..400,
        ) {
            let table = Table::new(&values, block * 8);
            let mut cursor = table.cursor(0);
            let mut read = vec![cursor.value];
            while cursor.advance() {
                read.push(cursor.value);
            }
            prop_assert_eq!(&read, &values);
            for wanted in [wanted, near, 0, u64::MAX] {
                let block = table.block_of(wanted);
                if block > 0 {
                    let mut last = table.cursor(block - 1);
                    while last.block() == block - 1 {
                        prop_assert!(last.value < wanted);
                        if !last.advance() {
                            break;
                        }
                    }
                }
                let first = values.iter().find(|value| **value >= wanted);
                prop_assert_eq!(first.is_some(), block < table.blocks());
            }
        }
    }
}
