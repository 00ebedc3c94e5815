//! Indexing without bounds checks: [`ByUpperBits`] and [`BallMap`], whose indexes are in bounds by
//! construction.

use crate::ball::{BIT_INDEX_BITS, WORD_BALLS};

/// A slice with one element for each value of the upper bits of a `u16`.
#[derive(Debug)]
pub(crate) struct ByUpperBits<'a, T> {
    slice: &'a [T],
    /// How many lower bits of a value are ignored.
    unused: u32,
}

impl<'a, T> ByUpperBits<'a, T> {
    /// Indexes `slice` by the upper `bits` bits.
    ///
    /// # Panics
    /// When `bits` is not from 1 to 16, or `slice` does not have 2^`bits` elements.
    #[inline(always)]
    pub(crate) fn new(slice: &'a [T], bits: u32) -> Self {
        assert!(
            (1..=u16::BITS).contains(&bits) && slice.len() == 1 << bits,
            "an element for each value of the bits"
        );
        Self {
            slice,
            unused: u16::BITS - bits,
        }
    }

    /// The slice itself.
    #[inline(always)]
    pub(crate) fn slice(&self) -> &'a [T] {
        self.slice
    }

    /// The index of the element of `value`.
    #[inline(always)]
    pub(crate) fn index(&self, value: u16) -> usize {
        usize::from(value >> self.unused)
    }

    /// The element of `value`.
    #[inline(always)]
    pub(crate) fn get(&self, value: u16) -> &'a T {
        // SAFETY: a `u16` without its lower 16 - `bits` bits is below 2^`bits`, the length that `new` checks.
        unsafe { self.slice.get_unchecked(self.index(value)) }
    }
}

/// A bitmap with a bit for each value of `HIGH` + 6 bits, in which Hamming balls are marked.
///
/// A value stands in the upper `HIGH` + 6 bits of a `u32`: the upper `HIGH` select a word, the next 6 a bit of it.
#[derive(Debug)]
pub(crate) struct BallMap<'a, const HIGH: u32> {
    words: &'a mut [u64],
}

impl<'a, const HIGH: u32> BallMap<'a, HIGH> {
    /// An empty bitmap in the first 2^`HIGH` of `words`.
    ///
    /// # Panics
    /// When there are fewer words.
    #[inline(always)]
    pub(crate) fn cleared(words: &'a mut [u64]) -> Self {
        let words = &mut words[..1 << HIGH];
        words.fill(0);
        Self { words }
    }

    /// Marks every value within 2 bits of `value`.
    #[inline(always)]
    pub(crate) fn mark_within_2(&mut self, value: u32) {
        // Loops over indexes: iterators of closures compile to calls here, and took three times as long.
        let (word, bit) = Self::place(value);
        let (alone, ball) = (1 << bit, WORD_BALLS[0][bit]);
        self.mark(word, WORD_BALLS[1][bit]);
        let mut one = 0;
        while one < HIGH {
            self.mark(word ^ 1 << one, ball);
            let mut other = 0;
            while other < one {
                self.mark(word ^ 1 << one ^ 1 << other, alone);
                other += 1;
            }
            one += 1;
        }
    }

    /// Marks every value within 1 bit of `value`.
    #[inline(always)]
    pub(crate) fn mark_within_1(&mut self, value: u32) {
        let (word, bit) = Self::place(value);
        self.mark(word, WORD_BALLS[0][bit]);
        let mut one = 0;
        while one < HIGH {
            self.mark(word ^ 1 << one, 1 << bit);
            one += 1;
        }
    }

    /// Marks `value` itself.
    #[inline(always)]
    pub(crate) fn mark_exactly(&mut self, value: u32) {
        let (word, bit) = Self::place(value);
        self.mark(word, 1 << bit);
    }

    /// The index of the word of `value`, below 2^`HIGH`, and that of its bit in the word.
    #[inline(always)]
    fn place(value: u32) -> (usize, usize) {
        let value = value >> (32 - HIGH - BIT_INDEX_BITS);
        ((value >> BIT_INDEX_BITS) as usize, (value % 64) as usize)
    }

    /// Sets the bits of `marks` in the word with index `word`. Callers take the index from
    /// [`Self::place`], and flip none but its `HIGH` bits.
    #[inline(always)]
    fn mark(&mut self, word: usize, marks: u64) {
        debug_assert!(self.words.len() == 1 << HIGH && word < self.words.len());
        // SAFETY: `place` returns an index of `HIGH` bits, callers flip only those, and `cleared`
        // keeps 2^`HIGH` words.
        unsafe { *self.words.get_unchecked_mut(word) |= marks };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_upper_bits() {
        let elements: Vec<u32> = (0..16).collect();
        let by_bits = ByUpperBits::new(&elements, 4);
        for value in [0, 1, 0x0fff, 0x1000, 0x7abc, u16::MAX] {
            assert_eq!(*by_bits.get(value), u32::from(value >> 12));
        }
    }

    #[test]
    fn marks_are_the_balls() {
        const HIGH: u32 = 7;
        let bits = HIGH + BIT_INDEX_BITS;
        for value in [0u32, 1, 0x1234, 0x1fff] {
            for radius in 0..=2 {
                let mut words = [u64::MAX; 1 << HIGH];
                let mut map = BallMap::<HIGH>::cleared(&mut words);
                let upper = value << (32 - bits);
                match radius {
                    0 => map.mark_exactly(upper),
                    1 => map.mark_within_1(upper),
                    _ => map.mark_within_2(upper),
                }
                for other in 0..1u32 << bits {
                    let marked = words[other as usize / 64] >> (other % 64) & 1 == 1;
                    assert_eq!(marked, (other ^ value).count_ones() <= radius);
                }
            }
        }
    }
}
