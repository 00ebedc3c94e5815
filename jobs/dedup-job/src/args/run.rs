//! Options of `run`, and the checks that need no I/O.

use std::time::Duration;

use chrono::NaiveDate;
use clap::{Args, ValueHint};

use super::cluster::TlsArgs;
use super::fingerprint::{ColumnArgs, SpecArgs};
use super::values::{choice, date, time_span};

/// What paths contain in place of the date.
const DAY: &str = "{day}";

#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Documents of the batch: Parquet, or JSON Lines or CSV, plain or compressed (.gz, .zst); files, directories or patterns
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub new: Vec<String>,
    /// Archive to compare the batch with; or Parquet files with fingerprints: a file, directory or pattern
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<String>,
    /// File for the pairs, in the format of its ending: .parquet, .csv or .jsonl. With -, the pairs go to standard output as
    /// JSON Lines, and the summary to standard error. There is one row for each pair of ids and day of the base document, with
    /// the smallest distance. Two near-duplicates in the batch that have the same id give a row of that id with itself
    /// [default: hits.parquet]
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Replace existing files of any kind; without it, only earlier outputs of the same kind are replaced
    #[arg(long)]
    pub overwrite: bool,
    /// Find pairs whose fingerprints differ in at most K of their 64 bits, K from 0 to 16 [default: 3]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Also find pairs within the batch (the default)
    #[arg(long, overrides_with = "no_within")]
    pub within: bool,
    /// Do not find pairs within the batch
    #[arg(long, overrides_with = "within")]
    pub no_within: bool,
    /// Commit the batch to the archive as the day of --day, in the same run
    #[arg(long)]
    pub append: bool,
    /// With --append: if the archive has the day already, with other documents, replace them in one commit. The batch is then
    /// compared with all other days, also with later ones. To bring back documents that `archive remove --ids` removed, first
    /// remove their day
    #[arg(long)]
    pub replace_day: bool,
    /// Maximum number of rows in a data file of the archive [default: 16777216]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows_per_file: Option<u64>,
    /// Date of the batch: YYYY-MM-DD, or yesterday or today (in UTC). It replaces {day} in --new, --output, --fingerprints and
    /// --metrics
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
    pub day: Option<NaiveDate>,
    /// Also write the fingerprints of the batch to this .parquet file
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub fingerprints: Option<String>,
    /// Design of the tables, see `dedup-job plan` [default: the cheapest that fits the memory limit]
    #[arg(long, value_name = "NAME")]
    pub design: Option<String>,
    /// Keep only the N nearest pairs of each document of the batch, and report how many were left out [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_hits_per_document: Option<u32>,
    /// Write metrics of the run, as OpenMetrics text, to this file, or push them to a gateway at an http(s):// URL, such as
    /// http://gateway:9091/metrics/job/dedup-job
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

/// Options of the verification of pairs by their texts.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Verification")]
pub struct VerifyArgs {
    /// Compare the texts of each pair, write their similarity, and drop pairs below --min-similarity. Use it with a larger -k,
    /// such as 8, to find more true pairs
    #[arg(long, value_name = "MEASURE", value_parser = choice::<simhash::Measure>(None))]
    pub verify: Option<simhash::Measure>,
    /// Smallest similarity of a verified pair, from 0 to 1 [default: 0.8]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    /// Documents whose fingerprints are in the archive, to look up their texts. A pair is kept unverified, and counted, if one
    /// of its texts is not found
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub base_text: Vec<String>,
}

/// Options of a run on a cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Cluster (see `dedup-job cluster --help`; without --cluster, this process does the work)"
)]
pub struct RemoteArgs {
    /// Let the executors of this scheduler do the work. They must be able to read the archive and the --scratch directory
    #[arg(long, value_name = "df://HOST:PORT")]
    pub cluster: Option<String>,
    /// Submit the work again, up to N times, if the scheduler is lost [default: 0]
    #[arg(long, value_name = "N")]
    pub resubmit: Option<u32>,
    /// How long to wait for the scheduler, and for an executor while there is none [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub executor_wait: Option<Duration>,
}

impl RunArgs {
    /// Checks that the options go together; the error names those that do not.
    pub fn check(&self) -> Result<(), String> {
        if self.new.is_empty() {
            return Err("--new is required: the documents of the batch; see --help".into());
        }
        if self.base.is_none() {
            return Err("--base is required: the archive to compare with; see --help".into());
        }
        if self.replace_day && !self.append {
            return Err("--replace-day needs --append".into());
        }
        if self.append && self.day.is_none() {
            return Err("--append needs --day YYYY-MM-DD".into());
        }
        self.verify.check()?;
        self.remote.check()?;
        if self.tls.tls_ca.is_some() && self.remote.cluster.is_none() {
            return Err("--tls-ca needs --cluster".into());
        }
        Ok(())
    }

    /// `path` with `{day}` replaced by the date of --day.
    pub fn with_day(&self, option: &str, path: &str) -> Result<String, String> {
        match self.day {
            _ if !path.contains(DAY) => Ok(path.to_owned()),
            Some(day) => Ok(path.replace(DAY, &day.to_string())),
            None => Err(format!("{DAY} in {option} needs --day")),
        }
    }
}

impl VerifyArgs {
    /// --min-similarity, or its default.
    pub fn min_similarity(&self) -> f64 {
        self.min_similarity.unwrap_or(0.8)
    }

    fn check(&self) -> Result<(), String> {
        let dependent = [
            (self.min_similarity.is_some(), "--min-similarity"),
            (!self.base_text.is_empty(), "--base-text"),
        ];
        if self.verify.is_none() {
            return match dependent.into_iter().find(|(given, _)| *given) {
                Some((_, option)) => Err(format!("{option} needs --verify MEASURE; see --help")),
                None => Ok(()),
            };
        }
        let min_similarity = self.min_similarity();
        match (0.0..=1.0).contains(&min_similarity) {
            true => Ok(()),
            false => Err(format!(
                "--min-similarity {min_similarity} is not between 0 and 1"
            )),
        }
    }
}

impl RemoteArgs {
    fn check(&self) -> Result<(), String> {
        let dependent = [
            (self.resubmit.is_some(), "--resubmit"),
            (self.executor_wait.is_some(), "--executor-wait"),
        ];
        match dependent.into_iter().find(|(given, _)| *given) {
            Some((_, option)) if self.cluster.is_none() => Err(format!("{option} needs --cluster")),
            _ => Ok(()),
        }
    }
}
