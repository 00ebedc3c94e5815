//! Fingerprints of long texts: their features are hashed several times, because all hashes together would take too much memory.
//!
//! A pass over the features counts a share of them, chosen by their hashes, and adds these to the sums. More passes keep fewer
//! distinct features at a time. The passes do not change the fingerprint: sums are the same in any order.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::Sum;
use crate::accumulate::{self, SameWeight, Sums};
use crate::weight::{Summed, Weight};

/// The distinct features that one pass may count: [`MOST_DISTINCT`], or a [`DISTINCT_SHARE`]th of the text's features if that is more.
/// A distinct feature takes about 40 bytes, so a pass takes less memory than the text, and the passes are few.
const MOST_DISTINCT: usize = 1 << 19;
const DISTINCT_SHARE: usize = 16;
/// The most passes over a text. If even these are too few, a pass counts more distinct features than [`MOST_DISTINCT`].
const MOST_PASSES: u32 = 1 << 16;
/// Features that are weighed at a time.
const PIECE: usize = 1 << 12;

impl Sum {
    /// [`Self::fingerprint`] of a text that has `len` features. `features` can be called again and again: each time it gives their
    /// hashes, some at a time, in the same order.
    pub(crate) fn fingerprint_of_long(
        &mut self,
        len: usize,
        features: &mut impl FnMut(&mut dyn FnMut(&[u64])),
    ) -> Option<u64> {
        self.long_fingerprint(len, features, MOST_DISTINCT.max(len / DISTINCT_SHARE))
    }

    fn long_fingerprint(
        &mut self,
        len: usize,
        features: &mut impl FnMut(&mut dyn FnMut(&[u64])),
        most_distinct: usize,
    ) -> Option<u64> {
        if let Summed::Occurrences = self.model.spec().weight.summed() {
            return self.sum_occurrences(features);
        }
        let mut passes = Passes::one();
        loop {
            match self.sum_distinct(passes, features, most_distinct) {
                Ok(fingerprint) => return fingerprint,
                Err(read) => passes.number = more_passes(passes.number, len, read),
            }
        }
    }

    /// The fingerprint of all occurrences, each with the weight of its feature.
    fn sum_occurrences(
        &mut self,
        features: &mut impl FnMut(&mut dyn FnMut(&[u64])),
    ) -> Option<u64> {
        let enough = self.model.spec().min_features as usize;
        let mut distinct = HashSet::new();
        let mut sums = Sums::ZERO;
        features(&mut |hashes: &[u64]| {
            for hash in hashes {
                if distinct.len() < enough {
                    distinct.insert(*hash);
                }
            }
            let (same, others) = match self.model.idf() {
                Some(idf) => {
                    idf.weights(hashes, &mut self.weights);
                    (SameWeight::default(), hashes)
                }
                None => {
                    self.weights.clear();
                    (SameWeight { hashes, weight: 1 }, &[][..])
                }
            };
            sums.add(&accumulate::weighted_sums(
                self.kernel,
                same,
                others,
                &self.weights,
            ));
        });
        (distinct.len() == enough).then(|| sums.fingerprint())
    }

    /// The fingerprint of the distinct features, each with its weight. If a pass has too many distinct features, returns the number
    /// of features that it read.
    fn sum_distinct(
        &mut self,
        passes: Passes,
        features: &mut impl FnMut(&mut dyn FnMut(&[u64])),
        most_distinct: usize,
    ) -> Result<Option<u64>, usize> {
        let most_distinct = if passes.number < MOST_PASSES {
            most_distinct
        } else {
            usize::MAX
        };
        let weight = self.model.spec().weight;
        let mut heaviest = 0;
        if weight == Weight::Levels {
            for pass in 0..passes.number {
                let count = passes.count(pass, features, most_distinct)?;
                self.weigh_counted(&count, |_, weights| {
                    heaviest = weights.iter().copied().fold(heaviest, u32::max);
                });
            }
        }
        let (mut sums, mut distinct) = (Sums::ZERO, 0);
        let kernel = self.kernel;
        for pass in 0..passes.number {
            let count = passes.count(pass, features, most_distinct)?;
            distinct += count.len();
            self.weigh_counted(&count, |hashes, weights| {
                if weight == Weight::Levels {
                    for weight in &mut *weights {
                        *weight = Weight::level(*weight, heaviest);
                    }
                }
                let none = SameWeight::default();
                sums.add(&accumulate::weighted_sums(kernel, none, hashes, weights));
            });
        }
        let is_enough = distinct >= self.model.spec().min_features as usize;
        Ok(is_enough.then(|| sums.fingerprint()))
    }

