//! Counts the pairs of a sample under one spec.

use std::sync::Arc;

use hamming::{Limits, Plan};
use simhash::{Fingerprinter, Measure, Model, Spec};

use super::one_word::{AtLength, ShortTexts};
use super::sketched::{Sketched, Sketches};
use super::weighed::{ByK, MAX_DISTANCE, Near, Sums, weights};
use super::{AtDistance, DISTANCES, Estimate, LEVELS, Share, Tune, Tuned, tail};
use crate::error::Result;
use crate::profile::{Profile, default_similarity};

/// Counts of the sample's pairs under one spec.
pub(super) struct Counts {
    spec: Spec,
    learnt: bool,
    /// The fingerprint of each text.
    bits: Vec<Option<u64>>,
    /// Pairs at each distance, by level: one for each of [`LEVELS`], then the pairs below all.
    pairs_at: [[usize; 5]; 65],
    /// Pairs that should be found.
    wanted: usize,
    /// Pairs of each text within each k.
    near: Near,
    /// Sums over the pairs within each k.
    sums_at: ByK,
    alike: [usize; 4],
    sketched: Sketched,
    lengths: Vec<AtLength>,
}

impl Counts {
    /// Fingerprints `texts`, and counts all pairs as if they were below all levels. Counts which of the `short` texts are
    /// found again.
    pub(super) fn new(
        texts: &[String],
        short: &[ShortTexts],
        model: &Model,
        learnt: bool,
        sketches: Arc<Sketches>,
    ) -> Self {
        let mut fingerprinter = Fingerprinter::new(model.clone());
        let bits = texts.iter().map(|text| fingerprinter.fingerprint(text));
        let bits: Vec<Option<u64>> = bits.collect();
        let mut pairs_at = [[0; 5]; 65];
        let mut sketched = Sketched::new(sketches);
        let known = (0..).zip(&bits);
        let known = known.filter_map(|(at, bits)| Some((at, (*bits)?)));
        let known: Vec<(usize, u64)> = known.collect();
        let mut near: Near = vec![Default::default(); texts.len()];
        for (i, (a, x)) in known.iter().enumerate() {
            for (b, y) in &known[i + 1..] {
                let distance = (x ^ y).count_ones() as usize;
                pairs_at[distance][4] += 1;
                if distance <= MAX_DISTANCE {
                    for at in [*a, *b] {
                        near[at][distance..]
                            .iter_mut()
                            .for_each(|pairs| *pairs += 1);
                    }
                }
            }
        }
        let mut sums_at = ByK::default();
        let has_near = |at: usize| near[at][MAX_DISTANCE] > 0;
        for (i, (a, x)) in known.iter().enumerate().filter(|(_, (a, _))| has_near(*a)) {
            for (b, y) in &known[i + 1..] {
                let distance = (x ^ y).count_ones() as usize;
                if distance <= MAX_DISTANCE {
                    let pair = (*a, *b);
                    weights(&near, pair, distance).for_each(|(k, weight)| sums_at[k].add(weight));
                    sketched.for_each_sum(&near, pair, distance, Sums::add);
                }
            }
        }
        Self {
            spec: model.spec().clone(),
            learnt,
            bits,
            pairs_at,
            wanted: 0,
            near,
            sums_at,
            alike: [0; 4],
            sketched,
            lengths: short
                .iter()
                .filter(|short| short.size() > 0)
                .map(|short| AtLength::new(short, &mut fingerprinter))
                .collect(),
        }
    }

    /// Moves the pair of the texts `a` and `b` to the level of its similarity. A text without a
    /// fingerprint is in no pair. `wanted` is what the pair counts for in recall, if it should be found.
    pub(super) fn add_alike(&mut self, a: usize, b: usize, similarity: f64, wanted: Option<f64>) {
        let (Some(x), Some(y)) = (self.bits[a], self.bits[b]) else {
            return;
        };
        let distance = (x ^ y).count_ones() as usize;
        let class = LEVELS.iter().position(|level| similarity >= *level);
        self.pairs_at[distance][4] -= 1;
        self.pairs_at[distance][class.unwrap_or(4)] += 1;
        self.wanted += usize::from(wanted.is_some());
        if let Some(wanted) = wanted.filter(|_| distance <= MAX_DISTANCE) {
            let note = |sums: &mut Sums, near: f64| sums.add_wanted(near, wanted);
            let each = weights(&self.near, (a, b), distance);
            each.for_each(|(k, near)| note(&mut self.sums_at[k], near));
            self.sketched
                .for_each_sum(&self.near, (a, b), distance, note);
        }
        for (count, level) in self.alike.iter_mut().zip(LEVELS) {
            *count += usize::from(similarity >= level);
        }
    }

