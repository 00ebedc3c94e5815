//! The measured comparisons: prints one table, and with `--json FILE` writes one record.

mod data;
mod designs;

use clap::Parser;

/// Measures dedup-job, side by side with others, with known answers.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Every design, in memory: predicted and measured cost
    Designs(designs::Args),
}

fn main() {
    match Args::parse().bench {
        Bench::Designs(args) => designs::run(&args),
    }
}
