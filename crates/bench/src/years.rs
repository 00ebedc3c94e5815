//! What grows with counts: nights in an archive, and files in a batch, at three sizes each.
//!
//! Ten times as many may take at most twelve times as long, in seconds, memory and requests. Requests and latency are of a store in
//! memory, so that only waiting is measured.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use serde_json::{Value, json};

use crate::{machine, program, slow_store};

/// Ten times as many may take this many times as long.
const GROWTH: f64 = 12.0;
/// Below these, what is measured is the start of a program.
const LEAST_SECONDS: f64 = 0.5;
const LEAST_BYTES: f64 = 256e6;
/// Documents of a night.
const ROWS: u64 = 20;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory for the archives and batches, which are kept
    #[arg(long, value_name = "DIR", default_value = "target/years")]
    directory: PathBuf,
    /// Program to measure [default: dedup-job beside this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Nights of the archives
    #[arg(long, value_delimiter = ',', default_value = "36,365,3650")]
    nights: Vec<u32>,
    /// Files of the batches
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    files: Vec<u32>,
    /// Latency of the store, in milliseconds
    #[arg(long, default_value_t = 25)]
    latency: u64,
}

pub fn run(args: &Args) -> Vec<Value> {
    let program = program::path(args.program.as_deref());
    let mut rows = Vec::new();
    println!(
        "{:<28} {:>8} {:>9} {:>10} {:>9}",
        "what", "count", "seconds", "MiB peak", "requests"
    );
    for nights in &args.nights {
        rows.extend(archive(args, &program, *nights));
    }
    for files in &args.files {
        rows.push(batch(args, &program, *files));
    }
    check_growth(&rows);
    rows
}

/// Measures an archive of `nights` days.
fn archive(args: &Args, program: &Path, nights: u32) -> Vec<Value> {
    let directory = args.directory.join(format!("{nights}-nights"));
    let generated = program::Generated {
        batch: 1000,
        archive: u64::from(nights) * ROWS,
        days: nights,
        max_distance: 3,
    };
    generated.make(program, &directory);
    let (base, new) = (directory.join("archive"), directory.join("day.parquet"));
    let (base, new) = (base.display().to_string(), new.display().to_string());
    let pairs = directory.join("pairs.parquet").display().to_string();
    let night = [
        "run",
        &new,
        "--base",
        &base,
        "--day",
        "2026-01-31",
        "-k",
        "3",
        "--overwrite",
        "-o",
        &pairs,
    ];
    let commands: [(&str, &[&str]); 5] = [
        ("run", &night),
        ("archive info", &["archive", "info", &base]),
        (
            "archive info --verify",
            &["archive", "info", &base, "--verify"],
        ),
        ("archive vacuum", &["archive", "vacuum", &base, "--dry-run"]),
        ("history", &["history", &base, "1"]),
    ];
    let mut rows: Vec<Value> = commands
        .iter()
        .map(|(name, arguments)| timed(program, name, nights, arguments))
        .collect();
    assert!(
        std::fs::read(&pairs).expect("pairs")
            == std::fs::read(directory.join("expected.parquet")).expect("pairs"),
        "{nights} nights: other pairs than were planted"
    );
    rows.push(in_store(args, &directory, nights));
    rows
}

/// Measures a night against the archive in a store with latency.
fn in_store(args: &Args, directory: &Path, nights: u32) -> Value {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let requests = Arc::new(AtomicU64::new(0));
    let seconds = runtime.block_on(async {
        let counted = Counted {
            requests: Arc::clone(&requests),
            store: slow_store::load_archive(directory).await,
        };
        let source = slow_store::Source::slow(counted, args.latency);
        let settings = slow_store::Args::of(directory, args.latency);
        let begin = Instant::now();
        slow_store::run_once(&settings, &source).await;
        begin.elapsed().as_secs_f64()
    });
    row(
        "run, in a slow store",
        nights,
        seconds,
        0.0,
        requests.load(Ordering::Relaxed),
    )
}

/// Measures the fingerprints of `files` small files of text.
fn batch(args: &Args, program: &Path, files: u32) -> Value {
    let directory = args.directory.join(format!("{files}-files"));
    if !directory.join("complete").exists() {
        std::fs::create_dir_all(directory.join("texts")).expect("a directory");
        for number in 0..files {
            let words = (0..40).map(|word| format!("word{} ", (number * 31 + word * 977) % 5003));
            let path = directory.join(format!("texts/{number}.txt"));
            std::fs::write(path, words.collect::<String>()).expect("a file");
        }
        std::fs::write(directory.join("complete"), "").expect("a file");
    }
    let (texts, output) = (
        directory.join("texts"),
        directory.join("fingerprints.parquet"),
    );
    let (texts, output) = (texts.display().to_string(), output.display().to_string());
    timed(
        program,
        "fingerprint, small files",
        files,
        &["fingerprint", &texts, "--overwrite", "-o", &output],
    )
}

/// Runs the program; returns its time and its peak memory.
fn timed(program: &Path, name: &str, count: u32, arguments: &[&str]) -> Value {
    let begin = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    let (status, peak) = machine::wait(&mut child);
    assert!(status.success(), "{arguments:?}: {status}");
    row(name, count, begin.elapsed().as_secs_f64(), peak as f64, 0)
}

fn row(name: &str, count: u32, seconds: f64, bytes: f64, requests: u64) -> Value {
    println!(
        "{name:<28} {count:>8} {seconds:>9.2} {:>10.0} {requests:>9}",
        bytes / 1_048_576.0
    );
    json!({ "what": name, "count": count, "seconds": seconds, "peak_memory_bytes": bytes, "requests": requests })
}

/// Fails where something grows faster than its count.
fn check_growth(rows: &[Value]) {
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap_or(0.0);
    for (at, row) in rows.iter().enumerate() {
        let smaller = rows[..at]
            .iter()
            .rfind(|other| other["what"] == row["what"]);
        let Some(smaller) = smaller else { continue };
        let times = number(row, "count") / number(smaller, "count");
        let limits = [
            ("seconds", LEAST_SECONDS),
            ("peak_memory_bytes", LEAST_BYTES),
            ("requests", 100.0),
        ];
        for (name, least) in limits {
            let (before, after) = (number(smaller, name).max(least), number(row, name));
            assert!(
                after <= before * GROWTH / 10.0 * times,
                "{}: {name} grow from {before} to {after} for {times:.1} times as many",
                row["what"]
            );
        }
    }
}

/// A store that counts requests.
#[derive(Debug)]
struct Counted<S> {
    requests: Arc<AtomicU64>,
    store: S,
}

impl<S> Counted<S> {
    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S: fmt::Debug> fmt::Display for Counted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counted {:?}", self.store)
    }
}

#[async_trait]
impl<S: ObjectStore> ObjectStore for Counted<S> {
    async fn put_opts(
        &self,
        key: &Key,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.count();
        self.store.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.count();
        self.store.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        self.count();
        self.store.get_opts(key, options).await
    }

    async fn get_ranges(&self, key: &Key, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.count();
        self.store.get_ranges(key, ranges).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        self.count();
        self.store.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count();
        self.store.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Key>,
        offset: &Key,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count();
        self.store.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.count();
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.count();
        self.store.copy_opts(from, to, options).await
    }
}
