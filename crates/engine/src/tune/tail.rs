//! The number of pairs at distances so small that none or few were seen, extrapolated from greater distances.

/// Pairs that must be within a distance before the fit uses it.
const ENOUGH: u64 = 30;

/// Distances that the fit uses.
const POINTS: usize = 8;

/// The number of pairs to expect within `k` bits, as a fit to the smallest distances with enough pairs predicts it.
/// `at_most` has the number of pairs within each distance from 0 to 64.
///
/// The fit is a parabola through the logarithms of the cumulative numbers, by least squares. `None` if there are too
/// few distances, or if the parabola falls at `k`, which a cumulative number cannot do.
pub fn extrapolate(at_most: &[u64; 65], k: u32) -> Option<f64> {
    let first = at_most.iter().position(|&pairs| pairs >= ENOUGH)?;
    if first + POINTS > 65 {
        return None;
    }
    let logarithms = at_most[first..first + POINTS].iter();
    let logarithms: Vec<f64> = logarithms.map(|&pairs| (pairs as f64).ln()).collect();
    let parabola = Parabola::fit(first as f64, &logarithms);
    let k = f64::from(k);
    (parabola.slope(k) > 0.0).then(|| parabola.value(k).exp())
}

/// `a + b x + c x²`, where x counts from `middle`.
struct Parabola {
    middle: f64,
    a: f64,
    b: f64,
    c: f64,
}

impl Parabola {
    /// Fits the values at `first`, `first` + 1, and so on, by least squares; there are at least three.
    fn fit(first: f64, values: &[f64]) -> Self {
        let middle = first + (values.len() - 1) as f64 / 2.0;
        let points = values.iter().enumerate();
        let points: Vec<(f64, f64)> = points
            .map(|(at, value)| (first + at as f64 - middle, *value))
            .collect();
        let sum = |term: fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|&(x, value)| term(x, value)).sum()
        };
        // The odd moments of x are 0, because the points are evenly spaced around the middle.
        let (x0, x2, x4) = (
            points.len() as f64,
            sum(|x, _| x * x),
            sum(|x, _| x.powi(4)),
        );
        let (y0, y1, y2) = (sum(|_, y| y), sum(|x, y| x * y), sum(|x, y| x * x * y));
        let c = (x0 * y2 - x2 * y0) / (x0 * x4 - x2 * x2);
        Self {
            middle,
            a: (y0 - c * x2) / x0,
            b: y1 / x2,
            c,
        }
    }

    fn value(&self, at: f64) -> f64 {
        let x = at - self.middle;
        self.a + self.b * x + self.c * x * x
    }

    fn slope(&self, at: f64) -> f64 {
        self.b + 2.0 * self.c * (at - self.middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parabola_is_fitted_exactly() {
        let parabola = |x: f64| 3.0 + 1.5 * x - 0.0625 * x * x;
        let values: Vec<f64> = (5..13).map(|x| parabola(f64::from(x))).collect();
        let fitted = Parabola::fit(5.0, &values);
        for x in [0.0, 3.0, 8.5, 20.0] {
            assert!((fitted.value(x) - parabola(x)).abs() < 1e-9);
            assert!((fitted.slope(x) - (1.5 - 0.125 * x)).abs() < 1e-9);
        }
    }

    /// The cumulative numbers `at_most(0)`, `at_most(1)`, and so on, rounded.
    fn cumulative(at_most: impl Fn(f64) -> f64) -> [u64; 65] {
        std::array::from_fn(|distance| at_most(distance.min(24) as f64).round() as u64)
    }

    #[test]
    fn small_distances_are_extrapolated() {
        // 35 pairs within 10 bits, and half a pair within 5.
        let at_most = |d: f64| (35.0f64.ln() + 0.75 * (d - 10.0) - 0.02 * (d - 10.0).powi(2)).exp();
        let distances = cumulative(at_most);
        assert!(distances[5] <= 1);
        for k in [3, 5, 8] {
            let (found, expected) = (
                extrapolate(&distances, k).expect("a rising parabola"),
                at_most(f64::from(k)),
            );
            assert!(
                (0.8..1.25).contains(&(found / expected)),
                "{found}, not {expected}"
            );
        }
        let falls_at_0 = cumulative(|d| 100.0 + d.min(8.0).exp2());
        assert_eq!(extrapolate(&falls_at_0, 0), None);
        assert_eq!(extrapolate(&[0; 65], 3), None);
    }
}
