//! Precision and recall of fingerprints on real documents: dedup-job with many specs, and other programs (peers).
//!
//! The ground truth is the exact Jaccard similarity of three-word shingles, computed by code of its own
//! ([`crate::truth`]). A method yields a set of pairs: documents whose fingerprints are within k bits, or the pairs
//! that a peer reports. A pair is verified if dedup-job's own similarity, that of `--verify jaccard`, reaches the
//! level, too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use simhash::{
    Choice as _, Fingerprinter, Idf, Measure, Model, Similarity, Spec, Tokenizer, Weight,
};

use crate::peers::{Found, PeerArgs};
use crate::truth::{Pair, Truth};
use crate::{documents, learn_frequencies, peers};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Parquet files with a column `text`
    #[arg(required = true, value_name = "PATH")]
    documents: Vec<PathBuf>,
    #[command(flatten)]
    peers: PeerArgs,
    /// Largest distances of a pair, in bits
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 6, 8, 10, 12])]
    distances: Vec<u32>,
}

/// Levels: similarities from which on a pair counts as near-duplicates.
const LEVELS: [f64; 3] = [0.8, 0.9, 0.95];

/// A method, and the pairs that it finds.
struct Method {
    name: String,
    /// Largest distance of its pairs; `None` for a peer that reports pairs without a distance.
    max_distance: Option<u32>,
    /// Whether it is one of dedup-job's specs.
    ours: bool,
    pairs: Vec<Pair>,
}

pub fn run(args: &Args) -> Vec<Value> {
    let mut rows = Vec::new();
    for path in &args.documents {
        let texts = documents::strings(path, "text");
        let truth = Truth::compute(&texts, 0.5);
        let corpus = path.file_stem().unwrap_or_default().to_string_lossy();
        println!(
            "\n{corpus}: {} documents; pairs at J >= .8 {}, >= .9 {}, >= .95 {}",
            texts.len(),
            truth.count(0.8),
            truth.count(0.9),
            truth.count(0.95)
        );
        // P is precision, R recall, F their harmonic mean, at each level; v marks figures of
        // verified pairs.
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
        methods.extend(peer_methods(args, path));
        for method in methods {
            let plain = LEVELS.map(|level| Score::new(&method.pairs, &truth, level));
            let verified_pairs: Vec<Vec<Pair>> = LEVELS
                .iter()
                .map(|&level| {
                    let mut pairs = method.pairs.clone();
                    pairs.retain(|&(a, b)| {
                        let similarity = *similarities.entry((a, b)).or_insert_with(|| {
                            Similarity::between(&prepared[a as usize], &prepared[b as usize], 0.0)
                        });
                        similarity >= level
                    });
                    pairs
                })
                .collect();
            let verified: Vec<Score> = LEVELS
                .iter()
                .zip(&verified_pairs)
                .map(|(&level, pairs)| Score::new(pairs, &truth, level))
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
        let model = if with_idf {
            let counts = learn_frequencies::count(texts, &spec);
            let frequencies = learn_frequencies::table(texts.len(), counts);
            let idf = Idf::new(&spec, &frequencies).expect("features in order of frequency");
            let spec = Spec {
                idf: Some(idf.digest().to_owned()),
                ..spec
            };
            Model::new(spec, Some(Arc::new(idf)), None).expect("the table of the spec")
        } else {
            Model::plain(spec).expect("no tables")
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

/// Returns one method for each of `distances`, with the pairs of documents whose fingerprints are within it.
fn at_distances(
    name: &str,
    ours: bool,
    fingerprints: &[Option<u64>],
    distances: &[u32],
) -> Vec<Method> {
    let most = distances.iter().copied().max().unwrap_or(0);
    let near = peers::near(fingerprints, most);
    distances
        .iter()
        .map(|&k| Method {
            name: name.to_owned(),
            max_distance: Some(k),
            ours,
            pairs: near
                .iter()
                .filter(|(_, distance)| *distance <= k)
                .map(|(pair, _)| *pair)
                .collect(),
        })
        .collect()
}

/// Returns the peers' methods. A peer that makes fingerprints gives one method for each distance.
fn peer_methods(args: &Args, corpus: &Path) -> Vec<Method> {
    let mut methods = Vec::new();
    let results = args.peers.run(corpus);
    for line in &results.left_out {
        eprintln!("{line}");
    }
    for peer in results.peers {
        match peer.found {
            Found::Fingerprints(fingerprints) => {
                let all = at_distances(&peer.name, false, &fingerprints, &args.distances);
                methods.extend(all);
            }
            Found::Pairs(pairs) => methods.push(Method {
                name: peer.name,
                max_distance: None,
                ours: false,
                pairs,
            }),
        }
    }
    methods
}
