//! Rates of unrelated documents: how many documents of a large archive are within k bits of a new
//! document, although unrelated to it.
//!
//! Two texts about different things have common words, so their fingerprints are nearer to each
//! other than random ones. How near depends on the weights. `bench sharp` measured the rates of the
//! table, among pages of four unrelated sources (C++ and PowerShell manuals, Ethereum proposals,
//! command pages); the repository's docs/quality.md says how. The rates of other documents can
//! differ by a factor of ten.

use crate::spec::Spec;
use crate::tokenize::Tokenizer;
use crate::weight::{IdfPower, Weight};

/// The weights that were measured.
const WEIGHTS: [Weight; 3] = [Weight::SqrtTf, Weight::Tf, Weight::LogTf];
/// The powers of idf that were measured, and none.
const POWERS: [Option<IdfPower>; 4] = [
    None,
    Some(IdfPower::Quarter),
    Some(IdfPower::Half),
    Some(IdfPower::One),
];
/// The largest k of a measurement, in bits.
const MAX_DISTANCE: usize = 16;

/// Measurements for each of [`POWERS`], of [`WEIGHTS`], and of the distances from 0 to [`MAX_DISTANCE`] bits.
pub(crate) type Table<T> = [[[T; MAX_DISTANCE + 1]; WEIGHTS.len()]; POWERS.len()];

/// Estimates how many of the `archive` documents of an archive are within `k` bits of a new
/// document, although unrelated to it.
///
/// `None` if the table has no rate for this spec or this `k`.
#[must_use]
pub fn unrelated_documents(spec: &Spec, k: u32, archive: u64) -> Option<f64> {
    let rate = measured(&PER_BILLION, spec, k)?;
    Some(rate * archive as f64 / 1e9)
}

/// The measurement of a spec at a distance of `k` bits. `None` for specs with other features or weights than those that were
/// measured, and for larger distances.
pub(crate) fn measured<T: Copy>(table: &Table<T>, spec: &Spec, k: u32) -> Option<T> {
    // These tokenizers extract the same features from text without Chinese, Japanese and Korean.
    let tokenizers = [
        Tokenizer::WordsCjkGrams,
        Tokenizer::WordsCjkBigrams,
        Tokenizer::Words,
    ];
    if !tokenizers.contains(&spec.tokenizer) || spec.stop_words.is_some() {
        return None;
    }
    let idf = spec.idf.as_ref().map(|_| spec.idf_power);
    let power = POWERS.iter().position(|power| *power == idf)?;
    let weight = WEIGHTS.iter().position(|weight| *weight == spec.weight)?;
    table[power][weight].get(k as usize).copied()
}

/// The number of unrelated documents within k bits of a new document, by k, in an archive of a billion documents. Where fewer than
/// ten such pairs were measured, the rate is extrapolated from larger distances.
const PER_BILLION: Table<f64> = [
    // Without idf.
    [
        [
            0.00029, 0.0022, 0.015, 0.097, 0.57, 3.1, 16.0, 97.0, 320.0, 1200.0, 4300.0, 15000.0,
            47000.0, 130000.0, 340000.0, 800000.0, 1800000.0,
        ],
        [
            0.64, 4.3, 26.0, 85.0, 630.0, 2500.0, 9900.0, 31000.0, 84000.0, 200000.0, 450000.0,
            930000.0, 1800000.0, 3200000.0, 5400000.0, 8700000.0, 13000000.0,
        ],
        [
            2.9e-5, 0.00028, 0.0023, 0.018, 0.13, 0.81, 4.7, 25.0, 110.0, 520.0, 2200.0, 7900.0,
            26000.0, 77000.0, 210000.0, 530000.0, 1200000.0,
        ],
    ],
    // With idf to the power of 1/4.
    [
        [
            4.9e-5, 0.00034, 0.0022, 0.014, 0.078, 0.42, 2.1, 9.8, 43.0, 120.0, 690.0, 2200.0,
            7700.0, 25000.0, 72000.0, 190000.0, 490000.0,
        ],
        [
            0.0016, 0.017, 0.15, 1.2, 8.0, 47.0, 220.0, 1200.0, 4700.0, 14000.0, 40000.0, 100000.0,
            230000.0, 490000.0, 980000.0, 1800000.0, 3300000.0,
        ],
        [
            1.1e-6, 1.2e-5, 0.00012, 0.0011, 0.0091, 0.068, 0.46, 2.8, 16.0, 63.0, 330.0, 1600.0,
            5700.0, 18000.0, 55000.0, 150000.0, 390000.0,
        ],
    ],
    // 1/2.
    [
        [
            3.9e-7, 3.9e-6, 3.7e-5, 0.00031, 0.0025, 0.018, 0.12, 0.71, 4.0, 20.0, 97.0, 420.0,
            1600.0, 6000.0, 20000.0, 61000.0, 170000.0,
        ],
        [
            0.0018, 0.01, 0.052, 0.25, 1.1, 4.8, 19.0, 68.0, 230.0, 960.0, 2500.0, 7200.0, 20000.0,
            51000.0, 120000.0, 290000.0, 620000.0,
        ],
        [
            3e-9, 5.4e-8, 8.6e-7, 1.2e-5, 0.00015, 0.0017, 0.017, 0.14, 1.1, 7.5, 45.0, 210.0,
            1300.0, 5000.0, 17000.0, 52000.0, 150000.0,
        ],
    ],
    // 1.
    [
        [
            2.6e-9, 3.8e-8, 5e-7, 6e-6, 6.5e-5, 0.00064, 0.0056, 0.045, 0.32, 2.1, 12.0, 65.0,
            280.0, 1500.0, 5700.0, 18000.0, 56000.0,
        ],
        [
            3e-6, 1.9e-5, 0.00012, 0.0007, 0.0039, 0.021, 0.1, 0.5, 2.3, 9.7, 40.0, 170.0, 500.0,
            2000.0, 6800.0, 22000.0, 66000.0,
        ],
        [
            2.6e-8, 2.9e-7, 2.9e-6, 2.7e-5, 0.00024, 0.0019, 0.014, 0.091, 0.56, 3.2, 16.0, 63.0,
            320.0, 1500.0, 5300.0, 17000.0, 54000.0,
        ],
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bits_and_larger_archives_mean_more_unrelated_documents() {
        let default = Spec::default();
        let at = |spec: &Spec, k, archive| unrelated_documents(spec, k, archive).unwrap();
        for row in PER_BILLION.as_flattened() {
            assert!(row.is_sorted(), "{row:?}");
        }
        assert!(at(&default, 3, 1_000_000_000) < 1.0);
        assert!(at(&default, 8, 1_000_000_000) > 100.0);
        assert!(at(&default, 8, 1_000_000) < 1.0);
        let learned = Spec {
            idf: Some("digest".into()),
            idf_power: IdfPower::Half,
            ..Spec::default()
        };
        assert!(at(&learned, 8, 1_000_000_000) < 10.0);
        assert_eq!(unrelated_documents(&default, 17, 1), None);
        let chars = Spec {
            tokenizer: Tokenizer::Chars(4),
            ..Spec::default()
        };
        assert_eq!(unrelated_documents(&chars, 3, 1), None);
    }
}
