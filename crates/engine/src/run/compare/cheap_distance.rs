//! Lowers the k of a run that compares a batch with itself, unless an option gives k. If most records
//! of a batch come from one template, most of their pairs are within the profile's k, and comparing their texts would take hours.

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use crate::error::{EngineError, Result};
use crate::fingerprint::FingerprintedBatch;
use crate::profile::{CompareSettings, Profile};
use crate::run::Run;
use streams::{blocking, thread_pool};

/// Candidates that are always cheap to compare: a minute for one core.
const CHEAP: u64 = 1_000_000;
/// More of them for each document.
const CHEAP_OF_DOCUMENT: u64 = 4;
/// Distances that are counted to estimate the candidates.
const COUNTED: usize = 50_000_000;

/// Lowers the distance of `settings` if they allow it and the batch has too many candidates within it.
pub(in crate::run) async fn lower_if_dear(
    run: Run<'_>,
    batch: &FingerprintedBatch,
    settings: &mut CompareSettings,
) -> Result<()> {
    if !settings.may_lower {
        return Ok(());
    }
    let loaded = run.load(batch).await?;
    let (asked, documents) = (settings.max_distance, batch.file.rows);
    let threads = thread_pool(run.context)?;
    let counting = move || threads.install(|| candidates(loaded.distinct.values(), asked));
    let candidates = blocking(move || Ok::<_, EngineError>(counting())).await?;
    let chosen = largest_cheap(&candidates, documents);
    if chosen < asked {
        tracing::warn!(
            "about {} candidates are within {asked} bits, as if most documents were made from one template: only those within {chosen} bits are compared; -k {asked} compares all",
            candidates[asked as usize]
        );
        settings.max_distance = chosen;
    }
    Ok(())
}

/// The largest distance of at least that of the paper with few candidates beyond the paper's, given their number within each
/// distance.
fn largest_cheap(candidates: &[u64], documents: u64) -> u32 {
    let least = Profile::Paper.max_distance() as usize;
    let most = candidates.len() - 1;
    let cheap = CHEAP + CHEAP_OF_DOCUMENT * documents;
    let is_cheap = |k: &usize| candidates[*k] - candidates[least.min(*k)] <= cheap;
    (least..=most).rev().find(is_cheap).unwrap_or(most) as u32
}

/// The number of pairs of distinct fingerprints within each distance up to `most`, estimated from a sample of `values`.
fn candidates(values: &[u64], most: u32) -> Vec<u64> {
    let sample = (COUNTED / values.len().max(1)).clamp(64, values.len().max(64));
    let step = values.len().div_ceil(sample).max(1);
    let sampled: Vec<u64> = values.iter().step_by(step).copied().collect();
    let none = || vec![0_u64; most as usize + 1];
    // Vectors find the few values that are near.
    let is_near = |value: u64| move |other: &&u64| (value ^ **other).count_ones() <= most;
    let count = |mut at_distance: Vec<u64>, &value: &u64| {
        for others in values.chunks(64) {
            if others.iter().filter(is_near(value)).count() > 0 {
                for other in others.iter().filter(is_near(value)) {
                    at_distance[(value ^ other).count_ones() as usize] += 1;
                }
            }
        }
        at_distance
    };
    let sum = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let mut at_distance = sampled.par_iter().fold(none, count).reduce(none, sum);
    // Each sampled value has met itself.
    at_distance[0] = 0;
    let scale = values.len() as f64 / sampled.len().max(1) as f64 / 2.0;
    at_distance
        .iter()
        .scan(0, |sum, count| {
            *sum += count;
            Some((*sum as f64 * scale) as u64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_of_few_values_are_counted() {
        let values = [0, 1, 3, 0xff, u64::MAX];
        // 0 and 1 differ in 1 bit, 1 and 3, too; 0 and 3 in 2; 3 and 0xff in 6; 1 and 0xff in 7.
        assert_eq!(candidates(&values, 7), [0, 2, 3, 3, 3, 3, 4, 5]);
        assert_eq!(candidates(&[], 3), [0; 4]);
    }

    #[test]
    fn the_distance_is_lowered_only_for_many_candidates_beyond_those_of_the_paper() {
        let cheap = CHEAP + CHEAP_OF_DOCUMENT * 10;
        let many = 1 << 40;
        assert_eq!(largest_cheap(&[many, many, many, many, many], 10), 4);
        assert_eq!(
            largest_cheap(&[0, 0, 0, many, many + cheap, many + cheap + 1], 10),
            4
        );
        assert_eq!(largest_cheap(&[0, 0, 0, 0, many], 10), 3);
        assert_eq!(largest_cheap(&[0, many], 10), 1);
    }
}
