//! A folded text and its features, which are slices of it.

use std::ops::Range;

use crate::hash;
use crate::plain::Window;

/// The number of zero bytes behind the end of a text: a [`Window`] can begin there.
pub(crate) const PADDING: usize = size_of::<Window>();

const ZEROS: &str = match str::from_utf8(&[0; PADDING]) {
    Ok(zeros) => zeros,
    Err(_) => unreachable!(),
};

/// A folded text, padded with zeros so that 16 bytes can be read from the start of every feature.
/// Its buffer is reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Folded {
    /// The text and [`PADDING`] zeros.
    padded: String,
    len: usize,
}

impl Folded {
    /// Replaces the text by what `write` appends to an empty string.
    pub(crate) fn fill(&mut self, write: impl FnOnce(&mut String)) {
        self.padded.clear();
        write(&mut self.padded);
        self.len = self.padded.len();
        self.padded.push_str(ZEROS);
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.padded[..self.len]
    }

    /// The number of bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes from `at` on, which is at most the end of the text.
    #[inline(always)]
    pub(crate) fn window(&self, at: usize) -> &Window {
        match self.padded.as_bytes()[at..].first_chunk() {
            Some(window) => window,
            None => unreachable!(),
        }
    }

    /// The text's bytes, and [`PADDING`] zeros behind them.
    pub(crate) fn padded(&self) -> &[u8] {
        self.padded.as_bytes()
    }

    /// The feature that consists of the bytes at `range`.
    #[inline(always)]
    pub(crate) fn feature(&self, range: Range<usize>) -> Feature<'_> {
        debug_assert!(range.end <= self.len);
        Feature {
            padded: &self.padded,
            start: range.start,
            len: range.end - range.start,
        }
    }
}

/// One feature: a slice of a folded text.
#[derive(Debug, Clone, Copy)]
pub struct Feature<'a> {
    /// The padded text: at least 16 bytes follow `start`, whatever `len` is.
    padded: &'a str,
    start: usize,
    len: usize,
}

impl<'a> Feature<'a> {
    /// The feature's text.
    #[must_use]
    pub fn text(&self) -> &'a str {
        &self.padded[self.start..self.start + self.len]
    }

    /// The feature's bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        &self.padded.as_bytes()[self.start..self.start + self.len]
    }

    /// The feature's hash.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, seed: u32) -> u64 {
        match self.short() {
            Some((words, len)) => hash::murmur3_low64_short(words, len, seed),
            None => hash::murmur3_low64(self.bytes(), seed),
        }
    }

    /// A feature of fewer than 16 bytes as two little-endian words, the missing bytes zero, and its number of bytes.
    #[inline(always)]
    pub(crate) fn short(&self) -> Option<([u64; 2], u64)> {
        /// `KEEP[len]` selects the lowest `len` of 16 bytes.
        const KEEP: [[u64; 2]; 16] = {
            let mut masks = [[0; 2]; 16];
            let mut len = 0;
            while len < 16 {
                let mask = (1u128 << (8 * len)) - 1;
                masks[len] = [mask as u64, (mask >> 64) as u64];
                len += 1;
            }
            masks
        };
        let bytes = self.padded.as_bytes()[self.start..].first_chunk::<16>()?;
        let [low, high] = KEEP.get(self.len)?;
        let word = u128::from_le_bytes(*bytes);
        Some((
            [word as u64 & low, (word >> 64) as u64 & high],
            self.len as u64,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_hash_as_their_bytes_do() {
        let mut folded = Folded::default();
        let text = "abcdefghijklmnopqrstuvwxyz近似重复的网页";
        folded.fill(|out| out.push_str(text));
        for start in 0..26 {
            for end in (start..26).chain([text.len()]) {
                let feature = folded.feature(start..end);
                for seed in [0, 7] {
                    let expected = hash::murmur3_low64(&text.as_bytes()[start..end], seed);
                    assert_eq!(feature.hash(seed), expected);
                }
            }
        }
    }
}
