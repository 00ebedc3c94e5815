//! The command line as given: parsed, not yet judged. No option is required here, because it may also come
//! from the configuration file, see [`crate::config`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use chrono::NaiveDate;
use clap::{Args, Parser, Subcommand, ValueHint};

/// Finds every pair of near-duplicate documents between a new day of pages and the history of all days
/// before, exactly.
#[derive(Debug, Parser)]
#[command(name = "dedup-job", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 64 usage, 65 bad data, 69 storage or cluster unreachable, 70 internal error, \
    74 local I/O, 75 try again or raise the memory limit, 77 permission, 78 configuration or spec mismatch, \
    130 and 143 stopped by a signal. On any but 0 the archive and an earlier output are as they were."
)]
pub struct Cli {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The nightly job: find the near-duplicates of a new day
    Run(Box<RunArgs>),
    /// Turn documents into fingerprints: a Parquet file, or a day of an archive
    Fingerprint(FingerprintArgs),
    /// Make, fill and look at archives
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Show what a run would read, build and cost, without running it
    Plan(PlanArgs),
    /// Learn from documents in how many of them each word is, for weights that rare words count more by
    Idf(IdfArgs),
    /// Show what each -k finds among a sample of your own documents, and what it costs
    Tune(TuneArgs),
    /// Show why two documents are near-duplicates, or are not
    Explain(ExplainArgs),
    /// Ask questions in SQL, with simhash(text) and hamming_distance(a, b)
    Sql(SqlArgs),
    /// Start a cluster on this machine, to try one out
    Cluster(ClusterArgs),
    /// Start a cluster's scheduler, which deals out the work of `run --cluster`
    Scheduler(SchedulerArgs),
    /// Start an executor of a cluster, which does the work
    Executor(ExecutorArgs),
    /// Make synthetic days and archives with known answers
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands to a directory
    Man {
        /// Directory for one page per command
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct CommonArgs {
    /// Take options from a TOML file; flags win over it
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print one machine-readable summary on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Log more; twice for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Threads to use [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory for the new day, its tables, sorts and hits, such as 4GiB [default: three quarters of the memory]
    #[arg(long, global = true, value_name = "SIZE")]
    pub memory_limit: Option<ByteSize>,
    /// Directory for what does not fit into memory, and for outputs on their way to a store [default: the system's].
    /// With --cluster it can be a prefix in a store, which the executors reach; what stays on this machine then goes to the
    /// system's (TMPDIR)
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub scratch: Option<String>,
    /// How log lines are written: text or json [default: text]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    #[command(flatten)]
    pub storage: StorageArgs,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// How object stores are reached.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Object storage (s3://, az://, gs://; credentials come from the usual environment variables)"
)]
pub struct StorageArgs {
    /// Address of the storage service, such as https://minio.example:9000 [default: the provider's, or that in
    /// AWS_ENDPOINT_URL or AZURE_STORAGE_ENDPOINT]
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub endpoint: Option<String>,
    /// Allow an endpoint without encryption
    #[arg(long, global = true)]
    pub allow_http: bool,
    /// Send a request that failed for the moment again, up to N times [default: 10]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub retries: Option<u16>,
    /// How long one request may take [default: 30s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub request_timeout: Option<Duration>,
    /// For how long a request is sent again, before storage counts as unreachable [default: 3m]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub retry_deadline: Option<Duration>,
}

impl StorageArgs {
    /// The options, with their defaults.
    pub fn options(&self) -> archive::StoreOptions {
        let default = archive::StoreOptions::default();
        archive::StoreOptions {
            endpoint: self.endpoint.clone(),
            allow_http: self.allow_http,
            retries: self.retries.map_or(default.retries, usize::from),
            request_timeout: self.request_timeout.unwrap_or(default.request_timeout),
            deadline: self.retry_deadline.unwrap_or(default.deadline),
        }
    }
}

/// A time span such as 30s, 5m or 7d.
fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(span) if span.is_zero() => Err("must be more than nothing".into()),
        Ok(span) => Ok(span),
        Err(error) => Err(format!(
            "{error}; a time span is a number with s, m, h or d"
        )),
    }
}