    /// What each largest distance finds; `documents` are in pairs that should be found.
    pub(super) fn sum_up(&self, asked: &Tune, documents: usize) -> Result<Tuned> {
        let limits = Limits {
            memory: asked.memory,
            queries: asked.archive,
            ..Limits::default()
        };
        let known = self.bits.iter().flatten().count() as f64;
        let all_pairs = (known * (known - 1.0) / 2.0).max(1.0);
        let mut unrelated = [0u64; 65];
        let mut sum = 0;
        for (cumulative, pairs) in unrelated.iter_mut().zip(&self.pairs_at) {
            sum += pairs[4] as u64;
            *cumulative = sum;
        }
        let mut distances = Vec::new();
        let mut by_similarity = [0; 5];
        for k in DISTANCES {
            for (sum, more) in by_similarity.iter_mut().zip(self.pairs_at[k as usize]) {
                *sum += more;
            }
            let sums = &self.sums_at[k as usize];
            let pairs = by_similarity.iter().sum();
            let plan = Plan::choose(asked.batch, k, &limits)?;
            let (events, estimate) = estimate(&unrelated, k);
            distances.push(AtDistance {
                max_distance: k,
                pairs,
                by_similarity,
                recall: sums.recall(documents),
                precision: sums.precision(),
                unrelated: events / all_pairs * asked.archive as f64,
                estimate,
                design: plan.design.name(),
                table_bytes: plan.bytes,
                core_seconds: plan.seconds(asked.archive),
                sketches: self.sketched.at_distance(k, documents),
            });
        }
        let (size, k) = (Profile::Sharp.sketch(), Profile::Sharp.max_distance());
        let least = default_similarity(Measure::Sketch);
        let sharp = self.sketched.at(size, least, k, documents);
        Ok(Tuned {
            spec: self.spec.clone(),
            learnt: self.learnt,
            documents: 0,
            sampled: self.bits.len(),
            without_fingerprint: self.bits.iter().filter(|bits| bits.is_none()).count(),
            alike: self.alike,
            copies: 0,
            wanted: self.wanted,
            documents_wanted: documents,
            groups_wanted: 0,
            differ_in_a_name: Share::default(),
            alike_sources: Vec::new(),
            sharp: sharp.filter(|_| documents > 0),
            distances,
            lengths: self.lengths.clone(),
        })
    }
}

/// For 0, 1, … pairs seen, the least and the greatest expected number of pairs: two-sided 95 %
/// limits by Garwood (1936). Ten or more pairs seen are an estimate by themselves.
const LIMITS: [(f64, f64); 10] = [
    (0.0, 3.69),
    (0.03, 5.57),
    (0.24, 7.22),
    (0.62, 8.77),
    (1.09, 10.24),
    (1.62, 11.67),
    (2.20, 13.06),
    (2.81, 14.42),
    (3.45, 15.76),
    (4.12, 17.08),
];

/// The number of unrelated pairs of the sample to expect within `k` bits, given the number within each distance.
fn estimate(unrelated: &[u64; 65], k: u32) -> (f64, Estimate) {
    let seen = unrelated[k as usize];
    let Some(&(least, most)) = LIMITS.get(seen as usize) else {
        return (seen as f64, Estimate::Counted);
    };
    match tail::extrapolate(unrelated, k) {
        Some(pairs) if (least..=most).contains(&pairs) => (pairs, Estimate::Extrapolated),
        // What was seen contradicts the fit.
        Some(_) if seen > 0 => (seen as f64, Estimate::Counted),
        _ => (most, Estimate::Bound),
    }
}
