//! Chooses the best of the settings that `tune` compared.

use engine::tune::{AtDistance, AtSketch, Tuned};
use serde_json::{Value, json};

use engine::Profile;

/// A distance is large enough if its recall is at least this.
pub(super) const ENOUGH: f64 = 0.97;

/// A sketch is large enough if its precision is about this, or greater.
const PRECISE: f64 = 0.95;

/// Below this number of unrelated documents per new document, the number does not matter.
const FEW: f64 = 1.0;
/// Estimates of unrelated documents within this factor count as equal: they are no more precise.
const ABOUT: f64 = 2.0;

/// The smallest distance whose recall is at least [`ENOUGH`]; `None` if there is none, or if the
/// sample has no pair to find.
pub(super) fn smallest_distance(tuned: &Tuned) -> Option<&AtDistance> {
    let enough = tuned.distances.iter().find(|at| at.recall >= ENOUGH);
    enough.filter(|_| tuned.wanted > 0)
}

/// The best spec. Each spec is judged at its smallest distance with enough recall. Among those with
/// about the fewest unrelated documents, the fastest join wins, then the fewest wrong pairs in the
/// sample. If no spec has enough recall, the first.
pub(super) fn best(compared: &[Tuned]) -> Option<&Tuned> {
    let noise = |at: &AtDistance| at.unrelated.max(FEW);
    let distances = || {
        let at = |tuned| Some((tuned, smallest_distance(tuned)?));
        compared.iter().filter_map(at)
    };
    let least = distances().map(|(_, at)| noise(at)).min_by(f64::total_cmp);
    let wrong = |at: &AtDistance| at.pairs as f64 * (1.0 - at.precision);
    distances()
        .filter(|(_, at)| least.is_some_and(|least| noise(at) <= ABOUT * least))
        .min_by(|(_, a), (_, b)| {
            let by_time = a.core_seconds.total_cmp(&b.core_seconds);
            by_time.then(wrong(a).total_cmp(&wrong(b)))
        })
        .map(|(tuned, _)| tuned)
        .or(compared.first())
}

/// The smallest sketch whose precision at this distance is enough. Enough is [`PRECISE`], or the
/// greatest precision of all sketches if that is smaller, less 0.005. `None` if no sketch was
/// measured.
pub(super) fn best_sketch(at: &AtDistance) -> Option<&AtSketch> {
    let sketches = &at.sketches;
    let most = sketches.iter().map(|sketch| sketch.precision);
    let most = most.max_by(f64::total_cmp)?;
    let enough = most.min(PRECISE) - 0.005;
    sketches.iter().find(|sketch| sketch.precision >= enough)
}

/// The distance at which a spec is judged: its smallest with enough recall, or else the default.
pub(super) fn judged_distance(tuned: &Tuned) -> u32 {
    smallest_distance(tuned).map_or(Profile::Paper.max_distance(), |at| at.max_distance)
}

/// The entry of one compared spec in the `--json` output.
pub(super) fn summary(tuned: &Tuned) -> Value {
    json!({
        "spec": tuned.spec,
        "learnt": tuned.learnt,
        "without_fingerprint": tuned.without_fingerprint,
        "best": smallest_distance(tuned),
    })
}

#[cfg(test)]
mod tests {
    use engine::tune::{Estimate, Share};
    use simhash::Spec;

    use super::*;

    /// A spec that finds enough from distance `k` on; its other numbers are the same at every
    /// distance.
    fn tuned(k: u32, unrelated: f64, pairs: usize, precision: f64, core_seconds: f64) -> Tuned {
        let at = |max_distance| AtDistance {
            max_distance,
            pairs,
            by_similarity: [0; 5],
            recall: if max_distance < k { 0.5 } else { 0.98 },
            precision,
            unrelated,
            estimate: Estimate::Counted,
            design: "halves".into(),
            table_bytes: 0,
            core_seconds,
            sketches: Vec::new(),
        };
        Tuned {
            spec: Spec::default(),
            learnt: false,
            documents: 100,
            sampled: 100,
            without_fingerprint: 0,
            alike: [0; 4],
            wanted: 40,
            differ_in_a_name: Share::default(),
            distances: (0..=16).map(at).collect(),
            lengths: Vec::new(),
        }
    }

    #[test]
    fn the_best_has_few_unrelated_pairs_then_little_time_then_few_wrong_pairs() {
        let best_of = |compared: &[Tuned]| {
            let found = best(compared).unwrap();
            compared.iter().position(|tuned| tuned == found)
        };
        let few = tuned(8, 4.0, 100, 0.9, 70.0);
        assert_eq!(
            best_of(&[tuned(6, 30.0, 90, 0.9, 60.0), few.clone()]),
            Some(1)
        );
        // 11 % fewer unrelated pairs are not worth seven times the time.
        assert_eq!(
            best_of(&[tuned(10, 3.6, 80, 0.9, 500.0), few.clone()]),
            Some(1)
        );
        // The spec that finds more near-duplicates has more pairs, and fewer wrong ones.
        let more = tuned(8, 0.1, 49, 1.0, 70.0);
        assert_eq!(best_of(&[tuned(8, 0.2, 42, 0.95, 70.0), more]), Some(1));
        assert_eq!(best_of(&[tuned(17, 0.0, 0, 1.0, 1.0), few]), Some(1));
        assert_eq!(best_of(&[tuned(17, 0.0, 0, 1.0, 1.0)]), Some(0));
    }
}