/// A day: a date, or one relative to now, in UTC.
fn day(text: &str) -> Result<NaiveDate, String> {
    let today = chrono::Utc::now().date_naive();
    match text {
        "today" => Ok(today),
        "yesterday" => today
            .pred_opt()
            .ok_or_else(|| "there is no such day".into()),
        date => date
            .parse()
            .map_err(|_| format!("{date:?} is neither YYYY-MM-DD nor yesterday nor today")),
    }
}

/// Which columns of the input are read.
#[derive(Debug, Clone, Default, Args)]
pub struct ColumnArgs {
    /// Column of ids [default: id, or another usual name]
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
    /// Column of texts [default: text, or another usual name]
    #[arg(long, value_name = "NAME", conflicts_with = "fingerprint_column")]
    pub text_column: Option<String>,
    /// Column of ready 64-bit fingerprints [default: fp, where there is one]
    #[arg(long, value_name = "NAME")]
    pub fingerprint_column: Option<String>,
}

/// How texts are cut into features.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Fingerprints (an archive has its own way, fixed when it was created)"
)]
pub struct FeatureArgs {
    /// What the features are: words+cjk-grams, words+cjk-bigrams, words, words+jieba, shingles-N, chars-N or longest-sentences-N
    /// [default: words+cjk-grams]
    #[arg(long, value_name = "NAME")]
    pub tokenizer: Option<simhash::Tokenizer>,
    /// Folding of the text: nfkc-casefold, nfkc (case counts) or as-is [default: nfkc-casefold]
    #[arg(long, value_name = "FORM", value_parser = named::<simhash::Normalize>("the forms are nfkc-casefold, nfkc and as-is"))]
    pub normalize: Option<simhash::Normalize>,
    /// Read texts as HTML: strip takes out tags and scripts, strip-boilerplate also navigation, headers, footers
    /// and forms [default: texts are taken as they are]
    #[arg(long, value_name = "HOW", value_parser = named::<simhash::Markup>("the ways are strip and strip-boilerplate"))]
    pub markup: Option<simhash::Markup>,
    /// File of words that are left out, one a line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub stop_words: Option<String>,
}

/// How fingerprints are made, where no archive says so.
#[derive(Debug, Clone, Default, Args)]
pub struct SpecArgs {
    #[command(flatten)]
    pub features: FeatureArgs,
    /// Weight of a feature: tf (every occurrence counts), log-tf, set (presence counts), or levels (log-tf in five
    /// steps) [default: tf]
    #[arg(long, value_name = "SCHEME", value_parser = named::<simhash::Weight>("the schemes are tf, log-tf, set and levels"))]
    pub weight: Option<simhash::Weight>,
    /// Multiply weights by the inverse document frequency, from a table that `dedup-job idf` made
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub idf: Option<String>,
    /// Documents with fewer distinct features have no fingerprint [default: 4]
    #[arg(long, value_name = "N")]
    pub min_features: Option<u32>,
    /// Seed of the hash [default: 0]
    #[arg(long, value_name = "N")]
    pub hash_seed: Option<u32>,
}

/// Reads a choice by the name that it has in a spec; `choices` is what a wrong name is told.
fn named<T: serde::de::DeserializeOwned>(
    choices: &'static str,
) -> impl Fn(&str) -> Result<T, &'static str> + Clone {
    move |name| serde_json::from_value(name.into()).map_err(|_| choices)
}

