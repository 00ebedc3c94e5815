//! Pairs of documents of different sources. Each is false, whatever its distance, so their share tells how many
//! unrelated documents a new document meets in an archive of a given size.
//!
//! Pairs share documents, so they are not independent: one document that is close to many makes
//! many events. The interval assumes independent pairs, so it is too narrow. Leaving out each
//! source in turn shows how much one source decides.

use engine::tune::tail;

use super::corpora::Sources;
use super::distances::{Distances, MAX_DISTANCE};
use super::poisson;
use crate::peers::Found;
use crate::truth::Pair;

/// The distances of the pairs across sources.
pub struct FalsePairs {
    between: Vec<TwoSources>,
    /// The number of documents that are in no pair because they have no fingerprint.
    pub without_fingerprint: usize,
    /// If a verification dropped pairs, the distances of all pairs before it.
    unverified: Option<Distances>,
}

/// The pairs of a document of one source with a document of another.
struct TwoSources {
    /// The indexes of the two sources, ascending.
    sources: [usize; 2],
    /// The number of all pairs.
    pairs: u64,
    /// The distances of all pairs; for a method without distances, those that it found, at distance 0; after a
    /// verification, those that it keeps, up to [`MAX_DISTANCE`].
    distances: Distances,
}

/// How often pairs across sources are within k bits.
pub struct Rate {
    /// Pairs within k bits.
    pub events: u64,
    pub pairs: u64,
    /// The 95 % confidence interval of the expected number of events among as many pairs.
    pub interval: (f64, f64),
    /// The expected number of events, extrapolated from larger distances; only if few events were
    /// seen.
    ///
    /// After a verification, it is the expected number before it, times the share that the verification keeps of all
    /// pairs up to [`MAX_DISTANCE`].
    pub extrapolated: Option<f64>,
    /// Whether the verification keeps none of these pairs, so that `extrapolated` is an upper bound, with 95 %
    /// confidence.
    pub extrapolated_is_bound: bool,
}

/// Below this number of events, the rate is also extrapolated.
const FEW: u64 = 10;

impl FalsePairs {
    /// Counts the pairs across `sources` by their distance.
    pub fn count(sources: &Sources, found: &Found) -> Self {
        let documents = sources.of_documents.iter().map(|&source| source as usize);
        let mut sizes = vec![0; sources.names.len()];
        match found {
            Found::Fingerprints(fingerprints) => {
                let mut by_source: Vec<Vec<u64>> = vec![Vec::new(); sizes.len()];
                for (source, fingerprint) in documents.zip(fingerprints) {
                    by_source[source].extend(*fingerprint);
                }
                for (size, fingerprints) in sizes.iter_mut().zip(&by_source) {
                    *size = fingerprints.len();
                }
                let mut counted = Self::new(&sizes, sources);
                for two in &mut counted.between {
                    let [a, b] = two.sources;
                    two.distances = Distances::between(&by_source[a], &by_source[b]);
                }
                counted
            }
            Found::Pairs(pairs) => {
                documents.for_each(|source| sizes[source] += 1);
                let mut counted = Self::new(&sizes, sources);
                counted.add(sources, pairs.iter().map(|&pair| (pair, 0)));
                counted
            }
        }
    }

    /// Counts those of the pairs that a verification keeps: `kept` has them with their distances, up to
    /// [`MAX_DISTANCE`].
    pub fn verified(&self, sources: &Sources, kept: &[(Pair, u32)]) -> Self {
        let between = self.between.iter().map(|two| TwoSources {
            sources: two.sources,
            pairs: two.pairs,
            distances: Distances::default(),
        });
        let mut verified = Self {
            between: between.collect(),
            without_fingerprint: self.without_fingerprint,
            unverified: Some(self.sum(None).1),
        };
        verified.add(sources, kept.iter().copied());
        verified
    }

