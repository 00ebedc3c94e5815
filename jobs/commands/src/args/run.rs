//! Options of `run`, and the checks that need no I/O.

use clap::{Args, ValueHint};
use engine::documents::Prefer;
use engine::profile::VerifyBy;
use engine::run::{Appended, DaySource};
use engine::{CompareOptions, Profile};

use super::fingerprint::{ColumnArgs, SpecArgs};
use super::values::{appended, choice, day};

/// Heading of the options of decisions.
const DECISIONS: &str = "Decisions";
/// The output of a run without --output.
pub const DEFAULT_OUTPUT: &str = "hits.parquet";
/// The placeholder for the date in paths.
const DAY: &str = "{day}";

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job run [OPTIONS] <NEW>...")]
pub struct RunArgs {
    /// Documents of the batch: files, directories or patterns. Parquet; or JSON Lines, CSV, WARC, WET, HTML or plain text, each
    /// also compressed (.gz, .zst)
    #[arg(value_name = "NEW", conflicts_with = "new", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// The same as NEW, as an option
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub new: Vec<String>,
    /// Archive to compare the batch with; or Parquet files with fingerprints: a file, directory or pattern. Without it, the
    /// batch is compared with itself only
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Option<String>,
    /// File for the pairs, in the format of its ending: .parquet, .csv or .jsonl. With -, the pairs go to standard output as
    /// JSON Lines, and the summary to standard error. There is one row for each pair of ids and day of the base document, with
    /// the smallest distance. Two near-duplicates in the batch that have the same id give a row of that id with itself
    /// [default: hits.parquet, unless --decisions or --kept is given]
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Decide which documents of the batch to keep, and write a row for each to this file, in the format of its ending: id,
    /// kept, duplicate_of, duplicate_day, distance, similarity, group_size. A document is kept unless it has a pair with a kept
    /// document before it: of the archive, or of the batch in the order of --prefer. Pairs are then written only with --output
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = DECISIONS)]
    pub decisions: Option<String>,
    /// Copy the kept documents, with all their columns, in the format, order and compression of the batch: to a file; or to a
    /// directory, if the batch has several files
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = DECISIONS)]
    pub kept: Option<String>,
    /// Of near-duplicates in the batch, keep the one with the smallest value in this column, or with :desc the largest; then
    /// the one with the smallest id [default: the longest text]
    #[arg(long, value_name = "COLUMN[:asc|desc]", help_heading = DECISIONS)]
    pub prefer: Option<Prefer>,
    /// Copy these columns of the documents into --decisions, after its own columns: names, separated by commas
    #[arg(id = "columns", long = "columns", value_name = "NAME", value_delimiter = ',', help_heading = DECISIONS)]
    pub carried: Vec<String>,
    /// End with exit code 65, before anything is published, if more than this share of the documents is dropped, from 0 to 1
    #[arg(long, value_name = "SHARE", help_heading = DECISIONS)]
    pub max_dropped: Option<f64>,
    /// End with exit code 65 if more than nine tenths of the batch are duplicates of one day of the archive, as under a wrong
    /// --day; without this option, that is a warning
    #[arg(long, help_heading = DECISIONS)]
    pub refuse_repeats: bool,
    /// End with exit code 65, before anything is published, if the batch has fewer than N documents, as when an upload was not
    /// finished
    #[arg(long, value_name = "N")]
    pub min_new: Option<u64>,
    /// With --append: commit a batch without documents, too
    #[arg(long)]
    pub allow_empty: bool,
    /// Replace existing files of any kind; without it, only earlier outputs of the same kind are replaced, and files of --kept
    /// never, except by the same bytes with --append
    #[arg(long)]
    pub overwrite: bool,
    /// Settings of -k and --verify that go together [default: those that the archive records; without an archive, sharp for texts
    /// and paper for ready fingerprints]
    #[arg(long, value_name = "NAME", value_parser = choice::<Profile>(None))]
    pub profile: Option<Profile>,
    /// Find pairs whose fingerprints differ in at most K of their 64 bits, K from 0 to 16 [default: see --profile]
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Also find pairs within the batch (the default)
    #[arg(long, overrides_with = "no_within")]
    pub within: bool,
    /// Do not find pairs within the batch
    #[arg(long, overrides_with = "within")]
    pub no_within: bool,
    /// Commit the batch to the archive as the day of --day, in the same run: all documents, or with `--append kept` only those
    /// that are kept. If the archive has decisions (`archive create --decisions`), it gets those of this batch
    #[arg(long, value_name = "all|kept", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_parser = appended)]
    pub append: Option<Appended>,
    /// With --append: if the archive has the day already, with other documents, replace them in one commit. The batch is then
    /// compared with all other days, also with later ones. To bring back documents that `archive remove --ids` removed, first
    /// remove their day
    #[arg(long)]
    pub replace_day: bool,
    /// Maximum number of rows in a data file of the archive [default: 16777216]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows_per_file: Option<u64>,
    /// Date of the batch: YYYY-MM-DD, or yesterday or today (in UTC). It replaces {day} in --new, --resume and the paths of all
    /// outputs. Or from-records: the day on which the documents of WARC files were fetched, which must be one; the run reads the
    /// files twice, and {day} cannot be used
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub day: Option<DaySource>,
    /// Keep finished fingerprints in a directory below this one until the run succeeds, and then delete them. If the run is stopped,
    /// the same command goes on from there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub resume: Option<String>,
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
}

