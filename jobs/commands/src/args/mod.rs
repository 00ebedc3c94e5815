//! The raw command line: options as given, each checked by itself, without I/O.
//!
//! Options that the configuration file can set are not required here: see [`crate::config`]. [`crate::settings`] and the
//! commands build settings from these options.

mod archive;
mod common;
mod fingerprint;
mod generate;
mod help;
mod inspect;
mod job;
mod lookup;
mod run;
mod setting;
mod values;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};

pub use self::archive::{ArchiveCommand, CreateArgs, RemoveArgs, TemplatesArgs};
pub use self::common::{CommonArgs, LogFormat, StorageArgs};
pub use self::fingerprint::{
    ColumnArgs, FeatureArgs, FingerprintArgs, Format, IdFrom, IdfArgs, PipeArgs, SpecArgs,
};
pub use self::generate::{
    GenerateArgs, GenerateCommand, GenerateFingerprintsArgs, GeneratePagesArgs,
};
pub use self::help::definition;
pub use self::inspect::{
    ExplainArgs, GroupsArgs, HistoryArgs, PlanArgs, ReportArgs, ShowArgs, SortPairs, SqlArgs,
    TuneArgs,
};
pub use self::job::{MapArgs, ReduceArgs, SplitArgs};
pub use self::lookup::{CacheArgs, IndexBuildArgs, IndexCommand, LookupArgs, ServeArgs};
pub use self::run::{DEFAULT_OUTPUT, FILE_OF_SOURCES, PairRows, RunArgs, UpdateRule};
pub use self::setting::Setting;
pub use self::values::{either, time_span};

/// Find the near-duplicates between a batch of new documents and an archive of earlier ones: every pair of documents whose
/// fingerprints (64-bit simhash) differ in at most k bits.
#[derive(Debug, Parser)]
#[command(name = "dedup-job", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success, 64 usage, 65 bad data, 69 storage unreachable, 70 internal error, \
    74 local I/O, 75 try again or raise the memory limit, 77 permission denied, 78 configuration or fingerprint spec mismatch, \
    129, 130 and 143 stopped by a signal. On any code but 0, the archive and an earlier output are unchanged, unless the \
    error says otherwise."
)]
pub struct Cli {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the near-duplicates of a batch in an archive (the nightly job)
    Run(Box<RunArgs>),
    /// Plan the next round of a run that many machines do in parts
    Split(Box<SplitArgs>),
    /// Do parts of a round, on any machine
    Map(MapArgs),
    /// End a run whose parts are done, as `run` ends
    Reduce(ReduceArgs),
    /// Compute the fingerprints of documents, into a Parquet file or an archive
    Fingerprint(FingerprintArgs),
    /// Create, fill, inspect and maintain archives
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Show what `run` would read, build and cost, without running it
    Plan(PlanArgs),
    /// Count the documents that contain each feature (document frequencies, for `--idf`)
    Idf(IdfArgs),
    /// Show which pairs each -k finds in a sample of your documents, and what it costs
    Tune(TuneArgs),
    /// Show the captures of a document in an archive: days, decisions, how much it changed
    History(HistoryArgs),
    /// Show why two documents are a near-duplicate pair, or why not
    Explain(ExplainArgs),
    /// Show pairs, or duplicates, side by side, with the words that differ marked
    Show(ShowArgs),
    /// Show the groups of duplicates over one or many days: sizes, the largest, how they grow
    Groups(GroupsArgs),
    /// Make a page (HTML) about pairs or decisions: charts, warnings, samples with texts
    Report(ReportArgs),
    /// Build an index of an archive for online lookups, and show what it contains
    #[command(subcommand)]
    Index(IndexCommand),
    /// Look up which documents of an index are near a fingerprint or a text
    Lookup(LookupArgs),
    /// Answer lookups over HTTP, with a page to paste a text into
    Serve(Box<ServeArgs>),
    /// Query documents in SQL, with simhash(text) and hamming_distance(a, b)
    Sql(SqlArgs),
    /// Generate synthetic batches and archives with known pairs
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands to a directory
    Man {
        /// Directory for one page per command
        #[arg(long, value_name = "DIR", value_parser = values::local_path, value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
}
