//! The join of an archive in a store with latency, against the same store without latency and against local files.
//!
//! The store is in memory, so only waiting is measured: a server on this machine would compete for the cores of the
//! join. All runs must find the planted pairs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::output::OutputTarget;
use engine::resources::Resources;
use engine::run::DaySource;
use engine::{Limits, RunSettings, Summary};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::{Value, json};
use storage::{StoreOptions, Stores};
use url::Url;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output directory of `dedup-job generate fingerprints`; its archive is held in memory twice
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Latency added to each request, in milliseconds
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Number of runs of each; the fastest counts
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Number of threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// A place where the archive is, and how to reach it.
pub(crate) struct Source {
    name: &'static str,
    pub(crate) stores: Stores,
    /// Directory or URL of the archive.
    base: String,
}

impl Source {
    fn of_store(name: &'static str, store: Arc<dyn ObjectStore>) -> Self {
        let stores = Stores::new(StoreOptions::default());
        stores.register(&Url::parse("s3://bench").expect("a URL"), store);
        Self {
            name,
            stores,
            base: "s3://bench/archive".into(),
        }
    }

    /// A store whose every request takes `latency` milliseconds.
    pub(crate) fn slow(store: impl ObjectStore, latency: u64) -> Self {
        let wait = Duration::from_millis(latency);
        let config = ThrottleConfig {
            wait_get_per_call: wait,
            wait_list_per_call: wait,
            wait_list_with_delimiter_per_call: wait,
            wait_put_per_call: wait,
            ..Default::default()
        };
        Self::of_store("slow store", Arc::new(ThrottledStore::new(store, config)))
    }
}

impl Args {
    /// One run of two threads on the data in a directory.
    pub(crate) fn of(data: &Path, latency: u64) -> Self {
        Self {
            data: data.to_owned(),
            latency,
            times: 1,
            threads: 2,
        }
    }

    /// Limits of a process that spills into `scratch`.
    pub(crate) fn limits(&self, scratch: &Path) -> Limits {
        Limits {
            threads: self.threads,
            memory: 8 << 30,
            spill: scratch.to_owned(),
        }
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads)
        .enable_all()
        .build()
        .expect("threads");
    runtime.block_on(measure(args))
}

async fn measure(args: &Args) -> Vec<Value> {
    let sources = [
        Source {
            name: "local files",
            stores: Stores::default(),
            base: args.data.join("archive").display().to_string(),
        },
        Source::of_store("store", Arc::new(load_archive(&args.data).await)),
        Source::slow(load_archive(&args.data).await, args.latency),
    ];
    let mut best: [Option<Summary>; 3] = [const { None }; 3];
    for _ in 0..args.times {
        for (source, best) in sources.iter().zip(&mut best) {
            let summary = run_once(args, source).await;
            let faster = best
                .as_ref()
                .is_none_or(|best| summary.seconds.probe < best.seconds.probe);
            if faster {
                *best = Some(summary);
            }
        }
    }
    println!(
        "{} ms per request, {} threads, best of {}; rates are of the join: fetching, probing, reading ids, reducing, writing",
        args.latency, args.threads, args.times
    );
    println!(
        "{:<12} {:>13} {:>9} {:>9} {:>8} {:>9} {:>7}",
        "archive", "fingerprints", "pairs", "join s", "M fp/s", "of local", "open s"
    );
    let local = best[0].as_ref().map_or(0.0, rate);
    let rows = sources.iter().zip(best.iter().flatten());
    rows.map(|(source, summary)| {
        let (join, rate) = (summary.seconds.probe, rate(summary));
        println!(
            "{:<12} {:>13} {:>9} {:>9.2} {:>8.1} {:>9.2} {:>7.2}",
            source.name,
            summary.base.fingerprints,
            summary.hits.unwrap_or(0),
            join,
            rate,
            rate / local,
            summary.seconds.open
        );
        json!({
            "archive": source.name,
            "latency_ms": if source.name == "slow store" { args.latency } else { 0 },
            "fingerprints": summary.base.fingerprints,
            "hits": summary.hits,
            "join_seconds": join,
            "open_seconds": summary.seconds.open,
            "million_per_second": rate,
            "of_local": rate / local,
        })
    })
    .collect()
}

/// Returns the rate of the join, in million fingerprints of the archive per second.
fn rate(summary: &Summary) -> f64 {
    summary.base.fingerprints as f64 / summary.seconds.probe / 1e6
}

/// The settings of the join, whose pairs go to the file `hits`.
pub(crate) fn settings(args: &Args, source: &Source, scratch: &Path, hits: &Path) -> RunSettings {
    let hits = source.stores.locate(&hits.display().to_string());
    let hits = OutputTarget::file(hits.expect("a local path"));
    RunSettings {
        new: vec![args.data.join("day.parquet").display().to_string()],
        base: vec![source.base.clone()],
        output: Some(hits.expect("a known ending")),
        within: true,
        day: Some(DaySource::Date("2026-01-31".parse().expect("a day"))),
        scratch: scratch.to_owned(),
        ..RunSettings::default()
    }
}

/// Runs the join once, checks its pairs, and returns its summary.
pub(crate) async fn run_once(args: &Args, source: &Source) -> Summary {
    let scratch = tempfile::tempdir().expect("a directory");
    let resources = Arc::new(Resources::new(source.stores.clone()));
    let limits = args.limits(scratch.path());
    let context = engine::session::session(&limits, Arc::clone(&resources)).expect("a session");
    let hits = scratch.path().join("hits.parquet");
    let settings = settings(args, source, scratch.path(), &hits);
    let summary = engine::run(&context, &resources, &settings)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", source.name));
    let expected = std::fs::read(args.data.join("expected.parquet")).expect("expected pairs");
    assert!(
        std::fs::read(hits).expect("pairs") == expected,
        "{}: other pairs than were planted",
        source.name
    );
    summary
}

/// Copies the archive below `data` into a store in memory.
pub(crate) async fn load_archive(data: &Path) -> InMemory {
    let store = InMemory::new();
    let mut open = vec![data.join("archive")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let below = path.strip_prefix(data).expect("a path below");
            let key = object_store::path::Path::parse(below.to_string_lossy()).expect("a key");
            let bytes = std::fs::read(&path).expect("a file");
            store.put(&key, bytes.into()).await.expect("memory");
        }
    }
    store
}
