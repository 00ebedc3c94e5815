//! `dedup-job run` on a cluster of two executors with one slot each, against one process with two threads, on the same
//! cores and data. Every run must write the expected file, byte for byte.
//!
//! A metering TCP proxy in front of the scheduler counts the bytes that pass through it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{machine, program};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output directory of `dedup-job generate fingerprints`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Read the same data from a store, below this URL, with credentials from the environment
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Number of runs of each; the fastest counts
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Number of runs in which an executor is killed halfway
    #[arg(long, default_value_t = 3)]
    kills: usize,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// A scheduler or executor, killed when this is dropped.
struct Process {
    child: Child,
    /// The line of JSON that it prints once it is ready.
    started: Value,
}

impl Process {
    /// Starts the program with the arguments in `line`, and waits until it is ready.
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
        let started = serde_json::from_str(&first).expect("a line of JSON");
        Self { child, started }
    }

    /// Returns its peak memory, in bytes.
    fn peak_bytes(&self) -> u64 {
        machine::memory(&self.child.id().to_string(), "VmHWM")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP proxy in front of the scheduler that counts bytes in both directions.
struct Meter {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl Meter {
    fn start(scheduler: SocketAddr) -> Self {
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

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// What `dedup-job run` is run on, and the output that it must write.
struct Job<'a> {
    program: &'a Path,
    /// Directory or URL of the data.
    data: String,
    /// The option `--scratch` that cluster runs on a store need; empty for local files.
    scratch: String,
    output: PathBuf,
    /// Bytes of the expected output.
    expected: Vec<u8>,
}

impl Job<'_> {
    /// Returns the command with further options.
    fn command(&self, options: &str) -> Command {
        let mut command = Command::new(self.program);
        let line = format!(
            "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --output {} --json --quiet {options}",
            self.output.display(),
            data = self.data
        );
        command.args(line.split_whitespace());
        command
    }

    /// Runs the command with further options, and returns its summary.
    fn run(&self, options: &str) -> Value {
        let ended = self.command(options).output().expect("the program");
        self.checked_summary(ended)
    }

    /// Returns the summary of a run; fails if the run failed or wrote other pairs.
    fn checked_summary(&self, ended: std::process::Output) -> Value {
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{errors}");
        let found = std::fs::read(&self.output).expect("the pairs");
        assert!(found == self.expected, "other pairs than were planted");
        serde_json::from_slice(&ended.stdout).expect("a summary")
    }

    /// Returns the options of a cluster run.
    fn cluster_options(&self, scheduler: SocketAddr) -> String {
        format!("--cluster df://{scheduler} {}", self.scratch)
    }
}

/// Times of the stages of a run, in seconds.
#[derive(Debug, Clone, Copy)]
struct Timing {
    /// Probing the archive; on a cluster, this includes `start`.
    probe: f64,
    /// On a cluster: the time until the first slice began, plus the longest time that an executor
    /// took to get its tables.
    start: f64,
    /// Building the tables of the batch, and `probe`.
    join: f64,
    total: f64,
}

impl Timing {
    fn from_summary(summary: &Value) -> Self {
        let seconds = |name: &str| summary["seconds"][name].as_f64().unwrap_or(0.0);
        let executors = summary["cluster"]["executors"].as_array();
        let prepared = executors.into_iter().flatten();
        let prepared = prepared.filter_map(|executor| executor["prepare_seconds"].as_f64());
        let first = summary["cluster"]["start_seconds"].as_f64().unwrap_or(0.0);
        Self {
            probe: seconds("probe"),
            start: first + prepared.fold(0.0, f64::max),
            join: seconds("build") + seconds("probe"),
            total: seconds("total"),
        }
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    let program = program::path(args.program.as_deref());
    let directory = tempfile::tempdir().expect("a directory");
    let job = Job {
        program: &program,
        data: match &args.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => args.data.display().to_string(),
        },
        scratch: match &args.url {
            Some(url) => format!("--scratch {}/scratch", url.trim_end_matches('/')),
            None => String::new(),
        },
        output: directory.path().join("hits.parquet"),
        expected: std::fs::read(args.data.join("expected.parquet")).expect("expected pairs"),
    };
    let plan = Command::new(&program)
        .args([
            "plan",
            "--json",
            "--new",
            &format!("{}/day.parquet", job.data),
        ])
        .args(["--base", &format!("{}/archive", job.data)])
        .output()
        .expect("the program");
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("a plan");
    let row_groups = plan["base"]["row_groups"].as_u64().unwrap_or(0);

    let scheduler = Process::start(&program, "scheduler --bind 127.0.0.1:0");
    let address = scheduler.started["scheduler"].as_str().unwrap_or_default();
    let address: SocketAddr = address
        .trim_start_matches("df://")
        .parse()
        .expect("an address");
    let meter = Meter::start(address);
    let executor = || {
        let line = format!(
            "executor --scheduler {} --slots 1 --threads 1",
            meter.address
        );
        Process::start(&program, &line)
    };
    let mut executors = vec![executor(), executor()];

    let mut one: Option<(Timing, Value)> = None;
    let mut many: Option<(Timing, Value)> = None;
    let mut through_scheduler = u64::MAX;
    let keep_faster = |best: &mut Option<(Timing, Value)>, summary: Value| {
        let timing = Timing::from_summary(&summary);
        if best
            .as_ref()
            .is_none_or(|(best, _)| timing.join < best.join)
        {
            *best = Some((timing, summary));
        }
    };
    for _ in 0..args.times {
        keep_faster(&mut one, job.run("--threads 2"));
        let before = meter.bytes();
        let begin = Instant::now();
        keep_faster(&mut many, job.run(&job.cluster_options(meter.address)));
        // Idle executors poll the scheduler, too: subtract the bytes of an idle period of the same length.
        let (bytes, elapsed) = (meter.bytes() - before, begin.elapsed());
        let before = meter.bytes();
        std::thread::sleep(elapsed);
        let idle = meter.bytes() - before;
        through_scheduler = through_scheduler.min(bytes.saturating_sub(idle));
    }
    let (Some((one, one_summary)), Some((many, many_summary))) = (one, many) else {
        return Vec::new();
    };
    let distinct = many_summary["new"]["distinct_fingerprints"]
        .as_u64()
        .unwrap_or(0);
    let items = row_groups + distinct.div_ceil(1 << 18);
    let peaks: Vec<u64> = executors.iter().map(Process::peak_bytes).collect();
    let fingerprints = many_summary["base"]["fingerprints"].as_u64().unwrap_or(0) as f64;
    let rate = |seconds: f64| fingerprints / seconds / 1e6;
    let once_started = rate(many.probe - many.start);
    println!(
        "{} fingerprints, {items} work items in {} slices, best of {}; a cluster of two executors with one slot, against two threads",
        fingerprints, many_summary["cluster"]["slices"], args.times
    );
    println!(
        "{:<12} {:>8} {:>8} {:>8} {:>9} {:>14} {:>10}",
        "", "total s", "join s", "start s", "M fp/s", "once started", "MiB peak"
    );
    let peak_bytes = |summary: &Value| summary["peak_memory_bytes"].as_u64().unwrap_or(0);
    let print_row = |name: &str, timing: &Timing, once_started: f64, peak: u64| {
        println!(
            "{name:<12} {:>8.2} {:>8.2} {:>8.2} {:>9.1} {:>14.1} {:>10}",
            timing.total,
            timing.join,
            timing.start,
            rate(timing.join),
            once_started,
            peak >> 20
        );
    };
    let one_peak = peak_bytes(&one_summary);
    print_row("one process", &one, rate(one.probe), one_peak);
    print_row(
        "cluster",
        &many,
        once_started,
        peaks.iter().copied().max().unwrap_or(0),
    );
    println!(
        "speed relative to one process: {:.2} once started, {:.2} over the whole join; {} bytes through the scheduler for each work item",
        once_started / rate(one.probe),
        one.join / many.join,
        through_scheduler / items.max(1)
    );
    let mut rows = vec![json!({
        "storage": if args.url.is_some() { "store" } else { "local files" },
        "fingerprints": fingerprints,
        "work_items": items,
        "slices": many_summary["cluster"]["slices"],
        "one_process": { "join_seconds": one.join, "million_per_second": rate(one.join), "once_started": rate(one.probe), "peak_bytes": one_peak },
        "cluster": { "join_seconds": many.join, "million_per_second": rate(many.join), "once_started": once_started, "start_seconds": many.start, "peak_bytes": peaks },
        "once_started_of_one_process": once_started / rate(one.probe),
        "bytes_through_scheduler_per_item": through_scheduler / items.max(1),
    })];

    let mut worst = 0.0_f64;
    for _ in 0..args.kills {
        let begin = Instant::now();
        let run = job
            .command(&job.cluster_options(meter.address))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let halfway = many.total - many.probe + many.start + (many.probe - many.start) / 2.0;
        std::thread::sleep(Duration::from_secs_f64(halfway));
        drop(executors.remove(0));
        job.checked_summary(run.wait_with_output().expect("its end"));
        worst = worst.max(begin.elapsed().as_secs_f64());
        executors.push(executor());
    }
    if args.kills > 0 {
        println!(
            "with one of two executors killed halfway: at most {worst:.2} s in total, over {} runs",
            args.kills
        );
        rows.push(
            json!({ "kills": args.kills, "total_seconds_at_most": worst, "without": many.total }),
        );
    }
    rows
}
