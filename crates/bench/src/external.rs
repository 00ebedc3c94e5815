//! Near-duplicates that others have labelled: which of them dedup-job finds with no option, beside other programs with their
//! own defaults, and which documents each keeps.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::peers::{Found, PeerArgs};
use crate::truth::Pair;
use crate::{documents, keep, peers, program};

/// The largest distance of fingerprints of other programs: their default.
const PEER_DISTANCE: u32 = 3;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Labelled documents: Parquet files with the columns id, text and doc, which near-duplicates share
    #[arg(required = true)]
    corpora: Vec<PathBuf>,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    #[command(flatten)]
    peers: PeerArgs,
    /// Python with the packages that `keep.py` needs, for what other programs keep
    #[arg(long, value_name = "PATH")]
    keep_python: Option<PathBuf>,
}

/// The documents of a corpus, and their labels.
struct Labelled {
    name: String,
    /// The numbers of the documents with each id.
    by_id: HashMap<String, u32>,
    labels: Vec<String>,
    /// Pairs of documents with one label.
    pairs: usize,
}

/// How a method agrees with the labels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Agreement {
    found: usize,
    recall: f64,
    precision: f64,
}

/// What a method keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    documents: usize,
    /// Dropped documents of whose label nothing is kept.
    wrong: usize,
    /// Kept documents behind a kept one with their label.
    missed: usize,
}

impl Labelled {
    fn read(corpus: &Path) -> Self {
        let labels = documents::strings(corpus, "doc");
        let mut sizes: HashMap<&str, usize> = HashMap::new();
        for label in &labels {
            *sizes.entry(label).or_default() += 1;
        }
        let pairs = sizes.values().map(|size| size * (size - 1) / 2).sum();
        let ids = documents::strings(corpus, "id");
        let by_id: HashMap<String, u32> = ids.into_iter().zip(0..).collect();
        assert_eq!(by_id.len(), labels.len(), "an id repeats");
        Self {
            name: corpus
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            by_id,
            labels,
            pairs,
        }
    }

    fn agreement(&self, found: &HashSet<Pair>) -> Agreement {
        let is_right = |(a, b): &&Pair| self.labels[*a as usize] == self.labels[*b as usize];
        let right = found.iter().filter(is_right).count();
        Agreement {
            found: found.len(),
            recall: right as f64 / self.pairs.max(1) as f64,
            precision: right as f64 / found.len().max(1) as f64,
        }
    }

    fn kept(&self, kept: &HashSet<usize>) -> Kept {
        let of_kept: HashSet<&str> = kept.iter().map(|at| &*self.labels[*at]).collect();
        let documents = 0..self.labels.len();
        let is_wrong = |at: &usize| !kept.contains(at) && !of_kept.contains(&*self.labels[*at]);
        Kept {
            documents: kept.len(),
            wrong: documents.filter(is_wrong).count(),
            missed: kept.len() - of_kept.len(),
        }
    }

