//! A Huffman code of the numbers from 0 to 63.

/// Bits of the longest code word: all of them are decoded by one access to a table that stays in the cache.
pub const MAX_BITS: u32 = 12;

/// Numbers that have code words.
const SYMBOLS: usize = 64;

/// The code. Words are written lowest bit first.
#[derive(Debug)]
pub struct Code {
    /// For each number, the word and its bits; no bits if the number does not occur.
    words: [(u16, u8); SYMBOLS],
    /// For each `MAX_BITS` bits, the number whose word they begin with, and the bits of the word.
    decoded: Vec<(u8, u8)>,
}

impl Code {
    /// The shortest code for numbers that occur as often as `counts` says, among those with words of at most [`MAX_BITS`] bits.
    pub fn new(counts: &[u64; SYMBOLS]) -> Self {
        let bits = word_bits(counts);
        let mut order: Vec<usize> = (0..SYMBOLS).filter(|&symbol| bits[symbol] > 0).collect();
        order.sort_by_key(|&symbol| bits[symbol]);
        let mut words = [(0, 0); SYMBOLS];
        let mut decoded = vec![(0, 0); 1 << MAX_BITS];
        // The first word of each length follows the last of the length before (a canonical code).
        let mut next = 0u32;
        for symbol in order {
            let length = u32::from(bits[symbol]);
            // `next` counts in the longest words.
            let word = next.reverse_bits() >> (32 - MAX_BITS);
            words[symbol] = (word as u16, bits[symbol]);
            for place in (word as usize..decoded.len()).step_by(1 << length) {
                decoded[place] = (symbol as u8, bits[symbol]);
            }
            next += 1 << (MAX_BITS - length);
        }
        Self { words, decoded }
    }

    /// The word of a number, and its bits.
    #[inline(always)]
    pub fn word(&self, number: u32) -> (u64, u32) {
        let (word, bits) = self.words[number as usize];
        (word.into(), bits.into())
    }

    /// The number whose word `bits` begins with, and the bits of the word.
    #[inline(always)]
    pub fn decode(&self, bits: u64) -> (u32, u32) {
        let (number, length) = self.decoded[bits as usize & ((1 << MAX_BITS) - 1)];
        (number.into(), length.into())
    }
}

/// The lengths of an optimal code with words of at most [`MAX_BITS`] bits, by the package-merge algorithm (Larmore and Hirschberg
/// 1990). Numbers that do not occur have none.
fn word_bits(counts: &[u64; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut bits = [0; SYMBOLS];
    let mut leaves: Vec<(u64, Vec<usize>)> = (0..SYMBOLS)
        .filter(|&symbol| counts[symbol] > 0)
        .map(|symbol| (counts[symbol], vec![symbol]))
        .collect();
    if let [(_, only)] = &leaves[..] {
        bits[only[0]] = 1;
        return bits;
    }
    leaves.sort();
    let mut packages = leaves.clone();
    for _ in 1..MAX_BITS {
        let pairs = packages.as_chunks::<2>().0.iter();
        let mut merged: Vec<_> = pairs
            .map(|[a, b]| (a.0 + b.0, [&a.1[..], &b.1[..]].concat()))
            .collect();
        merged.extend_from_slice(&leaves);
        merged.sort();
        packages = merged;
    }
    let chosen = packages.iter().take((2 * leaves.len()).saturating_sub(2));
    for symbol in chosen.flat_map(|(_, symbols)| symbols) {
        bits[*symbol] += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bits of all words together, by Huffman's own algorithm without a limit.
    fn unlimited_total(counts: &[u64]) -> u64 {
        let mut weights: Vec<u64> = counts.iter().copied().filter(|&count| count > 0).collect();
        let mut total = 0;
        while weights.len() > 1 {
            weights.sort_unstable_by(|a, b| b.cmp(a));
            let joined = weights.pop().unwrap_or(0) + weights.pop().unwrap_or(0);
            total += joined;
            weights.push(joined);
        }
        total
    }

    proptest! {
        #[test]
        fn words_are_told_apart_and_short(
            counts in proptest::collection::vec((0_u64..1000, 0_u32..30, any::<bool>()), SYMBOLS),
        ) {
            let counts: [u64; SYMBOLS] = std::array::from_fn(|symbol| {
                let (count, shift, occurs) = counts[symbol];
                if occurs { (count << shift).max(1) } else { 0 }
            });
            let code = Code::new(&counts);
            let mut total = 0;
            for symbol in (0..SYMBOLS).filter(|&symbol| counts[symbol] > 0) {
                let (word, bits) = code.word(symbol as u32);
                prop_assert!((1..=MAX_BITS).contains(&bits));
                for rest in [0, u64::MAX] {
                    prop_assert_eq!(code.decode(word | rest << bits), (symbol as u32, bits));
                }
                total += counts[symbol] * u64::from(bits);
            }
            let least = unlimited_total(&counts);
            prop_assert!(total >= least);
        }

        #[test]
        fn the_limit_costs_nothing_where_no_word_reaches_it(counts in proptest::collection::vec(100_u64..200, SYMBOLS)) {
            let counts: [u64; SYMBOLS] = std::array::from_fn(|symbol| counts[symbol]);
            let bits = word_bits(&counts);
            let total = counts.iter().zip(bits).map(|(count, bits)| count * u64::from(bits)).sum::<u64>();
            prop_assert_eq!(total, unlimited_total(&counts));
        }
    }
}