    /// Calls `each` with counted features and their weights, without levels, some at a time.
    fn weigh_counted(
        &mut self,
        count: &HashMap<u64, u32>,
        mut each: impl FnMut(&[u64], &mut [u32]),
    ) {
        let mut counted = count.iter();
        loop {
            self.count.distinct.clear();
            self.count.occurrences.clear();
            for (&hash, &occurrences) in counted.by_ref().take(PIECE) {
                self.count.distinct.push(hash);
                self.count.occurrences.push(occurrences);
            }
            if self.count.distinct.is_empty() {
                return;
            }
            self.weigh_without_levels();
            each(&self.count.distinct, &mut self.weights);
        }
    }
}

/// How the features are divided among passes.
#[derive(Debug, Clone, Copy)]
struct Passes {
    /// A power of two.
    number: u32,
    /// Mixes the hashes by chance, so that no text can be made whose features are all of one pass. It is odd.
    factor: u64,
}

impl Passes {
    /// One pass for all features.
    fn one() -> Self {
        Self {
            number: 1,
            factor: RandomState::new().hash_one(0) | 1,
        }
    }

    /// The number of the pass that counts a feature.
    fn pass_of(self, hash: u64) -> u32 {
        let bits = self.number.trailing_zeros();
        // Two shifts, because `bits` may be 0.
        (hash.wrapping_mul(self.factor) >> 1 >> (63 - bits)) as u32
    }

    /// Counts the features of a pass. If more than `most_distinct` of them are distinct, returns the number of features that were
    /// read.
    fn count(
        self,
        pass: u32,
        features: &mut impl FnMut(&mut dyn FnMut(&[u64])),
        most_distinct: usize,
    ) -> Result<HashMap<u64, u32>, usize> {
        let mut count: HashMap<u64, u32> = HashMap::new();
        let (mut read, mut is_full) = (0, false);
        features(&mut |hashes: &[u64]| {
            if is_full {
                return;
            }
            read += hashes.len();
            for &hash in hashes.iter().filter(|hash| self.pass_of(**hash) == pass) {
                let occurrences = count.entry(hash).or_insert(0_u32);
                *occurrences = occurrences.saturating_add(1);
            }
            is_full = count.len() > most_distinct;
        });
        if is_full { Err(read) } else { Ok(count) }
    }
}

/// The number of passes to try next, if one of `passes` counted too many distinct features in the first `read` of `len` features.
fn more_passes(passes: u32, len: usize, read: usize) -> u32 {
    let wanted = u64::from(passes) * len.div_ceil(read.max(1)) as u64;
    // At least twice as many.
    let wanted = wanted.clamp(u64::from(passes) + 1, u64::from(MOST_PASSES));
    wanted.next_power_of_two() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::Kernel;
    use crate::model::Model;
    use crate::spec::Spec;

    proptest! {
        #[test]
        fn fingerprints_of_long_texts_equal_those_of_others(
            hashes in proptest::collection::vec(prop_oneof![0u64..20, any::<u64>()], 0..500),
            most_distinct in 1_usize..200,
            piece in 1_usize..200,
            min_features in 0_u32..12,
        ) {
            for weight in [Weight::Tf, Weight::LogTf, Weight::SqrtTf, Weight::Set, Weight::Levels] {
                let spec = Spec { weight, min_features, ..Spec::default() };
                let mut sum = Sum::new(Model::plain(spec).unwrap(), Kernel::detect());
                let mut read = |each: &mut dyn FnMut(&[u64])| hashes.chunks(piece).for_each(each);
                let found = sum.long_fingerprint(hashes.len(), &mut read, most_distinct);
                prop_assert_eq!(found, sum.fingerprint(&hashes), "{}", weight);
            }
        }
    }

    #[test]
    fn passes_grow_with_the_text_and_have_a_limit() {
        assert_eq!(more_passes(1, 100, 100), 2);
        assert_eq!(more_passes(1, 100, 20), 8);
        assert_eq!(more_passes(4, 100, 99), 8);
        assert_eq!(more_passes(MOST_PASSES / 2, usize::MAX, 1), MOST_PASSES);
        // Each hash is in one pass, however many passes there are.
        let mut same = |each: &mut dyn FnMut(&[u64])| each(&[7, 8, 9]);
        let mut sum = Sum::new(
            Model::plain(Spec {
                min_features: 1,
                ..Spec::default()
            })
            .unwrap(),
            Kernel::detect(),
        );
        assert_eq!(
            sum.long_fingerprint(3, &mut same, 1),
            sum.fingerprint(&[7, 8, 9])
        );
    }
}
