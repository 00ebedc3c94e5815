//! Options of `generate`'s subcommands.

use chrono::NaiveDate;
use clap::{Args, Subcommand, ValueHint};

use super::fingerprint::SpecArgs;

/// The most documents that are generated: numbers of documents are added and multiplied.
const MOST: u64 = 1_000_000_000_000;

#[derive(Debug, Subcommand)]
pub enum GenerateCommand {
    /// Generate pages of words, with planted near-duplicates: mirrors, changed advertisements, counters and dates, small edits
    Pages(GeneratePagesArgs),
    /// Generate fingerprints without texts, at any scale, with planted pairs at each distance and no others
    Fingerprints(GenerateFingerprintsArgs),
}

/// Options of both kinds of generated data.
#[derive(Debug, Clone, Args)]
pub struct GenerateArgs {
    /// Directory for day.parquet, archive/ and expected.parquet; it must not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: String,
    /// Documents of the batch
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub new: u64,
    /// Documents of the archive
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub base: u64,
    /// Days of the archive
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// Date of the batch; the archive has the days before it
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-31")]
    pub day: NaiveDate,
    /// Largest distance of the pairs in expected.parquet
    #[arg(long, short = 'k', value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: u32,
    /// Seed; the same seed generates the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Clone, Args)]
pub struct GeneratePagesArgs {
    #[command(flatten)]
    pub shared: GenerateArgs,
    /// Random fingerprints in the archive, in addition to those of its pages
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub filler: u64,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Clone, Args)]
pub struct GenerateFingerprintsArgs {
    #[command(flatten)]
    pub shared: GenerateArgs,
    /// Planted pairs; their distances cycle from 0 to K [default: a tenth of the batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST))]
    pub pairs: Option<u64>,
    /// Type of document ids: string or bigint
    #[arg(long, value_name = "TYPE", default_value = "string")]
    pub id_type: archive::IdType,
}
