//! The measured comparisons, with known answers: each prints a table and can write what it found as JSON.

mod cluster;
mod data;
mod designs;
mod documents;
mod features;
mod join;
mod latency;
mod machine;
mod map;
mod program;
mod quality;
mod scale;

use std::path::PathBuf;

use clap::Parser;

/// Measures dedup-job, side by side with others, with known answers.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    bench: Bench,
    /// Also write the results, with the machine's description, to this JSON file
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// A cluster against one process, and what it takes
    Cluster(cluster::Args),
    /// Every design, in memory: predicted and measured cost
    Designs(designs::Args),
    /// Text to fingerprint on one core, for each spec and the peers
    Features(features::Args),
    /// The join against other ways to do it, on the same data in one run
    Join(join::Args),
    /// The join from a store whose every answer takes its time
    Latency(latency::Args),
    /// `dedup-job fingerprint` from Parquet, against the kernel alone
    Map(map::Args),
    /// How many of the near-duplicates of real documents each way finds, and what else
    Quality(quality::Args),
    /// `dedup-job run` itself on archives of growing size
    Scale(scale::Args),
}

fn main() {
    let args = Args::parse();
    let (name, rows) = match &args.bench {
        Bench::Cluster(args) => ("cluster", cluster::run(args)),
        Bench::Designs(args) => ("designs", designs::run(args)),
        Bench::Features(args) => ("features", features::run(args)),
        Bench::Join(args) => ("join", join::run(args)),
        Bench::Latency(args) => ("latency", latency::run(args)),
        Bench::Map(args) => ("map", map::run(args)),
        Bench::Quality(args) => ("quality", quality::run(args)),
        Bench::Scale(args) => ("scale", scale::run(args)),
    };
    if let Some(path) = args.json {
        let report =
            serde_json::json!({ "bench": name, "machine": machine::describe(), "results": rows });
        let text = serde_json::to_string_pretty(&report).expect("plain values");
        std::fs::write(&path, text + "\n")
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
