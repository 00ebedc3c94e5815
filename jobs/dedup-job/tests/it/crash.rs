//! Faults 1 to 3 of docs/faults.md: runs killed at any moment, each followed by a rerun.
//!
//! `DEDUP_JOB_CRASHES` says how many runs are killed, half of them on local files and half on S3;
//! 200 by default.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::helpers::servers::*;
use crate::helpers::support::*;

/// The number of fingerprints of a day; some are close to one of the day before.
const ROWS: u64 = 60;

fn fingerprint(day: u64, row: u64) -> u64 {
    let own = |day: u64| {
        let mixed = (day << 20 | row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    // Every fifth page is a page of the day before with two bits changed.
    if row.is_multiple_of(5) && day > 0 {
        own(day - 1) ^ 1 << (day % 64) ^ 1 << (row % 64)
    } else {
        own(day)
    }
}

fn rows(day: u64) -> Vec<(String, u64)> {
    (0..ROWS)
        .map(|row| (format!("{day:04}/{row:02}"), fingerprint(day, row)))
        .collect()
}

/// The pairs of a day, found by comparing all fingerprints.
fn expected(day: u64) -> Vec<(String, String)> {
    let mut hits = Vec::new();
    let new = rows(day);
    for other in 0..=day {
        for (base, of_base) in rows(other) {
            for (id, of_new) in &new {
                let within = other == day && base >= *id;
                if !within && (of_new ^ of_base).count_ones() <= 3 {
                    hits.push((id.clone(), base.clone()));
                }
            }
        }
    }
    hits.sort();
    hits
}

/// An independent program that reads the table on request.
struct Reader {
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Reader {
    fn start(environment: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let python = crate::interop::python()?;
        let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash.py");
        let mut process = Command::new(python)
            .arg(script)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            _process: process,
        })
    }

    /// Rows of each day, as the table has them.
    fn days(&mut self, table: &str) -> std::collections::BTreeMap<String, u64> {
        writeln!(self.input, "{table}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

fn crashes() -> u64 {
    let asked = std::env::var("DEDUP_JOB_CRASHES");
    asked.map_or(200, |number| number.parse().unwrap()) / 2
}

fn crash(command: impl Fn() -> Command, archive: &str, mut reader: Option<Reader>) {
    let dir = Dir::new();
    let run = |line: &str| {
        let output = command().args(line.split_whitespace()).output().unwrap();
        without_secrets(Ran::of(output))
    };
    run(&format!("archive create --profile paper {archive}")).ok();
    let hits = dir.at("hits.parquet");
    let first = "2026-01-01".parse::<chrono::NaiveDate>().unwrap();
    let (mut killed, mut committed_before_death) = (0, 0);
    // A run that is not killed measures how long a run takes.
    let mut takes = Duration::from_millis(300);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut days = 0;
    while killed < crashes() {
        let day = first + chrono::Days::new(days);
        let new = dir.at("day.parquet");
        write_fingerprints(&new, &rows(days));
        let line = format!(
            "run --new {new} --base {archive} --append --day {day} --output {hits} --json --threads 2"
        );
        // Up to three killed runs per day: each run finds what those before it left.
        for _ in 0..1 + days % 3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut child = start_unheard(command(), &line);
            let after = takes.mul_f64(1.1 * (random % 10_000) as f64 / 10_000.0);
            std::thread::sleep(after);
            let alive = child.try_wait().unwrap().is_none();
            child.kill().unwrap();
            child.wait().unwrap();
            killed += u64::from(alive);
        }
        let begin = Instant::now();
        let summary = run(&line).ok().json();
        takes = takes.mul_f64(0.9) + begin.elapsed().mul_f64(0.1);
        committed_before_death += u64::from(summary["commit"] == "already_there");
        let mut found: Vec<(String, String)> = read_hits(&hits)
            .into_iter()
            .map(|hit| (hit.0, hit.1))
            .collect();
        found.sort();
        assert_eq!(found, expected(days), "day {day}");
        days += 1;
        if let Some(reader) = &mut reader {
            let table = reader.days(archive);
            assert_eq!(table.len() as u64, days, "{table:?}");
            assert!(table.values().all(|rows| *rows == ROWS), "{table:?}");
        }
    }
    say(&format!(
        "{archive}: {killed} runs killed on {days} days, {committed_before_death} of which were committed before the last death"
    ));
    let info = run(&format!("archive info {archive} --verify --json"))
        .ok()
        .json();
    assert_eq!(info["fingerprints"], days * ROWS);
    assert!(killed < 50 || committed_before_death > 0);
    // Vacuum finds what the killed runs left, and nothing else.
    run(&format!(
        "archive vacuum {archive} --older-than 0s --nothing-runs"
    ))
    .ok();
    let after = run(&format!("archive info {archive} --verify --json"))
        .ok()
        .json();
    assert_eq!(after["fingerprints"], days * ROWS);
    assert_eq!(after["verified_files"], days);
    let left = run(&format!(
        "archive vacuum {archive} --older-than 0s --dry-run --json"
    ))
    .ok();
    assert_eq!(left.json()["files"].as_array().unwrap().len(), 0);
}

#[test]
fn killed_runs_lose_and_double_no_day() {
    let dir = Dir::new();
    crash(command, &dir.at("archive"), Reader::start([]));
}

#[test]
fn killed_runs_lose_and_double_no_day_on_s3() {
    let Some(storage) = seaweed() else { return };
    let environment = storage.environment().into_iter();
    let reader = Reader::start(environment);
    crash(|| storage.command(), &storage.unique("crash"), reader);
}
