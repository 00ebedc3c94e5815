//! How much a feature counts, from how often it occurs in the text.

use serde::{Deserialize, Serialize};

/// The weight of a feature that occurs `tf` times in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// `tf`: every occurrence counts.
    Tf,
    /// `1 + ln tf`, in steps of 1/1024.
    LogTf,
    /// 1: only presence counts.
    Set,
}

impl Weight {
    /// The weight as an integer; only ratios between weights of one scheme matter.
    ///
    /// Integers, and a logarithm in software, make the sums exact and the fingerprints the same on
    /// every machine.
    #[must_use]
    pub fn of(self, tf: u32) -> i64 {
        match self {
            Self::Tf => i64::from(tf),
            Self::LogTf => (1024.0 * (1.0 + libm::log(f64::from(tf.max(1))))).round() as i64,
            Self::Set => 1,
        }
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
    }
}
