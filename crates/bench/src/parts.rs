//! `split`, `map` and `reduce` on this machine, each part a process of its own, against `run` in one process. Every output must be the
//! expected file, byte for byte.
//!
//! Parts are done one after another, so the difference to `run` is what parts cost: processes that start, load the batch, write and
//! read answers. Building the tables once in each process is counted apart. Then all parts are done by two processes of one thread at
//! the same time, beside what `plan --machines 2 --threads 1` predicts. Last, a process does many parts of a job in a store with
//! latency, beside `run` against the same archive in that store.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use engine::job::{Job, Record, do_parts};
use engine::resources::Resources;
use engine::{RunSettings, session};
use serde_json::{Value, json};

use crate::program::{self, Generated};
use crate::slow_store::{self, Source};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory for the generated data, which is made unless it is there
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Fingerprints of the archive
    #[arg(long, default_value_t = 100_000_000)]
    archive: u64,
    /// Fingerprints of the batch
    #[arg(long, default_value_t = 1_000_000)]
    batch: u64,
    /// Largest distances
    #[arg(long, short, value_delimiter = ',', default_values_t = [3, 8])]
    k: Vec<u32>,
    /// Parts of each round
    #[arg(long, default_value_t = 8)]
    parts: u64,
    /// Days of the archive in the store, and parts of its probe
    #[arg(long, default_value_t = 1000)]
    days: u32,
    /// Latency of the store, in milliseconds
    #[arg(long, default_value_t = 30)]
    latency: u64,
    /// Number of runs of each but in the store; the fastest counts
    #[arg(long, default_value_t = 3)]
    times: usize,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// What one way of doing the work took.
#[derive(Default)]
struct Times {
    seconds: f64,
    /// Seconds in `map`.
    map: f64,
}

struct Bench<'a> {
    program: &'a Path,
    data: &'a Path,
    k: u32,
    expected: Vec<u8>,
}

impl Bench<'_> {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(line.split_whitespace())
            .args(["--json", "--quiet"]);
        command
    }

    fn json(&self, line: &str) -> Value {
        let output = program::output(&mut self.command(line));
        serde_json::from_slice(&output).expect("a line of JSON")
    }

    fn options(&self) -> String {
        let data = self.data.display();
        format!(
            "--new {data}/day.parquet --base {data}/archive --day 2026-01-31 -k {} --output {data}/parts-hits.parquet",
            self.k
        )
    }

    fn check(&self) {
        let found = std::fs::read(self.data.join("parts-hits.parquet")).expect("an output");
        assert!(
            found == self.expected,
            "the pairs differ from those of `run`"
        );
    }

    /// `run` in one process; also returns the seconds in which it built its tables.
    fn run(&self) -> (f64, f64) {
        let begin = Instant::now();
        let summary = self.json(&format!("run {}", self.options()));
        let seconds = begin.elapsed().as_secs_f64();
        (seconds, summary["seconds"]["build"].as_f64().unwrap_or(0.0))
    }

    /// A job, whose parts are done by `workers` processes at the same time, each with `threads` threads.
    fn job(&self, parts: u64, workers: u64, threads: &str) -> Times {
        let job = self.data.join("parts-job");
        let _ = std::fs::remove_dir_all(&job);
        let job = job.display();
        let mut times = Times::default();
        let begin = Instant::now();
        let mut split = self.json(&format!("split {job} {} --parts {parts}", self.options()));
        while split["ready"] != true {
            let parts = split["parts"].as_u64().expect("a number of parts");
            let begin = Instant::now();
            match workers {
                0 => (0..parts).for_each(|part| {
                    self.json(&format!("map {job} --part {part}{threads}"));
                }),
                workers => {
                    let each = parts.div_ceil(workers);
                    let started = (0..workers)
                        .map(|worker| (worker * each, ((worker + 1) * each).min(parts)));
                    let started: Vec<_> = started
                        .filter(|(first, end)| first < end)
                        .map(|(first, end)| {
                            let line = format!("map {job} --part {first}..{}{threads}", end - 1);
                            self.command(&line)
                                .stdout(Stdio::null())
                                .spawn()
                                .expect("the program")
                        })
                        .collect();
                    for mut child in started {
                        assert!(child.wait().expect("the program").success());
                    }
                }
            }
            times.map += begin.elapsed().as_secs_f64();
            split = self.json(&format!("split {job}"));
        }
        self.json(&format!("reduce {job}"));
        times.seconds = begin.elapsed().as_secs_f64();
        self.check();
        times
    }
}

/// The fastest.
fn best(times: usize, mut measure: impl FnMut() -> Times) -> Times {
    let all = (0..times.max(1)).map(|_| measure());
    let fastest = all.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    fastest.unwrap_or_default()
}

pub fn run(args: &Args) -> Vec<Value> {
    let program = program::path(args.program.as_deref());
    let generated = Generated {
        batch: args.batch,
        archive: args.archive,
        days: 1,
        max_distance: 3,
    };
    generated.make(&program, &args.data);
    println!(
        "{:>2} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9}",
        "k", "run", "parts", "tables", "overhead", "two procs", "plan", "plan/meas"
    );
    let mut rows: Vec<Value> = args.k.iter().map(|&k| measure(args, &program, k)).collect();
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    rows.push(runtime.block_on(in_store(args, &program)));
    rows
}