/// Options of the verification of pairs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Verification")]
pub struct VerifyArgs {
    /// Compare the documents of each pair, write their similarity, and drop pairs below --min-similarity [default: see --profile]
    #[arg(long, value_name = "MEASURE", value_parser = choice::<VerifyBy>(None))]
    pub verify: Option<VerifyBy>,
    /// Smallest similarity of a verified pair, from 0 to 1 [default: that of the archive, or else 0.8 and by sketch 0.755]
    #[arg(long, value_name = "X")]
    pub min_similarity: Option<f64>,
    /// Documents whose fingerprints are in the archive, to look up their texts. If one of its texts is not found, a pair is
    /// written without a similarity, and drops no document
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub base_text: Vec<String>,
}

impl RunArgs {
    /// Checks that the options go together; the error names those that do not.
    pub fn check(&self) -> Result<(), String> {
        if self.batch().is_empty() {
            return Err("the documents of the batch are missing: name them, or give them by --new; see --help".into());
        }
        if self.base.is_none() {
            let needing = [
                (self.append.is_some(), "--append"),
                (self.no_within, "--no-within"),
            ];
            if let Some((_, option)) = needing.into_iter().find(|(given, _)| *given) {
                return Err(format!("{option} needs --base: the archive; see --help"));
            }
        }
        if self.replace_day && self.append.is_none() {
            return Err("--replace-day needs --append".into());
        }
        if self.append.is_some() && self.day.is_none() {
            return Err("--append needs --day YYYY-MM-DD".into());
        }
        if self
            .max_dropped
            .is_some_and(|most| !(0.0..=1.0).contains(&most))
        {
            return Err("--max-dropped must be a share from 0 to 1".into());
        }
        self.verify.check()?;
        self.check_decisions()?;
        self.check_carried()?;
        Ok(())
    }

    /// Whether the options name an output of decisions: --decisions or --kept.
    pub fn writes_decisions(&self) -> bool {
        self.decisions.is_some() || self.kept.is_some()
    }

    /// Whether the options require decisions. An archive with decisions may require them, too.
    pub fn decides(&self) -> bool {
        self.writes_decisions() || self.append == Some(Appended::Kept)
    }

    fn check_decisions(&self) -> Result<(), String> {
        if !self.decides() {
            // If the archive has decisions, --append decides about the batch and uses --prefer.
            return match &self.prefer {
                Some(_) if self.append.is_none() => {
                    Err("--prefer needs --decisions, --kept or --append; see --help".into())
                }
                _ => Ok(()),
            };
        }
        if self.max_hits_per_document.is_some() {
            return Err("--max-hits-per-document leaves out pairs, and decisions need all of them: leave it out".into());
        }
        Ok(())
    }

    fn check_carried(&self) -> Result<(), String> {
        if !self.carried.is_empty() && self.decisions.is_none() {
            return Err(
                "--columns needs --decisions, whose file gets the columns; see --help".into(),
            );
        }
        for (number, name) in self.carried.iter().enumerate() {
            if name.is_empty() {
                return Err("--columns: the name of a column is missing".into());
            }
            if engine::decide::layout().contains(&name.as_str()) {
                return Err(format!(
                    "--columns {name}: decisions have a column of that name already"
                ));
            }
            if self.carried[..number].contains(name) {
                return Err(format!("--columns names {name} twice"));
            }
        }
        Ok(())
    }

    /// What the options say about the comparison.
    pub fn compare(&self) -> CompareOptions {
        CompareOptions {
            profile: self.profile,
            max_distance: self.max_distance,
            verify: self.verify.verify,
            min_similarity: self.verify.min_similarity,
            base_text: self.verify.base_text.clone(),
        }
    }

    /// The paths of the batch, given as NEW or by --new.
    pub fn batch(&self) -> &[String] {
        match self.documents.is_empty() {
            true => &self.new,
            false => &self.documents,
        }
    }

    /// `path` with `{day}` replaced by the date of --day.
    pub fn with_day(&self, option: &str, path: &str) -> Result<String, String> {
        match self.day {
            _ if !path.contains(DAY) => Ok(path.to_owned()),
            Some(DaySource::Date(day)) => Ok(path.replace(DAY, &day.to_string())),
            Some(DaySource::Records) => Err(format!(
                "{DAY} in {option} needs --day YYYY-MM-DD: the records are read later"
            )),
            None => Err(format!("{DAY} in {option} needs --day")),
        }
    }
}

impl VerifyArgs {
    /// Checks the least similarity; whether it is needed depends on the archive.
    fn check(&self) -> Result<(), String> {
        match self.min_similarity {
            Some(least) if !(0.0..=1.0).contains(&least) => {
                Err(format!("--min-similarity {least} is not between 0 and 1"))
            }
            _ => Ok(()),
        }
    }
}
