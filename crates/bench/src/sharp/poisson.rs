//! The confidence interval of a Poisson mean, given the number of events.

/// How sure an interval is.
#[derive(Debug, Clone, Copy)]
pub struct Confidence {
    /// The probability that the mean is above the interval, which equals the probability that it is
    /// below.
    tail: f64,
    /// A normal variable is more than this many standard deviations above its mean with the
    /// probability `tail`.
    deviations: f64,
}

/// The mean is in the interval with a probability of 95 %.
pub const USUAL: Confidence = Confidence {
    tail: 0.025,
    deviations: 1.959_963_985,
};

/// The mean is in the interval with a probability of 99.99 %.
pub const NEARLY_SURE: Confidence = Confidence {
    tail: 0.000_05,
    deviations: 3.890_591_886,
};

/// The upper bound of the mean where no event was seen, with a one-sided probability of 95 % ("rule of three").
pub const BOUND_OF_NONE: f64 = 3.0;

/// Largest number of events for which the interval is computed exactly. Above it, the error of the
/// approximation is below the printed digits.
const EXACT: u64 = 200;

/// Returns the exact interval of Garwood (1936); above [`EXACT`] events, the approximation of
/// Wilson and Hilferty (1931).
pub fn interval(events: u64, confidence: Confidence) -> (f64, f64) {
    let Confidence { tail, deviations } = confidence;
    if events > EXACT {
        let quantile = |mean: f64, deviations: f64| {
            mean * (1.0 - 1.0 / (9.0 * mean) + deviations / (3.0 * mean.sqrt())).powi(3)
        };
        return (
            quantile(events as f64, -deviations),
            quantile(events as f64 + 1.0, deviations),
        );
    }
    let low = match events.checked_sub(1) {
        None => 0.0,
        Some(fewer) => mean_for(fewer, 1.0 - tail),
    };
    (low, mean_for(events, tail))
}

/// Returns the mean under which at most `events` are seen with the given probability.
fn mean_for(events: u64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 2.0 * events as f64 + 40.0);
    for _ in 0..100 {
        let mean = (low + high) / 2.0;
        // The greater the mean, the less probable are few events.
        if at_most(events, mean) > probability {
            low = mean;
        } else {
            high = mean;
        }
    }
    low
}

/// Returns the probability of at most `events` events under a mean.
fn at_most(events: u64, mean: f64) -> f64 {
    let mut term = (-mean).exp();
    let mut sum = term;
    for number in 1..=events {
        term *= mean / number as f64;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: (f64, f64), expected: (f64, f64)) {
        for (found, expected) in [(found.0, expected.0), (found.1, expected.1)] {
            assert!(
                (found - expected).abs() <= 1e-3 * expected.max(1.0),
                "{found}, not {expected}"
            );
        }
    }

    #[test]
    fn intervals_equal_published_ones() {
        assert_close(interval(0, USUAL), (0.0, 3.689));
        assert_close(interval(1, USUAL), (0.0253, 5.572));
        assert_close(interval(10, USUAL), (4.795, 18.39));
        assert_close(interval(100, USUAL), (81.36, 121.63));
    }

    #[test]
    fn the_approximation_continues_the_exact_interval() {
        for confidence in [USUAL, NEARLY_SURE] {
            let exact = interval(EXACT, confidence);
            let approximate = interval(EXACT + 1, confidence);
            for (exact, approximate) in [(exact.0, approximate.0), (exact.1, approximate.1)] {
                assert!((0.7..1.3).contains(&(approximate - exact)));
            }
        }
    }
}
