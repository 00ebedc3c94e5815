//! Options of every command.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{Args, ValueHint};

use super::values::{local_path, time_span};

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct CommonArgs {
    /// Read options from a TOML file; flags override it
    #[arg(long, global = true, value_name = "FILE", value_parser = local_path, value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print the summary or the answer as JSON
    ///
    /// One line; or one line per row for `sql`, and per pair for `show`.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress, no warnings, and no summary
    ///
    /// --json asks for the summary. Errors are printed, and so are the answers of commands that answer a question, such as
    /// `plan`, `lookup` and `archive info`.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Log each step; -vv logs details
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Number of threads [default: one per core]
    #[arg(long, global = true, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory limit for the batch, its tables, sorting and pairs, such as 4GiB [default: three quarters of the memory of the
    /// machine or container]
    #[arg(long, global = true, hide_short_help = true, value_name = "SIZE")]
    pub memory_limit: Option<ByteSize>,
    /// Directory for temporary files: data beyond the memory limit, and outputs before their upload [default: the system's
    /// temporary directory]
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR", value_parser = local_path, value_hint = ValueHint::DirPath)]
    pub scratch: Option<PathBuf>,
    /// Format of log lines: text or json [default: text]
    #[arg(long, global = true, hide_short_help = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// How often a progress line is printed where standard error is no terminal [default: 10s]. The Python package sets it
    #[arg(long, global = true, hide = true, value_name = "TIME", value_parser = time_span)]
    pub progress_every: Option<Duration>,
    #[command(flatten)]
    pub storage: StorageArgs,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// Options of object stores.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Object storage (s3://, az://, gs://; credentials are read from the usual environment variables)"
)]
pub struct StorageArgs {
    /// Address of the storage service, such as https://minio.example:9000 [default: AWS_ENDPOINT_URL or
    /// AZURE_STORAGE_ENDPOINT, or else the provider's address]
    #[arg(long, global = true, hide_short_help = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub endpoint: Option<String>,
    /// Allow an endpoint without encryption (http://)
    #[arg(long, global = true, hide_short_help = true)]
    pub allow_http: bool,
    /// Repeat a request up to N times after temporary failures [default: until --retry-deadline]
    #[arg(long, global = true, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub retries: Option<u16>,
    /// Time limit of one request [default: 30s]
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME", value_parser = time_span)]
    pub request_timeout: Option<Duration>,
    /// Time limit of a request with all its repetitions, after which storage counts as unreachable [default: 3m]
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME", value_parser = time_span)]
    pub retry_deadline: Option<Duration>,
}
