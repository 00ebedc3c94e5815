//! How much a feature counts: from how often it occurs in the text, and from how rare it is in a collection.

use crate::choice::{Choice, Name, by_name};

/// The weight of a feature that occurs tf times in the text. If the spec names a table of document
/// frequencies, the feature's idf ([`crate::Idf`]) multiplies this weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    /// `tf`: every occurrence counts.
    Tf,
    /// `1 + ln tf`, in steps of 1/1024.
    LogTf,
    /// The square root of tf, in steps of 1/256, below 128.
    SqrtTf,
    /// 1: only presence counts.
    Set,
    /// Five levels, 1 to 5, as in the literature: 5 times the feature's [`Weight::LogTf`], divided
    /// by the greatest of the text, rounded up. Idf multiplies [`Weight::LogTf`], not the level.
    Levels,
}

impl Choice for Weight {
    const PLURAL: &'static str = "weights";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "sqrt-tf",
            Self::SqrtTf,
            "the square root of tf: further occurrences count less",
        ),
        Name::new("tf", Self::Tf, "every occurrence counts"),
        Name::new(
            "log-tf",
            Self::LogTf,
            "1 + ln tf: further occurrences count still less",
        ),
        Name::new("set", Self::Set, "presence counts, once"),
        Name::new("levels", Self::Levels, "log-tf in five steps, 1 to 5"),
    ];
}

by_name!(Weight);

/// The power to which the inverse document frequency is raised before it multiplies a weight.
///
/// The smaller the power, the smaller the weight of rare features relative to frequent ones. A spec
/// without document frequencies ignores the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IdfPower {
    /// The inverse document frequency itself.
    #[default]
    One,
    /// Its power of 3/4.
    ThreeQuarters,
    /// Its square root.
    Half,
    /// The square root of its square root.
    Quarter,
}

impl Choice for IdfPower {
    const PLURAL: &'static str = "powers of idf";
    const NAMES: &'static [Name<Self>] = &[
        Name::new("1", Self::One, "the inverse document frequency itself"),
        Name::new("3/4", Self::ThreeQuarters, "its power of 3/4"),
        Name::new("1/2", Self::Half, "its square root"),
        Name::new("1/4", Self::Quarter, "its fourth root"),
    ];
}

by_name!(IdfPower);

impl IdfPower {
    /// Raises `idf` to this power, by square roots computed in software, which are equal on every
    /// machine.
    pub(crate) fn raise(self, idf: f64) -> f64 {
        let half = libm::sqrt(idf);
        match self {
            Self::One => idf,
            Self::ThreeQuarters => half * libm::sqrt(half),
            Self::Half => half,
            Self::Quarter => libm::sqrt(half),
        }
    }
}

/// Which features a fingerprint sums, and with which weights; idf ([`crate::Idf`]) multiplies
/// these.
pub(crate) enum Summed {
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
    /// Which features a fingerprint of this weight sums.
    pub(crate) fn summed(self) -> Summed {
        match self {
            Self::Tf => Summed::Occurrences,
            Self::Set => Summed::Presences,
            Self::LogTf | Self::SqrtTf | Self::Levels => Summed::Weights,
        }
    }

    /// The weight of a feature that occurs `tf` times: an integer below 2¹⁵, except for [`Weight::Tf`]. Only the
    /// ratios of these integers matter. For [`Weight::Levels`] it is the weight of [`Weight::LogTf`], which
    /// [`Weight::level`] then turns into a level.
    ///
    /// Integer weights, and a logarithm and a root computed in software, make fingerprints equal on every machine.
    #[must_use]
    pub fn weigh(self, tf: u32) -> u32 {
        match self {
            Self::Tf => tf,
            Self::LogTf | Self::Levels => {
                (1024.0 * (1.0 + libm::log(f64::from(tf.max(1))))).round() as u32
            }
            Self::SqrtTf => {
                let root = (256.0 * libm::sqrt(f64::from(tf))).round() as u32;
                root.min((1 << 15) - 1)
            }
            Self::Set => 1,
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
    fn powers() {
        let raised = [
            IdfPower::One,
            IdfPower::ThreeQuarters,
            IdfPower::Half,
            IdfPower::Quarter,
        ]
        .map(|power| power.raise(16.0));
        assert_eq!(raised, [16.0, 8.0, 4.0, 2.0]);
    }

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
            [1, 2, 9, 16_383, u32::MAX].map(|tf| Weight::SqrtTf.weigh(tf)),
            [256, 362, 768, 32_767, 32_767]
        );
        assert_eq!(
            [0, 1, 20, 21, 99, 100].map(|weight| Weight::level(weight, 100)),
            [1, 1, 1, 2, 5, 5]
        );
    }
}
