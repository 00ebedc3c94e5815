//! The hashes of a text's features. Vectors hash the short ones, many at a time.

use crate::hash;
use crate::isa::{Isa, Kernel, Work};
use crate::text::Feature;
use crate::tokenize::TakeFeature;

/// Hashes the features of texts. Its buffers are reused from text to text.
#[derive(Debug, Clone)]
pub(crate) struct FeatureHasher {
    seed: u32,
    kernel: Kernel,
    batch: Box<Batch>,
    hashes: Vec<u64>,
}

impl FeatureHasher {
    /// Hashes features with [`hash::murmur3_low64`] under `seed`.
    pub(crate) fn new(seed: u32, kernel: Kernel) -> Self {
        Self {
            seed,
            kernel,
            batch: Box::default(),
            hashes: Vec::new(),
        }
    }

    /// Hashes the features that `extract` takes, in their order. Gives the hashes so far to `full` when there are more than `most`,
    /// and forgets them; the rest is [`Self::kept`].
    pub(crate) fn hash(
        &mut self,
        most: usize,
        extract: impl FnOnce(&mut FeatureHashes<'_>),
        full: &mut dyn FnMut(&[u64]),
    ) {
        self.batch.len = 0;
        self.hashes.clear();
        let mut hashes = FeatureHashes {
            hasher: self,
            most,
            full,
        };
        extract(&mut hashes);
        hashes.flush();
    }

    /// The hashes that were kept: of the last features of the text, or of all.
    pub(crate) fn kept(&self) -> &[u64] {
        &self.hashes
    }

    /// Frees the memory of the hashes.
    pub(crate) fn free(&mut self) {
        self.hashes = Vec::new();
    }
}

/// Takes the features of one text.
pub(crate) struct FeatureHashes<'h> {
    hasher: &'h mut FeatureHasher,
    most: usize,
    full: &'h mut dyn FnMut(&[u64]),
}

impl FeatureHashes<'_> {
    /// Hashes the features that wait.
    #[inline(never)]
    fn flush(&mut self) {
        let FeatureHasher {
            seed,
            kernel,
            batch,
            hashes,
        } = &mut *self.hasher;
        let start = hashes.len();
        hashes.resize(start + batch.len, 0);
        kernel.run(HashBatch {
            batch,
            seed: *seed,
            hashes: &mut hashes[start..],
        });
        batch.len = 0;
        if hashes.len() > self.most {
            (self.full)(hashes);
            hashes.clear();
        }
    }

    #[inline(never)]
    fn take_long(&mut self, feature: Feature<'_>) {
        self.flush();
        let hash = feature.hash(self.hasher.seed);
        self.hasher.hashes.push(hash);
    }
}

impl TakeFeature for FeatureHashes<'_> {
    #[inline(always)]
    fn take(&mut self, feature: Feature<'_>) {
        match feature.short() {
            Some((words, len)) => {
                if self.hasher.batch.push(words, len) {
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
            most in prop_oneof![0_usize..300, Just(usize::MAX)],
        ) {
            let mut text = Folded::default();
            text.fill(|out| out.push_str(&words.concat()));
            let expected: Vec<u64> =
                words.iter().map(|word| hash::murmur3_low64(word.as_bytes(), seed)).collect();
            for kernel in Kernel::available() {
                let mut hasher = FeatureHasher::new(seed, kernel);
                // The second time, the buffer is used again.
                for _ in 0..2 {
                    let mut found = Vec::new();
                    let extract = |hashes: &mut FeatureHashes<'_>| {
                        let mut start = 0;
                        for word in &words {
                            hashes.take(text.feature(start..start + word.len()));
                            start += word.len();
                        }
                    };
                    hasher.hash(most, extract, &mut |hashes| {
                        assert!(hashes.len() > most);
                        found.extend_from_slice(hashes);
                    });
                    assert!(hasher.kept().len() <= most);
                    found.extend_from_slice(hasher.kept());
                    prop_assert_eq!(&found, &expected, "{}", kernel.name());
                }
            }
        }
    }
}
