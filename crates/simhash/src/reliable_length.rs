//! Reliable lengths: from how many words on nearly all texts are found again after one word of them
//! was replaced.
//!
//! In a short text, one word decides many bits of the fingerprint. `bench sharp` measured the share
//! of texts that are found again, among pieces of manuals, Ethereum proposals and command pages;
//! in the repository, docs/choosing-settings.md has figures, and crates/bench/results/sharp.json the
//! figures from which the table follows. In other documents the lengths can differ by a factor of two; `dedup-job tune`
//! measures them.

use crate::spec::Spec;
use crate::unrelated_rates::measured_weights;
use crate::weight::{IdfPower, Weight};

/// The lengths of texts that are measured, in words.
pub const LENGTHS: [u32; 8] = [5, 10, 20, 50, 100, 200, 400, 800];

/// The share of texts that are found again, from a reliable length on.
pub const ENOUGH: f64 = 0.95;

/// The reliable lengths of one weight and power of idf.
struct Row {
    weight: Weight,
    idf: Option<IdfPower>,
    /// Item k: the reliable length within k bits; 0 if it is greater than all of [`LENGTHS`].
    words: [u32; MAX_DISTANCE + 1],
}

/// The largest k in the table, in bits.
const MAX_DISTANCE: usize = 16;

/// The least of [`LENGTHS`] from which on [`ENOUGH`] of the texts are still within `k` bits of
/// themselves after one word was replaced.
///
/// `None` if even the greatest length is too short, or if the table has no length for this spec or
/// this `k`.
#[must_use]
pub fn reliable_length(spec: &Spec, k: u32) -> Option<u32> {
    let (weight, idf) = measured_weights(spec)?;
    let mut rows = ROWS.iter();
    let row = rows.find(|row| row.weight == weight && row.idf == idf)?;
    let words = *row.words.get(k as usize)?;
    (words > 0).then_some(words)
}

const ROWS: &[Row] = &[
    Row {
        weight: Weight::SqrtTf,
        idf: None,
        words: [
            0, 0, 0, 400, 200, 200, 100, 50, 50, 50, 20, 20, 20, 20, 10, 10, 10,
        ],
    },
    Row {
        weight: Weight::Tf,
        idf: None,
        words: [
            0, 800, 400, 200, 100, 100, 50, 50, 50, 20, 20, 20, 20, 10, 10, 10, 10,
        ],
    },
    Row {
        weight: Weight::LogTf,
        idf: None,
        words: [
            0, 0, 0, 400, 200, 100, 100, 50, 50, 50, 20, 20, 20, 20, 10, 10, 10,
        ],
    },
    Row {
        weight: Weight::SqrtTf,
        idf: Some(IdfPower::Quarter),
        words: [
            0, 0, 0, 800, 400, 200, 100, 100, 50, 50, 50, 50, 20, 20, 20, 20, 10,
        ],
    },
    Row {
        weight: Weight::Tf,
        idf: Some(IdfPower::Quarter),
        words: [
            0, 800, 400, 200, 100, 100, 50, 50, 50, 50, 50, 20, 20, 20, 20, 20, 20,
        ],
    },
    Row {
        weight: Weight::LogTf,
        idf: Some(IdfPower::Quarter),
        words: [
            0, 0, 0, 800, 200, 200, 100, 50, 50, 50, 50, 20, 20, 20, 20, 20, 10,
        ],
    },
    Row {
        weight: Weight::SqrtTf,
        idf: Some(IdfPower::Half),
        words: [
            0, 0, 0, 800, 400, 400, 200, 100, 100, 50, 50, 50, 50, 20, 20, 20, 20,
        ],
    },
    Row {
        weight: Weight::Tf,
        idf: Some(IdfPower::Half),
        words: [
            0, 0, 400, 200, 200, 100, 100, 50, 50, 50, 50, 50, 20, 20, 20, 20, 20,
        ],
    },
    Row {
        weight: Weight::LogTf,
        idf: Some(IdfPower::Half),
        words: [
            0, 0, 0, 800, 400, 200, 100, 100, 50, 50, 50, 50, 50, 20, 20, 20, 20,
        ],
    },
    Row {
        weight: Weight::SqrtTf,
        idf: Some(IdfPower::One),
        words: [
            0, 0, 0, 0, 800, 800, 400, 400, 200, 200, 100, 100, 50, 50, 50, 50, 50,
        ],
    },
    Row {
        weight: Weight::Tf,
        idf: Some(IdfPower::One),
        words: [
            0, 0, 800, 400, 400, 200, 200, 100, 100, 100, 50, 50, 50, 50, 50, 50, 50,
        ],
    },
    Row {
        weight: Weight::LogTf,
        idf: Some(IdfPower::One),
        words: [
            0, 0, 0, 0, 800, 400, 400, 200, 200, 100, 100, 50, 50, 50, 50, 50, 50,
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::Tokenizer;

    #[test]
    fn more_bits_find_shorter_texts() {
        for row in ROWS {
            let found = row.words.iter().skip_while(|words| **words == 0);
            let found: Vec<u32> = found.copied().collect();
            assert!(!found.is_empty());
            assert!(found.iter().all(|words| LENGTHS.contains(words)));
            assert!(
                found.is_sorted_by(|a, b| a >= b),
                "{:?} {:?}",
                row.weight,
                row.idf
            );
        }
        let default = Spec::default();
        let learnt = Spec {
            idf: Some("digest".into()),
            idf_power: IdfPower::Half,
            ..Spec::default()
        };
        let lengths = [0, 3, 6, 8, 17].map(|k| reliable_length(&default, k));
        assert_eq!(lengths, [None, Some(400), Some(100), Some(50), None]);
        assert_eq!(reliable_length(&learnt, 8), Some(100));
        let chars = Spec {
            tokenizer: Tokenizer::Chars(4),
            ..Spec::default()
        };
        assert_eq!(reliable_length(&chars, 3), None);
    }
}
