//! `dedup-job run` on archives of growing size with planted pairs: its rate, and the time of each stage.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::{Int32Array, RecordBatch};
use arrow::compute::kernels::cmp::lt_eq;
use arrow::compute::{concat_batches, filter_record_batch};
use engine::pairs::DISTANCE;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::{program, threads};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the archives; archives that exist there are reused
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Numbers of fingerprints in the archives
    #[arg(long, value_delimiter = ',', default_values_t = [10_000_000, 100_000_000, 1_000_000_000])]
    sizes: Vec<u64>,
    /// Also measure 8 billion fingerprints: they take half an hour to generate, 36 GB on disk, and the space of another
    /// day while they are written
    #[arg(long)]
    full: bool,
    /// Number of fingerprints in the batch
    #[arg(long, default_value_t = 1_000_000)]
    batch: u64,
    /// Number of days in an archive
    #[arg(long, default_value_t = 1)]
    days: u32,
    /// Largest distance of a pair, in bits
    #[arg(short = 'k', long, default_value_t = 3)]
    max_distance: u32,
    /// Largest planted distance, at most that of the run: pairs up to it are checked, pairs beyond it are only counted
    /// [default: that of the run]
    #[arg(long, value_name = "DISTANCE")]
    made_for: Option<u32>,
    /// Probe plain unsorted Parquet files instead of an archive; this Python, with the packages of
    /// crates/bench/requirements.txt, writes them
    #[arg(long, value_name = "PYTHON")]
    unsorted: Option<PathBuf>,
    /// Value of the program's --memory-limit
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<String>,
    /// Number of runs of each; the fastest counts
    #[arg(long, default_value_t = 3)]
    times: usize,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

pub fn run(args: &Args) -> Vec<Value> {
    let program = program::path(args.program.as_deref());
    let sizes = args
        .sizes
        .iter()
        .copied()
        .chain(args.full.then_some(8_000_000_000));
    println!(
        "k = {}, batch {}, {} days; ns are core-nanoseconds of a stage for each fingerprint of the archive",
        args.max_distance, args.batch, args.days
    );
    println!(
        "{:>13} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>6}",
        "archive",
        "seconds",
        "M fp/s",
        "probe s",
        "probe ns",
        "read",
        "decode",
        "partition",
        "filter",
        "verify",
        "ids",
        "reduce s",
        "write s",
        "MiB peak",
        "B/fp"
    );
    sizes.map(|size| measure(args, &program, size)).collect()
}

/// Generates an archive unless it exists, runs the program on it, and prints and returns the fastest run.
fn measure(args: &Args, program: &Path, size: u64) -> Value {
    let made_for = args.made_for.unwrap_or(args.max_distance);
    assert!(
        made_for <= args.max_distance,
        "--made-for {made_for} is above -k {}",
        args.max_distance
    );
    let name = format!("{size}x{}-k{made_for}-{}days", args.batch, args.days);
    let directory = args.directory.join(name);
    let generated = program::Generated {
        batch: args.batch,
        archive: size,
        days: args.days,
        max_distance: made_for,
    };
    generated.make(program, &directory);
    let mut base = directory.join("archive");
    if let Some(python) = &args.unsorted {
        let archive = std::mem::replace(&mut base, directory.join("unsorted"));
        if !base.exists() {
            let status = Command::new(python)
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("unsorted.py"))
                .args([&archive, &base])
                .status()
                .expect("python");
            assert!(status.success(), "the unsorted files cannot be written");
        }
    }
    let runs = (0..args.times).map(|_| run_once(args, program, &directory, &base));
    let best = runs
        .min_by(|a, b| total_seconds(a).total_cmp(&total_seconds(b)))
        .expect("at least one run");
    let total = total_seconds(&best);
    let figure = |pointer: &str| {
        best.pointer(pointer)
            .and_then(Value::as_f64)
            .unwrap_or(f64::NAN)
    };
    let nanoseconds = |pointer: &str| figure(pointer) * 1e9 / size as f64;
    let threads = threads::cores() as f64;
    let probe = figure("/seconds/probe");
    println!(
        "{size:>13} {total:>8.2} {:>8.1} {probe:>7.2} {:>8.2} {:>7.2} {:>7.2} {:>9.2} {:>7.2} {:>7.2} {:>7.2} {:>8.2} {:>7.2} {:>8.0} {:>6.2}",
        size as f64 / total * 1e-6,
        probe * 1e9 / size as f64 * threads,
        nanoseconds("/seconds/of_probe/read"),
        nanoseconds("/seconds/of_probe/decode"),
        nanoseconds("/seconds/of_probe/partition"),
        nanoseconds("/seconds/of_probe/filter"),
        nanoseconds("/seconds/of_probe/verify"),
        nanoseconds("/seconds/of_probe/ids"),
        figure("/seconds/of_probe/reduce"),
        figure("/seconds/of_probe/write"),
        figure("/peak_memory_bytes") / 1048576.0,
        figure("/base/bytes_read") / size as f64,
    );
    json!({
        "archive": size,
        "batch": args.batch,
        "days": args.days,
        "sorted": args.unsorted.is_none(),
        "max_distance": args.max_distance,
        "made_for_distance": made_for,
        "memory_limit": args.memory_limit,
        "fingerprints_per_second": size as f64 / total,
        "peak_memory_bytes": best["peak_memory_bytes"],
        "bytes_per_fingerprint": figure("/base/bytes_read") / size as f64,
        "design": best["design"],
        "hits": best["hits"],
        "seconds": best["seconds"],
    })
}

/// Returns the total time of a run, from its summary.
fn total_seconds(run: &Value) -> f64 {
    run.pointer("/seconds/total")
        .and_then(Value::as_f64)
        .unwrap_or(f64::MAX)
}

/// Runs the program once, checks its pairs, and returns its summary. Without `--made-for`, all pairs are planted and
/// the whole file is compared; with it, only the pairs up to that distance.
fn run_once(args: &Args, program: &Path, directory: &Path, base: &Path) -> Value {
    let hits = directory.join("hits.parquet");
    let mut command = Command::new(program);
    command
        .args(["run", "--json", "--quiet", "--day", "2026-01-31"])
        .args(["-k", &args.max_distance.to_string(), "--new"])
        .arg(directory.join("day.parquet"))
        .arg("--base")
        .arg(base)
        .arg("--output")
        .arg(&hits);
    if let Some(limit) = &args.memory_limit {
        command.args(["--memory-limit", limit]);
    }
    let output = program::output(&mut command);
    let expected = directory.join("expected.parquet");
    let same = match args.made_for {
        None => std::fs::read(&hits).expect("the hits") == std::fs::read(expected).expect("hits"),
        Some(distance) => pairs_up_to(&hits, distance) == pairs_up_to(&expected, distance),
    };
    assert!(same, "{}: not the expected pairs", hits.display());
    serde_json::from_slice(&output).expect("the summary")
}

/// Reads from a file the pairs within `distance` bits.
fn pairs_up_to(hits: &Path, distance: u32) -> RecordBatch {
    let file = File::open(hits).expect("the hits");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let schema = Arc::clone(reader.schema());
    let parts = reader.build().expect("a reader").map(|part| {
        let part = part.expect("hits");
        let distances = part.column_by_name(DISTANCE).expect("distances");
        let near = lt_eq(distances, &Int32Array::new_scalar(distance.cast_signed()));
        filter_record_batch(&part, &near.expect("distances")).expect("hits")
    });
    let parts: Vec<RecordBatch> = parts.collect();
    concat_batches(&schema, &parts).expect("hits")
}