/// Comparing the texts of pairs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Verification")]
pub struct VerifyArgs {
    /// Compare the texts of each pair, write their similarity, and drop pairs that are less alike than
    /// --min-similarity: jaccard (shingles of three words), cosine (weighted words) or edit (characters; for short texts). Finds
    /// more with a larger -k, such as 8
    #[arg(long, value_name = "MEASURE", value_parser = named::<simhash::Measure>("the measures are jaccard, cosine and edit"))]
    pub verify: Option<simhash::Measure>,
    /// Least similarity of a pair, from 0 to 1 [default: 0.8]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    /// Documents of the history, to look texts up in; a pair whose texts are not found is kept, and counted
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub base_text: Vec<String>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// The new day: Parquet, JSON Lines or CSV (also .gz, .zst); files, directories or patterns
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub new: Vec<String>,
    /// The history: an archive, or a directory or pattern of Parquet files with fingerprints
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<String>,
    /// Where the pairs go [default: hits.parquet]
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Pairs that differ in at most K of the 64 bits are near-duplicates, K from 0 to 16 [default: 3]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Also find pairs inside the new day (the default)
    #[arg(long, overrides_with = "no_within")]
    pub within: bool,
    /// Do not look for pairs inside the new day
    #[arg(long, overrides_with = "within")]
    pub no_within: bool,
    /// Commit the day to the archive in the same run; needs --day
    #[arg(long)]
    pub append: bool,
    /// Rows of a data file of the archive at most [default: 16777216]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows_per_file: Option<u64>,
    /// The day of the new documents: a date, or yesterday or today (in UTC). In --new, --output, --fingerprints and
    /// --metrics, {day} stands for it
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub day: Option<NaiveDate>,
    /// Keep the day's fingerprints in this Parquet file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub fingerprints: Option<String>,
    /// Design of the tables, see `dedup-job plan` [default: the cheapest]
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Of each new document keep the N nearest hits only, and report how many were left out [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_hits_per_document: Option<u32>,
    /// Write metrics of the run, as OpenMetrics text, to this file, or push them to a gateway at an http(s):// URL,
    /// such as http://gateway:9091/metrics/job/dedup-job
    #[arg(long, value_name = "PATH|URL", value_hint = ValueHint::AnyPath)]
    pub metrics: Option<String>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
    #[command(flatten)]
    pub verify: VerifyArgs,
    #[command(flatten)]
    pub remote: RemoteArgs,
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// The cluster that does the work.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Cluster (see `dedup-job cluster --help`; without one, this process does the work)"
)]
pub struct RemoteArgs {
    /// Have the executors of this scheduler do the work. The history, and what --scratch names, must be within their reach
    #[arg(long, value_name = "df://HOST:PORT")]
    pub cluster: Option<String>,
    /// Submit the work again, up to N times, when the scheduler is lost [default: 0]
    #[arg(long, value_name = "N")]
    pub resubmit: Option<u32>,
    /// How long to wait for the scheduler, and for an executor while there is none [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub executor_wait: Option<Duration>,
}

