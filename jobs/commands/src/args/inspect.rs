//! Options of the commands that change nothing: `plan`, `tune`, `history`, `explain`, `show`, `groups`, `report` and `sql`.

use clap::{Args, ValueHint};

use super::fingerprint::{ColumnArgs, SpecArgs};
use super::values::choice;

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job plan [OPTIONS] <NEW>...")]
pub struct PlanArgs {
    /// Documents of the batch, as for `run`
    #[arg(value_name = "NEW", conflicts_with = "new", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// The same as NEW, as an option
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub new: Vec<String>,
    /// Archive to compare with, as for `run`; without it, the batch is compared with itself only
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<String>,
    /// Largest distance of a pair, from 0 to 16 [default: as in a run]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Show only this design
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Also show what `split` would do, and how long it takes on N machines with --threads cores each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub machines: Option<u64>,
    /// Plan for this number of documents, of 5 kB each, before there are any
    #[arg(long, value_name = "N", conflicts_with_all = ["documents", "new", "base"], value_parser = clap::value_parser!(u64).range(1..))]
    pub batch_rows: Option<u64>,
    /// With --batch-rows: the fingerprints of the archive [default: 0]
    #[arg(long, value_name = "N", requires = "batch_rows")]
    pub archive_rows: Option<u64>,
    #[command(flatten)]
    pub columns: ColumnArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job tune [OPTIONS] <PATH>...")]
pub struct TuneArgs {
    /// Documents: files, directories or patterns. Parquet; or JSON Lines, CSV, WARC, WET, HTML or plain text, each also
    /// compressed (.gz, .zst)
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Compare all pairs of N documents: those whose ids have the smallest hashes [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub sample: Option<u32>,
    /// Smallest similarity (Jaccard of 3-word shingles) of a pair that should be found, from 0.5 to 1 [default: 0.8]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    /// Documents of a batch, to predict the cost [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub day_size: Option<u32>,
    /// Documents of the archive, to predict the cost and the unrelated documents that a new one meets
    /// [default: 1000000000]
    #[arg(long, value_name = "N")]
    pub archive_size: Option<u64>,
    /// Compute fingerprints as this archive does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// Column that says where a document is from, as for `run`: to find sources whose pages come from one template
    #[arg(long, value_name = "COLUMN")]
    pub source: Option<String>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct HistoryArgs {
    /// Directory or URL of the archive
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: String,
    /// Id of the document
    pub id: String,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ExplainArgs {
    /// A document: its id in --documents, a file with its text, or the text itself
    #[arg(value_name = "A")]
    pub first: String,
    /// The other document
    #[arg(value_name = "B")]
    pub second: String,
    /// Documents in which ids are looked up: a file, directory or pattern; repeat the option for more
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Compute fingerprints as this archive does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// Largest distance of a pair, from 0 to 16 [default: as in a run]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Design of the tables, whose blocks -v shows [default: the cheapest for a batch of a million documents]
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Show at most N features of each kind [default: 10]
    #[arg(long, value_name = "N")]
    pub top: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

/// What `show` orders pairs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SortPairs {
    /// The most similar first
    Similarity,
    /// The nearest fingerprints first
    Distance,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job show [OPTIONS] <PAIRS>")]
#[command(
    after_help = "In a terminal the output goes through $PAGER, `less` if it is not set. Words that differ are coloured; with \
    NO_COLOR, or where the output is no terminal, they stand in brackets. With --json, each pair is a line of JSON."
)]
pub struct ShowArgs {
    /// An output of `run`: pairs, or decisions, of which the duplicates are shown
    #[arg(value_name = "PAIRS", value_hint = ValueHint::FilePath)]
    pub pairs: Option<String>,
    /// Documents in which the texts are looked up: files, directories or patterns. Without it, no texts are shown
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Which text of HTML pages in --documents is shown; with any value but none, texts of Parquet, JSON and CSV are parsed as
    /// HTML, too [default: text for HTML files and .warc files, none for others]
    #[arg(long, value_name = "HOW", requires = "documents", value_parser = choice(None::<simhash::Markup>))]
    pub markup: Option<simhash::Markup>,
    /// Archive that remembers templates: the start of what it leaves out of a text is grey, below the text
    #[arg(long, value_name = "DIR", requires = "documents", conflicts_with = "markup", value_hint = ValueHint::DirPath)]
    pub archive: Option<String>,
    /// Order of the pairs [default: as in the file]
    #[arg(long, value_name = "KEY")]
    pub sort: Option<SortPairs>,
    /// Show the pairs whose similarity is nearest to X, from 0 to 1: look at them to choose --min-similarity
    #[arg(long, value_name = "X", conflicts_with = "sort")]
    pub near: Option<f64>,
    /// Show N pairs drawn at random, the same each time
    #[arg(long, value_name = "N", conflicts_with_all = ["sort", "near", "count"], value_parser = clap::value_parser!(u32).range(1..))]
    pub random: Option<u32>,
    /// Show only the duplicates of this source: the host of a document's URL, as in the column url or host of decisions, or in its id
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Show at most N pairs [default: 10]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job report [OPTIONS] --output <FILE> <PAIRS|DECISIONS>...")]
#[command(
    after_help = "The page is one file, which loads nothing. The same files give the same bytes. Texts in it are those of --documents."
)]
pub struct ReportArgs {
    /// Outputs of `run`: pairs, or decisions; files, directories or patterns, as of several days
    #[arg(value_name = "PAIRS|DECISIONS", value_hint = ValueHint::AnyPath)]
    pub rows: Vec<String>,
    /// The page, whose name ends in .html
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Documents in which the texts of the samples are looked up: files, directories or patterns
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Which text of HTML pages in --documents is shown; with any value but none, texts of Parquet, JSON and CSV are parsed as
    /// HTML, too [default: as in --archive, or else text for HTML files and .warc files, none for others]
    #[arg(long, value_name = "HOW", requires = "documents", value_parser = choice(None::<simhash::Markup>))]
    pub markup: Option<simhash::Markup>,
    /// Count the words that differ in the texts of --documents, but show none of the texts
    #[arg(long)]
    pub no_text: bool,
    /// Archive whose fingerprints show how often each bit is 1, and whose templates are grey in the texts of --documents, unless
    /// --markup is given
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub archive: Option<String>,
    /// Show samples just above and below this similarity, from 0 to 1 [default: 0.8]
    #[arg(long, value_name = "X")]
    pub near: Option<f64>,
    /// Replace --output even if dedup-job did not write the existing file
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    pub columns: ColumnArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job groups [OPTIONS] <DECISIONS>...")]
#[command(
    after_help = "A group is a kept document and its duplicates, on its own day and on later ones. A component is all documents that a \
    chain of pairs connects; its ends may have little in common, so that decisions are never made by components."
)]
pub struct GroupsArgs {
    /// Outputs of `run --decisions`: files, directories or patterns, in the order of the days; or one archive
    ///
    /// An archive says which documents it dropped, and not for which others: each counts for the kept document that is nearest now.
    #[arg(value_name = "DECISIONS", value_hint = ValueHint::AnyPath)]
    pub decisions: Vec<String>,
    /// Show the N largest groups [default: 10]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Outputs of `run --output`, for --components
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "components", value_hint = ValueHint::AnyPath)]
    pub pairs: Vec<String>,
    /// Write the connected component of each document of the decisions: id, component (its smallest id) and component_size. The
    /// ending says the format: .parquet, .csv or .jsonl
    #[arg(long, value_name = "FILE", requires = "pairs", value_hint = ValueHint::FilePath)]
    pub components: Option<String>,
    /// Replace --components even if dedup-job did not write the existing file
    #[arg(long)]
    pub overwrite: bool,
}

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job sql [OPTIONS] --table <NAME=PATH> <QUERY>")]
#[command(
    after_help = "simhash(text) returns the fingerprint under the default spec of a new archive, as BIGINT; null if the text has \
    too few features. hamming_distance(a, b) returns the number of bits in which two fingerprints differ. For example:\n\n  \
    dedup-job sql \"select a.id, b.id, hamming_distance(simhash(a.text), simhash(b.text)) as distance from pages a join pages b \
    on a.id < b.id order by distance limit 10\" --table pages=pages.jsonl"
)]
pub struct SqlArgs {
    /// The query
    #[arg(value_name = "QUERY")]
    pub query: Option<String>,
    /// Table of documents (columns id and text), or of fingerprints (columns id and fp), such as an archive; PATH is a file,
    /// directory or pattern. WARC files also have url, host, date, status and content_type. Repeat the option for more tables.
    /// Bytes of a text that are not UTF-8 are replaced
    #[arg(long, value_name = "NAME=PATH", value_hint = ValueHint::AnyPath)]
    pub table: Vec<String>,
}
