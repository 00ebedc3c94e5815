//! Precision and recall of fingerprints on real documents: dedup-job with many specs, and other programs (peers).
//!
//! The ground truth is the exact Jaccard similarity of three-word shingles, by brute force, with code of its own. A method
//! yields a set of pairs: fingerprints within k bits, or the pairs that a peer reports. A verified pair also passes the exact
//! similarity of dedup-job's `--verify`.

mod truth;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::AsArray as _;
use arrow::datatypes::{Int32Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use simhash::{
    Choice as _, DocumentFrequencies, Fingerprinter, Idf, Measure, Model, Similarity, Spec,
    Tokenizer, Weight,
};
use truth::Truth;

use crate::documents;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Parquet files with a column `text`
    #[arg(required = true, value_name = "PATH")]
    documents: Vec<PathBuf>,
    /// Python with the packages of crates/bench/requirements.txt; other programs are left out without it
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Directory in which the results of other programs are kept, and from which they are read if they exist
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Largest distances of a pair, in bits
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 6, 8, 10, 12])]
    distances: Vec<u32>,
}

/// Similarities from which on a pair counts as a near-duplicate.
const LEVELS: [f64; 3] = [0.8, 0.9, 0.95];

type Pair = (u32, u32);

/// A method, and the pairs that it finds.
struct Method {
    name: String,
    /// Largest distance of its pairs; `None` for a peer that compares no fingerprints.
    max_distance: Option<u32>,
    /// Whether it is one of dedup-job's specs.
    ours: bool,
    pairs: Vec<Pair>,
}

pub fn run(args: &Args) -> Vec<Value> {
    let mut rows = Vec::new();
    for path in &args.documents {
        let texts = documents::texts(path);
        let truth = Truth::compute(&texts, 0.5);
        let corpus = path.file_stem().unwrap_or_default().to_string_lossy();
        println!(
            "\n{corpus}: {} documents; pairs at J >= .8 {}, >= .9 {}, >= .95 {}",
            texts.len(),
            truth.count(0.8),
            truth.count(0.9),
            truth.count(0.95)
        );
        println!(
            "{:<44} {:>3} {:>8} | {:>5} {:>5} {:>5} | {:>5} {:>5} {:>5} | {:>5} {:>5} {:>5} | {:>5} {:>5} {:>5}",
            "method",
            "k",
            "pairs",
            "P.8",
            "R.8",
            "F.8",
            "P.9",
            "R.9",
            "F.9",
            "P.95",
            "R.95",
            "F.95",
            "vP.8",
            "vR.8",
            "vF.8"
        );
        let model = Model::plain(Spec::default()).expect("no tables");
        let mut similarity = Similarity::new(Measure::Jaccard, model);
        let prepared: Vec<_> = texts.iter().map(|text| similarity.prepare(text)).collect();
        let mut similarities: HashMap<Pair, f64> = HashMap::new();
        let mut methods = our_methods(&texts, &args.distances);
        methods.extend(peer_methods(args, path, &args.distances));
        for method in methods {
            let plain = LEVELS.map(|level| Score::new(&method.pairs, &truth, level));
            let kept: Vec<Vec<Pair>> = LEVELS
                .iter()
                .map(|&level| {
                    let mut kept = method.pairs.clone();
                    kept.retain(|&(a, b)| {
                        let found = *similarities.entry((a, b)).or_insert_with(|| {
                            Similarity::between(&prepared[a as usize], &prepared[b as usize], 0.0)
                        });
                        found >= level
                    });
                    kept
                })
                .collect();
            let verified: Vec<Score> = LEVELS
                .iter()
                .zip(&kept)
                .map(|(&level, kept)| Score::new(kept, &truth, level))
                .collect();
            let k = method.max_distance.map_or("".into(), |k| k.to_string());
            let columns: Vec<String> = plain
                .iter()
                .chain(&verified[..1])
                .map(|score| {
                    format!(
                        "{:>5.3} {:>5.3} {:>5.3}",
                        score.precision(),
                        score.recall(),
                        score.f1()
                    )
                })
                .collect();
            println!(
                "{:<44} {k:>3} {:>8} | {}",
                method.name,
                method.pairs.len(),
                columns.join(" | ")
            );
            let scores = |scores: &[Score]| -> Value {
                let each = LEVELS.iter().zip(scores);
                each.map(|(level, score)| (level.to_string(), score.json()))
                    .collect::<serde_json::Map<_, _>>()
                    .into()
            };
            rows.push(json!({
                "corpus": corpus, "way": method.name, "ours": method.ours, "k": method.max_distance, "pairs": method.pairs.len(),
                "plain": scores(&plain), "verified": scores(&verified),
            }));
        }
    }
    rows
}

