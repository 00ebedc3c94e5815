//! Options of `split`, `map` and `reduce`: a run in parts.

use clap::{Args, ValueHint};

use super::RunArgs;
use super::values::parts;

#[derive(Debug, Clone, Args)]
#[command(override_usage = "dedup-job split [OPTIONS] <JOB> [NEW]...")]
pub struct SplitArgs {
    /// Where the job is kept: a directory, or a prefix in a bucket, that all machines reach. The first `split` of a job needs the
    /// options of the run; the next ones, after the parts of a round are done, need none
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    pub job: String,
    /// Cut each map into N parts, if it has as many items [default: parts of about a minute on two cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub parts: Option<u64>,
    /// Begin anew, and remove what the job had; without it, other options than those of the job are refused
    #[arg(long)]
    pub restart: bool,
    #[command(flatten)]
    pub run: RunArgs,
    /// The options of the run, as `reduce` reads them: with absolute paths, and dates. The parser of the command line sets them.
    #[arg(skip)]
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct MapArgs {
    /// Where the job is kept
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    pub job: String,
    /// Number of the round, from 1 on [default: the current one]
    #[arg(long, value_name = "N")]
    pub round: Option<u32>,
    /// Parts of the round to do, one after the other: 3, or 4..9 (9 included), or 3,7
    #[arg(long = "part", value_name = "LIST", value_parser = parts, required = true)]
    pub parts: Vec<Parts>,
}

/// Numbers of parts.
pub type Parts = Vec<u32>;

#[derive(Debug, Clone, Args)]
pub struct ReduceArgs {
    /// Where the job is kept
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    pub job: String,
    /// Keep the plans and answers of the job, which are removed otherwise
    #[arg(long)]
    pub keep_job: bool,
    /// As for `run`
    #[arg(long, value_name = "PATH|URL", value_hint = ValueHint::AnyPath)]
    pub metrics: Option<String>,
}
