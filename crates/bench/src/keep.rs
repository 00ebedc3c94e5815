//! Measures which documents of real corpora dedup-job and other programs keep. The exact
//! similarities of all pairs show their mistakes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::truth::Truth;
use crate::{documents, program};

/// From this similarity on, two documents are duplicates.
const DUPLICATE: f64 = 0.8;
/// Below this similarity, two documents are not even near.
const NEAR: f64 = 0.5;
/// Options of our runs.
const OURS: [&str; 4] = [
    "",
    "--profile paper",
    "-k 7 --sketch 256 --verify sketch",
    "--profile paper --weight tf",
];
/// Other programs, as `keep.py` calls them.
pub const PEERS: [&str; 2] = ["text-dedup", "datatrove"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Corpora: Parquet files with the columns id and text
    #[arg(required = true)]
    corpora: Vec<PathBuf>,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Python with the packages that `keep.py` needs; without it, only our decisions are measured
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// What a method leaves in and takes out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    kept: usize,
    /// Kept documents that are duplicates of a kept document before them.
    left_in: usize,
    /// Dropped documents that are no duplicate of any kept document.
    lost: usize,
    /// Dropped documents that are not even near any kept document.
    far: usize,
}

impl Counts {
    /// Counts the mistakes of a method that keeps the documents `kept`. `neighbours` has for each
    /// document all others with a similarity of at least [`NEAR`], and the similarity.
    fn of(kept: &HashSet<usize>, neighbours: &[Vec<(usize, f64)>]) -> Self {
        let mut counts = Self {
            kept: kept.len(),
            ..Self::default()
        };
        for (document, near) in neighbours.iter().enumerate() {
            let of_kept = near.iter().filter(|(other, _)| kept.contains(other));
            if kept.contains(&document) {
                let is_repeated = of_kept
                    .clone()
                    .any(|(other, similarity)| *other < document && *similarity >= DUPLICATE);
                counts.left_in += usize::from(is_repeated);
                continue;
            }
            let nearest = of_kept
                .map(|(_, similarity)| *similarity)
                .fold(0.0, f64::max);
            counts.lost += usize::from(nearest < DUPLICATE);
            counts.far += usize::from(nearest < NEAR);
        }
        counts
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    println!(
        "{:<16} {:<44} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "corpus", "method", "documents", "kept", "left in", "lost", "far"
    );
    let mut rows = Vec::new();
    for corpus in &args.corpora {
        let texts = documents::strings(corpus, "text");
        let neighbours = neighbours(&texts);
        let all: HashSet<usize> = (0..texts.len()).collect();
        let mut measure = |method: &str, kept: &HashSet<usize>, seconds: f64| {
            let counts = Counts::of(kept, &neighbours);
            let name = corpus.file_stem().unwrap_or_default().to_string_lossy();
            println!(
                "{name:<16} {method:<44} {:>9} {:>8} {:>8} {:>8} {:>8}",
                texts.len(),
                counts.kept,
                counts.left_in,
                counts.lost,
                counts.far
            );
            rows.push(json!({
                "corpus": name, "method": method, "documents": texts.len(), "kept": counts.kept,
                "left_in": counts.left_in, "lost": counts.lost, "far": counts.far, "seconds": seconds,
            }));
        };
        measure("all documents", &all, 0.0);
        for options in OURS {
            let own = program::path(args.program.as_deref());
            let (kept, seconds) = ours(&own, corpus, options);
            measure(&format!("dedup-job {options}"), &kept, seconds);
        }
        if let Some(python) = &args.python {
            for peer in PEERS {
                let (name, kept, seconds) = peer_keeps(python, corpus, peer);
                measure(&name, &kept, seconds);
            }
        }
    }
    rows
}

/// For each text, the others that are near it, with their similarity.
fn neighbours(texts: &[String]) -> Vec<Vec<(usize, f64)>> {
    let mut neighbours = vec![Vec::new(); texts.len()];
    for ((a, b), similarity) in Truth::compute(texts, NEAR).pairs() {
        neighbours[a as usize].push((b as usize, similarity));
        neighbours[b as usize].push((a as usize, similarity));
    }
    neighbours
}

/// The documents that a run keeps, and its seconds.
pub fn ours(program: &Path, corpus: &Path, options: &str) -> (HashSet<usize>, f64) {
    let scratch = tempfile::tempdir().expect("a directory");
    let decisions = scratch.path().join("decisions.parquet");
    let begin = Instant::now();
    let ran = Command::new(program)
        .arg("run")
        .arg(corpus)
        .args(options.split_whitespace())
        .arg("--decisions")
        .arg(&decisions)
        .arg("--quiet")
        .status()
        .expect("the program");
    assert!(ran.success(), "{options}: {ran}");
    let seconds = begin.elapsed().as_secs_f64();
    // A decision names its document by id. Decisions with the same id come in the order of the
    // corpus.
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (place, id) in documents::strings(corpus, "id")
        .into_iter()
        .enumerate()
        .rev()
    {
        places.entry(id).or_default().push(place);
    }
    let kept = documents::strings(&decisions, "kept");
    let ids = documents::strings(&decisions, "id");
    let mut kept_places = HashSet::new();
    for (id, kept) in ids.iter().zip(kept) {
        let place = places.get_mut(id).and_then(Vec::pop).expect("a document");
        if kept == "true" {
            kept_places.insert(place);
        }
    }
    (kept_places, seconds)
}

/// The name of another program, the documents that it keeps, and its seconds.
pub fn peer_keeps(python: &Path, corpus: &Path, peer: &str) -> (String, HashSet<usize>, f64) {
    let scratch = tempfile::tempdir().expect("a directory");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/keep.py");
    let corpus = std::path::absolute(corpus).expect("a path");
    program::output(
        Command::new(python)
            .args([script, peer])
            .arg(corpus)
            .arg(scratch.path()),
    );
    let read = |name: &str| std::fs::read_to_string(scratch.path().join(name)).expect("its output");
    let kept = read("kept.txt")
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    let facts: Value = serde_json::from_str(&read("peer.json")).expect("JSON");
    let seconds = facts["seconds"].as_f64().unwrap_or_default();
    (
        facts["package"].as_str().unwrap_or_default().to_owned(),
        kept,
        seconds,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_in_and_lost_is_counted() {
        // 0 and 1 are duplicates, 2 is near 0, 3 is near nothing.
        let neighbours = vec![
            vec![(1, 0.9), (2, 0.6)],
            vec![(0, 0.9)],
            vec![(0, 0.6)],
            vec![],
        ];
        let counts = |kept: &[usize]| Counts::of(&kept.iter().copied().collect(), &neighbours);
        let expected = |kept, left_in, lost, far| Counts {
            kept,
            left_in,
            lost,
            far,
        };
        assert_eq!(counts(&[0, 1, 2, 3]), expected(4, 1, 0, 0));
        assert_eq!(counts(&[0, 2, 3]), expected(3, 0, 0, 0));
        assert_eq!(counts(&[0]), expected(1, 0, 2, 1));
    }
}