/// A job in a store with latency, at k = 3, its archive in the same store.
async fn in_store(args: &Args, program: &Path) -> Value {
    let data = args.data.join("days");
    let generated = Generated {
        batch: args.batch,
        archive: args.archive,
        days: args.days,
        max_distance: 3,
    };
    generated.make(program, &data);
    let slow = slow_store::Args::of(&data, args.latency);
    let source = Source::slow(slow_store::load_archive(&data).await, args.latency);
    let begin = Instant::now();
    slow_store::run_once(&slow, &source).await;
    let run = begin.elapsed().as_secs_f64();

    let record = Record::new(Vec::new(), Some(u64::from(args.days)));
    let hits = data.join("parts-hits.parquet");
    // Each command has a scratch directory of its own, as on machines of their own.
    let command = async |command: &str| {
        let scratch = tempfile::tempdir().expect("a directory");
        let resources = Arc::new(Resources::new(source.stores.clone()));
        let limits = slow.limits(scratch.path());
        let context = session::session(&limits, Arc::clone(&resources)).expect("a session");
        let splits = command == "split";
        let job = Job::open(
            &source.stores,
            "s3://bench/job",
            record.clone(),
            scratch.path(),
            splits,
        );
        let job = Arc::new(job.await.expect("a job"));
        let settings = RunSettings {
            job: Some(Arc::clone(&job)),
            ..slow_store::settings(&slow, &source, scratch.path(), &hits)
        };
        let begin = Instant::now();
        let ended = match command {
            "split" => engine::run::split(&context, &resources, &settings)
                .await
                .map(|_| ()),
            "map" => {
                let parts: Vec<u32> = (0..args.days).collect();
                do_parts(&context, &job, job.current_round(), &parts, |_| {}).await
            }
            _ => engine::run(&context, &resources, &settings)
                .await
                .map(|_| ()),
        };
        ended.unwrap_or_else(|error| panic!("{command}: {error}"));
        begin.elapsed().as_secs_f64()
    };
    let split = command("split").await;
    let map = command("map").await;
    let settle = command("split").await;
    let reduce = command("reduce").await;
    let expected = std::fs::read(data.join("expected.parquet")).expect("expected pairs");
    assert!(
        std::fs::read(hits).expect("pairs") == expected,
        "other pairs than were planted"
    );
    let seconds = split + map + settle + reduce;
    println!(
        "   {} parts in a store of {} ms, k = 3: split {split:.2} s, map {map:.2}, split {settle:.2}, reduce {reduce:.2}; {:.2} of `run`, {run:.2} s",
        args.days,
        args.latency,
        seconds / run
    );
    json!({
        "k": 3,
        "parts": args.days,
        "latency_ms": args.latency,
        "run_seconds": run,
        "split_seconds": split,
        "map_seconds": map,
        "second_split_seconds": settle,
        "reduce_seconds": reduce,
        "overhead": seconds / run,
    })
}

fn measure(args: &Args, program: &Path, k: u32) -> Value {
    let mut bench = Bench {
        program,
        data: &args.data,
        k,
        expected: Vec::new(),
    };
    let mut build = f64::INFINITY;
    let run = best(args.times, || {
        let (seconds, built) = bench.run();
        build = build.min(built);
        Times { seconds, map: 0.0 }
    });
    bench.expected = std::fs::read(args.data.join("parts-hits.parquet")).expect("an output");
    let parts = best(args.times, || bench.job(args.parts, 0, ""));
    // Each process builds the tables; `run` builds them once.
    let tables = build * (args.parts - 1) as f64;
    let overhead = (parts.seconds - tables) / run.seconds;
    let two = best(args.times, || bench.job(args.parts, 2, " --threads 1"));
    let plan = bench.json(&format!(
        "plan {data}/day.parquet --base {data}/archive -k {k} --machines 2 --threads 1",
        data = args.data.display()
    ));
    let predicted = plan["machines"]["seconds"].as_f64().unwrap_or(f64::NAN);
    println!(
        "{k:>2} {:>8.2} {:>8.2} {tables:>8.2} {overhead:>8.2} {:>9.2} {predicted:>8.2} {:>9.2}",
        run.seconds,
        parts.seconds,
        two.seconds,
        predicted / two.seconds
    );
    // The paper: 8 billion fingerprints against a million, on 200 machines, in 100 seconds.
    let paper = bench.json(&format!(
        "plan --batch-rows 1000000 --archive-rows 8000000000 -k {k} --machines 200 --threads 2"
    ));
    let paper = &paper["machines"]["rounds"];
    let probe = paper.as_array().and_then(|rounds| rounds.last());
    println!(
        "   8 billion against a million on 200 machines of two cores, the probe: {}",
        probe.unwrap_or(&Value::Null)
    );
    json!({
        "k": k,
        "archive": args.archive,
        "batch": args.batch,
        "parts": args.parts,
        "run_seconds": run.seconds,
        "parts_seconds": parts.seconds,
        "map_seconds": parts.map,
        "tables_seconds": tables,
        "overhead": overhead,
        "two_processes_seconds": two.seconds,
        "predicted_seconds": predicted,
        "paper": paper,
    })
}
