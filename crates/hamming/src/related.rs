//! [`Related`]: how often fingerprints of a batch agree where random ones would not.
//!
//! Texts of one language or of one source share features, so their fingerprints agree in more bits than half: then a query
//! has more candidates than among random fingerprints, and most in the designs with the shortest keys.

/// The most values of a sample.
const MOST_VALUES: usize = 1024;
/// Fewer pairs than this may agree by chance.
const LEAST_PAIRS: usize = 16;

/// A sample of the values of a batch; by default of none.
#[derive(Debug, Clone, Default)]
pub struct Related {
    sample: Vec<u64>,
}

impl Related {
    /// Samples the distinct values of a batch. The same values give the same sample.
    #[must_use]
    pub fn of(values: &[u64]) -> Self {
        let mut sample: Vec<u64> = if values.len() <= MOST_VALUES {
            values.to_vec()
        } else {
            // The values are in order, so those of a sample must not have equal steps.
            (0..MOST_VALUES as u64)
                .map(|at| {
                    values[((u128::from(scattered(at)) * values.len() as u128) >> 64) as usize]
                })
                .collect()
        };
        // A value drawn twice is no pair.
        sample.sort_unstable();
        sample.dedup();
        Self { sample }
    }

    /// The differences of all pairs.
    fn differences(&self) -> impl Iterator<Item = u64> {
        let pairs = self.sample.iter().enumerate();
        pairs.flat_map(|(at, a)| self.sample[..at].iter().map(move |b| a ^ b))
    }

    /// By how much the share of pairs whose difference passes `test` exceeds that of `random` pairs; 0 if so few do that it may be
    /// chance.
    pub(crate) fn excess(&self, test: impl Fn(u64) -> bool, random: f64) -> f64 {
        let pairs = self.sample.len() * self.sample.len().saturating_sub(1) / 2;
        match self
            .differences()
            .filter(|&difference| test(difference))
            .count()
        {
            ..LEAST_PAIRS => 0.0,
            passing => (passing as f64 / pairs as f64 - random).max(0.0),
        }
    }
}

/// A number whose bits all depend on `at`: the finalizer of splitmix64.
fn scattered(at: u64) -> u64 {
    let x = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ball::volume;

    #[test]
    fn random_values_are_not_related() {
        let values: Vec<u64> = (0..100_000).map(scattered).collect();
        let related = Related::of(&values);
        let within = |bits: u32| {
            let random = volume(64, bits) / 2f64.powi(64);
            related.excess(|difference| difference.count_ones() <= bits, random)
        };
        assert_eq!(within(12), 0.0);
        for bits in [24, 28, 32] {
            assert!(within(bits) < 0.002, "{bits}: {}", within(bits));
        }
    }

    #[test]
    fn values_that_share_bits_are_related() {
        // A quarter of the values are within 4 bits of one value.
        let values: Vec<u64> = (0..100_000u64)
            .map(|at| match at % 4 {
                0 => (0..4).fold(u64::MAX, |value, bit| {
                    value ^ 1 << (scattered(4 * at + bit) % 64)
                }),
                _ => scattered(at),
            })
            .collect();
        let share = Related::of(&values).excess(|difference| difference.count_ones() <= 8, 0.0);
        assert!((0.05..0.08).contains(&share), "{share}");
    }
}
