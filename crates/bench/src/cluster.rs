//! The job on a cluster of two executors with one slot each, against one process with two threads, on the same cores and data
//! in one run. All runs must give the expected bytes.
//!
//! The scheduler stands behind a meter, so that what goes through it is counted where it goes through.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What `dedup-job generate fingerprints` made
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The same in a store, below this URL, which the environment says how to reach; instead of the local files
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Times that each is run; the fastest counts
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Times that an executor is killed in the middle
    #[arg(long, default_value_t = 3)]
    kills: usize,
    /// The program [default: dedup-job beside this one]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// A process that ends with this one.
struct Process {
    child: Child,
    said: Value,
}

impl Process {
    fn start(program: &Path, line: &str) -> Self {
        let mut child = Command::new(program)
            .args(line.split_whitespace())
            .args(["--json", "--quiet", "--stop-with-stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut first = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output)
            .read_line(&mut first)
            .expect("a line");
        let said = serde_json::from_str(&first).expect("a line of JSON");
        Self { child, said }
    }

    /// The most memory that it has had, in bytes.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes: Option<u64> =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes connections on to a scheduler, and counts bytes both ways.
struct Meter {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl Meter {
    fn before(scheduler: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("a port");
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(scheduler) else {
                    continue;
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
                        continue;
                    };
                    let _ = to.set_nodelay(true);
                    let counted = Arc::clone(&counted);
                    std::thread::spawn(move || {
                        let mut buffer = [0; 1 << 16];
                        while let Ok(read @ 1..) = from.read(&mut buffer) {
                            counted.fetch_add(read as u64, Ordering::Relaxed);
                            if to.write_all(&buffer[..read]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Self { address, bytes }
    }

    fn read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

struct Bench<'a> {
    program: &'a Path,
    /// Where the data are.
    at: String,
    scratch: String,
    output: PathBuf,
    expected: Vec<u8>,
}

impl Bench<'_> {
    fn line(&self, more: &str) -> Command {
        let mut command = Command::new(self.program);
        let line = format!(
            "run --new {at}/day.parquet --base {at}/archive --day 2026-01-31 --output {} --json --quiet {more}",
            self.output.display(),
            at = self.at
        );
        command.args(line.split_whitespace());
        command
    }

    fn run(&self, more: &str) -> Value {
        let ran = self.line(more).output().expect("the program");
        self.check(ran)
    }

    fn check(&self, ran: std::process::Output) -> Value {
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}");
        let found = std::fs::read(&self.output).expect("the hits");
        assert!(found == self.expected, "other hits than were planted");
        serde_json::from_slice(&ran.stdout).expect("a summary")
    }

    fn on(&self, scheduler: SocketAddr) -> String {
        format!("--cluster df://{scheduler} {}", self.scratch)
    }
}

/// What a run took.
#[derive(Debug, Clone, Copy)]
struct Took {
    /// Seconds of the join, without what comes before it.
    join: f64,
    /// Of these, until the tables were there.
    start: f64,
    /// From the fingerprints of the day to the sorted hits.
    all: f64,
    total: f64,
}

impl Took {
    fn of(summary: &Value) -> Self {
        let seconds = |name: &str| summary["seconds"][name].as_f64().unwrap_or(0.0);
        let executors = summary["cluster"]["executors"].as_array();
        let prepared = executors.into_iter().flatten();
        let prepared = prepared.filter_map(|of| of["prepare_seconds"].as_f64());
        let first = summary["cluster"]["start_seconds"].as_f64().unwrap_or(0.0);
        Self {
            join: seconds("probe"),
            start: first + prepared.fold(0.0, f64::max),
            all: seconds("build") + seconds("probe"),
            total: seconds("total"),
        }
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    let program = program::path(args.program.as_deref());
    let directory = tempfile::tempdir().expect("a directory");
    let bench = Bench {
        program: &program,
        at: match &args.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => args.data.display().to_string(),
        },
        scratch: match &args.url {
            Some(url) => format!("--scratch {}/scratch", url.trim_end_matches('/')),
            None => String::new(),
        },
        output: directory.path().join("hits.parquet"),
        expected: std::fs::read(args.data.join("expected.parquet")).expect("expected hits"),
    };
    let plan = Command::new(&program)
        .args([
            "plan",
            "--json",
            "--new",
            &format!("{}/day.parquet", bench.at),
        ])
        .args(["--base", &format!("{}/archive", bench.at)])
        .output()
        .expect("the program");
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("a plan");
    let row_groups = plan["base"]["row_groups"].as_u64().unwrap_or(0);

    let scheduler = Process::start(&program, "scheduler --bind 127.0.0.1:0");
    let address = scheduler.said["scheduler"].as_str().unwrap_or_default();
    let address: SocketAddr = address
        .trim_start_matches("df://")
        .parse()
        .expect("an address");
    let meter = Meter::before(address);
    let executor = || {
        let line = format!(
            "executor --scheduler {} --slots 1 --threads 1",
            meter.address
        );
        Process::start(&program, &line)
    };
    let mut executors = vec![executor(), executor()];

    let mut one: Option<(Took, Value)> = None;
    let mut many: Option<(Took, Value)> = None;
    let mut through = u64::MAX;
    let better = |best: &mut Option<(Took, Value)>, summary: Value| {
        let took = Took::of(&summary);
        if best.as_ref().is_none_or(|(best, _)| took.all < best.all) {
            *best = Some((took, summary));
        }
    };
    for _ in 0..args.times {
        better(&mut one, bench.run("--threads 2"));
        let before = meter.read();
        let begin = Instant::now();
        better(&mut many, bench.run(&bench.on(meter.address)));
        // Executors without work call too; that is no part of the job.
        let (job, took) = (meter.read() - before, begin.elapsed());
        let before = meter.read();
        std::thread::sleep(took);
        through = through.min(job.saturating_sub(meter.read() - before));
    }
    let (Some((one, one_summary)), Some((many, many_summary))) = (one, many) else {
        return Vec::new();
    };
    let distinct = many_summary["new"]["distinct_fingerprints"]
        .as_u64()
        .unwrap_or(0);
    let items = row_groups + distinct.div_ceil(1 << 18);
    let peaks: Vec<u64> = executors.iter().map(Process::peak).collect();
    let fingerprints = many_summary["base"]["fingerprints"].as_u64().unwrap_or(0) as f64;
    let rate = |seconds: f64| fingerprints / seconds / 1e6;
    let started = rate(many.join - many.start);
    println!(
        "{} fingerprints, {items} work items in {} slices, best of {}; a cluster of two executors with one slot, against two threads",
        fingerprints, many_summary["cluster"]["slices"], args.times
    );
    println!(
        "{:<12} {:>8} {:>8} {:>8} {:>9} {:>14} {:>10}",
        "", "total s", "join s", "start s", "M fp/s", "once started", "MiB peak"
    );
    let peak = |summary: &Value| summary["peak_memory_bytes"].as_u64().unwrap_or(0);
    let line = |name: &str, took: &Took, started: f64, peak: u64| {
        println!(
            "{name:<12} {:>8.2} {:>8.2} {:>8.2} {:>9.1} {:>14.1} {:>10}",
            took.total,
            took.all,
            took.start,
            rate(took.all),
            started,
            peak >> 20
        );
    };
    line("one process", &one, rate(one.join), peak(&one_summary));
    line(
        "cluster",
        &many,
        started,
        peaks.iter().copied().max().unwrap_or(0),
    );
    println!(
        "once started {:.2} of one process; all of the join {:.2}; {} bytes through the scheduler for each work item",
        started / rate(one.join),
        one.all / many.all,
        through / items.max(1)
    );
    let mut rows = vec![json!({
        "storage": if args.url.is_some() { "store" } else { "local files" },
        "fingerprints": fingerprints,
        "work_items": items,
        "slices": many_summary["cluster"]["slices"],
        "one_process": { "join_seconds": one.all, "million_per_second": rate(one.all), "once_started": rate(one.join), "peak_bytes": peak(&one_summary) },
        "cluster": { "join_seconds": many.all, "million_per_second": rate(many.all), "once_started": started, "start_seconds": many.start, "peak_bytes": peaks },
        "once_started_of_one_process": started / rate(one.join),
        "bytes_through_scheduler_per_item": through / items.max(1),
    })];

    let mut worst = 0.0_f64;
    for _ in 0..args.kills {
        let begin = Instant::now();
        let run = bench
            .line(&bench.on(meter.address))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let middle = many.total - many.join + many.start + (many.join - many.start) / 2.0;
        std::thread::sleep(Duration::from_secs_f64(middle));
        drop(executors.remove(0));
        bench.check(run.wait_with_output().expect("its end"));
        worst = worst.max(begin.elapsed().as_secs_f64());
        executors.push(executor());
    }
    if args.kills > 0 {
        println!(
            "with one of two executors killed in the middle, {} times: {worst:.2} s at most",
            args.kills
        );
        rows.push(
            json!({ "kills": args.kills, "total_seconds_at_most": worst, "without": many.total }),
        );
    }
    rows
}
