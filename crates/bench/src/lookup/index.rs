//! The index: built by the program, and searched.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ::lookup::{Index, IndexFiles, Searcher};
use serde_json::{Value, json};
use storage::Stores;
use tokio::runtime::Runtime;

use super::queries::{Answer, Queries, sorted};
use crate::latency::Latencies;
use crate::{machine, threads};

/// Queries that are searched together.
const BATCH: usize = 1024;

/// How long batches are searched.
const LONG: Duration = Duration::from_secs(3);

/// How many times each is measured; the best counts.
const PASSES: usize = 3;

/// An index to be built.
pub struct Build<'a> {
    pub program: &'a Path,
    pub archive: &'a Path,
    pub index: PathBuf,
    /// Where the time and memory of the build are kept, for runs that reuse the index.
    pub record: PathBuf,
    /// Whether all segments are merged into one.
    pub merge_all: bool,
}

impl Build<'_> {
    /// Builds the index, unless an earlier run did. Returns the time and the peak memory that the program took.
    pub fn make(&self) -> Value {
        if let Ok(record) = std::fs::read(&self.record) {
            return serde_json::from_slice(&record).expect("the record of a build");
        }
        let _ = std::fs::remove_dir_all(&self.index);
        std::fs::create_dir_all(&self.index).expect("a directory for the index");
        let begin = Instant::now();
        let mut child = Command::new(self.program)
            .args(["index", "build", "--quiet", "--base"])
            .arg(self.archive)
            .arg("--output")
            .arg(&self.index)
            .args(self.merge_all.then_some("--merge-all"))
            .spawn()
            .expect("the program");
        let (status, peak) = machine::wait(&mut child);
        assert!(status.success(), "the index cannot be built");
        let record = json!({
            "build_seconds": begin.elapsed().as_secs_f64(),
            "build_peak_bytes": peak,
        });
        std::fs::write(&self.record, record.to_string()).expect("the record of a build");
        record
    }
}

pub fn open(runtime: &Runtime, directory: &Path) -> Index {
    let location = Stores::default().locate(&directory.display().to_string());
    let location = location.expect("a local path");
    let files = IndexFiles::new(&location, directory, &std::env::temp_dir()).expect("an index");
    runtime.block_on(Index::open(&files)).expect("an index")
}

/// Looks the queries up one by one, on this thread. Returns nanoseconds and the answers.
pub fn one_by_one(searcher: &mut Searcher, queries: &[u64], k: u32) -> (Vec<u64>, Vec<Answer>) {
    let (mut found, mut answers) = (Vec::new(), Vec::new());
    let mut nanoseconds = Vec::with_capacity(queries.len());
    for (number, query) in queries.iter().enumerate() {
        found.clear();
        let begin = Instant::now();
        let searched = searcher.search(std::slice::from_ref(query), k, &mut found);
        nanoseconds.push(begin.elapsed().as_nanos() as u64);
        searched.expect("an index without damage");
        answers.extend(found.iter().map(|each| (number as u32, each.fingerprint)));
    }
    (nanoseconds, sorted(answers))
}

/// Measures one thread that looks the queries up one by one, after a pass over the same queries. Returns a row of the pass with
/// the least p99, and the answers.
pub fn measure_one_by_one(index: &Index, queries: &Queries) -> (Value, Vec<Answer>) {
    let mut searcher = index.searcher();
    let (_, answers) = one_by_one(&mut searcher, &queries.fingerprints, queries.k);
    queries.check("the index", &answers, queries.fingerprints.len());
    let passes = (0..PASSES).map(|_| {
        let (nanoseconds, again) = one_by_one(&mut searcher, &queries.fingerprints, queries.k);
        assert!(again == answers, "other answers in a later pass");
        Latencies::new(nanoseconds)
    });
    let mut passes: Vec<Latencies> = passes.collect();
    passes.sort_by(|a, b| a.percentile(0.99).total_cmp(&b.percentile(0.99)));
    let p99s: Vec<f64> = passes.iter().map(|pass| pass.percentile(0.99)).collect();
    let mut row = passes[0].json();
    row["p99_us_of_passes"] = p99s.into();
    row["method"] = "Elias-Fano, on disk (ours)".into();
    row["answers"] = answers.len().into();
    (row, answers)
}

/// Measures threads that look the queries up in batches. Each has its own searcher.
pub fn measure_batches(index: &Index, queries: &Queries, threads: usize) -> Value {
    let passes = (0..PASSES).map(|_| search_batches(index, queries, threads));
    let mut passes: Vec<f64> = passes.collect();
    passes.sort_by(|a, b| b.total_cmp(a));
    json!({
        "method": format!("ours, batches of {BATCH}, {threads} threads"),
        "threads": threads,
        "lookups_per_second": passes[0],
        "lookups_per_second_of_passes": passes,
    })
}

/// Returns the lookups a second.
fn search_batches(index: &Index, queries: &Queries, threads: usize) -> f64 {
    let batches: Vec<&[u64]> = queries.fingerprints.chunks(BATCH).collect();
    let begin = Instant::now();
    let done = threads::run(threads, |thread| {
        let mut searcher = index.searcher();
        let mut found = Vec::new();
        let mut done = 0;
        // Threads begin apart from each other.
        let first = batches.len() * thread / threads;
        for batch in batches.iter().cycle().skip(first) {
            found.clear();
            searcher
                .search(batch, queries.k, &mut found)
                .expect("an index without damage");
            done += batch.len();
            if begin.elapsed() > LONG {
                break;
            }
        }
        done
    });
    done.into_iter().sum::<usize>() as f64 / begin.elapsed().as_secs_f64()
}

pub fn sizes(index: &Index) -> Value {
    let info = index.info();
    let each = |bytes: u64| bytes as f64 / info.fingerprints as f64;
    json!({
        "fingerprints": info.fingerprints,
        "segments": info.segments.len(),
        "table_bytes_per_fingerprint": each(info.table_bytes),
        // Two raw tables take 16 bytes.
        "of_raw": each(info.table_bytes) / 16.0,
        "row_bytes_per_fingerprint": each(info.row_bytes),
        "directory_bytes_in_memory": info.directory_bytes,
    })
}

/// Returns the memory of this process: all that is resident, and what of it is no part of a file.
pub fn memory() -> Value {
    json!({
        "resident_bytes": machine::memory("self", "VmRSS"),
        "anonymous_bytes": machine::memory("self", "RssAnon"),
    })
}
