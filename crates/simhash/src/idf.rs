//! Document frequencies of features, and the inverse document frequency (idf) that multiplies weights.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::hash::murmur3_low64;
use crate::spec::{Spec, hex};
use crate::weight::IdfPower;

/// The inverse document frequency of features: `ln(1 + N / df)`, where df of N documents contain the feature, raised to
/// [`Spec::idf_power`], in steps of 1/64.
///
/// The table lists the most frequent features of a collection, keyed by the upper 48 bits of their hash. All other features
/// count as equally rare.
#[derive(Clone)]
pub struct Idf {
    spec: Spec,
    listed_features: usize,
    digest: String,
    /// A hash table with open addressing: 48 bits of a feature's hash and 16 of its weight; 0 is a free slot.
    slots: Box<[u64]>,
    /// The weight of features that are not listed.
    default: u32,
}

/// Document frequencies of a collection's features, the most frequent first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFrequencies {
    /// The number of documents of the collection: N in the formula of [`Idf`]. A sample that was counted may have fewer:
    /// see [`DocumentFrequencies::LEAST_DOCUMENTS`].
    pub documents: u64,
    /// The document frequency assumed for each feature that is not listed.
    pub rest: u64,
    /// The listed features, each with the number of documents that contain it.
    pub features: Vec<(String, u64)>,
}

impl DocumentFrequencies {
    /// Documents of the smallest collection. A smaller sample counts as a part of it; the other documents of the collection have
    /// none of the sample's features.
    ///
    /// Otherwise the words of its subject, which most of its documents contain, weigh as little as stop words do. Rare
    /// words then decide the fingerprint, and an edit of a few of them separates two revisions.
    pub const LEAST_DOCUMENTS: u64 = 20_000;

    /// The frequencies of `features`, the most frequent first, that were counted in a sample of `documents` documents. `rest` is
    /// the frequency assumed for all others.
    #[must_use]
    pub fn of_sample(documents: u64, rest: u64, features: Vec<(String, u64)>) -> Self {
        Self {
            documents: documents.max(Self::LEAST_DOCUMENTS),
            rest,
            features,
        }
    }
}

/// Why document frequencies are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdfError {
    /// A frequency is not between 1 and the number of documents.
    #[error(
        "the table says that feature {feature:?} is in {frequency} of {documents} documents: the number must be from 1 to {documents}"
    )]
    Frequency {
        /// The feature.
        feature: String,
        /// Its document frequency.
        frequency: u64,
        /// The number of documents of the collection.
        documents: u64,
    },
    /// A feature is listed twice or in the wrong place.
    #[error(
        "feature {feature:?} is out of order: the most frequent come first, equally frequent ones in the order of their bytes"
    )]
    Order {
        /// The feature.
        feature: String,
    },
}

/// The upper 48 bits of a hash, which identify a feature in the table.
const KEY: u64 = !0xffff;

impl Idf {
    /// Builds the table from `frequencies`, which count features extracted under `spec`; features are hashed with its seed,
    /// and weights raised to its [`Spec::idf_power`].
    ///
    /// # Errors
    /// [`IdfError`] if a frequency is impossible or the features are out of order.
    pub fn new(spec: &Spec, frequencies: &DocumentFrequencies) -> Result<Self, IdfError> {
        let DocumentFrequencies {
            documents,
            rest,
            ref features,
        } = *frequencies;
        let mut digest = Sha256::new();
        let features_spec = spec.features_only().to_json();
        digest.update(format!("{documents} {rest} {features_spec}\n"));
        let mut table = Self {
            spec: spec.clone(),
            listed_features: features.len(),
            digest: String::new(),
            slots: vec![0; features.len() + features.len() / 2 + 1].into(),
            default: idf_weight(documents, rest.max(1), spec.idf_power),
        };
        let mut before: Option<&(String, u64)> = None;
        for next in features {
            let (feature, frequency) = next;
            if !(1..=documents).contains(frequency) {
                return Err(IdfError::Frequency {
                    feature: feature.clone(),
                    frequency: *frequency,
                    documents,
                });
            }
            let in_order = before.is_none_or(|(name, count)| {
                count > frequency || (count == frequency && name < feature)
            });
            if !in_order {
                return Err(IdfError::Order {
                    feature: feature.clone(),
                });
            }
            before = Some(next);
            digest.update(format!("{frequency} {} ", feature.len()));
            digest.update(feature);
            digest.update("\n");
            table.insert(
                murmur3_low64(feature.as_bytes(), spec.seed),
                idf_weight(documents, *frequency, spec.idf_power),
            );
        }
        table.digest = hex(&digest.finalize());
        Ok(table)
    }

    /// Adds a feature. If its key is taken, the earlier feature stays: it is more frequent.
    fn insert(&mut self, hash: u64, weight: u32) {
        let mut at = self.home_slot(hash);
        while self.slots[at] != 0 {
            if self.slots[at] & KEY == hash & KEY {
                return;
            }
            at = (at + 1) % self.slots.len();
        }
        self.slots[at] = (hash & KEY) | u64::from(weight);
    }

    /// The slot at which the search for `hash` begins.
    #[inline(always)]
    fn home_slot(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }

