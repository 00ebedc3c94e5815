//! The join against other programs and naive methods, on the same fingerprints and threads. All must find the same
//! pairs.
//!
//! Slow methods get a sample of the archive, evenly spread over it. Rates are compared, not times.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use hamming::{Distinct, Kernel, Limits, Plan, Scratch, Tables};
use serde_json::{Value, json};
use testkit::codewords::{Generator, Settings};

use crate::{data, program, threads};

/// Largest distance of a pair, in bits.
const K: u32 = 3;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of fingerprints in the batch
    #[arg(long, default_value_t = 1_000_000)]
    batch: u64,
    /// Number of fingerprints in the archive
    #[arg(long, default_value_t = 100_000_000)]
    archive: u64,
    /// Number of threads of each method
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Python with the packages of crates/bench/requirements.txt; other programs are left out without it
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Number of archive fingerprints for DuckDB
    #[arg(long, default_value_t = 10_000_000)]
    duckdb: usize,
    /// Number of archive fingerprints for FAISS IndexBinaryMultiHash
    #[arg(long, default_value_t = 1_000_000)]
    multi_hash: usize,
    /// Number of archive fingerprints for methods that compare every fingerprint with every other
    #[arg(long, default_value_t = 10_000)]
    exhaustive: usize,
    /// Number of batch fingerprints for the method that stores all their variants within 3 bits
    #[arg(long, default_value_t = 1_000)]
    pregenerated: usize,
}

/// Row in the batch, index in the archive, distance.
type Pair = (u32, u32, u32);

/// The pairs that a method found, and how long it took.
struct Outcome {
    seconds: f64,
    pairs: Vec<Pair>,
}

/// A batch, an archive, and the pairs that a method must find.
struct Problem {
    batch: Vec<u64>,
    archive: Vec<u64>,
    expected: Vec<Pair>,
}

impl Problem {
    /// Generates the problem with planted pairs.
    fn planted(args: &Args) -> Self {
        let settings = Settings {
            archive: args.archive,
            days: 1,
            batch: args.batch,
            pairs: args.batch / 10,
            max_distance: K,
            seed: 1,
        };
        let generator = Generator::new(settings).expect("enough codewords");
        let chunks = (0..generator.chunks(0)).flat_map(|chunk| generator.chunk(0, chunk).1);
        let archive = chunks.collect();
        let batch = generator.batch();
        let planted = batch.iter().enumerate();
        let mut expected: Vec<Pair> = planted
            .filter_map(|(row, new)| {
                new.near
                    .map(|(base, d)| (row as u32, base.number as u32, d))
            })
            .collect();
        expected.sort_unstable();
        Self {
            batch: batch.iter().map(|new| new.fingerprint).collect(),
            archive,
            expected,
        }
    }

