//! Options of the online index: `index`, `lookup` and `serve`.

use clap::{Args, Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub enum IndexCommand {
    /// Build an index of an archive for `lookup` and `serve`, or bring it up to date. Run it again after each commit; a build that
    /// was stopped goes on where it was
    Build(IndexBuildArgs),
    /// Show what an index contains
    Info {
        /// Directory or URL of the index
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Read every file, and check all of it
        #[arg(long)]
        verify: bool,
        #[command(flatten)]
        cache: CacheArgs,
    },
}

#[derive(Debug, Clone, Default, Args)]
pub struct IndexBuildArgs {
    /// Archive of whose documents the index is
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// Directory or URL of the index; the first build creates it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<String>,
    /// Merge all segments into one: lookups are fastest, but everything is written again [default: merge segments of like size]
    #[arg(long)]
    pub merge_all: bool,
    #[command(flatten)]
    pub cache: CacheArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct CacheArgs {
    /// Directory for copies of an index that is kept in an object store; it may grow to the size of the index [default: a directory
    /// below the user's cache directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache: Option<std::path::PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct LookupArgs {
    /// What to look up. A fingerprint: 16 hexadecimal digits. A file: each of its lines is looked up. `-`: each line of standard
    /// input. Anything else is a text. A line is a fingerprint, a text, or a JSON object with "fp" or "text"
    #[arg(value_name = "FINGERPRINT|TEXT|FILE", value_hint = ValueHint::FilePath)]
    pub queries: Vec<String>,
    /// Directory or URL of the index
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub index: Option<String>,
    /// Largest distance, from 0 to 8 [default: 3]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub max_distance: Option<u32>,
    /// Show at most N documents for each query [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Leave out documents whose sketch says that they are less similar than this to the text, from 0 to 1 [default: 0]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    #[command(flatten)]
    pub cache: CacheArgs,
}
