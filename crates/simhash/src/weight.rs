//! How much a feature counts, from how often it occurs in the text.

use crate::choice::{Choice, Name, by_name};

/// The weight of a feature that occurs tf times in the text. If the spec names a table of document frequencies,
/// [`crate::Idf`] multiplies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    /// `tf`: every occurrence counts.
    Tf,
    /// `1 + ln tf`, in steps of 1/1024.
    LogTf,
    /// 1: only presence counts.
    Set,
    /// Five levels, 1 to 5, as in the literature: the feature's [`Weight::LogTf`] times 5 over the greatest in the text,
    /// rounded up.
    Levels,
}

impl Choice for Weight {
    const PLURAL: &'static str = "weights";
    const NAMES: &'static [Name<Self>] = &[
        Name::new("tf", Self::Tf, "every occurrence counts"),
        Name::new(
            "log-tf",
            Self::LogTf,
            "1 + ln tf: further occurrences count less",
        ),
        Name::new("set", Self::Set, "presence counts, once"),
        Name::new("levels", Self::Levels, "log-tf in five steps, 1 to 5"),
    ];
}

by_name!(Weight);

/// What a fingerprint adds up, before [`crate::Idf`] multiplies the weights.
pub(crate) enum Addends {
    /// Every occurrence of a feature, with weight 1.
    Occurrences,
    /// Every distinct feature once, with weight 1.
    Presences,
    /// Every distinct feature once, with a weight that depends on its tf.
    Weights,
}

/// The number of levels of [`Weight::Levels`].
const LEVELS: u64 = 5;

impl Weight {
    /// What a fingerprint of this weight adds up.
    pub(crate) fn addends(self) -> Addends {
        match self {
            Self::Tf => Addends::Occurrences,
            Self::Set => Addends::Presences,
            Self::LogTf | Self::Levels => Addends::Weights,
        }
    }

    /// The weight of a feature that occurs `tf` times: an integer below 2¹⁵, except for [`Weight::Tf`]. Only the
    /// ratios of these integers matter. For [`Weight::Levels`] it is the weight of [`Weight::LogTf`], which
    /// [`Weight::level`] then turns into a level.
    ///
    /// Integer weights and a logarithm computed in software make fingerprints equal on every machine.
    #[must_use]
    pub fn weigh(self, tf: u32) -> u32 {
        match self {
            Self::Tf => tf,
            Self::LogTf | Self::Levels => {
                (1024.0 * (1.0 + libm::log(f64::from(tf.max(1))))).round() as u32
            }
            Self::Set => 1,
        }
    }

    /// For [`Weight::Levels`], replaces the weights of all features of a text by their levels; others stay.
    pub(crate) fn apply_levels(self, weights: &mut [u32]) {
        match self {
            Self::Tf | Self::LogTf | Self::Set => {}
            Self::Levels => {
                let heaviest = weights.iter().copied().max().unwrap_or(0);
                for weight in weights {
                    *weight = Self::level(*weight, heaviest);
                }
            }
        }
    }

    /// The level of `weight`, from 1 to 5, in a text whose greatest weight is `heaviest`.
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
    fn weights_and_levels() {
        assert_eq!([1, 2, 9].map(|tf| Weight::Tf.weigh(tf)), [1, 2, 9]);
        assert_eq!([1, 2, 9].map(|tf| Weight::Set.weigh(tf)), [1, 1, 1]);
        assert_eq!(
            [1, 2, 10].map(|tf| Weight::LogTf.weigh(tf)),
            [1024, 1734, 3382]
        );
        assert!(Weight::LogTf.weigh(u32::MAX) < 1 << 15);
        assert_eq!(
            [0, 1, 20, 21, 99, 100].map(|weight| Weight::level(weight, 100)),
            [1, 1, 1, 2, 5, 5]
        );
    }
}
