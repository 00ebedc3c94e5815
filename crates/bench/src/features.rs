//! Speed of fingerprinting on one core: dedup-job with several tokenizers and weights, and other programs (peers).

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use simhash::{Fingerprinter, Idf, Kernel, Model, Spec, Tokenizer, Weight};

use crate::{documents, learn_frequencies, program};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Parquet files with a column `text`
    #[arg(required = true, value_name = "PATH")]
    documents: Vec<PathBuf>,
    /// Python with the packages of crates/bench/requirements.txt; other programs are left out without it
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Number of terms in the table of document frequencies
    #[arg(long, default_value_t = 1_000_000)]
    terms: usize,
    /// Measure only those of dedup-job's methods whose names contain this; other programs are all measured
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// Number of runs of each of dedup-job's methods; the fastest counts
    #[arg(long, default_value_t = 15)]
    runs: usize,
}

/// Methods of other programs, which `features.py` runs.
const PEERS: [&str; 7] = [
    "clickhouse-wordShingleSimHash",
    "clickhouse-wordShingleSimHashUTF8",
    "clickhouse-ngramSimHash",
    "daft-simhash",
    "simhash-pybind",
    "text-dedup",
    "datasketch-minhash-128",
];

pub fn run(args: &Args) -> Vec<Value> {
    let mut rows = Vec::new();
    for path in &args.documents {
        let texts = documents::strings(path, "text");
        let bytes: usize = texts.iter().map(String::len).sum();
        println!(
            "\n{}: {} documents, {:.1} MB, one core",
            path.display(),
            texts.len(),
            bytes as f64 / 1e6
        );
        println!("{:<44} {:>10} {:>10}", "method", "seconds", "MB/s");
        let corpus = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut report = |method: &str, seconds: f64, bytes: usize, version: &str| {
            let rate = bytes as f64 / 1e6 / seconds;
            println!("{method:<44} {seconds:>10.3} {rate:>10.1}");
            rows.push(json!({
                "corpus": corpus, "way": method, "version": version, "seconds": seconds, "bytes": bytes,
                "megabytes_per_second": rate,
            }));
        };
        let kernel = Kernel::detect();
        for (name, model, kernel) in models(&texts, args.terms, kernel) {
            if !name.contains(&args.only) {
                continue;
            }
            let mut fingerprinter = Fingerprinter::with_kernel(model, kernel);
            let seconds = (0..args.runs).map(|_| {
                let begin = Instant::now();
                let sum = texts
                    .iter()
                    .filter_map(|text| fingerprinter.fingerprint(text))
                    .fold(0u64, u64::wrapping_add);
                std::hint::black_box(sum);
                begin.elapsed().as_secs_f64()
            });
            let best = seconds.fold(f64::INFINITY, f64::min);
            report(&name, best, bytes, env!("CARGO_PKG_VERSION"));
        }
        let Some(python) = &args.python else { continue };
        let output = program::output(
            Command::new(python)
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/features.py"))
                .arg(path)
                .args(PEERS)
                .stderr(std::process::Stdio::inherit()),
        );
        for line in String::from_utf8_lossy(&output).lines() {
            let peer: Value = serde_json::from_str(line).expect("a line of JSON for each peer");
            report(
                peer["method"].as_str().unwrap_or_default(),
                peer["seconds"].as_f64().unwrap_or(f64::NAN),
                peer["bytes"].as_u64().unwrap_or(0) as usize,
                peer["version"].as_str().unwrap_or_default(),
            );
        }
    }
    rows
}

/// Returns dedup-job's methods: the name, the model, and the kernel that makes the fingerprints.
fn models(texts: &[String], terms: usize, kernel: Kernel) -> Vec<(String, Model, Kernel)> {
    let plain = |tokenizer: Tokenizer, weight: Weight| {
        let spec = Spec {
            tokenizer,
            weight,
            ..Spec::default()
        };
        Model::plain(spec).expect("a spec without tables")
    };
    let words = Tokenizer::WordsCjkBigrams;
    let idf = Arc::new(padded_idf(texts, terms));
    let with_idf = |weight| {
        let spec = Spec {
            tokenizer: words,
            weight,
            idf: Some(idf.digest().to_owned()),
            ..Spec::default()
        };
        Model::new(spec, Some(Arc::clone(&idf)), None).expect("the table of the spec")
    };
    let mut models = vec![
        (
            "words+cjk-bigrams, tf".to_owned(),
            plain(words, Weight::Tf),
            kernel,
        ),
        (
            format!("words, tf·idf, {} terms", idf.listed_features()),
            with_idf(Weight::Tf),
            kernel,
        ),
        (
            "words, 1+log tf".to_owned(),
            plain(words, Weight::LogTf),
            kernel,
        ),
        (
            "words, (1+log tf)·idf".to_owned(),
            with_idf(Weight::LogTf),
            kernel,
        ),
        (
            "words, levels".to_owned(),
            plain(words, Weight::Levels),
            kernel,
        ),
        ("words, set".to_owned(), plain(words, Weight::Set), kernel),
    ];
    for tokenizer in [
        Tokenizer::Words,
        Tokenizer::WordsCjkGrams,
        Tokenizer::Shingles(3),
        Tokenizer::Chars(2),
        Tokenizer::Chars(4),
        Tokenizer::LongestSentences(8),
    ] {
        models.push((
            format!("{tokenizer}, tf"),
            plain(tokenizer, Weight::Tf),
            kernel,
        ));
    }
    let other_kernels = Kernel::available()
        .into_iter()
        .filter(|other| *other != kernel);
    let others: Vec<_> = other_kernels
        .map(|other| {
            (
                format!("words, tf ({})", other.name()),
                plain(words, Weight::Tf),
                other,
            )
        })
        .collect();
    models.extend(others);
    models
}

/// Returns the idf of the `terms` most frequent features of `texts`. If `texts` have fewer
/// features, made-up ones fill the table.
fn padded_idf(texts: &[String], terms: usize) -> Idf {
    let spec = Spec {
        tokenizer: Tokenizer::WordsCjkBigrams,
        ..Spec::default()
    };
    let mut counts = learn_frequencies::count(texts, &spec);
    let mut number = 0u64;
    while counts.len() < terms {
        counts.entry(format!("made-up-{number}")).or_insert(1);
        number += 1;
    }
    let mut frequencies = learn_frequencies::table(texts.len(), counts);
    frequencies.features.truncate(terms);
    Idf::new(&spec, &frequencies).expect("features in order of frequency")
}
