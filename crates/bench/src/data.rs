//! Random fingerprints to measure with, and files of numbers for other programs.

use std::io::Write as _;
use std::path::Path;

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

/// Writes numbers to a file, little-endian.
pub fn write_numbers(path: &Path, numbers: impl IntoIterator<Item = u64>) {
    let file = std::fs::File::create(path).unwrap_or_else(failed(path));
    let mut file = std::io::BufWriter::new(file);
    for number in numbers {
        let written = file.write_all(&number.to_le_bytes());
        written.unwrap_or_else(failed(path));
    }
    file.flush().unwrap_or_else(failed(path));
}

/// Reads what [`write_numbers`] wrote.
pub fn read_numbers(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap_or_else(failed(path));
    let (numbers, rest) = bytes.as_chunks::<8>();
    assert!(
        rest.is_empty(),
        "{}: not numbers of 8 bytes",
        path.display()
    );
    numbers.iter().map(|&n| u64::from_le_bytes(n)).collect()
}

fn failed<T>(path: &Path) -> impl FnOnce(std::io::Error) -> T {
    move |error| panic!("{}: {error}", path.display())
}

/// Number of fingerprints in a row group.
pub const ROW_GROUP: usize = 1 << 20;
