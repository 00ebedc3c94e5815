//! The best of the settings that `tune` compared.

use engine::tune::{AtDistance, Tuned};
use serde_json::{Value, json};

/// A distance is large enough if it finds this share of the pairs that should be found.
pub(super) const ENOUGH: f64 = 0.97;

/// Fewer unrelated pairs than this for each new document do not matter.
const FEW: f64 = 1.0;

/// The smallest distance that finds enough; `None` if none does, or nothing should be found.
pub(super) fn smallest_distance(tuned: &Tuned) -> Option<&AtDistance> {
    let enough = tuned.distances.iter().find(|at| at.recall >= ENOUGH);
    enough.filter(|_| tuned.wanted > 0)
}

/// The spec that gives the fewest unrelated pairs in a large archive, at the smallest distance that finds enough; of specs
/// that give few, the one that gives the fewest pairs in the sample. The first spec, if none finds enough.
pub(super) fn best(compared: &[Tuned]) -> Option<&Tuned> {
    let costs = compared.iter().filter_map(|tuned| {
        let at = smallest_distance(tuned)?;
        Some((tuned, (at.unrelated.max(FEW), at.pairs)))
    });
    costs
        .min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        .map(|(tuned, _)| tuned)
        .or(compared.first())
}

/// What `--json` says of one of the specs that were compared.
pub(super) fn summary(tuned: &Tuned) -> Value {
    json!({
        "spec": tuned.spec,
        "learnt": tuned.learnt,
        "without_fingerprint": tuned.without_fingerprint,
        "best": smallest_distance(tuned),
    })
}
