//! The compressed tables of Manku, Jain and Das Sarma, "Detecting Near-Duplicates for Web Crawling" (WWW 2007), "Compression of
//! Fingerprints", in memory: what our Elias–Fano tables are compared with.
//!
//! The same two tables, sorted and rotated by 32 bits, are searched by the same leading bits; only the code of a table differs.

mod code;
mod search;
mod table;

use std::time::Instant;

use serde_json::Value;

use self::search::{Searcher, Tables};
use super::queries::{Answer, Queries, sorted, up_to};
use crate::latency::Latencies;

/// What a compressed table takes of a raw one, for 8 billion fingerprints: "approximately half" in the paper.
const PAPER_OF_RAW: f64 = 0.5;

/// Measures tables of the fingerprints, which must give the answers of the index; a row for each set of queries, the first `count`
/// of each.
pub fn measure(
    fingerprints: &mut Vec<u64>,
    block_bytes: usize,
    sets: &[(&Queries, &[Answer])],
    count: usize,
) -> Vec<Value> {
    let begin = Instant::now();
    let tables = Tables::new(fingerprints, block_bytes);
    let build_seconds = begin.elapsed().as_secs_f64();
    let bytes_each = tables.bytes() as f64 / tables.values as f64;
    sets.iter()
        .map(|(queries, expected)| {
            let chosen = &queries.fingerprints[..count.min(queries.fingerprints.len())];
            let mut searcher = Searcher::new(&tables, queries.k);
            let (_, answers) = one_by_one(&mut searcher, chosen);
            assert!(
                answers == up_to(expected, chosen.len()),
                "Huffman, k = {}: other answers than the index",
                queries.k
            );
            let (nanoseconds, _) = one_by_one(&mut searcher, chosen);
            let mut row = Latencies::new(nanoseconds).json();
            row["method"] =
                format!("Huffman, in memory, blocks of {block_bytes} B (the paper)").into();
            row["answers"] = answers.len().into();
            row["build_seconds"] = build_seconds.into();
            row["bytes_per_fingerprint"] = bytes_each.into();
            row["of_raw"] = (bytes_each / 16.0).into();
            row["of_raw_in_the_paper"] = PAPER_OF_RAW.into();
            row
        })
        .collect()
}

/// Looks the queries up one by one. Returns nanoseconds and the answers.
fn one_by_one(searcher: &mut Searcher<'_>, queries: &[u64]) -> (Vec<u64>, Vec<Answer>) {
    let (mut found, mut answers) = (Vec::new(), Vec::new());
    let mut nanoseconds = Vec::with_capacity(queries.len());
    for (number, query) in queries.iter().enumerate() {
        found.clear();
        let begin = Instant::now();
        searcher.search(*query, &mut found);
        nanoseconds.push(begin.elapsed().as_nanos() as u64);
        answers.extend(found.iter().map(|each| (number as u32, *each)));
    }
    (nanoseconds, sorted(answers))
}
