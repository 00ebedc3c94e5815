//! Latencies of single requests: percentiles and a histogram, because a mean hides the slow ones.

use serde_json::{Value, json};

/// Keys of the percentiles in JSON, in microseconds, and the share of the requests that are at most as slow.
pub const PERCENTILES: [(&str, f64); 5] = [
    ("p50_us", 0.5),
    ("p90_us", 0.9),
    ("p99_us", 0.99),
    ("p99.9_us", 0.999),
    ("max_us", 1.0),
];

/// Characters of the longest bar of a histogram.
const BAR: usize = 60;

/// Latencies in nanoseconds, ascending.
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// Takes nanoseconds in any order.
    pub fn new(mut nanoseconds: Vec<u64>) -> Self {
        nanoseconds.sort_unstable();
        Self(nanoseconds)
    }

    /// Returns the microseconds within which `share` of the requests were answered; NaN if there were none.
    pub fn percentile(&self, share: f64) -> f64 {
        let at = (share * self.0.len() as f64) as usize;
        let found = self.0.get(at).or(self.0.last());
        found.map_or(f64::NAN, |&nanoseconds| nanoseconds as f64 / 1e3)
    }

    /// Returns the number of requests, the percentiles, and the histogram.
    pub fn json(&self) -> Value {
        let mut row = json!({ "queries": self.0.len(), "histogram_from_ns": self.histogram() });
        for (key, share) in PERCENTILES {
            row[key] = self.percentile(share).into();
        }
        row
    }

    /// Returns how many requests took from each power of two of nanoseconds up to the next; none of the powers is left out
    /// between those that have some.
    fn histogram(&self) -> Vec<(u64, usize)> {
        let power = |nanoseconds: u64| nanoseconds.max(1).ilog2();
        let (Some(&first), Some(&last)) = (self.0.first(), self.0.last()) else {
            return Vec::new();
        };
        let powers = power(first)..=power(last);
        let below = |limit: u32| self.0.partition_point(|&each| power(each) < limit);
        powers
            .map(|each| (1 << each, below(each + 1) - below(each)))
            .collect()
    }
}

/// Returns the percentiles of a row of JSON, for a table.
pub fn columns(row: &Value) -> String {
    let figures = PERCENTILES.map(|(key, _)| match row[key].as_f64() {
        Some(microseconds) => format!("{microseconds:>9.1}"),
        None => format!("{:>9}", ""),
    });
    figures.join(" ")
}

/// Prints a bar for each power of two of the histogram in a row.
pub fn print_histogram(row: &Value) {
    let bars = row["histogram_from_ns"].as_array().into_iter().flatten();
    let all = row["queries"].as_f64().unwrap_or(f64::NAN);
    for bar in bars {
        let [from, count] = [0, 1].map(|at| bar[at].as_f64().unwrap_or(0.0));
        let share = count / all;
        let (from, to) = (from / 1e3, from * 2.0 / 1e3);
        println!(
            "  {from:>9.1} to {to:>9.1} us {count:>10} {:>7.3} % {}",
            share * 100.0,
            "#".repeat((share * BAR as f64).ceil() as usize)
        );
    }
}

/// Returns the titles of [`columns`].
pub fn titles() -> String {
    PERCENTILES
        .map(|(key, _)| format!("{:>9}", key.replace('_', " ")))
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_histogram() {
        let latencies = Latencies::new((1..=1000).rev().collect());
        assert_eq!(latencies.percentile(0.5), 0.501);
        assert_eq!(latencies.percentile(0.999), 1.0);
        assert_eq!(latencies.percentile(1.0), 1.0);
        let histogram = latencies.histogram();
        assert_eq!(histogram[0], (1, 1));
        assert_eq!(histogram[9], (512, 489));
        assert_eq!(
            histogram.iter().map(|(_, count)| count).sum::<usize>(),
            1000
        );
        assert_eq!(
            Latencies::new(vec![3, 100]).histogram()[1..4],
            [(4, 0), (8, 0), (16, 0)]
        );
        assert!(Latencies::new(Vec::new()).percentile(0.5).is_nan());
    }
}
