//! mih-rs, multi-index hashing in Rust, in a process of its own: run by `bench lookup` as it runs `lookup_peers.py`.

use std::path::PathBuf;
use std::time::Instant;

use mih_rs::Index;
use serde_json::{Value, json};

use crate::data::{read_numbers, write_numbers};
use crate::latency::Latencies;
use crate::machine;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// `mih-rs`, which chooses the number of blocks itself, or `mih-rs:BLOCKS`
    method: String,
    /// Largest distance of an answer, in bits
    k: usize,
    /// File of the fingerprints
    fingerprints: PathBuf,
    /// File of the queries
    queries: PathBuf,
    /// File of the answers, to be written
    answers: PathBuf,
}

/// Prints a line of JSON, and writes the answers. Returns no rows.
pub fn run(args: &Args) -> Vec<Value> {
    let fingerprints = read_numbers(&args.fingerprints);
    let queries = read_numbers(&args.queries);
    // The index keeps this array.
    let kept = 8 * fingerprints.len() as u64;
    let before = machine::memory("self", "VmRSS").saturating_sub(kept);
    let begin = Instant::now();
    let index = match args.method.split_once(':') {
        None => Index::new(fingerprints),
        Some((_, blocks)) => Index::with_blocks(fingerprints, blocks.parse().expect("a number")),
    };
    let index = index.expect("an index");
    let build_seconds = begin.elapsed().as_secs_f64();
    let memory = machine::memory("self", "VmRSS").saturating_sub(before);
    let mut searcher = index.range_searcher();
    let mut answers = Vec::new();
    for (number, &query) in queries.iter().enumerate() {
        for &id in searcher.run(query, args.k) {
            answers.extend([number as u64, index.codes()[id as usize]]);
        }
    }
    let mut nanoseconds = Vec::with_capacity(queries.len());
    for &query in &queries {
        let begin = Instant::now();
        let found = searcher.run(query, args.k).len();
        nanoseconds.push(begin.elapsed().as_nanos() as u64);
        std::hint::black_box(found);
    }
    let mut row = Latencies::new(nanoseconds).json();
    row["method"] = args.method.as_str().into();
    row["settings"] = json!({ "blocks": index.num_blocks() });
    row["build_seconds"] = build_seconds.into();
    row["memory_bytes"] = memory.into();
    row["answers"] = (answers.len() / 2).into();
    write_numbers(&args.answers, answers);
    println!("{row}");
    Vec::new()
}
