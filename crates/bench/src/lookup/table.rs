//! Prints and keeps the rows of `bench lookup`.

use serde_json::{Value, json};

use crate::latency;

/// The rows of one archive.
pub struct Table {
    size: u64,
    days: u32,
    /// The rows so far.
    pub rows: Vec<Value>,
}

impl Table {
    /// Begins the table of an archive of `size` fingerprints.
    pub fn new(size: u64, days: u32) -> Self {
        println!("{size} fingerprints, {days} days");
        Self {
            size,
            days,
            rows: Vec::new(),
        }
    }

    /// Prints how the index was built, and the titles of the columns.
    pub fn print_index(&self, built: &Value, sizes: &Value) {
        let figure = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let seconds = figure(&built["build_seconds"]);
        println!(
            "index: {} segments, built in {seconds:.1} s ({:.2} M/s), peak {:.0} MiB; bytes a fingerprint: tables {:.3}, rows {:.3}",
            sizes["segments"],
            self.size as f64 / seconds * 1e-6,
            figure(&built["build_peak_bytes"]) / 1048576.0,
            figure(&sizes["table_bytes_per_fingerprint"]),
            figure(&sizes["row_bytes_per_fingerprint"]),
        );
        println!(
            "{:<48} {:>2} {:>8} {:>8} {} {:>10} {:>7}",
            "method",
            "k",
            "queries",
            "answers",
            latency::titles(),
            "lookups/s",
            "B/fp"
        );
    }

    /// Prints and keeps a row.
    pub fn add(&mut self, k: u32, mut row: Value) {
        row["k"] = k.into();
        let text = |key: &str| match &row[key] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => {
                format!("{:.2}", number.as_f64().unwrap_or(f64::NAN))
            }
            other => other.to_string(),
        };
        println!(
            "{:<48} {k:>2} {:>8} {:>8} {} {:>10} {:>7} {}",
            text("method"),
            text("queries"),
            text("answers"),
            latency::columns(&row),
            text("lookups_per_second"),
            text("bytes_per_fingerprint"),
            text("skipped"),
        );
        latency::print_histogram(&row);
        self.keep(row);
    }

    fn keep(&mut self, mut row: Value) {
        row["rows"] = self.size.into();
        row["days"] = self.days.into();
        self.rows.push(row);
    }

    /// Prints the memory of this process before the index was opened and after the queries, and keeps it with how the index was built.
    pub fn add_memory(&mut self, before: &Value, after: &Value, built: &Value, sizes: &Value) {
        println!("memory of this process: {after}; before the index was opened: {before}");
        self.keep(json!({
            "method": "index",
            "built": built,
            "sizes": sizes,
            "memory": after,
            "memory_before": before,
        }));
    }
}
