//! Random fingerprints to measure with.

use engine::probe::TOGETHER;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Returns random fingerprints, the same in each call.
pub fn random_batch(fingerprints: usize) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..fingerprints).map(|_| rng.next_u64()).collect()
}

/// Returns `count` row groups of [`ROW_GROUP`] fingerprints each, from a sorted archive of
/// `archive` random fingerprints.
///
/// Every thousandth fingerprint is replaced by one that differs in one bit from a fingerprint of
/// the batch, if that one is in the range of the row group.
pub fn row_groups(batch: &[u64], archive: u64, count: usize) -> Vec<Vec<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let groups = archive.div_ceil(ROW_GROUP as u64).max(count as u64);
    (0..count as u64)
        .map(|group| {
            let start = |number: u64| (u128::from(number) << 64) / u128::from(groups);
            // Runs of `TOGETHER` consecutive row groups, spread over the archive.
            let (run, next) = (group / TOGETHER as u64, group % TOGETHER as u64);
            let runs = (count as u64).div_ceil(TOGETHER as u64);
            let number = run * (groups / runs) + next;
            let (from, to) = (start(number) as u64, (start(number + 1) - 1) as u64);
            let mut fingerprints: Vec<u64> = (0..ROW_GROUP)
                .map(|_| rng.random_range(from..=to))
                .collect();
            if !batch.is_empty() {
                for fingerprint in fingerprints.iter_mut().step_by(1000) {
                    let near =
                        batch[rng.random_range(0..batch.len())] ^ 1 << rng.random_range(0..64);
                    if (from..=to).contains(&near) {
                        *fingerprint = near;
                    }
                }
            }
            fingerprints.sort_unstable();
            fingerprints
        })
        .collect()
}

/// Number of fingerprints in a row group.
pub const ROW_GROUP: usize = 1 << 20;
