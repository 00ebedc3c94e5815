//! Online lookup: how long one query takes, warm and from the disk, how many queries a second, and how many bytes; beside the
//! paper's own code of the tables and other programs. All must find the same answers.

mod cold;
mod fingerprints;
mod huffman;
mod index;
pub mod mih;
mod peers;
mod queries;
mod table;

use std::path::PathBuf;

use serde_json::Value;
use tokio::runtime::Runtime;

use self::fingerprints::Fingerprints;
use self::queries::Queries;
use self::table::Table;
use crate::{data, machine, program};

/// Queries for the paper's code and for other programs, at most.
const PEER_QUERIES: usize = 10_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of fingerprints in the archive
    #[arg(long, default_value_t = 100_000_000)]
    rows: u64,
    /// Number of days in the archive
    #[arg(long, default_value_t = 1)]
    days: u32,
    /// Number of queries up to a distance of 4; a tenth as many beyond
    #[arg(long, default_value_t = 100_000)]
    queries: usize,
    /// Largest distances of an answer, in bits; other programs are measured at the first
    #[arg(long, value_delimiter = ',', default_values_t = [3, 6])]
    distances: Vec<u32>,
    /// Number of queries that are compared with the whole archive
    #[arg(long, default_value_t = 64)]
    sample: usize,
    /// Number of queries from the disk, which need an empty page cache; 0 measures none
    #[arg(long, default_value_t = 500)]
    cold: usize,
    /// Threads that search batches
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Directory of the archives; archives that exist there are reused [default: dedup-job-lookup in the temporary directory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Directory of the indexes; indexes that exist there are reused [default: beside the archives]
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Merge all segments of the index into one
    #[arg(long)]
    merge_all: bool,
    /// Block sizes of the paper's code, in bytes; it takes 17 bytes of memory for each fingerprint
    #[arg(long, value_delimiter = ',', value_name = "BYTES", default_values_t = [1024, 256])]
    huffman: Vec<usize>,
    /// Leave out the paper's code
    #[arg(long)]
    no_huffman: bool,
    /// Measure other programs, too: mih-rs, and with --python FAISS and hammingbird
    #[arg(long)]
    peers: bool,
    /// Numbers of fingerprints at which other programs, and ours, are measured
    #[arg(long, value_delimiter = ',', value_name = "N", default_values_t = [1_000_000, 10_000_000])]
    peer_rows: Vec<u64>,
    /// Python with the packages of crates/bench/requirements-lookup.txt
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

pub fn run(args: &Args) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads");
    let mut sizes = vec![args.rows];
    if args.peers {
        sizes.extend(&args.peer_rows);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
        .into_iter()
        .flat_map(|size| measure(args, &runtime, size))
        .collect()
}

/// Measures everything for an archive of `size` fingerprints; prints and returns the rows.
fn measure(args: &Args, runtime: &Runtime, size: u64) -> Vec<Value> {
    let temporary = || std::env::temp_dir().join("dedup-job-lookup");
    let data = args.data.clone().unwrap_or_else(temporary);
    let name = format!("{size}-{}days", args.days);
    let directory = data.join(&name);
    let program = program::path(args.program.as_deref());
    let generated = program::Generated {
        batch: 1000,
        archive: size,
        days: args.days,
        max_distance: 3,
    };
    generated.make(&program, &directory);
    let archive = directory.join("archive");
    let merged = if args.merge_all { "-merged" } else { "" };
    let build = index::Build {
        program: &program,
        archive: &archive,
        index: match &args.index {
            Some(indexes) => indexes.join(format!("{name}{merged}")),
            None => directory.join(format!("index{merged}")),
        },
        record: directory.join(format!("build{merged}.json")),
        merge_all: args.merge_all,
    };
    let built = build.make();
    let fingerprints = Fingerprints::open(runtime, &archive);
    let mut sets = Queries::plant(&fingerprints, args.queries, &args.distances);
    Queries::find_expected(&fingerprints, &mut sets, args.sample);
    if let Some(first) = sets.first() {
        // For `bench lookup-http`.
        let file = directory.join("queries");
        data::write_numbers(&file, first.fingerprints.iter().copied());
    }
    let mut table = Table::new(size, args.days);

    let before = index::memory();
    let opened = index::open(runtime, &build.index);
    // As `serve` does.
    opened.read_ahead(machine::total_memory() / 2, || false);
    let sizes = index::sizes(&opened);
    table.print_index(&built, &sizes);
    let mut answers = Vec::new();
    for queries in &sets {
        let (mut row, found) = index::measure_one_by_one(&opened, queries);
        row["bytes_per_fingerprint"] = sizes["table_bytes_per_fingerprint"].clone();
        row["of_raw"] = sizes["of_raw"].clone();
        table.add(queries.k, row);
        answers.push(found);
        let mut threads = vec![1, args.threads];
        threads.dedup();
        for threads in threads {
            table.add(queries.k, index::measure_batches(&opened, queries, threads));
        }
    }
    table.add_memory(&before, &index::memory(), &built, &sizes);
    drop(opened);

    if let Some(queries) = sets.first().filter(|_| args.cold > 0) {
        let open = || index::open(runtime, &build.index);
        let row = cold::measure(&build.index, open, queries, args.cold);
        table.add(queries.k, row);
    }
    let sets: Vec<_> = sets.iter().zip(answers.iter().map(Vec::as_slice)).collect();
    let has_peers = args.peers && args.peer_rows.contains(&size);
    if args.no_huffman && !has_peers {
        return table.rows;
    }
    let mut values = fingerprints.all();
    if let Some(first) = sets.first().filter(|_| has_peers) {
        let python = args.python.as_deref();
        for row in peers::measure(python, &directory, &values, *first, PEER_QUERIES) {
            table.add(first.0.k, row);
        }
    }
    for block_bytes in args.huffman.iter().filter(|_| !args.no_huffman) {
        let rows = huffman::measure(&mut values, *block_bytes, &sets, PEER_QUERIES);
        for ((queries, _), row) in sets.iter().zip(rows) {
            table.add(queries.k, row);
        }
    }
    table.rows
}
