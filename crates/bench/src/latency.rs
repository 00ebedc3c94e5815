//! The join from a store whose every answer takes its time, against the same store without that and against local files.
//!
//! The store is in memory, so that what is measured is waiting and nothing else: a server on the same machine would take
//! the cores that the join runs on. All runs must find the hits that were planted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive::{StoreOptions, Stores};
use engine::resources::Resources;
use engine::{Limits, RunSettings, Summary, Wanted};
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::{Value, json};
use url::Url;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What `dedup-job generate fingerprints` made; all of it is held in memory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Milliseconds that every request takes besides its work
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Times that each is run; the fastest counts
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// How the history is reached.
struct Way {
    name: &'static str,
    stores: Stores,
    base: String,
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
    let wait = Duration::from_millis(args.latency);
    let slow = ThrottledStore::new(
        load(&args.data).await,
        ThrottleConfig {
            wait_get_per_call: wait,
            wait_list_per_call: wait,
            wait_list_with_delimiter_per_call: wait,
            wait_put_per_call: wait,
            ..Default::default()
        },
    );
    let at = |store: Arc<dyn ObjectStore>| {
        let stores = Stores::new(StoreOptions::default());
        stores.register(&Url::parse("s3://bench").expect("a URL"), store);
        stores
    };
    let ways = [
        Way {
            name: "local files",
            stores: Stores::default(),
            base: args.data.join("archive").display().to_string(),
        },
        Way {
            name: "store",
            stores: at(Arc::new(load(&args.data).await)),
            base: "s3://bench/archive".into(),
        },
        Way {
            name: "slow store",
            stores: at(Arc::new(slow)),
            base: "s3://bench/archive".into(),
        },
    ];
    let mut best: [Option<Summary>; 3] = [const { None }; 3];
    for _ in 0..args.times {
        for (way, best) in ways.iter().zip(&mut best) {
            let summary = once(args, way).await;
            let faster = best
                .as_ref()
                .is_none_or(|best| summary.seconds.probe < best.seconds.probe);
            if faster {
                *best = Some(summary);
            }
        }
    }
    println!(
        "{} ms a request, {} threads, best of {}; rates are of the join: fetching, probing, ids, reducing, writing",
        args.latency, args.threads, args.times
    );
    println!(
        "{:<12} {:>13} {:>9} {:>9} {:>8} {:>9} {:>7}",
        "history", "fingerprints", "hits", "join s", "M fp/s", "of local", "open s"
    );
    let local = best[0].as_ref().map_or(0.0, rate);
    let rows = ways.iter().zip(best.iter().flatten());
    rows.map(|(way, summary)| {
        let (join, rate) = (summary.seconds.probe, rate(summary));
        println!(
            "{:<12} {:>13} {:>9} {:>9.2} {:>8.1} {:>9.2} {:>7.2}",
            way.name,
            summary.base.fingerprints,
            summary.hits,
            join,
            rate,
            rate / local,
            summary.seconds.open
        );
        json!({
            "history": way.name,
            "latency_ms": if way.name == "slow store" { args.latency } else { 0 },
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

/// Million fingerprints of the history a second.
fn rate(summary: &Summary) -> f64 {
    summary.base.fingerprints as f64 / summary.seconds.probe / 1e6
}

async fn once(args: &Args, way: &Way) -> Summary {
    let scratch = tempfile::tempdir().expect("a directory");
    let resources = Arc::new(Resources::new(way.stores.clone()));
    let limits = Limits {
        threads: args.threads,
        memory: 8 << 30,
        spill: scratch.path().to_owned(),
    };
    let context = engine::session::session(&limits, Arc::clone(&resources)).expect("a session");
    let hits = scratch.path().join("hits.parquet");
    let settings = RunSettings {
        new: vec![args.data.join("day.parquet").display().to_string()],
        base: way.base.clone(),
        output: way
            .stores
            .locate(&hits.display().to_string())
            .expect("a local path"),
        max_distance: 3,
        within: true,
        append: false,
        rows_per_file: None,
        day: Some("2026-01-31".parse().expect("a day")),
        fingerprints: None,
        columns: Default::default(),
        design: None,
        max_hits: None,
        verify: None,
        wanted: Wanted::default(),
        scratch: scratch.path().to_owned(),
        cluster: None,
    };
    let summary = engine::run(&context, &resources, &settings)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", way.name));
    let expected = std::fs::read(args.data.join("expected.parquet")).expect("expected hits");
    assert!(
        std::fs::read(hits).expect("hits") == expected,
        "{}: other hits than were planted",
        way.name
    );
    summary
}

/// The archive's files, in memory.
async fn load(data: &Path) -> InMemory {
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
