//! Fingerprints to measure with.

use engine::probe::TOGETHER;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Random fingerprints of a new batch.
pub fn batch(fingerprints: usize) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..fingerprints).map(|_| rng.next_u64()).collect()
}

/// `chunks` row groups of 2²⁰ ascending fingerprints, spread over an archive of `archive` fingerprints in one
/// sorted sequence; every thousandth is planted near one of the batch.
pub fn row_groups(batch: &[u64], archive: u64, chunks: usize) -> Vec<Vec<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let groups = archive.div_ceil(ROW_GROUP as u64).max(chunks as u64);
    (0..chunks as u64)
        .map(|chunk| {
            let share = |number: u64| (u128::from(number) << 64) / u128::from(groups);
            // Some that follow each other, from all over the archive.
            let (run, next) = (chunk / TOGETHER as u64, chunk % TOGETHER as u64);
            let runs = (chunks as u64).div_ceil(TOGETHER as u64);
            let number = run * (groups / runs) + next;
            let (from, to) = (share(number) as u64, (share(number + 1) - 1) as u64);
            let mut group: Vec<u64> = (0..ROW_GROUP)
                .map(|_| rng.random_range(from..=to))
                .collect();
            if !batch.is_empty() {
                for fingerprint in group.iter_mut().step_by(1000) {
                    let near =
                        batch[rng.random_range(0..batch.len())] ^ 1 << rng.random_range(0..64);
                    if (from..=to).contains(&near) {
                        *fingerprint = near;
                    }
                }
            }
            group.sort_unstable();
            group
        })
        .collect()
}

/// Fingerprints of a row group.
pub const ROW_GROUP: usize = 1 << 20;
