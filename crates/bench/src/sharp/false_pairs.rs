//! Pairs of documents of different sources. Each is false, whatever its distance, so their share tells how many
//! unrelated documents a new document meets in an archive of a given size.
//!
//! Pairs share documents, so they are not independent: one document that is close to many makes
//! many events. The interval assumes independent pairs, so it is too narrow. Leaving out each
//! source in turn shows how much one source decides.

use engine::tune::tail;

use super::corpora::Sources;
use super::distances::Distances;
use super::poisson;
use crate::peers::Found;

/// The distances of the pairs across sources.
pub struct FalsePairs {
    between: Vec<TwoSources>,
    /// The number of documents that are in no pair because they have no fingerprint.
    pub without_fingerprint: usize,
}

/// The pairs of a document of one source with a document of another.
struct TwoSources {
    /// The indexes of the two sources, ascending.
    sources: [usize; 2],
    /// The number of all pairs.
    pairs: u64,
    /// The distances of all pairs; for a method without distances, those that it found, at distance 0.
    distances: Distances,
}

/// How often pairs across sources are within k bits.
pub struct Rate {
    /// Pairs within k bits.
    pub events: u64,
    /// All pairs.
    pub pairs: u64,
    /// The 95 % confidence interval of the expected number of events among as many pairs.
    pub interval: (f64, f64),
    /// The expected number of events, extrapolated from larger distances; only if few events were
    /// seen.
    pub extrapolated: Option<f64>,
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
                for &(a, b) in pairs {
                    let mut of_pair =
                        [a, b].map(|document| sources.of_documents[document as usize] as usize);
                    of_pair.sort_unstable();
                    let mut all = counted.between.iter_mut();
                    // Skips pairs inside one source.
                    if let Some(two) = all.find(|two| two.sources == of_pair) {
                        two.distances.add(0);
                    }
                }
                counted
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
        Rate {
            events,
            pairs,
            interval: poisson::interval(events, poisson::USUAL),
            extrapolated: if events < FEW {
                tail::extrapolate(&distances.cumulative(), k)
            } else {
                None
            },
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