    /// Adds pairs with their distances; skips those inside one source.
    fn add(&mut self, sources: &Sources, pairs: impl Iterator<Item = (Pair, u32)>) {
        for ((a, b), distance) in pairs {
            let mut of_pair =
                [a, b].map(|document| sources.of_documents[document as usize] as usize);
            of_pair.sort_unstable();
            let mut all = self.between.iter_mut();
            if let Some(two) = all.find(|two| two.sources == of_pair) {
                two.distances.add(distance);
            }
        }
    }

    /// Starts with empty histograms. `sizes` has for each source the number of documents
    /// that can be in pairs.
    fn new(sizes: &[usize], sources: &Sources) -> Self {
        let two = |a: usize, b: usize| TwoSources {
            sources: [a, b],
            pairs: sizes[a] as u64 * sizes[b] as u64,
            distances: Distances::default(),
        };
        let between = (0..sizes.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        Self {
            between: between.map(|(a, b)| two(a, b)).collect(),
            without_fingerprint: sources.of_documents.len() - sizes.iter().sum::<usize>(),
            unverified: None,
        }
    }

    /// Adds up all pairs without a document of source `left_out`; returns their number and their distances.
    fn sum(&self, left_out: Option<usize>) -> (u64, Distances) {
        let (mut pairs, mut distances) = (0, Distances::default());
        for two in &self.between {
            if left_out.is_none_or(|source| !two.sources.contains(&source)) {
                pairs += two.pairs;
                distances.merge(&two.distances);
            }
        }
        (pairs, distances)
    }

    /// Returns how often pairs are within `k` bits.
    pub fn rate(&self, k: u32) -> Rate {
        let (pairs, distances) = self.sum(None);
        let events = distances.at_most(k);
        let kept = distances.at_most(MAX_DISTANCE);
        Rate {
            events,
            pairs,
            interval: poisson::interval(events, poisson::USUAL),
            extrapolated: match &self.unverified {
                _ if events >= FEW => None,
                None => tail::extrapolate(&distances.cumulative(), k),
                Some(unverified) => expected_after(unverified, kept, k),
            },
            extrapolated_is_bound: self.unverified.is_some() && kept == 0,
        }
    }

    /// Leaves out each source in turn; returns the least and the greatest share of pairs within `k`
    /// bits. `None` if there are only two sources.
    pub fn shares_without_a_source(&self, k: u32) -> Option<(f64, f64)> {
        let last = self.between.iter().map(|two| two.sources[1]).max()?;
        if last < 2 {
            return None;
        }
        let shares = (0..=last).map(|source| {
            let (pairs, distances) = self.sum(Some(source));
            distances.at_most(k) as f64 / pairs as f64
        });
        Some(
            shares.fold((f64::INFINITY, 0.0), |(least, greatest), share| {
                (share.min(least), share.max(greatest))
            }),
        )
    }

    /// Checks that random fingerprints are within k bits as often as the binomial distribution says, for each k of
    /// `distances`.
    pub fn check_random(&self, distances: &[u32]) {
        for &k in distances {
            let rate = self.rate(k);
            let expected = random_share(k) * rate.pairs as f64;
            let (low, high) = poisson::interval(rate.events, poisson::NEARLY_SURE);
            assert!(
                (low..=high).contains(&expected),
                "{} of {} pairs of random fingerprints are within {k} bits, but {expected} are expected",
                rate.events,
                rate.pairs
            );
        }
    }
}

/// Returns the number of pairs within `k` bits to expect after a verification that keeps `kept` of the pairs within
/// [`MAX_DISTANCE`] bits, if it keeps the same share at each distance; if `kept` is 0, an upper bound with 95 %
/// confidence. `None` if the number before the verification is not known.
fn expected_after(unverified: &Distances, kept: u64, k: u32) -> Option<f64> {
    let before = match unverified.at_most(k) {
        events if events < FEW => tail::extrapolate(&unverified.cumulative(), k)?,
        events => events as f64,
    };
    let kept = match kept {
        0 => poisson::BOUND_OF_NONE,
        kept => kept as f64,
    };
    let verified = unverified.at_most(MAX_DISTANCE) as f64;
    // With few pairs, the bound can exceed their number.
    (verified > 0.0).then(|| before * (kept / verified).min(1.0))
}

impl Rate {
    /// Scales `events` among all pairs to one new document in an archive of `archive` documents.
    pub fn per_document(&self, events: f64, archive: f64) -> f64 {
        events / self.pairs as f64 * archive
    }
}

/// Returns the share of pairs of random fingerprints within `k` bits.
fn random_share(k: u32) -> f64 {
    let mut ways = 1.0;
    let mut sum = ways;
    for bits in 1..=k {
        ways *= f64::from(65 - bits) / f64::from(bits);
        sum += ways;
    }
    sum / 2f64.powi(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    fn sources(sizes: &[usize]) -> Sources {
        let each = sizes.iter().enumerate();
        Sources {
            names: sizes.iter().map(|size| format!("of {size}")).collect(),
            of_documents: each
                .flat_map(|(source, &size)| vec![source as u32; size])
                .collect(),
        }
    }

    #[test]
    fn only_pairs_across_sources_count() {
        let sources = sources(&[2, 3, 1]);
        let fingerprints = [Some(0), Some(1), Some(0), None, Some(!0), Some(7)];
        let counted = FalsePairs::count(&sources, &Found::Fingerprints(fingerprints.to_vec()));
        assert_eq!(counted.without_fingerprint, 1);
        let rate = |k| {
            let rate = counted.rate(k);
            (rate.events, rate.pairs)
        };
        assert_eq!([0, 1, 2, 3].map(rate), [(1, 8), (2, 8), (3, 8), (5, 8)]);
        // Without the first source, one of two pairs; without the second, both of two.
        assert_eq!(counted.shares_without_a_source(3), Some((0.5, 1.0)));
        assert_eq!(counted.shares_without_a_source(0), Some((0.0, 0.25)));

        let found = Found::Pairs(vec![(0, 1), (0, 2), (2, 5), (3, 4)]);
        let counted = FalsePairs::count(&sources, &found);
        let rate = counted.rate(0);
        assert_eq!((rate.events, rate.pairs), (2, 11));
        assert_eq!(rate.per_document(11.0, 100.0), 100.0);
    }

    #[test]
    fn a_verification_keeps_the_same_share_at_each_distance() {
        // 200 pairs at distance 0 and 200 at distance 8 across sources.
        let sources = sources(&[20, 20]);
        let fingerprints = (0..40).map(|document| Some(if document < 30 { 0 } else { 0xff }));
        let all = FalsePairs::count(&sources, &Found::Fingerprints(fingerprints.collect()));
        let verify = |kept: &[(Pair, u32)], k: u32| {
            let rate = all.verified(&sources, kept).rate(k);
            assert_eq!(rate.pairs, 400);
            (rate.events, rate.extrapolated, rate.extrapolated_is_bound)
        };
        assert_eq!(verify(&[], 8), (0, Some(poisson::BOUND_OF_NONE), true));
        assert_eq!(
            verify(&[], 3),
            (0, Some(poisson::BOUND_OF_NONE / 2.0), true)
        );
        // The first pair is inside one source.
        let kept = [((0, 1), 0), ((0, 30), 8), ((1, 30), 8)];
        assert_eq!(verify(&kept, 3), (0, Some(1.0), false));
        assert_eq!(verify(&kept, 8), (2, Some(2.0), false));
        let many: Vec<(Pair, u32)> = (0..20).map(|document| ((document, 30), 8)).collect();
        assert_eq!(verify(&many, 8), (20, None, false));
    }

    #[test]
    fn random_fingerprints_are_as_far_apart_as_they_should_be() {
        assert_eq!(random_share(0), 2f64.powi(-64));
        assert_eq!(random_share(3), 43_745.0 * 2f64.powi(-64));
        assert!((random_share(64) - 1.0).abs() < 1e-9);
        let sources = sources(&[900, 1000, 1100]);
        let fingerprints = data::random_batch(3000).into_iter().map(Some).collect();
        let counted = FalsePairs::count(&sources, &Found::Fingerprints(fingerprints));
        counted.check_random(&[3, 8, 16, 20, 24, 32]);
    }
}