/// Counts of a method at one similarity level.
struct Score {
    /// Pairs that it finds.
    found: usize,
    /// Near-duplicates among them.
    correct: usize,
    /// Near-duplicates in the corpus.
    relevant: usize,
}

impl Score {
    fn new(pairs: &[Pair], truth: &Truth, level: f64) -> Self {
        let correct = pairs
            .iter()
            .filter(|pair| truth.similarity(**pair) >= level);
        Self {
            found: pairs.len(),
            correct: correct.count(),
            relevant: truth.count(level),
        }
    }

    fn precision(&self) -> f64 {
        self.correct as f64 / self.found.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.correct as f64 / self.relevant.max(1) as f64
    }

    fn f1(&self) -> f64 {
        2.0 * self.correct as f64 / (self.found + self.relevant).max(1) as f64
    }

    fn json(&self) -> Value {
        json!({ "precision": self.precision(), "recall": self.recall(), "f1": self.f1() })
    }
}

/// Returns dedup-job's methods: each spec at each distance.
fn our_methods(texts: &[String], distances: &[u32]) -> Vec<Method> {
    let mut specs = Vec::new();
    for tokenizer in [
        Tokenizer::WordsCjkGrams,
        Tokenizer::WordsCjkBigrams,
        Tokenizer::Words,
        Tokenizer::WordsJieba,
        Tokenizer::Shingles(2),
        Tokenizer::Shingles(3),
        Tokenizer::Chars(2),
        Tokenizer::Chars(4),
    ] {
        if tokenizer == Tokenizer::WordsJieba && !cfg!(feature = "jieba") {
            continue;
        }
        for weight in Weight::examples() {
            for idf in [false, true] {
                specs.push((tokenizer, weight, idf));
            }
        }
    }
    for tokenizer in [
        Tokenizer::Chars(3),
        Tokenizer::LongestSentences(8),
        Tokenizer::LongestSentences(32),
    ] {
        specs.push((tokenizer, Weight::Tf, false));
    }
    let mut methods = Vec::new();
    for (tokenizer, weight, with_idf) in specs {
        let spec = Spec {
            tokenizer,
            weight,
            ..Spec::default()
        };
        let plain = Model::plain(spec.clone()).expect("no tables");
        let model = if with_idf {
            let idf = learn_idf(texts, plain);
            let spec = Spec {
                idf: Some(idf.digest().to_owned()),
                ..spec
            };
            Model::new(spec, Some(Arc::new(idf)), None).expect("the table of the spec")
        } else {
            plain
        };
        let mut fingerprinter = Fingerprinter::new(model);
        let fingerprints: Vec<_> = texts
            .iter()
            .map(|text| fingerprinter.fingerprint(text))
            .collect();
        let name = format!(
            "{tokenizer}, {weight}{}",
            if with_idf { "·idf" } else { "" }
        );
        methods.extend(at_distances(&name, true, &fingerprints, distances));
    }
    methods
}

/// Learns the document frequencies of `texts`.
fn learn_idf(texts: &[String], model: Model) -> Idf {
    let spec = model.spec().clone();
    let mut fingerprinter = Fingerprinter::new(model);
    let mut counts = HashMap::<String, u64>::new();
    for text in texts {
        for feature in fingerprinter.features(text) {
            *counts.entry(feature.feature).or_default() += 1;
        }
    }
    let mut features: Vec<_> = counts.into_iter().collect();
    features.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let frequencies = DocumentFrequencies {
        documents: texts.len() as u64,
        rest: 1,
        features,
    };
    Idf::new(&spec, &frequencies).expect("features in order of frequency")
}

