//! The hashes of a text's features. Vectors hash the short ones, many at a time.

use crate::hash;
use crate::isa::{Isa, Kernel, Work};
use crate::text::Feature;
use crate::tokenize::TakeFeature;

/// Hashes features, in their order. Its buffers are reused from text to text.
#[derive(Debug, Clone)]
pub(crate) struct FeatureHashes {
    seed: u32,
    kernel: Kernel,
    hashes: Vec<u64>,
    batch: Box<Batch>,
}

impl FeatureHashes {
    /// Hashes features with [`hash::murmur3_low64`] under `seed`.
    pub(crate) fn new(seed: u32, kernel: Kernel) -> Self {
        Self {
            seed,
            kernel,
            hashes: Vec::new(),
            batch: Box::default(),
        }
    }

    /// Forgets the features of earlier texts.
    pub(crate) fn clear(&mut self) {
        self.hashes.clear();
        self.batch.len = 0;
    }

    /// The hashes of all features since the last [`Self::clear`].
    pub(crate) fn finish(&mut self) -> &[u64] {
        self.flush();
        &self.hashes
    }

    /// The number of features. Call [`Self::finish`] first.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Hashes the features that wait.
    #[inline(never)]
    fn flush(&mut self) {
        let start = self.hashes.len();
        self.hashes.resize(start + self.batch.len, 0);
        self.kernel.run(HashBatch {
            batch: &self.batch,
            seed: self.seed,
            hashes: &mut self.hashes[start..],
        });
        self.batch.len = 0;
    }

    #[inline(never)]
    fn take_long(&mut self, feature: Feature<'_>) {
        self.flush();
        self.hashes.push(feature.hash(self.seed));
    }
}

impl TakeFeature for FeatureHashes {
    #[inline(always)]
    fn take(&mut self, feature: Feature<'_>) {
        match feature.short() {
            Some((words, len)) => {
                if self.batch.push(words, len) {
                    self.flush();
                }
            }
            None => self.take_long(feature),
        }
    }
}

/// The greatest number of features of a batch: so few that they stay in the nearest cache.
const BATCH: usize = 128;

/// Features of fewer than 16 bytes that wait to be hashed.
#[derive(Debug, Clone)]
struct Batch {
    /// The first eight bytes of each as a little-endian word, the missing ones zero.
    low: [u64; BATCH],
    /// The next eight bytes.
    high: [u64; BATCH],
    /// The number of bytes of each.
    lengths: [u64; BATCH],
    len: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            low: [0; BATCH],
            high: [0; BATCH],
            lengths: [0; BATCH],
            len: 0,
        }
    }
}

impl Batch {
    /// Adds a feature, as [`Feature::short`] gives it. Returns whether the batch is full.
    #[inline(always)]
    fn push(&mut self, [low, high]: [u64; 2], len: u64) -> bool {
        let at = self.len % BATCH;
        self.low[at] = low;
        self.high[at] = high;
        self.lengths[at] = len;
        self.len = at + 1;
        self.len == BATCH
    }
}

/// Hashes the first features of a batch, one for each element of `hashes`.
struct HashBatch<'a> {
    batch: &'a Batch,
    seed: u32,
    hashes: &'a mut [u64],
}

impl Work for HashBatch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LANES: usize>(self, _: impl Isa) {
        let Batch {
            low, high, lengths, ..
        } = self.batch;
        let words = low.iter().zip(high).zip(lengths);
        for (hash, ((&low, &high), &len)) in self.hashes.iter_mut().zip(words) {
            *hash = hash::murmur3_low64_short([low, high], len, self.seed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Folded;

    proptest! {
        #[test]
        fn hashes_are_those_of_each_feature(
            words in proptest::collection::vec("[a-z]{0,20}", 0..300),
            seed: u32,
        ) {
            let mut text = Folded::default();
            text.fill(|out| out.push_str(&words.concat()));
            let expected: Vec<u64> =
                words.iter().map(|word| hash::murmur3_low64(word.as_bytes(), seed)).collect();
            for kernel in Kernel::available() {
                let mut hashes = FeatureHashes::new(seed, kernel);
                // The second time, the buffers are used again.
                for _ in 0..2 {
                    hashes.clear();
                    let mut start = 0;
                    for word in &words {
                        hashes.take(text.feature(start..start + word.len()));
                        start += word.len();
                    }
                    prop_assert_eq!(hashes.finish(), &*expected, "{}", kernel.name());
                    prop_assert_eq!(hashes.len(), expected.len());
                }
            }
        }
    }
}
