//! Other programs, each in a process of its own: with the same fingerprints and queries they must find the answers of the index.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::queries::{Answer, Queries, sorted, up_to};
use crate::data::{read_numbers, write_numbers};
use crate::program;

/// Methods of `lookup_peers.py`. The second needs a third of the memory of the first.
const PYTHON: [&str; 3] = ["faiss-multi-hash", "faiss-multi-hash:4,16,0", "hammingbird"];

/// Methods of `bench lookup-mih`.
const RUST: [&str; 2] = ["mih-rs", "mih-rs:4"];

/// Measures every peer on the first `count` queries; `expected` has the answers of the index to all of them. Files are written to
/// `directory`. Without `python`, peers that need it are left out.
pub fn measure(
    python: Option<&Path>,
    directory: &Path,
    fingerprints: &[u64],
    (queries, expected): (&Queries, &[Answer]),
    count: usize,
) -> Vec<Value> {
    let scratch = tempfile::tempdir_in(directory).expect("a directory for the peers");
    let file = |name: &str| scratch.path().join(name);
    let chosen = &queries.fingerprints[..count.min(queries.fingerprints.len())];
    write_numbers(&file("fingerprints"), fingerprints.iter().copied());
    write_numbers(&file("queries"), chosen.iter().copied());
    let expected = up_to(expected, chosen.len());
    let run = |mut command: Command, method: &str| {
        let output = program::output(
            command
                .args([method, &queries.k.to_string()])
                .args(["fingerprints", "queries", "answers"].map(file)),
        );
        let mut row: Value = serde_json::from_slice(&output).expect("a line of JSON");
        if row["skipped"].is_null() {
            let answers = read_answers(&file("answers"));
            assert!(answers == expected, "{method}: other answers than ours");
            row["queries"] = chosen.len().into();
            let memory = row["memory_bytes"].as_f64().unwrap_or(f64::NAN);
            row["bytes_per_fingerprint"] = (memory / fingerprints.len() as f64).into();
        }
        row
    };
    let of_python = PYTHON.into_iter().filter_map(|method| {
        let mut command = Command::new(python?);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/lookup_peers.py"));
        Some(run(command, method))
    });
    let of_rust = RUST.into_iter().map(|method| {
        let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
        command.arg("lookup-mih");
        run(command, method)
    });
    of_python.chain(of_rust).collect()
}

/// Reads answers: pairs of numbers.
fn read_answers(path: &Path) -> Vec<Answer> {
    let numbers = read_numbers(path);
    let pairs = numbers.as_chunks::<2>().0.iter();
    sorted(
        pairs
            .map(|&[query, fingerprint]| (query as u32, fingerprint))
            .collect(),
    )
}