/// Returns a method for each of `distances`, with the pairs of fingerprints within it.
fn at_distances(
    name: &str,
    ours: bool,
    fingerprints: &[Option<u64>],
    distances: &[u32],
) -> Vec<Method> {
    let most = distances.iter().copied().max().unwrap_or(0);
    let mut near = Vec::new();
    for (a, x) in fingerprints.iter().enumerate() {
        let Some(x) = x else { continue };
        for (b, y) in fingerprints.iter().enumerate().skip(a + 1) {
            let Some(y) = y else { continue };
            let distance = (x ^ y).count_ones();
            if distance <= most {
                near.push((a as u32, b as u32, distance));
            }
        }
    }
    distances
        .iter()
        .map(|&k| Method {
            name: name.to_owned(),
            max_distance: Some(k),
            ours,
            pairs: near
                .iter()
                .filter(|(_, _, distance)| *distance <= k)
                .map(|&(a, b, _)| (a, b))
                .collect(),
        })
        .collect()
}

/// Runs the peers through `quality.py`, unless their results are kept, and returns their methods.
fn peer_methods(args: &Args, corpus: &Path, distances: &[u32]) -> Vec<Method> {
    let stem = corpus.file_stem().unwrap_or_default();
    let kept = args.peers.as_ref().map(|directory| directory.join(stem));
    let scratch = std::env::temp_dir().join(format!("dedup-job-quality-{}", std::process::id()));
    let directory = kept.clone().unwrap_or_else(|| scratch.clone());
    if !directory.join("pairs.parquet").exists() {
        let Some(python) = &args.python else {
            return Vec::new();
        };
        std::fs::create_dir_all(&directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let status = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/quality.py"))
            .args([corpus, &directory])
            .status()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        assert!(status.success(), "the peers failed");
    }
    let mut fingerprints: Vec<(String, Vec<Option<u64>>)> = Vec::new();
    for_each_batch(&directory.join("fingerprints.parquet"), |batch| {
        let names = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8)
            .expect("names are text");
        let bits = batch.column(2).as_primitive::<UInt64Type>();
        for (name, bits) in names.as_string::<i32>().iter().zip(bits) {
            let name = name.unwrap_or_default();
            if fingerprints.last().is_none_or(|(last, _)| last != name) {
                fingerprints.push((name.to_owned(), Vec::new()));
            }
            if let Some((_, all)) = fingerprints.last_mut() {
                all.push(bits);
            }
        }
    });
    let mut methods: Vec<Method> = fingerprints
        .iter()
        .flat_map(|(method, bits)| at_distances(method, false, bits, distances))
        .collect();
    let mut by_pairs: Vec<Method> = Vec::new();
    for_each_batch(&directory.join("pairs.parquet"), |batch| {
        let names = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8)
            .expect("names are text");
        let [a, b] = [1, 2].map(|at| batch.column(at).as_primitive::<Int32Type>());
        for (at, name) in names.as_string::<i32>().iter().enumerate() {
            let name = name.unwrap_or_default();
            if by_pairs.last().is_none_or(|method| method.name != name) {
                by_pairs.push(Method {
                    name: name.to_owned(),
                    max_distance: None,
                    ours: false,
                    pairs: Vec::new(),
                });
            }
            if let Some(method) = by_pairs.last_mut() {
                method
                    .pairs
                    .push((a.value(at).cast_unsigned(), b.value(at).cast_unsigned()));
            }
        }
    });
    methods.extend(by_pairs);
    if kept.is_none() {
        let _ = std::fs::remove_dir_all(scratch);
    }
    methods
}

/// Calls `each` with every record batch of a Parquet file.
fn for_each_batch(path: &Path, mut each: impl FnMut(&arrow::array::RecordBatch)) {
    let file =
        std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    for batch in reader.expect("Parquet, as quality.py writes it") {
        each(&batch.expect("Parquet, as quality.py writes it"));
    }
}