    /// Returns a smaller problem: about `archive` fingerprints, evenly spread over the archive, and the first `batch`
    /// of the batch.
    fn sample(&self, archive: usize, batch: usize) -> Self {
        let step = self.archive.len().div_ceil(archive.max(1)).max(1);
        let kept = |&(row, index, _): &Pair| {
            (row as usize) < batch && (index as usize).is_multiple_of(step)
        };
        Self {
            batch: self.batch[..batch.min(self.batch.len())].to_vec(),
            archive: self.archive.iter().step_by(step).copied().collect(),
            expected: self
                .expected
                .iter()
                .filter(|pair| kept(pair))
                .map(|&(row, index, d)| (row, index / step as u32, d))
                .collect(),
        }
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    let whole = Problem::planted(args);
    let batch = whole.batch.len();
    println!(
        "k = {K}, batch {}, archive {}, {} threads, {}",
        args.batch,
        args.archive,
        args.threads,
        Kernel::detect().name()
    );
    println!(
        "{:<34} {:>12} {:>14} {:>10} {:>12} {:>10}",
        "method", "archive", "seconds", "pairs", "M/s", "slower by"
    );
    let mut rows = Vec::new();
    let found = fastest(|| planned_join(&whole, args.threads), 5);
    let rate = report(&mut rows, "ours", &whole, found, None);
    if let Some(python) = &args.python {
        for (method, archive) in [
            ("duckdb", args.duckdb),
            ("faiss-multi-hash", args.multi_hash),
            ("faiss-flat", args.exhaustive),
        ] {
            let problem = whole.sample(archive, batch);
            let found = run_peer(python, method, &problem, args.threads);
            report(&mut rows, method, &problem, found, Some(rate));
        }
    }
    let problem = whole.sample(args.exhaustive, batch);
    let found = exhaustive(&problem, args.threads);
    report(
        &mut rows,
        "all with all, our kernel",
        &problem,
        found,
        Some(rate),
    );
    let found = expand_queries(&problem, args.threads);
    report(
        &mut rows,
        "43,744 flips of each query",
        &problem,
        found,
        Some(rate),
    );
    let small = whole.sample(args.multi_hash, args.pregenerated);
    let found = fastest(|| planned_join(&small, args.threads), 5);
    let rate = report(
        &mut rows,
        &format!("ours, batch {}", args.pregenerated),
        &small,
        found,
        None,
    );
    let found = expand_batch(&small, args.threads);
    report(
        &mut rows,
        &format!("variants of {} stored", args.pregenerated),
        &small,
        found,
        Some(rate),
    );
    rows
}

/// Checks the pairs of a method, prints and records its row, and returns its rate in fingerprints per second.
fn report(
    rows: &mut Vec<Value>,
    method: &str,
    problem: &Problem,
    mut outcome: Outcome,
    our_rate: Option<f64>,
) -> f64 {
    outcome.pairs.sort_unstable();
    let (found, expected) = (outcome.pairs.len(), problem.expected.len());
    assert!(
        outcome.pairs == problem.expected,
        "{method}: {found} pairs, not the {expected} expected ones"
    );
    let rate = problem.archive.len() as f64 / outcome.seconds;
    let slower = our_rate.map(|our_rate| our_rate / rate);
    println!(
        "{method:<34} {:>12} {:>14.3} {found:>10} {:>12.4} {:>10}",
        problem.archive.len(),
        outcome.seconds,
        rate * 1e-6,
        slower.map_or("1".into(), |ratio| format!("{ratio:.0}")),
    );
    rows.push(json!({
        "way": method,
        "batch": problem.batch.len(),
        "archive": problem.archive.len(),
        "seconds": outcome.seconds,
        "pairs": found,
        "fingerprints_per_second": rate,
        "slower_than_ours_by": slower,
    }));
    rate
}

/// Runs a method several times; returns the fastest outcome.
fn fastest(mut run: impl FnMut() -> Outcome, times: usize) -> Outcome {
    let runs = (0..times).map(|_| run());
    runs.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
        .expect("at least one run")
}

/// Divides the archive among threads, and measures the time until all are done. `work` finds the pairs of a part of the
/// archive, given the index of its first fingerprint.
fn probe_on_threads(
    archive: &[u64],
    threads: usize,
    work: impl Fn(&[u64], u32) -> Vec<Pair> + Sync,
) -> Outcome {
    let begin = Instant::now();
    let share = archive.len().div_ceil(threads).max(1);
    let parts: Vec<&[u64]> = archive.chunks(share).collect();
    let pairs = threads::run(parts.len(), |at| work(parts[at], (at * share) as u32));
    let pairs = pairs.into_iter().flatten().collect();
    Outcome {
        seconds: begin.elapsed().as_secs_f64(),
        pairs,
    }
}

/// Joins as dedup-job does, with the design that it plans. The time includes building the tables.
fn planned_join(problem: &Problem, threads: usize) -> Outcome {
    let begin = Instant::now();
    let batch = std::sync::Arc::new(Distinct::new(&problem.batch));
    let values = batch.values().len();
    let limits = Limits {
        queries: problem.archive.len() as u64,
        ..Limits::default()
    };
    let plan = Plan::choose(values, K, &limits).expect("a plan");
    let tables = Tables::build(batch, 0..values, plan.design, threads);
    let built = begin.elapsed().as_secs_f64();
    let mut outcome = probe_on_threads(&problem.archive, threads, |part, first| {
        let (mut scratch, mut matches, mut pairs) = (Scratch::default(), Vec::new(), Vec::new());
        for (at, step) in part.chunks(tables.chunk_len()).enumerate() {
            matches.clear();
            tables.probe(Kernel::detect(), step, &mut scratch, &mut matches);
            for found in &matches {
                let index = first + (at * tables.chunk_len()) as u32 + found.query;
                pairs.extend(
                    tables
                        .batch()
                        .rows(found.entry)
                        .map(|row| (row, index, found.distance)),
                );
            }
        }
        pairs
    });
    outcome.seconds += built;
    outcome
}

/// Compares every fingerprint of the archive with every one of the batch, with dedup-job's fastest kernel.
fn exhaustive(problem: &Problem, threads: usize) -> Outcome {
    let design = hamming::Design::named("exhaustive", K).expect("a design");
    let tables = Tables::new(Distinct::new(&problem.batch), design);
    probe_on_threads(&problem.archive, threads, |part, first| {
        let (mut scratch, mut matches) = (Scratch::default(), Vec::new());
        tables.probe(Kernel::detect(), part, &mut scratch, &mut matches);
        let pairs = matches.iter().flat_map(|found| {
            let rows = tables.batch().rows(found.entry);
            rows.map(move |row| (row, first + found.query, found.distance))
        });
        pairs.collect()
    })
}

/// Hashes a fingerprint by one multiplication: its bits are random already.
#[derive(Default)]
struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("fingerprints are hashed as numbers");
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (value ^ value >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Calls `each` with every number within `K` bits of `value`, and its distance.
fn for_each_variant(value: u64, each: &mut impl FnMut(u64, u32)) {
    fn flip(value: u64, below: u32, distance: u32, each: &mut impl FnMut(u64, u32)) {
        each(value, distance);
        if distance < K {
            (0..below).for_each(|bit| flip(value ^ 1 << bit, bit, distance + 1, each));
        }
    }
    flip(value, 64, 0, each);
}

/// Looks up every variant of each archive fingerprint in the batch: the first naive method of the paper.
fn expand_queries(problem: &Problem, threads: usize) -> Outcome {
    let mut rows: HashMap<u64, Vec<u32>, BuildHasherDefault<MixHasher>> = HashMap::default();
    for (row, &fingerprint) in problem.batch.iter().enumerate() {
        rows.entry(fingerprint).or_default().push(row as u32);
    }
    probe_on_threads(&problem.archive, threads, |part, first| {
        let mut pairs = Vec::new();
        for (index, &query) in part.iter().enumerate() {
            for_each_variant(query, &mut |variant, distance| {
                let rows = rows.get(&variant).into_iter().flatten();
                pairs.extend(rows.map(|&row| (row, first + index as u32, distance)));
            });
        }
        pairs
    })
}

/// Stores every variant of the batch, and looks up each archive fingerprint once: the second naive method of the paper.
fn expand_batch(problem: &Problem, threads: usize) -> Outcome {
    let mut variants: HashMap<u64, Vec<(u32, u8)>, BuildHasherDefault<MixHasher>> =
        HashMap::default();
    for (row, &fingerprint) in problem.batch.iter().enumerate() {
        for_each_variant(fingerprint, &mut |variant, distance| {
            variants
                .entry(variant)
                .or_default()
                .push((row as u32, distance as u8));
        });
    }
    probe_on_threads(&problem.archive, threads, |part, first| {
        let found = part.iter().enumerate().flat_map(|(index, query)| {
            let rows = variants.get(query).into_iter().flatten();
            rows.map(move |&(row, distance)| (row, first + index as u32, distance.into()))
        });
        found.collect()
    })
}

/// Runs another program through `join_peers.py`, which prints the seconds and writes the pairs as little-endian 32-bit
/// numbers.
fn run_peer(python: &Path, method: &str, problem: &Problem, threads: usize) -> Outcome {
    let scratch = tempfile::tempdir().expect("a directory for the peers");
    let file = |name: &str| scratch.path().join(name);
    data::write_numbers(&file("batch"), problem.batch.iter().copied());
    data::write_numbers(&file("archive"), problem.archive.iter().copied());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("join_peers.py");
    let output = program::output(
        Command::new(python)
            .arg(script)
            .args([method, &K.to_string(), &threads.to_string()])
            .args(["batch", "archive", "pairs"].map(file)),
    );
    let seconds = String::from_utf8_lossy(&output)
        .trim()
        .parse()
        .expect("seconds");
    let bytes = std::fs::read(file("pairs")).expect("the peer's pairs");
    let numbers = bytes.as_chunks::<4>().0.as_chunks::<3>().0.iter();
    let pairs = numbers
        .map(|&pair| pair.map(u32::from_le_bytes).into())
        .collect();
    Outcome { seconds, pairs }
}
