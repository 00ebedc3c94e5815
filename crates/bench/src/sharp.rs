//! How sharp fingerprints are: how many unrelated documents a new document meets in a large archive, and which
//! near-duplicates it finds.
//!
//! For every combination of tokenizer, weight and power of idf, and for the methods of other
//! programs (peers), it measures:
//!
//! - pairs of documents of different sources, which are all false, and their estimated number for each new document;
//! - pairs inside a source whose pages share templates: which of them are near-duplicates;
//! - pairs of revisions of a document;
//! - texts of several lengths in which one word is replaced (not for peers);
//! - megabytes of text per second.
//!
//! Of some specs, it also measures which of these pairs a verification by sketches keeps.
//!
//! Similarities are exact ([`crate::truth`]). Brute force counts the distances of all pairs, which
//! takes seconds for a spec. The first row has random fingerprints, whose number of false pairs is
//! known and checked.

mod corpora;
mod distances;
mod false_pairs;
mod lengths;
mod measured;
mod near;
mod poisson;
mod short;
mod sketched;
mod specs;
mod tables;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use simhash::{Choice as _, Fingerprinter, Idf, SketchBits, Tokenizer, Weight};

use crate::peers::{Found, PeerArgs};
use crate::{data, documents};
use corpora::Corpora;
use distances::MAX_DISTANCE;
use measured::Measured;
use near::{J80, J95};
use short::ShortCounts;
use sketched::SketchArgs;
use specs::{Choices, Learned, Power};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the corpora: unrelated.parquet, peps.parquet and rust-book-zh.parquet
    #[arg(long, value_name = "DIR")]
    corpora: Option<PathBuf>,
    /// Documents of unrelated sources: a Parquet file with columns `text` and `source` [default: unrelated.parquet in
    /// --corpora]
    #[arg(long, value_name = "FILE", required_unless_present = "corpora")]
    unrelated: Option<PathBuf>,
    /// Revisions of documents: Parquet files with columns `text` and `doc`, which revisions of one document share
    /// [default: peps.parquet and rust-book-zh.parquet in --corpora]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    revisions: Vec<PathBuf>,
    /// Sources whose pages share templates; those that do not occur are left out
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', default_values_t = ["ps".to_owned(), "cpp".to_owned()])]
    templates: Vec<String>,
    /// Parquet files with a column `text`, in which document frequencies are counted [default: in each corpus for
    /// itself]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    learn: Vec<PathBuf>,
    #[command(flatten)]
    peers: PeerArgs,
    /// Tokenizers to measure
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = TOKENIZERS)]
    tokenizers: Vec<Tokenizer>,
    /// Weights to measure
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = Weight::examples())]
    weights: Vec<Weight>,
    /// Powers of idf to measure; `none` is without idf
    #[arg(long, value_name = "POWER", value_delimiter = ',', default_values_t = Power::all())]
    idf_powers: Vec<Power>,
    #[command(flatten)]
    sketches: SketchArgs,
    /// Largest distances of a pair, in bits, for which figures are printed; those up to 16 are recorded
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 6, 8],
        value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_DISTANCE)))]
    distances: Vec<u32>,
    /// Lengths of short texts, in words
    #[arg(long, value_name = "WORDS", value_delimiter = ',',
        default_values_t = simhash::reliable_length::LENGTHS.map(|words| words as usize))]
    lengths: Vec<usize>,
    /// Number of times that texts are fingerprinted; the fastest counts
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

/// Tokenizers that are measured by default.
const TOKENIZERS: [Tokenizer; 5] = [
    Tokenizer::WordsCjkGrams,
    Tokenizer::WordsCjkBigrams,
    Tokenizer::Shingles(2),
    Tokenizer::Chars(4),
    Tokenizer::WordsAndShingles(2),
];

pub fn run(args: &Args) -> Vec<Value> {
    let corpora = load(args);
    let sample: Vec<String> = args
        .learn
        .iter()
        .flat_map(|path| documents::strings(path, "text"))
        .collect();
    assert!(
        args.learn.is_empty() || !sample.is_empty(),
        "no documents to learn from"
    );
    let mut rows = vec![random(&corpora)];
    for &tokenizer in &args.tokenizers {
        let mut learned = None;
        for &power in &args.idf_powers {
            let idfs = power.0.map(|_| {
                let learned =
                    learned.get_or_insert_with(|| Learned::count(tokenizer, &sample, &corpora));
                learned.idfs(power, corpora.all.len())
            });
            for &weight in &args.weights {
                let choices = Choices {
                    tokenizer,
                    weight,
                    power,
                };
                eprintln!("{choices}");
                rows.extend(measure(choices, idfs.as_deref(), &corpora, args));
            }
        }
    }
    rows.extend(measure_peers(args, &corpora));
    tables::print(&rows, &corpora, &args.distances);
    rows.iter()
        .map(|row| row.json(&corpora, &args.distances))
        .collect()
}

