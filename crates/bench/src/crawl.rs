//! A crawl: how fast WARC, WET and HTML become fingerprints, and which planted near-duplicates are found in the texts that several programs extract.
//!
//! `crawl_pages.py` makes the pages, of 24 sites with 14 templates and the articles of real corpora; `warcio` writes the files. Every program
//! gets one core. Other programs are measured in one process each, by `crawl_peers.py`; ours as the whole command.
//!
//! - **Rates**: records alone; WARC to texts and to fingerprints; WET to fingerprints, beside decompressing alone.
//! - **Quality**: the texts of each extractor get the same fingerprints, and their pairs are compared with the planted ones.
//! - **Sites**: what is decided, over three days, about invented sites with templates (`crawl_sites.py`).
//! - **Debian**: the rates for HTML of Debian's documentation packages, which nobody here made up.

mod one_core;
mod quality;
mod rates;
pub mod records;
mod sites;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the corpora: unrelated.parquet, peps.parquet and rust-book-zh.parquet
    #[arg(long, value_name = "DIR")]
    corpora: PathBuf,
    /// Python with the packages of crates/bench/requirements-crawl.txt
    #[arg(long, value_name = "PATH")]
    python: PathBuf,
    /// Directory of the pages and texts; those that exist there are reused [default: dedup-job-crawl in the temporary directory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of pages
    #[arg(long, default_value_t = 4_000)]
    pages: usize,
    /// Seed of the pages
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Parts to run
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',', default_values_t = [Part::Rates, Part::Quality, Part::Debian, Part::Sites])]
    parts: Vec<Part>,
    /// Values of --markup of our runs
    #[arg(long, value_name = "HOW", value_delimiter = ',', default_values_t = ["none", "text", "main", "article"].map(str::to_owned))]
    markups: Vec<String>,
    /// Number of runs of each; the fastest counts
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Number of pages for trafilatura, whose time for all pages is extrapolated
    #[arg(long, default_value_t = 200)]
    trafilatura_pages: usize,
    /// Debian packages whose HTML is measured
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',',
        default_values_t = ["python3.11-doc", "debian-reference-en", "git-doc", "rust-doc"].map(str::to_owned))]
    packages: Vec<String>,
    /// Number of pages of the Debian packages, at most
    #[arg(long, default_value_t = 3_000)]
    debian_pages: usize,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Seconds, MB/s and memory on the generated pages
    Rates,
    /// Recall by reason, and precision
    Quality,
    /// Seconds, MB/s and memory on HTML of Debian packages
    Debian,
    /// Decisions about sites with templates
    Sites,
}

/// A directory of files that `crawl_pages.py` or `crawl_debian.py` wrote.
struct Crawl {
    directory: PathBuf,
    /// The numbers of records, pages and bytes.
    counts: Value,
}

impl Crawl {
    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A number of `counts`; 0 for a kind that the crawl does not have.
    fn count(&self, name: &str) -> f64 {
        self.counts[name].as_f64().unwrap_or(0.0)
    }
}

pub fn run(args: &Args) -> Vec<Value> {
    let data = args
        .data
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join("dedup-job-crawl"));
    let has = |part| args.parts.contains(&part);
    let mut rows = Vec::new();
    if has(Part::Rates) || has(Part::Quality) {
        let pages = pages(args, &data.join(format!("{}-{}", args.pages, args.seed)));
        if has(Part::Rates) {
            rows.extend(rates::of_crawl(args, &pages));
        }
        if has(Part::Quality) {
            rows.extend(quality::measure(args, &pages));
        }
    }
    if has(Part::Debian) {
        let pages = debian(args, &data.join(format!("debian-{}", args.debian_pages)));
        rows.extend(rates::of_debian(args, &pages));
    }
    if has(Part::Sites) {
        rows.extend(sites::measure(
            args,
            &data.join(format!("sites-{}", args.seed)),
        ));
    }
    rows
}

fn pages(args: &Args, directory: &Path) -> Crawl {
    make(directory, || {
        let mut command = script(args, "crawl_pages.py");
        command
            .arg("--corpora")
            .arg(&args.corpora)
            .arg("--out")
            .arg(directory)
            .args(["--pages", &args.pages.to_string()])
            .args(["--seed", &args.seed.to_string()]);
        command
    })
}

/// The pages of Debian packages.
fn debian(args: &Args, directory: &Path) -> Crawl {
    make(directory, || {
        let mut command = script(args, "crawl_debian.py");
        command
            .arg("--out")
            .arg(directory)
            .args(["--pages", &args.debian_pages.to_string()])
            .args(&args.packages);
        command
    })
}

/// Runs the command that makes the files of `directory`, unless they are there, and reads their counts.
fn make(directory: &Path, command: impl FnOnce() -> Command) -> Crawl {
    // The scripts write this file last.
    let counts = directory.join("counts.json");
    if !counts.exists() {
        let status = command().status().expect("Python");
        assert!(status.success(), "the pages cannot be made");
    }
    let text = std::fs::read(&counts).expect("the counts");
    Crawl {
        directory: directory.to_owned(),
        counts: serde_json::from_slice(&text).expect("counts, as the scripts write them"),
    }
}

/// A command that runs a script of this crate.
fn script(args: &Args, name: &str) -> Command {
    let mut command = Command::new(&args.python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    command
}

fn dedup_job(args: &Args) -> PathBuf {
    program::path(args.program.as_deref())
}
