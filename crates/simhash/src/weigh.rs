//! How much a feature counts, from how often it occurs in the text.

use serde::{Deserialize, Serialize};

/// The weight of a feature that occurs `tf` times in a text. A table of document frequencies, see [`crate::Idf`],
/// multiplies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// `tf`: every occurrence counts.
    Tf,
    /// `1 + ln tf`, in steps of 1/1024.
    LogTf,
    /// 1: only presence counts.
    Set,
    /// The five levels of importance of the literature, 1 to 5: [`Weight::LogTf`] in fifths of what the heaviest
    /// feature of the text has, rounded up.
    Levels,
}

/// Levels of [`Weight::Levels`].
const LEVELS: u64 = 5;

impl Weight {
    /// The weight as an integer, below 2¹⁵ but for [`Weight::Tf`]; only ratios between weights of one scheme matter.
    /// Those of [`Weight::Levels`] depend on the whole text, see [`Weight::level`]; this is what they are levels of.
    ///
    /// Integers, and a logarithm in software, make the sums exact and the fingerprints the same on
    /// every machine.
    #[must_use]
    pub fn of(self, tf: u32) -> u32 {
        match self {
            Self::Tf => tf,
            Self::LogTf | Self::Levels => {
                (1024.0 * (1.0 + libm::log(f64::from(tf.max(1))))).round() as u32
            }
            Self::Set => 1,
        }
    }

    /// The level of a weight where `heaviest` is the greatest, from 1 to 5.
    #[must_use]
    pub fn level(weight: u32, heaviest: u32) -> u32 {
        let level = (LEVELS * u64::from(weight)).div_ceil(u64::from(heaviest.max(1)));
        level.clamp(1, LEVELS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights() {
        assert_eq!([1, 2, 9].map(|tf| Weight::Tf.of(tf)), [1, 2, 9]);
        assert_eq!([1, 2, 9].map(|tf| Weight::Set.of(tf)), [1, 1, 1]);
        assert_eq!(
            [1, 2, 10].map(|tf| Weight::LogTf.of(tf)),
            [1024, 1734, 3382]
        );
        assert!(Weight::LogTf.of(u32::MAX) < 1 << 15);
        assert_eq!(
            [0, 1, 20, 21, 99, 100].map(|weight| Weight::level(weight, 100)),
            [1, 1, 1, 2, 5, 5]
        );
    }
}
