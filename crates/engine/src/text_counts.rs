//! Counts of the texts that map 1 fingerprints.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use simhash::reliable_length::LENGTHS;
use streams::locked;

/// Numbers of texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCounts {
    /// Texts that are not UTF-8.
    pub invalid_utf8: u64,
    /// Texts by the number of their features.
    pub shorter: ShorterTexts,
    /// Texts that are mostly digits: number lists, hex dumps, filled-in forms.
    pub numbers: u64,
    /// Texts of more than [`LONG`] bytes.
    pub long: u64,
}

/// The fingerprints of unrelated texts of more bytes than this can be near, for all of them have the common words.
pub const LONG: usize = 300_000;
/// Bytes of a text that say whether it is mostly digits.
const LOOKED_AT: usize = 512;
/// Fewer letters and digits do not say it.
const LEAST_SIGNS: usize = 200;

impl TextCounts {
    /// Counts a text by what it consists of.
    pub fn add_kind(&mut self, text: &str) {
        let start = &text.as_bytes()[..text.len().min(LOOKED_AT)];
        let digits = count(start, |byte| byte.wrapping_sub(b'0') < 10);
        let letters = count(start, |byte| {
            byte >= 0x80 || (byte | 0x20).wrapping_sub(b'a') < 26
        });
        self.numbers += u64::from(digits + letters >= LEAST_SIGNS && digits > letters);
        self.long += u64::from(text.len() > LONG);
    }
}

/// The bytes for which `is` is true. Sums of 8 bits become vectors.
fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    let chunks = bytes.chunks(255);
    let of_chunk = |chunk: &[u8]| chunk.iter().map(|&byte| u8::from(is(byte))).sum::<u8>();
    chunks.map(|chunk| usize::from(of_chunk(chunk))).sum()
}

/// For each of [`LENGTHS`], the number of texts that are shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShorterTexts([u64; LENGTHS.len()]);

impl ShorterTexts {
    pub fn add(&mut self, length: usize) {
        let first = LENGTHS.partition_point(|&bound| bound as usize <= length);
        for count in &mut self.0[first..] {
            *count += 1;
        }
    }

    /// The number of texts that are shorter than `length`; `None` if that is not one of [`LENGTHS`].
    pub fn than(&self, length: u32) -> Option<u64> {
        let at = LENGTHS.iter().position(|&bound| bound == length)?;
        Some(self.0[at])
    }
}

/// [`TextCounts`] that tasks share.
#[derive(Debug, Default)]
pub struct TextCounters(Mutex<TextCounts>);

impl TextCounters {
    /// Adds numbers of texts.
    pub fn add(&self, counts: &TextCounts) {
        let mut sums = locked(&self.0);
        sums.invalid_utf8 += counts.invalid_utf8;
        sums.numbers += counts.numbers;
        sums.long += counts.long;
        for (sum, number) in sums.shorter.0.iter_mut().zip(counts.shorter.0) {
            *sum += number;
        }
    }

    /// The numbers so far.
    pub fn counts(&self) -> TextCounts {
        *locked(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_below_each_length() {
        let mut counts = TextCounts {
            invalid_utf8: 3,
            ..TextCounts::default()
        };
        let lengths = [0, 4, 5, 5, 19, 20, 799, 800, 1_000_000];
        for length in lengths {
            counts.shorter.add(length);
        }
        for bound in LENGTHS {
            let shorter = lengths.iter().filter(|length| **length < bound as usize);
            assert_eq!(counts.shorter.than(bound), Some(shorter.count() as u64));
        }
        assert_eq!(counts.shorter.than(6), None);
        let numbers: String = (0..99).map(|n| format!("{n:04} ")).collect();
        for (text, is_numbers) in [
            (&*numbers, true),
            (&*format!("{}{numbers}", "word ".repeat(200)), false),
            ("2026", false),
            (&*"é".repeat(LONG), false),
        ] {
            let before = counts.numbers;
            counts.add_kind(text);
            assert_eq!(counts.numbers - before, u64::from(is_numbers));
        }
        assert_eq!(counts.long, 1);
        let counters = TextCounters::default();
        counters.add(&counts);
        assert_eq!(counters.counts(), counts);
        counters.add(&counts);
        assert_eq!(counters.counts().invalid_utf8, 6);
        assert_eq!(counters.counts().shorter.than(5), Some(4));
    }
}