/// Reads the corpora, and prints what is in them.
fn load(args: &Args) -> Corpora {
    let file = |name: &str| args.corpora.as_ref().map(|directory| directory.join(name));
    let unrelated = args.unrelated.clone().or_else(|| file("unrelated.parquet"));
    let revisions = if args.revisions.is_empty() {
        let names = ["peps.parquet", "rust-book-zh.parquet"];
        names.into_iter().filter_map(file).collect()
    } else {
        args.revisions.clone()
    };
    let corpora = Corpora::load(
        &unrelated.expect("a file, as the options require"),
        &revisions,
        &args.templates,
        &args.lengths,
    );
    for corpus in &corpora.all {
        println!(
            "{}: {} documents, {:.1} MB",
            corpus.name,
            corpus.texts.len(),
            corpus.bytes() as f64 / 1e6
        );
        for part in &corpus.parts {
            println!(
                "    {}: {} documents, {} pairs at J >= .8, {} at J >= .95",
                part.name,
                part.size(),
                part.relevant[J80],
                part.relevant[J95]
            );
        }
    }
    corpora
}

/// Counts the false pairs of random fingerprints, and checks their number.
fn random(corpora: &Corpora) -> Measured {
    let fingerprints = data::random_batch(corpora.all[0].texts.len());
    let found = Found::Fingerprints(fingerprints.into_iter().map(Some).collect());
    let row = Measured::new("random".to_owned(), Value::Null, corpora, &[found], &[]);
    let distances: Vec<u32> = (0..=MAX_DISTANCE).collect();
    row.false_pairs.check_random(&distances);
    row
}

/// Measures a spec, with a table of document frequencies for each corpus if it needs them. Returns
/// its row, and those of its verifications by sketches.
fn measure(
    choices: Choices,
    idfs: Option<&[Arc<Idf>]>,
    corpora: &Corpora,
    args: &Args,
) -> Vec<Measured> {
    let name = choices.to_string();
    let mut verifications = args.sketches.verifications(&name);
    let (mut found, mut seconds, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (at, corpus) in corpora.all.iter().enumerate() {
        let idf = idfs.map(|idfs| Arc::clone(&idfs[at]));
        let model = choices.model(idf.clone(), SketchBits::None);
        let mut fingerprinter = Fingerprinter::new(model);
        let (fingerprints, best) = specs::fingerprint(&mut fingerprinter, &corpus.texts, args.runs);
        seconds.push(best);
        let counts = corpus
            .short
            .iter()
            .map(|texts| ShortCounts::new(texts, &mut fingerprinter));
        short.push(counts.collect());
        for verification in &mut verifications {
            let model = choices.model(idf.clone(), verification.size);
            let mut fingerprinter = Fingerprinter::new(model);
            verification.add(&mut fingerprinter, &corpus.texts, &fingerprints, args.runs);
        }
        found.push(Found::Fingerprints(fingerprints));
    }
    let unverified = Measured {
        short,
        ..Measured::new(name, choices.json(), corpora, &found, &seconds)
    };
    let verified: Vec<Measured> = verifications
        .iter()
        .flat_map(|verification| verification.rows(&unverified, corpora))
        .collect();
    let mut rows = vec![unverified];
    rows.extend(verified);
    rows
}

/// Measures the methods of other programs.
fn measure_peers(args: &Args, corpora: &Corpora) -> Vec<Measured> {
    let (mut by_corpus, mut left_out) = (Vec::new(), BTreeSet::new());
    for corpus in &corpora.all {
        let results = args.peers.run(&corpus.path);
        by_corpus.push(results.peers);
        left_out.extend(results.left_out);
    }
    for line in left_out {
        eprintln!("{line}");
    }
    let first = by_corpus[0].iter();
    let peers: Vec<(String, Value)> = first
        .map(|peer| (peer.name.clone(), peer.about.clone()))
        .collect();
    peers
        .into_iter()
        .map(|(name, about)| {
            let (mut found, mut seconds) = (Vec::new(), Vec::new());
            for peers in &mut by_corpus {
                let at = peers.iter().position(|peer| peer.name == name);
                let peer = peers.remove(at.unwrap_or_else(|| panic!("{name}: missing results")));
                found.push(peer.found);
                seconds.push(peer.seconds);
            }
            Measured {
                peer: about,
                ..Measured::new(name, Value::Null, corpora, &found, &seconds)
            }
        })
        .collect()
}
