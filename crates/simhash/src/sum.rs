//! Sums a text's hashed features into its fingerprint, each with its weight, with buffers that are reused from text to
//! text.

mod long;

use crate::accumulate::{self, SameWeight};
use crate::count::Count;
use crate::isa::Kernel;
use crate::model::Model;
use crate::weight::{Summed, Weight};

/// Weighs and sums hashed features under one [`Model`].
#[derive(Debug, Clone)]
pub(crate) struct Sum {
    model: Model,
    kernel: Kernel,
    count: Count,
    /// The weights of features that occur 0 to 15 times, without idf.
    weights_of_few: [u32; 16],
    weights: Vec<u32>,
    /// The features that occur once, and those that occur more often.
    once: Vec<u64>,
    often: Vec<u64>,
}

impl Sum {
    pub(crate) fn new(model: Model, kernel: Kernel) -> Self {
        let weight = model.spec().weight;
        Self {
            model,
            kernel,
            count: Count::default(),
            weights_of_few: std::array::from_fn(|tf| weight.weigh(tf as u32)),
            weights: Vec::new(),
            once: Vec::new(),
            often: Vec::new(),
        }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// The fingerprint of a text whose features have these hashes; `None` if too few of them are distinct.
    pub(crate) fn fingerprint(&mut self, hashes: &[u64]) -> Option<u64> {
        let (spec, kernel) = (self.model.spec(), self.kernel);
        let (weight, enough) = (spec.weight, spec.min_features as usize);
        if let Summed::Occurrences = weight.summed() {
            let has_enough = if enough <= FEW {
                has_distinct(hashes, enough)
            } else {
                self.distinct(hashes).len() >= enough
            };
            let (model, weights) = (&self.model, &mut self.weights);
            return has_enough.then(|| match model.idf() {
                None => accumulate::unweighted_fingerprint(kernel, hashes),
                Some(idf) => {
                    idf.weights(hashes, weights);
                    accumulate::weighted_fingerprint(kernel, hashes, weights)
                }
            });
        }
        self.count.fill(hashes);
        if self.count.distinct.len() < enough {
            return None;
        }
        Some(match (weight, self.model.idf()) {
            (Weight::Set, None) => accumulate::unweighted_fingerprint(kernel, &self.count.distinct),
            // Features that occur equally often weigh the same, and most occur once.
            (Weight::LogTf | Weight::SqrtTf, None) => {
                self.split();
                let once = SameWeight {
                    hashes: &self.once,
                    weight: self.weights_of_few[1],
                };
                accumulate::weighted_sums(kernel, once, &self.often, &self.weights).fingerprint()
            }
            _ => {
                self.weigh();
                accumulate::weighted_fingerprint(kernel, &self.count.distinct, &self.weights)
            }
        })
    }

    /// The distinct ones of `hashes`, in the order of their first occurrence.
    pub(crate) fn distinct(&mut self, hashes: &[u64]) -> &[u64] {
        self.count.fill(hashes);
        &self.count.distinct
    }

    /// The distinct ones of `hashes`, in the order of their first occurrence: each with the number and the weight of all
    /// its occurrences.
    pub(crate) fn weights(&mut self, hashes: &[u64]) -> impl Iterator<Item = (u64, u32, u64)> {
        self.count.fill(hashes);
        self.weigh();
        let Count {
            distinct,
            occurrences,
            ..
        } = &self.count;
        let each = distinct.iter().zip(occurrences).zip(&self.weights);
        each.map(|((&hash, &occurrences), &weight)| {
            let weight = u64::from(weight);
            match self.model.spec().weight.summed() {
                Summed::Occurrences => (hash, occurrences, weight * u64::from(occurrences)),
                Summed::Presences | Summed::Weights => (hash, occurrences, weight),
            }
        })
    }

    /// Fills `weights` with the weight of each distinct feature, below 2²⁷. For [`Summed::Occurrences`], it is the weight of
    /// one occurrence.
    fn weigh(&mut self) {
        self.weigh_without_levels();
        if self.model.spec().weight == Weight::Levels {
            let heaviest = self.weights.iter().copied().max().unwrap_or(0);
            for weight in &mut self.weights {
                *weight = Weight::level(*weight, heaviest);
            }
        }
    }

    /// As [`Self::weigh`]; for [`Weight::Levels`], before the weights become levels.
    fn weigh_without_levels(&mut self) {
        let weight = self.model.spec().weight;
        match self.model.idf() {
            Some(idf) => idf.weights(&self.count.distinct, &mut self.weights),
            None => {
                self.weights.clear();
                self.weights.resize(self.count.distinct.len(), 1);
            }
        }
        if let Summed::Presences | Summed::Weights = weight.summed() {
            for (sum, &tf) in self.weights.iter_mut().zip(&self.count.occurrences) {
                // Does not overflow: a weight below 2¹⁵ times an idf below 2¹².
                *sum *= weight_of(&self.weights_of_few, weight, tf);
            }
        }
    }

    /// Fills `once` with the features that occur once, and `often` and `weights` with the others and their weights.
    fn split(&mut self) {
        let Count {
            distinct,
            occurrences,
            ..
        } = &self.count;
        // Room for one more than all, so that the places behind the last can be written.
        let room = distinct.len() + 1;
        self.once.resize(room, 0);
        self.often.resize(room, 0);
        self.weights.resize(room, 0);
        let (mut once, mut often) = (0, 0);
        // Writes to both, and keeps one: how often a feature occurs is unpredictable.
        for (&hash, &tf) in distinct.iter().zip(occurrences) {
            self.once[once] = hash;
            self.often[often] = hash;
            self.weights[often] = tf;
            once += usize::from(tf == 1);
            often += usize::from(tf != 1);
        }
        self.once.truncate(once);
        self.often.truncate(often);
        self.weights.truncate(often);
        let weight = self.model.spec().weight;
        for tf in &mut self.weights {
            *tf = weight_of(&self.weights_of_few, weight, *tf);
        }
    }
}

/// The weight of a feature that occurs `tf` times, without idf.
#[inline(always)]
fn weight_of(weights_of_few: &[u32; 16], weight: Weight, tf: u32) -> u32 {
    let by_tf = weights_of_few.get(tf as usize).copied();
    by_tf.unwrap_or_else(|| weight.weigh(tf))
}

/// The most distinct values that are searched one by one.
const FEW: usize = 64;

/// Whether `hashes` has at least `wanted` distinct values, which is a small number; stops as soon as it has found them.
fn has_distinct(hashes: &[u64], wanted: usize) -> bool {
    if wanted <= 1 {
        return hashes.len() >= wanted;
    }
    let mut seen = Vec::with_capacity(wanted.min(hashes.len()));
    for hash in hashes {
        if !seen.contains(hash) {
            seen.push(*hash);
            if seen.len() == wanted {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::spec::Spec;

    /// Charikar's definition, with the weight of each distinct hash from its number of occurrences.
    fn by_definition(weight: Weight, hashes: &[u64]) -> u64 {
        let mut occurrences: BTreeMap<u64, u32> = BTreeMap::new();
        for &hash in hashes {
            *occurrences.entry(hash).or_default() += 1;
        }
        let heaviest = occurrences.values().map(|&tf| weight.weigh(tf)).max();
        let weigh = |tf| match weight {
            Weight::Levels => Weight::level(weight.weigh(tf), heaviest.unwrap_or(0)),
            _ => weight.weigh(tf),
        };
        (0..64).fold(0, |fingerprint, bit| {
            let sum: i64 = occurrences
                .iter()
                .map(|(hash, &tf)| match hash >> bit & 1 {
                    1 => i64::from(weigh(tf)),
                    _ => -i64::from(weigh(tf)),
                })
                .sum();
            fingerprint | u64::from(sum > 0) << bit
        })
    }

    proptest! {
        #[test]
        fn fingerprints_equal_the_definition(
            // Many occurrences of some.
            hashes in proptest::collection::vec(
                prop_oneof![(0u64..4).prop_map(|hash| !(hash << 40)), 0u64..40, any::<u64>()],
                0..300,
            ),
        ) {
            for weight in [Weight::Tf, Weight::LogTf, Weight::SqrtTf, Weight::Set, Weight::Levels] {
                let spec = Spec { weight, min_features: 0, ..Spec::default() };
                let model = Model::plain(spec).unwrap();
                for kernel in Kernel::available() {
                    let mut sum = Sum::new(model.clone(), kernel);
                    sum.fingerprint(&[1; 90]);
                    prop_assert_eq!(sum.fingerprint(&hashes), Some(by_definition(weight, &hashes)), "{}", weight);
                }
            }
        }
    }
}
