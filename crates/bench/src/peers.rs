//! Other programs (peers) that find near-duplicates, run through `run_peers.py`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use testkit::oracle;

use crate::truth::Pair;

#[derive(Debug, clap::Args)]
pub struct PeerArgs {
    /// Python with the packages of crates/bench/requirements.txt; other programs are left out without it, or without
    /// their package
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Directory in which the results of other programs are kept, and from which they are read if they exist
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
}

/// The results of the peers on a corpus.
#[derive(Default)]
pub struct Results {
    pub peers: Vec<Peer>,
    /// For each program that could not run, a line that says why.
    pub left_out: Vec<String>,
}

/// A method of another program, and what it found in a corpus.
pub struct Peer {
    pub name: String,
    /// Its package, the package's version, and its settings.
    pub about: Value,
    /// The time of its fastest run, on one core.
    pub seconds: f64,
    pub found: Found,
}

/// What a method finds in a corpus, whose documents are numbered from 0.
pub enum Found {
    /// The fingerprint of each document, if it has one: the pairs are those within k bits.
    Fingerprints(Vec<Option<u64>>),
    Pairs(Vec<Pair>),
}

impl PeerArgs {
    /// Returns what the peers find in a corpus. Reads the results of an earlier run if `--peers`
    /// has them; otherwise runs the peers with `--python`, or returns none without it.
    pub fn run(&self, corpus: &Path) -> Results {
        let stem = corpus.file_stem().unwrap_or_default();
        let scratch = tempfile::tempdir().expect("a directory");
        let directory = match &self.peers {
            Some(directory) => directory.join(stem),
            None => scratch.path().to_owned(),
        };
        // The script writes this file last.
        if !directory.join("peers.json").exists() {
            let Some(python) = &self.python else {
                return Results::default();
            };
            std::fs::create_dir_all(&directory)
                .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
            let status = Command::new(python)
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/run_peers.py"))
                .args([corpus, &directory])
                .status()
                .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
            assert!(status.success(), "the peers failed");
        }
        read(&directory)
    }
}

/// Reads the results that `run_peers.py` wrote, in the order of `peers.json`.
fn read(directory: &Path) -> Results {
    let mut fingerprints: HashMap<String, Vec<Option<u64>>> = HashMap::new();
    for_each_batch(&directory.join("fingerprints.parquet"), |methods, batch| {
        let bits = batch.column(2).as_primitive::<UInt64Type>();
        for (method, bits) in methods.into_iter().zip(bits) {
            fingerprints.entry(method).or_default().push(bits);
        }
    });
    let mut pairs: HashMap<String, Vec<Pair>> = HashMap::new();
    for_each_batch(&directory.join("pairs.parquet"), |methods, batch| {
        let [a, b] = [1, 2].map(|at| batch.column(at).as_primitive::<Int32Type>());
        for (at, method) in methods.into_iter().enumerate() {
            let pair = (a.value(at).cast_unsigned(), b.value(at).cast_unsigned());
            pairs.entry(method).or_default().push(pair);
        }
    });
    let path = directory.join("peers.json");
    let entries =
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let entries: Vec<Value> =
        serde_json::from_slice(&entries).expect("a list, as run_peers.py writes it");
    let mut results = Results::default();
    for entry in &entries {
        if let Some(reason) = entry["left_out"].as_str() {
            let peer = entry["peer"].as_str().unwrap_or_default();
            results
                .left_out
                .push(format!("{peer} is left out: {reason}"));
            continue;
        }
        let name = entry["method"].as_str().unwrap_or_default();
        results.peers.push(Peer {
            name: name.to_owned(),
            about: json!({
                "package": entry["package"],
                "version": entry["version"],
                "settings": entry["settings"],
            }),
            seconds: entry["seconds"].as_f64().unwrap_or(f64::NAN),
            found: match fingerprints.remove(name) {
                Some(fingerprints) => Found::Fingerprints(fingerprints),
                // A method that found no pairs has no rows.
                None => Found::Pairs(pairs.remove(name).unwrap_or_default()),
            },
        });
    }
    results
}

/// The pairs of documents whose fingerprints are within `k` bits, with their distances: by brute force, which is not timed.
pub fn near(fingerprints: &[Option<u64>], k: u32) -> Vec<(Pair, u32)> {
    let known = (0..).zip(fingerprints);
    let known = known.filter_map(|(document, fingerprint)| Some((document, (*fingerprint)?)));
    let (documents, values): (Vec<u32>, Vec<u64>) = known.unzip();
    let pairs = oracle::pairs_inside(&values, k).into_iter();
    pairs
        .map(|(a, b, distance)| ((documents[a], documents[b]), distance))
        .collect()
}

/// Calls `each` with every record batch of a Parquet file, and with the names of the methods in its first column.
fn for_each_batch(path: &Path, mut each: impl FnMut(Vec<String>, &RecordBatch)) {
    let file =
        std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    for batch in reader.expect("Parquet, as run_peers.py writes it") {
        let batch = batch.expect("Parquet, as run_peers.py writes it");
        let names = arrow::compute::cast(batch.column(0), &DataType::Utf8).expect("names are text");
        let names = names.as_string::<i32>().iter();
        each(
            names
                .map(|name| name.unwrap_or_default().to_owned())
                .collect(),
            &batch,
        );
    }
}
