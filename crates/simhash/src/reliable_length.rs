//! Reliable lengths: from how many words on nearly all texts are found again after one word of them
//! was replaced.
//!
//! In a short text, one word decides many bits of the fingerprint. `bench sharp` measured the share
//! of texts that are found again, among pieces of manuals, Ethereum proposals and command pages;
//! in the repository, docs/choosing-settings.md has figures, and crates/bench/results/sharp.json the
//! figures from which the table follows. In other documents the lengths can differ by a factor of two; `dedup-job tune`
//! measures them.

use crate::spec::Spec;
use crate::unrelated_rates::{Table, measured};

/// The lengths of texts that are measured, in words.
pub const LENGTHS: [u32; 8] = [5, 10, 20, 50, 100, 200, 400, 800];

/// The share of texts that are found again, from a reliable length on.
pub const ENOUGH: f64 = 0.95;

/// The least of [`LENGTHS`] from which on [`ENOUGH`] of the texts are still within `k` bits of
/// themselves after one word was replaced.
///
/// `None` if even the greatest length is too short, or if the table has no length for this spec or
/// this `k`.
#[must_use]
pub fn reliable_length(spec: &Spec, k: u32) -> Option<u32> {
    measured(&WORDS, spec, k).filter(|&words| words > 0)
}

/// The reliable length within k bits, by k; 0 if it is greater than all of [`LENGTHS`].
const WORDS: Table<u32> = [
    // Without idf.
    [
        [
            0, 0, 0, 400, 200, 200, 100, 50, 50, 50, 20, 20, 20, 20, 10, 10, 10,
        ],
        [
            0, 800, 400, 200, 100, 100, 50, 50, 50, 20, 20, 20, 20, 10, 10, 10, 10,
        ],
        [
            0, 0, 0, 400, 200, 100, 100, 50, 50, 50, 20, 20, 20, 20, 10, 10, 10,
        ],
    ],
    // With idf to the power of 1/4.
    [
        [
            0, 0, 0, 800, 400, 200, 100, 100, 50, 50, 50, 50, 20, 20, 20, 20, 10,
        ],
        [
            0, 800, 400, 200, 100, 100, 50, 50, 50, 50, 50, 20, 20, 20, 20, 20, 20,
        ],
        [
            0, 0, 0, 800, 200, 200, 100, 50, 50, 50, 50, 20, 20, 20, 20, 20, 10,
        ],
    ],
    // 1/2.
    [
        [
            0, 0, 0, 800, 400, 400, 200, 100, 100, 50, 50, 50, 50, 20, 20, 20, 20,
        ],
        [
            0, 0, 400, 200, 200, 100, 100, 50, 50, 50, 50, 50, 20, 20, 20, 20, 20,
        ],
        [
            0, 0, 0, 800, 400, 200, 100, 100, 50, 50, 50, 50, 50, 20, 20, 20, 20,
        ],
    ],
    // 1.
    [
        [
            0, 0, 0, 0, 800, 800, 400, 400, 200, 200, 100, 100, 50, 50, 50, 50, 50,
        ],
        [
            0, 0, 800, 400, 400, 200, 200, 100, 100, 100, 50, 50, 50, 50, 50, 50, 50,
        ],
        [
            0, 0, 0, 0, 800, 400, 400, 200, 200, 100, 100, 50, 50, 50, 50, 50, 50,
        ],
    ],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::Tokenizer;
    use crate::weight::IdfPower;

    #[test]
    fn more_bits_find_shorter_texts() {
        for row in WORDS.as_flattened() {
            let found = row.iter().skip_while(|words| **words == 0);
            let found: Vec<u32> = found.copied().collect();
            assert!(!found.is_empty());
            assert!(found.iter().all(|words| LENGTHS.contains(words)));
            assert!(found.is_sorted_by(|a, b| a >= b), "{row:?}");
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
