//! An audit of decisions: compares dropped documents, drawn at random, with those that they repeat, by their texts.

use simhash::Measure;

use super::Comparison;
use crate::error::Result;
use crate::profile::default_similarity;
use crate::run::summary::Audit;
use crate::verify::{self, DrawnPair, Verifier};

/// The confidence of the bound.
const CONFIDENCE: f64 = 0.95;

impl Comparison<'_> {
    /// Compares the texts of dropped documents with those of the documents that they repeat.
    pub(super) async fn audit(&self, auditor: &Verifier, pairs: Vec<DrawnPair>) -> Result<Audit> {
        let (context, settings) = (self.run.context, self.run.settings);
        let scratch = &settings.scratch;
        let found = verify::similarities(context, pairs, auditor, self.id_type, scratch).await?;
        // That of another measure means something else; and an estimate by sketches is of this similarity, too.
        let verify = self.settings.verify.as_ref();
        let by_jaccard = verify.filter(|verify| verify.measure == Measure::Jaccard);
        let least = by_jaccard.map(|verify| verify.min_similarity);
        let min_similarity = least.unwrap_or(default_similarity(Measure::Jaccard));
        let known = || found.iter().flatten();
        let compared = known().count() as u64;
        let below = known().filter(|found| **found < min_similarity).count() as u64;
        Ok(Audit {
            compared,
            without_text: found.len() as u64 - compared,
            min_similarity,
            below,
            bound: (compared > 0).then(|| upper_bound(below, compared)),
        })
    }
}

/// The greatest share at which `found` or fewer of `drawn` are as likely as 1 - [`CONFIDENCE`] (Clopper and Pearson 1934).
fn upper_bound(found: u64, drawn: u64) -> f64 {
    if found >= drawn {
        return 1.0;
    }
    let (mut low, mut high) = (found as f64 / drawn as f64, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(found, drawn, middle) > 1.0 - CONFIDENCE {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// The probability of at most `found` of `drawn`, each with the probability `share`, which is between 0 and 1.
fn at_most(found: u64, drawn: u64, share: f64) -> f64 {
    let drawn = drawn as f64;
    let odds = (share / (1.0 - share)).ln();
    let mut log = drawn * (1.0 - share).ln();
    let mut sum = log.exp();
    for k in 1..=found {
        let k = k as f64;
        log += ((drawn - k + 1.0) / k).ln() + odds;
        sum += log.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_tables() {
        // From tables of one-sided 95 % limits.
        for (found, drawn, expected) in [
            (0, 100, 0.0295),
            (1, 20, 0.2161),
            (3, 100, 0.0757),
            (0, 1, 0.95),
        ] {
            let bound = upper_bound(found, drawn);
            assert!(
                (bound - expected).abs() < 1e-4,
                "{found} of {drawn}: {bound}"
            );
        }
        assert_eq!(upper_bound(5, 5), 1.0);
        assert_eq!(upper_bound(0, 0), 1.0);
        assert!(upper_bound(100, 100_000) < 0.0013);
    }
}