/// Keys of a cluster's process.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Encryption between a cluster's processes (all three, or none)")]
pub struct TlsArgs {
    /// Certificate of the authority that every process of the cluster, and every client, must have its own from (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"], value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    /// Certificate of this process (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"], value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_cert"], value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// The keys, if there are any.
    pub fn read(&self) -> Result<Option<cluster::Tls>, cluster::ClusterError> {
        match (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            (Some(ca), Some(cert), Some(key)) => cluster::Tls::read(ca, cert, key).map(Some),
            _ => Ok(None),
        }
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Starts `dedup-job scheduler` and several `dedup-job executor` on this machine, and stops them with Ctrl-C. Then, \
    elsewhere:\n\n  dedup-job run --new day.parquet --base archive/ --cluster df://127.0.0.1:50050"
)]
pub struct ClusterArgs {
    /// Executors [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub executors: Option<u16>,
    /// Slices of work that each executor does at the same time [default: the cores, shared evenly]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub slots: Option<u16>,
    /// Where the scheduler listens [default: 127.0.0.1:50050]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<SocketAddr>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct SchedulerArgs {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:50050]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<SocketAddr>,
    /// An executor that has not called for so long is lost, and others do its work; a busy one calls every 5 seconds
    /// [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub executor_timeout: Option<Duration>,
    /// Stop when standard input ends, as it does when whoever started this dies
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
    #[command(flatten)]
    pub tls: TlsArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ExecutorArgs {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT")]
    pub scheduler: Option<String>,
    /// Slices of work that it does at the same time, 128 at most: larger machines take several executors [default: one per
    /// core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=128))]
    pub slots: Option<u16>,
    /// Where to serve answers; port 0 takes a free one [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<SocketAddr>,
    /// Name or address that clients reach this executor by [default: that of --bind, or the one that leads to the
    /// scheduler]
    #[arg(long, value_name = "HOST")]
    pub advertise: Option<String>,
    /// Stop when standard input ends, as it does when whoever started this dies
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
    #[command(flatten)]
    pub tls: TlsArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct FingerprintArgs {
    /// Documents: Parquet, JSON Lines or CSV (also .gz, .zst); files, directories or patterns
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub input: Vec<String>,
    /// Write the fingerprints to this Parquet file
    #[arg(long, short, value_name = "FILE", conflicts_with = "append", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Commit them to this archive, as the day of --day
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub append: Option<String>,
    /// The day of the documents: a date, or yesterday or today (in UTC)
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub day: Option<NaiveDate>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Make an empty archive
    Create {
        /// Directory of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Type of document ids: string or bigint
        #[arg(long, value_name = "TYPE", default_value = "string")]
        id_type: archive::IdType,
        #[command(flatten)]
        spec: SpecArgs,
    },
    /// Show what an archive holds
    Info {
        /// Directory of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Read every data file and compare its SHA-256 with the log's
        #[arg(long)]
        verify: bool,
    },
    /// Commit a day of documents, or of ready fingerprints, without looking for duplicates
    Append {
        /// Directory of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Documents or fingerprints: files, directories or patterns
        #[arg(long, value_name = "PATH", required = true, num_args = 1.., value_hint = ValueHint::AnyPath)]
        input: Vec<String>,
        /// The day: a date, or yesterday or today (in UTC)
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
        day: NaiveDate,
        #[command(flatten)]
        columns: ColumnArgs,
    },
    /// Merge small files of a day into few large ones; what a run finds stays the same
    Compact {
        /// Directory of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Only days before this one [default: all days]
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
        before: Option<NaiveDate>,
        /// Rows of a data file at most [default: 16777216]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        rows_per_file: Option<u64>,
    },
    /// Remove files that no version needs any more: those of runs that died, and those that were merged
    Vacuum {
        /// Directory of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Only files that have not been needed for so long
        #[arg(long, value_name = "TIME", default_value = "7d", value_parser = humantime::parse_duration)]
        older_than: Duration,
        /// Say what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Allow less than 24 hours: then no run may be going on, because its files could be removed
        #[arg(long)]
        nothing_runs: bool,
    },
}

#[derive(Debug, Clone, Default, Args)]
pub struct PlanArgs {
    /// The new day, as for `run`
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub new: Vec<String>,
    /// The history, as for `run`
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<String>,
    /// Largest distance of a pair, from 0 to 16 [default: 3]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Show this design only
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Show what it would take on a cluster of N executors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cluster: Option<u32>,
    /// Cores, and slots, of each executor of --cluster [default: 4]
    #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub slots: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct IdfArgs {
    /// Documents: Parquet, JSON Lines or CSV (also .gz, .zst); files, directories or patterns
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Write the table to this Parquet file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Keep the N most frequent features; the others get one weight [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub terms: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub features: FeatureArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct TuneArgs {
    /// Documents: Parquet, JSON Lines or CSV (also .gz, .zst); files, directories or patterns
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Compare all pairs of N documents, those whose ids have the smallest hashes [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub sample: Option<u32>,
    /// Pairs at least so alike, by shingles of three words, are those to be found, from 0.5 to 1 [default: 0.8]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    /// Documents of a new day, for the cost of the join [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub day_size: Option<u32>,
    /// Documents of the history, for the cost of the join [default: 1000000000]
    #[arg(long, value_name = "N")]
    pub history_size: Option<u64>,
    /// Make fingerprints as this archive does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ExplainArgs {
    /// A document: its id among --documents, or a file with its text, or the text itself
    #[arg(value_name = "A")]
    pub first: String,
    /// The other document
    #[arg(value_name = "B")]
    pub second: String,
    /// Documents, to look ids up in: a file, directory or pattern; can be given again
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// Make fingerprints as this archive does
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub base: Option<String>,
    /// Largest distance of a pair, from 0 to 16 [default: 3]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Show the blocks of this design [default: the cheapest for a day of a million]
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Show so many features of each kind [default: 10]
    #[arg(long, value_name = "N")]
    pub top: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "simhash(text) gives the fingerprint of a new archive's default specification as BIGINT, null where there are \
    too few features; hamming_distance(a, b) the number of bits in which two fingerprints differ. For example:\n\n  \
    dedup-job sql \"select a.id, b.id, hamming_distance(simhash(a.text), simhash(b.text)) as distance from pages a join pages b \
    on a.id < b.id order by distance limit 10\" --table pages=pages.jsonl"
)]
pub struct SqlArgs {
    /// The query
    #[arg(value_name = "QUERY")]
    pub query: Option<String>,
    /// Documents or fingerprints as a table with the columns id and text, or id and fp: files, directories or patterns;
    /// can be given again
    #[arg(long, value_name = "NAME=PATH", value_hint = ValueHint::AnyPath)]
    pub table: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum GenerateCommand {
    /// Pages of words, with planted mirrors, other advertisements, counters and dates, and small edits
    Pages(GeneratePagesArgs),
    /// Bare fingerprints at any scale, with planted pairs at each distance and no others
    Fingerprints(GenerateFingerprintsArgs),
}

/// What both kinds of generated data need.
#[derive(Debug, Clone, Args)]
pub struct GenerateArgs {
    /// Directory for day.parquet, archive/ and expected.parquet; it must not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: String,
    /// Documents of the new day
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub new: u64,
    /// Documents of the archive
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub base: u64,
    /// Days of the archive
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// The new day; the archive's are those before it
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-31")]
    pub day: NaiveDate,
    /// Expected hits are pairs up to this distance
    #[arg(long, short = 'k', value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: u32,
    /// The same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Clone, Args)]
pub struct GeneratePagesArgs {
    #[command(flatten)]
    pub all: GenerateArgs,
    /// Random fingerprints in the archive besides those of its pages
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub filler: u64,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Clone, Args)]
pub struct GenerateFingerprintsArgs {
    #[command(flatten)]
    pub all: GenerateArgs,
    /// Planted pairs; their distances go round from 0 to K [default: a tenth of the new day]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u64>,
    /// Type of document ids: string or bigint
    #[arg(long, value_name = "TYPE", default_value = "string")]
    pub id_type: archive::IdType,
}

impl SpecArgs {
    /// What is asked for, with the files that are named.
    pub async fn wanted(&self, stores: &archive::Stores) -> engine::Result<engine::Wanted> {
        Ok(engine::Wanted {
            weight: self.weight,
            min_features: self.min_features,
            seed: self.hash_seed,
            idf: given(stores, self.idf.as_deref()).await?,
            ..self.features.wanted(stores).await?
        })
    }
}

impl FeatureArgs {
    /// What is asked for, with the files that are named.
    pub async fn wanted(&self, stores: &archive::Stores) -> engine::Result<engine::Wanted> {
        Ok(engine::Wanted {
            tokenizer: self.tokenizer,
            normalize: self.normalize,
            markup: self.markup,
            stop_words: given(stores, self.stop_words.as_deref()).await?,
            ..engine::Wanted::default()
        })
    }
}

async fn given(
    stores: &archive::Stores,
    path: Option<&str>,
) -> engine::Result<Option<engine::recipe::Given>> {
    match path {
        Some(path) => engine::recipe::Given::read(stores, path).await.map(Some),
        None => Ok(None),
    }
}

impl ColumnArgs {
    /// The columns that are asked for.
    pub fn columns(&self) -> engine::documents::Columns {
        engine::documents::Columns {
            id: self.id_column.clone(),
            text: self.text_column.clone(),
            fingerprint: self.fingerprint_column.clone(),
            texts_only: false,
        }
    }
}