    /// The number of a pair's documents in an output of pairs.
    fn pairs_in(&self, output: &Path) -> HashSet<Pair> {
        let [new, base] = ["new_id", "base_id"].map(|column| documents::strings(output, column));
        let number = |id: &String| self.by_id[id];
        let pairs = new.iter().zip(&base).map(|(a, b)| (number(a), number(b)));
        pairs.map(|(a, b)| (a.min(b), a.max(b))).collect()
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    let mut rows = Vec::new();
    for corpus in &args.corpora {
        let labelled = Labelled::read(corpus);
        println!(
            "\n{}: {} documents of {} labels, {} pairs",
            labelled.name,
            labelled.labels.len(),
            labelled.labels.iter().collect::<HashSet<_>>().len(),
            labelled.pairs
        );
        println!(
            "{:<52} {:>9} {:>7} {:>9} {:>7} {:>8}",
            "pairs", "found", "recall", "precision", "F1", "seconds"
        );
        let mut found = |method: &str, pairs: &HashSet<Pair>, seconds: f64, about: Value| {
            let Agreement {
                found,
                recall,
                precision,
            } = labelled.agreement(pairs);
            let f1 = 2.0 * recall * precision / (recall + precision).max(f64::MIN_POSITIVE);
            println!(
                "{method:<52} {found:>9} {recall:>7.3} {precision:>9.3} {f1:>7.3} {seconds:>8.2}"
            );
            rows.push(json!({
                "corpus": labelled.name, "method": method, "about": about, "pairs": found, "recall": recall,
                "precision": precision, "f1": f1, "seconds": seconds,
            }));
        };
        let scratch = tempfile::tempdir().expect("a directory");
        let archive = scratch.path().join("archive");
        for (name, is_archived) in [("dedup-job", false), ("dedup-job, sharp archive", true)] {
            if is_archived {
                ours(
                    args,
                    &["archive".as_ref(), "create".as_ref(), archive.as_os_str()],
                );
            }
            let output = scratch.path().join("pairs.parquet");
            let mut line = vec![
                "run".as_ref(),
                corpus.as_os_str(),
                "--output".as_ref(),
                output.as_os_str(),
            ];
            if is_archived {
                line.extend(["--base".as_ref(), archive.as_os_str()]);
            }
            let seconds = ours(args, &line);
            found(name, &labelled.pairs_in(&output), seconds, Value::Null);
        }
        let results = args.peers.run(corpus);
        results.left_out.iter().for_each(|line| println!("{line}"));
        for peer in results.peers {
            let pairs = match peer.found {
                Found::Pairs(pairs) => pairs.into_iter().collect(),
                Found::Fingerprints(bits) => near(&bits),
            };
            found(&peer.name, &pairs, peer.seconds, peer.about);
        }

        println!(
            "{:<52} {:>9} {:>11} {:>13} {:>8}",
            "decisions", "kept", "wrong drops", "missed copies", "seconds"
        );
        let mut keeps = |method: &str, kept: &HashSet<usize>, seconds: f64| {
            let Kept {
                documents,
                wrong,
                missed,
            } = labelled.kept(kept);
            println!("{method:<52} {documents:>9} {wrong:>11} {missed:>13} {seconds:>8.2}");
            rows.push(json!({
                "corpus": labelled.name, "method": method, "kept": documents, "wrong_drops": wrong,
                "missed_copies": missed, "seconds": seconds,
            }));
        };
        let own = program::path(args.program.as_deref());
        let (kept, seconds) = keep::ours(&own, corpus, "");
        keeps("dedup-job", &kept, seconds);
        let (kept, seconds) = keep::ours(&own, corpus, &format!("--base {}", archive.display()));
        keeps("dedup-job, sharp archive", &kept, seconds);
        if let Some(python) = &args.keep_python {
            for peer in keep::PEERS {
                let (name, kept, seconds) = keep::peer_keeps(python, corpus, peer);
                keeps(&name, &kept, seconds);
            }
        }
    }
    rows
}

/// Runs dedup-job; returns its seconds.
fn ours(args: &Args, line: &[&std::ffi::OsStr]) -> f64 {
    let begin = Instant::now();
    let mut command = Command::new(program::path(args.program.as_deref()));
    let ran = command
        .args(line)
        .args(["--quiet"])
        .status()
        .expect("the program");
    assert!(ran.success(), "{line:?}: {ran}");
    begin.elapsed().as_secs_f64()
}

/// The pairs within [`PEER_DISTANCE`] bits.
fn near(bits: &[Option<u64>]) -> HashSet<Pair> {
    let pairs = peers::near(bits, PEER_DISTANCE).into_iter();
    pairs.map(|(pair, _)| pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_compared_with_the_labels() {
        let labels = ["a", "a", "b", "b", "b", "c"].map(str::to_owned);
        let labelled = Labelled {
            name: String::new(),
            by_id: HashMap::new(),
            labels: labels.to_vec(),
            pairs: 4,
        };
        let found = HashSet::from([(0, 1), (2, 4), (4, 5)]);
        let expected = Agreement {
            found: 3,
            recall: 0.5,
            precision: 2.0 / 3.0,
        };
        assert_eq!(labelled.agreement(&found), expected);
        let kept = labelled.kept(&HashSet::from([0, 2, 3]));
        assert_eq!(
            kept,
            Kept {
                documents: 3,
                wrong: 1,
                missed: 1
            }
        );
        assert_eq!(
            near(&[Some(0), None, Some(7), Some(15)]),
            HashSet::from([(0, 2), (2, 3)])
        );
    }
}
