//! Counts of the texts that map 1 fingerprints.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use simhash::reliable_length::LENGTHS;

/// Numbers of texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCounts {
    /// Texts that are not UTF-8.
    pub invalid_utf8: u64,
    /// Texts by the number of their features.
    pub shorter: ShorterTexts,
}

/// For each of [`LENGTHS`], the number of texts that are shorter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShorterTexts([u64; LENGTHS.len()]);

impl ShorterTexts {
    /// Counts a text of this length.
    pub fn add(&mut self, length: usize) {
        let first = LENGTHS.partition_point(|&bound| bound as usize <= length);
        for count in &mut self.0[first..] {
            *count += 1;
        }
    }

    /// The number of texts that are shorter than `length`; `None` if that is not one of [`LENGTHS`].
    #[must_use]
    pub fn than(&self, length: u32) -> Option<u64> {
        let at = LENGTHS.iter().position(|&bound| bound == length)?;
        Some(self.0[at])
    }
}

/// [`TextCounts`] that tasks share.
#[derive(Debug, Default)]
pub struct TextCounters {
    invalid_utf8: AtomicU64,
    shorter: [AtomicU64; LENGTHS.len()],
}

impl TextCounters {
    /// Adds numbers of texts.
    pub fn add(&self, counts: &TextCounts) {
        self.invalid_utf8
            .fetch_add(counts.invalid_utf8, Ordering::Relaxed);
        for (counter, number) in self.shorter.iter().zip(counts.shorter.0) {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// The numbers so far.
    #[must_use]
    pub fn counts(&self) -> TextCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TextCounts {
            invalid_utf8: load(&self.invalid_utf8),
            shorter: ShorterTexts(self.shorter.each_ref().map(load)),
        }
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
        let counters = TextCounters::default();
        counters.add(&counts);
        assert_eq!(counters.counts(), counts);
        counters.add(&counts);
        assert_eq!(counters.counts().invalid_utf8, 6);
        assert_eq!(counters.counts().shorter.than(5), Some(4));
    }
}
