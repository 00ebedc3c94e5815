//! Options of `archive`'s subcommands.

use std::time::Duration;

use archive::BatchName;
use chrono::NaiveDate;
use clap::{Args, Subcommand, ValueHint};
use engine::Profile;
use engine::run::DaySource;

use super::fingerprint::{ColumnArgs, PipeArgs, SpecArgs};
use super::setting::Setting;
use super::values::{choice, date, day};

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Directory or URL of the archive
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: String,
    /// Type of document ids: string or bigint
    #[arg(long, value_name = "TYPE", default_value = "string")]
    pub id_type: archive::IdType,
    /// Settings that go together; what they say of runs is recorded in the archive, and `archive set` changes it
    #[arg(long, value_name = "NAME", value_parser = choice(Some(Profile::Sharp)))]
    pub profile: Option<Profile>,
    /// Learn document frequencies from these documents, a sample of what the archive will contain: features that many
    /// of them have count less. The archive keeps the frequencies; `dedup-job idf` learns them once for several archives
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with = "idf", value_hint = ValueHint::AnyPath)]
    pub learn: Vec<String>,
    /// With --profile paper: give the archive a column `kept`, which documents were kept when their day was appended. Later runs
    /// find duplicates of kept documents only, so that a duplicate of a duplicate does not count. Sharp archives have it
    #[arg(long)]
    pub decisions: bool,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Directory or URL of the archive
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: String,
    /// Remove all documents of this day; the day can then be committed again
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date, required_unless_present = "ids", conflicts_with = "ids")]
    pub day: Option<NaiveDate>,
    /// Remove only the batch of this name of the day
    #[arg(long, value_name = "NAME", requires = "day", conflicts_with = "ids")]
    pub batch: Option<BatchName>,
    /// Then keep what was dropped as a duplicate of the removed documents, and of nothing else that is kept, and say which; what
    /// was published before stays as it was
    #[arg(long)]
    pub repair: bool,
    /// Remove the documents with these ids, from all days. FILE has one id per line; a .jsonl file has a JSON string,
    /// number, or object with "id" per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ids: Option<String>,
}

#[derive(Debug, Args)]
pub struct TemplatesArgs {
    /// Directory or URL of the archive
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: String,
    /// The source: a host, a URL of it, or what --source names
    #[arg(long)]
    pub source: String,
    /// Documents of the source, in whose texts the passages are found: the archive has no texts
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    #[command(flatten)]
    pub columns: ColumnArgs,
}

#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Create an empty archive
    Create(CreateArgs),
    /// Show what an archive contains
    Info {
        /// Directory or URL of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Read every data file and compare its SHA-256 with the one in the log
        #[arg(long)]
        verify: bool,
    },
    /// Change the settings of runs that an archive records. Options of a run count before them; days that are committed keep theirs
    Set {
        /// Directory or URL of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// k=0..16; verify=sketch|none; min-similarity=0..1; id-column=NAME; text-column=NAME. No NAME: found by its usual name
        #[arg(value_name = "KEY=VALUE", required = true)]
        settings: Vec<Setting>,
    },
    /// Commit a day of documents, or of ready fingerprints, without searching for pairs. Nothing is decided: in an archive with
    /// decisions, all these documents count as kept
    Append {
        /// Directory or URL of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Documents, or ready fingerprints: files, directories or patterns; or other archives, whose days are copied with their
        /// decisions
        #[arg(long, value_name = "PATH", required = true, num_args = 1.., value_hint = ValueHint::AnyPath)]
        input: Vec<String>,
        /// Date of the documents: YYYY-MM-DD, or yesterday or today (in UTC); or from-records, as for `run`. Of archives, the only day
        /// to copy
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
        day: Option<DaySource>,
        /// Name of the batch of documents, if its day has several
        #[arg(long, value_name = "NAME", requires = "day")]
        batch: Option<BatchName>,
        /// Commit a day without documents, too
        #[arg(long)]
        allow_empty: bool,
        /// Column that has the source of each document, as for `run`
        #[arg(long, value_name = "COLUMN")]
        source: Option<String>,
        #[command(flatten)]
        pipe: PipeArgs,
        #[command(flatten)]
        columns: ColumnArgs,
    },
    /// Merge the small files of each day into few large ones; runs find the same pairs as before
    Compact {
        /// Directory or URL of the archive
        #[arg(value_hint = ValueHint::DirPath)]
        dir: String,
        /// Merge only days before this date [default: all days]
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
        before: Option<NaiveDate>,
        /// Maximum number of rows in a data file [default: 16777216]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        rows_per_file: Option<u64>,
    },
    /// Remove documents: a whole day, or those with given ids. Runs no longer compare or report them. Their bytes are deleted by
    /// the first `archive vacuum` that runs at least seven days later
    #[command(
        override_usage = "dedup-job archive remove [OPTIONS] --day <YYYY-MM-DD> <DIR>\n       dedup-job archive remove [OPTIONS] --ids <FILE> <DIR>"
    )]
    Remove(RemoveArgs),
    /// Show the template of a source: passages that many of its pages share, which runs leave out of their texts
    Templates(TemplatesArgs),
    /// Delete files that the archive no longer needs: those of failed runs, and those that were merged, replaced or removed
    Vacuum {
        /// Directory or URL of the archive
        #[arg(value_hint = ValueHint::DirPath, required_unless_present = "jobs", conflicts_with = "jobs")]
        dir: Option<String>,
        /// Delete jobs of `split` below this directory or prefix that were not reduced, instead of files of an archive
        #[arg(long, value_name = "PREFIX", value_hint = ValueHint::DirPath)]
        jobs: Option<String>,
        /// Delete only files that the archive has not needed for this long, and jobs of which nothing was written for this long
        #[arg(long, value_name = "TIME", default_value = "7d", value_parser = humantime::parse_duration)]
        older_than: Duration,
        /// List the files that would be deleted, and delete nothing
        #[arg(long)]
        dry_run: bool,
        /// Allow an --older-than of less than 24 hours. Use it only while nothing else works on the archive: files of a run in
        /// progress could be deleted
        #[arg(long)]
        nothing_runs: bool,
    },
}
