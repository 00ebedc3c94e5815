//! An archive of a few small days of ready fingerprints. Runs commit the days; tests repeat
//! and compare the runs.

use std::fs;

use arrow::datatypes::Date32Type;
use serde_json::Value;

use crate::helpers::support::*;

pub const DAYS: [&str; 6] = [
    "2026-01-01",
    "2026-01-02",
    "2026-01-03",
    "2026-01-04",
    "2026-01-05",
    "2026-01-06",
];

/// A fingerprint that is far from those of all other numbers.
pub fn far(number: u64) -> u64 {
    simhash::hash::murmur3_low64(&number.to_le_bytes(), 7)
}

/// A date as outputs hold it: in days since 1970.
pub fn date(day: &str) -> Option<i32> {
    Some(Date32Type::from_naive_date(day.parse().unwrap()))
}

/// The pairs without any of `ids`.
pub fn without(hits: &[Hit], ids: &[&str]) -> Vec<Hit> {
    let is_named = |hit: &&Hit| ids.contains(&hit.0.as_str()) || ids.contains(&hit.1.as_str());
    let rest = hits.iter().filter(|hit| !is_named(hit));
    rest.cloned().collect()
}

/// The results of a run.
pub struct Found {
    pub summary: Value,
    pub hits: Vec<Hit>,
    pub bytes: Vec<u8>,
}

impl Found {
    /// The ids of its pairs.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        self.hits.iter().map(|hit| (&*hit.0, &*hit.1)).collect()
    }
}

/// A committed day, and the results of its run.
pub struct Committed {
    pub date: &'static str,
    pub input: String,
    pub first: Found,
}

pub struct Days {
    pub dir: Dir,
    pub archive: String,
}

impl Days {
    /// An empty archive.
    pub fn new() -> Self {
        let dir = Dir::new();
        let archive = dir.archive("archive", "--profile paper");
        Self { dir, archive }
    }

    /// An archive of three days, in two or three data files each. Their pairs: a5 a4; b1 a1, b2 a2,
    /// b4 b3; c1 a1, c1 b1, c2 b3, c2 b4, c3 a3.
    pub fn three() -> (Self, Vec<Committed>) {
        let days = Self::new();
        let one: [(&str, u64); 5] = [
            ("a1", far(1)),
            ("a2", far(2)),
            ("a3", far(3)),
            ("a4", far(4)),
            ("a5", far(4) ^ 1),
        ];
        let two = [
            ("b1", far(1) ^ 1),
            ("b2", far(2) ^ 2),
            ("b3", far(5)),
            ("b4", far(5) ^ 4),
        ];
        let three = [
            ("c1", far(1) ^ 4),
            ("c2", far(5) ^ 8),
            ("c3", far(3) ^ 16),
            ("c4", far(6)),
        ];
        let committed = vec![
            days.commit(DAYS[0], &one),
            days.commit(DAYS[1], &two),
            days.commit(DAYS[2], &three),
        ];
        let hits: Vec<usize> = committed.iter().map(|day| day.first.hits.len()).collect();
        assert_eq!(hits, [1, 3, 5]);
        (days, committed)
    }

    /// Writes documents with their fingerprints; returns the path of the file.
    pub fn write(&self, name: &str, documents: &[(&str, u64)]) -> String {
        let path = self.dir.at(&format!("{name}.parquet"));
        let rows: Vec<(String, u64)> = documents
            .iter()
            .map(|(id, fp)| ((*id).to_owned(), *fp))
            .collect();
        write_fingerprints(&path, &rows);
        path
    }

    /// The command line of a run against the archive.
    pub fn line(&self, input: &str, options: &str) -> String {
        let output = self.dir.at("hits.parquet");
        format!(
            "run --new {input} --base {} --output {output} --json {options}",
            self.archive
        )
    }

    /// Runs against the archive.
    #[track_caller]
    pub fn run(&self, input: &str, options: &str) -> Found {
        let summary = dedup_json(&self.line(input, options));
        let output = self.dir.join("hits.parquet");
        Found {
            summary,
            hits: read_hits(&output),
            bytes: fs::read(output).unwrap(),
        }
    }

    /// Commits a day with a run.
    #[track_caller]
    pub fn commit(&self, day: &'static str, documents: &[(&str, u64)]) -> Committed {
        let input = self.write(day, documents);
        let options = format!("--append --day {day} --rows-per-file 2");
        let first = self.run(&input, &options);
        assert!(first.summary["commit"]["committed"].is_u64());
        Committed {
            date: day,
            input,
            first,
        }
    }

    /// Runs a committed day again, and asserts that this changes nothing in the archive.
    #[track_caller]
    pub fn rerun(&self, day: &Committed) -> Found {
        let before = contents(&self.archive);
        let again = self.run(&day.input, &format!("--append --day {}", day.date));
        assert_eq!(again.summary["commit"], "already_there");
        assert!(contents(&self.archive) == before);
        again
    }

    /// Runs a committed day again, and asserts that the output has the same bytes.
    #[track_caller]
    pub fn same_again(&self, day: &Committed) {
        let again = self.rerun(day);
        assert_eq!(again.hits, day.first.hits, "{}", day.date);
        assert!(again.bytes == day.first.bytes, "{}", day.date);
    }

    /// Asserts that the archive's files match its log; returns `archive info`.
    #[track_caller]
    pub fn info(&self) -> Value {
        let archive = &self.archive;
        let info = dedup(&format!("archive info {archive} --verify --json"));
        info.ok().json()
    }

    /// Runs an `archive` subcommand on the archive; returns its JSON.
    #[track_caller]
    pub fn maintain(&self, command: &str, options: &str) -> Value {
        let line = format!("archive {command} {} {options} --json", self.archive);
        dedup_json(&line)
    }
}
