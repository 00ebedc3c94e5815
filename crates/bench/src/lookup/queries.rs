//! Queries whose answers are known: half of them planted near a fingerprint of the archive, and a sample of all compared with the
//! whole archive.

use std::sync::Mutex;

use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::fingerprints::Fingerprints;

/// A query, by its index, and a fingerprint within k bits of it.
pub type Answer = (u32, u64);

/// Fingerprints that are compared with all queries of the sample while they are in the cache.
const BLOCK: usize = 1 << 11;

/// Queries for one distance.
pub struct Queries {
    /// The largest distance of an answer, in bits.
    pub k: u32,
    /// The queries.
    pub fingerprints: Vec<u64>,
    /// The archive's fingerprint from which each query was made; a random query has `None`.
    origins: Vec<Option<u64>>,
    /// The answers to the first `sample` queries, ascending.
    expected: Vec<Answer>,
    sample: usize,
}

impl Queries {
    /// Makes queries for each distance: `count` of them, or a tenth as many beyond 4 bits, where each takes longer. Every second one
    /// is a fingerprint of the archive with 0 to k bits flipped; the others are random.
    pub fn plant(archive: &Fingerprints<'_>, count: usize, distances: &[u32]) -> Vec<Self> {
        let chosen = random_fingerprints(archive, count.div_ceil(2));
        distances
            .iter()
            .map(|&k| {
                let mut rng = ChaCha8Rng::seed_from_u64(k.into());
                let count = if k > 4 { count.div_ceil(10) } else { count };
                let origins: Vec<Option<u64>> = (0..count)
                    .map(|at| at.is_multiple_of(2).then(|| chosen[at / 2]))
                    .collect();
                let query = |origin: &Option<u64>| match origin {
                    Some(origin) => origin ^ random_mask(&mut rng, k),
                    None => rng.next_u64(),
                };
                Self {
                    k,
                    fingerprints: origins.iter().map(query).collect(),
                    origins,
                    expected: Vec::new(),
                    sample: 0,
                }
            })
            .collect()
    }

    /// Compares the first `sample` queries of each set with every fingerprint of the archive: what [`Self::check`] then demands.
    pub fn find_expected(archive: &Fingerprints<'_>, sets: &mut [Self], sample: usize) {
        let found: Vec<Mutex<Vec<Answer>>> = sets.iter().map(|_| Mutex::default()).collect();
        archive.scan(|_, values| {
            for block in values.chunks(BLOCK) {
                for (set, found) in sets.iter().zip(&found) {
                    for (query, fingerprint) in set.fingerprints.iter().take(sample).enumerate() {
                        let is_near = |value: &&u64| (**value ^ fingerprint).count_ones() <= set.k;
                        // Counted first: such a loop is vectorized.
                        if block.iter().filter(is_near).count() > 0 {
                            let near = block.iter().filter(is_near);
                            let answers = near.map(|value| (query as u32, *value));
                            found.lock().expect("no panic").extend(answers);
                        }
                    }
                }
            }
        });
        for (set, found) in sets.iter_mut().zip(found) {
            set.expected = sorted(found.into_inner().expect("no panic"));
            set.sample = sample.min(set.fingerprints.len());
        }
    }

    /// Fails unless `answers`, sorted, to the first `count` queries are right: those to the sample are as expected, every planted
    /// query has found its origin, and nothing is too far.
    pub fn check(&self, method: &str, answers: &[Answer], count: usize) {
        let sample = self.sample.min(count);
        let (found, expected) = (up_to(answers, sample), up_to(&self.expected, sample));
        assert!(
            found == expected,
            "{method}, k = {}: {found:?} are not the {expected:?} of the whole archive",
            self.k
        );
        for (query, origin) in self.origins.iter().take(count).enumerate() {
            let planted = origin.map(|origin| (query as u32, origin));
            assert!(
                planted.is_none_or(|planted| answers.binary_search(&planted).is_ok()),
                "{method}, k = {}: query {query} did not find {planted:x?}",
                self.k
            );
        }
        for &(query, fingerprint) in answers {
            let distance = (self.fingerprints[query as usize] ^ fingerprint).count_ones();
            assert!(
                distance <= self.k,
                "{method}, k = {}: {distance} bits",
                self.k
            );
        }
    }
}

/// Returns answers in order, each once.
pub fn sorted(mut answers: Vec<Answer>) -> Vec<Answer> {
    answers.sort_unstable();
    answers.dedup();
    answers
}

/// Returns the answers, sorted, to the first `count` queries.
pub fn up_to(answers: &[Answer], count: usize) -> &[Answer] {
    &answers[..answers.partition_point(|(query, _)| (*query as usize) < count)]
}

/// Returns fingerprints of `count` random rows, in random order.
fn random_fingerprints(archive: &Fingerprints<'_>, count: usize) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let rows = archive.rows();
    let mut wanted: Vec<(u64, usize)> = (0..count)
        .map(|at| (rng.random_range(0..rows), at))
        .collect();
    wanted.sort_unstable();
    let chosen = Mutex::new(vec![None; count]);
    archive.scan(|first_row, values| {
        let below = |limit: u64| wanted.partition_point(|(row, _)| *row < limit);
        let here = &wanted[below(first_row)..below(first_row + values.len() as u64)];
        let mut chosen = chosen.lock().expect("no panic");
        for &(row, at) in here {
            chosen[at] = Some(values[(row - first_row) as usize]);
        }
    });
    let chosen = chosen.into_inner().expect("no panic");
    chosen
        .into_iter()
        .map(|value| value.expect("every row has a fingerprint"))
        .collect()
}

/// Returns a number with 0 to k ones.
fn random_mask(rng: &mut ChaCha8Rng, k: u32) -> u64 {
    let ones = rng.random_range(0..=k);
    let mut mask = 0u64;
    while mask.count_ones() < ones {
        mask |= 1 << rng.random_range(0..64);
    }
    mask
}