    /// The idf of the feature with this hash in steps of 1/64: at least 1, below 2¹².
    #[inline(always)]
    #[must_use]
    pub fn weight(&self, hash: u64) -> u32 {
        let mut at = self.home_slot(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return self.default;
            }
            if slot & KEY == hash & KEY {
                return (slot & !KEY) as u32;
            }
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
    }

    /// Replaces `weights` by the [`Idf::weight`] of each hash.
    pub(crate) fn weights(&self, hashes: &[u64], weights: &mut Vec<u32>) {
        /// So many slots are read before the first is looked at, so that the processor waits for
        /// all of them at once.
        const AHEAD: usize = 16;
        weights.clear();
        weights.reserve(hashes.len());
        for hashes in hashes.chunks(AHEAD) {
            let mut slots = [0; AHEAD];
            for (slot, &hash) in slots.iter_mut().zip(hashes) {
                *slot = self.slots[self.home_slot(hash)];
            }
            weights.extend(slots.iter().zip(hashes).map(|(&slot, &hash)| {
                if slot & KEY == hash & KEY && slot != 0 {
                    (slot & !KEY) as u32
                } else {
                    self.weight(hash)
                }
            }));
        }
    }

    /// The spec under which the features were extracted.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// SHA-256 of the table's contents, in hexadecimal; [`Spec::idf`] names the table by it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The number of listed features.
    #[must_use]
    pub fn listed_features(&self) -> usize {
        self.listed_features
    }
}

/// 64 times `ln(1 + documents / frequency)` raised to `power`, rounded, at least 1.
fn idf_weight(documents: u64, frequency: u64, power: IdfPower) -> u32 {
    let ratio = documents as f64 / frequency.max(1) as f64;
    let idf = power.raise(libm::log(1.0 + ratio));
    (64.0 * idf).round().max(1.0) as u32
}

impl fmt::Debug for Idf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idf")
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies(features: &[(&str, u64)]) -> DocumentFrequencies {
        DocumentFrequencies {
            documents: 1000,
            rest: 2,
            features: features
                .iter()
                .map(|&(feature, frequency)| (feature.to_owned(), frequency))
                .collect(),
        }
    }

    #[test]
    fn the_rarer_the_heavier() {
        let spec = Spec::default();
        let idf = Idf::new(
            &spec,
            &frequencies(&[("the", 1000), ("a", 999), ("simhash", 3)]),
        )
        .unwrap();
        let weight_of = |feature: &str| idf.weight(murmur3_low64(feature.as_bytes(), 0));
        assert_eq!(
            ["the", "a", "simhash", "unknown"].map(weight_of),
            [44, 44, 372, 398]
        );
        // More features than are looked up together.
        let hashes: Vec<u64> = (0..100)
            .flat_map(|at| ["the".to_owned(), "simhash".to_owned(), at.to_string()])
            .map(|feature| murmur3_low64(feature.as_bytes(), 0))
            .chain([0, u64::MAX])
            .collect();
        let mut weights = vec![7];
        idf.weights(&hashes, &mut weights);
        let one_by_one: Vec<u32> = hashes.iter().map(|&hash| idf.weight(hash)).collect();
        assert_eq!(weights, one_by_one);
        let of_one = |power| idf_weight(u64::MAX, 1, power);
        assert_eq!(
            [
                IdfPower::One,
                IdfPower::ThreeQuarters,
                IdfPower::Half,
                IdfPower::Quarter
            ]
            .map(of_one),
            [2839, 1100, 426, 165]
        );
        let empty = Idf::new(&spec, &frequencies(&[])).unwrap();
        assert_eq!(empty.weight(0), 398);
    }

    #[test]
    fn many_features_are_all_found() {
        let mut features: Vec<_> = (0..5000)
            .map(|at| (format!("f{at}"), 1 + at % 900))
            .collect();
        features.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let all = DocumentFrequencies {
            documents: 1000,
            rest: 1,
            features,
        };
        let idf = Idf::new(&Spec::default(), &all).unwrap();
        for (feature, frequency) in &all.features {
            assert_eq!(
                idf.weight(murmur3_low64(feature.as_bytes(), 0)),
                idf_weight(1000, *frequency, IdfPower::One)
            );
        }
    }

    #[test]
    fn contents_decide_the_digest_and_bad_frequencies_are_refused() {
        let spec = Spec::default();
        let digest = |features: &[(&str, u64)]| {
            Idf::new(&spec, &frequencies(features)).map(|idf| idf.digest().to_owned())
        };
        assert_ne!(digest(&[("a", 3)]), digest(&[("a", 4)]));
        let seeded = Spec {
            seed: 5,
            ..spec.clone()
        };
        let same = Idf::new(&seeded, &frequencies(&[("a", 3)])).unwrap();
        assert_eq!(digest(&[("a", 3)]).unwrap(), same.digest());
        for frequency in [0, 1001] {
            let refused = digest(&[("a", frequency)]);
            assert!(matches!(refused, Err(IdfError::Frequency { .. })));
        }
        for features in [
            [("a", 3), ("b", 4)],
            [("b", 3), ("a", 3)],
            [("a", 3), ("a", 3)],
        ] {
            let refused = digest(&features);
            assert!(matches!(refused, Err(IdfError::Order { .. })));
        }
    }
}
