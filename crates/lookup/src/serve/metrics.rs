//! Counters of the server, as OpenMetrics text.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::StatusCode;

/// Upper bounds of the histogram's buckets, in microseconds.
const BOUNDS: [u64; 12] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 20_000, 100_000, 1_000_000,
];

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    /// Responses by class of status: 1xx to 5xx.
    by_status: [AtomicU64; 5],
    pub(super) queries: AtomicU64,
    pub(super) hits: AtomicU64,
    pub(super) connections: AtomicU64,
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Metrics {
    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5);
        self.by_status[class - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the lookups of a request, and the time that they took on a thread.
    pub(super) fn looked_up(&self, took: Duration) {
        let micros = took.as_micros() as u64;
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds
            .fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// All counters and `gauges` (name, help, value), as OpenMetrics text.
    pub(super) fn text(&self, gauges: &[(&str, &str, u64)]) -> String {
        let mut text = String::new();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "# HELP dedup_job_http_responses Responses, by class of status.\n# TYPE dedup_job_http_responses counter"
        );
        for (class, counter) in self.by_status.iter().enumerate() {
            let _ = writeln!(
                text,
                "dedup_job_http_responses_total{{status=\"{}xx\"}} {}",
                class + 1,
                load(counter)
            );
        }
        let counters = [
            (
                "lookup_queries",
                "Queries (fingerprints and texts) looked up.",
                &self.queries,
            ),
            ("lookup_hits", "Hits returned.", &self.hits),
            (
                "http_connections",
                "Connections accepted.",
                &self.connections,
            ),
        ];
        for (name, help, counter) in counters {
            let _ = writeln!(
                text,
                "# HELP dedup_job_{name} {help}\n# TYPE dedup_job_{name} counter\ndedup_job_{name}_total {}",
                load(counter)
            );
        }
        let name = "dedup_job_lookup_seconds";
        let _ = writeln!(
            text,
            "# HELP {name} Time that the lookups of a request took.\n# TYPE {name} histogram\n# UNIT {name} seconds"
        );
        let mut sum = 0;
        for (bound, counter) in BOUNDS.iter().zip(&self.buckets) {
            sum += load(counter);
            let _ = writeln!(
                text,
                "{name}_bucket{{le=\"{}\"}} {sum}",
                *bound as f64 / 1e6
            );
        }
        sum += load(&self.buckets[BOUNDS.len()]);
        let seconds = load(&self.nanoseconds) as f64 / 1e9;
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {seconds}\n{name}_count {sum}"
        );
        for (name, help, value) in gauges {
            let _ = writeln!(
                text,
                "# HELP dedup_job_{name} {help}\n# TYPE dedup_job_{name} gauge\ndedup_job_{name} {value}"
            );
        }
        text.push_str("# EOF\n");
        text
    }
}
