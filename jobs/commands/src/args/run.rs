//! Options of `run`, and the checks that need no I/O.

use archive::BatchName;
use clap::{Args, ValueHint};
use documents::Prefer;
use engine::decide::{LAYOUT, OnUpdate, UPDATE_DAY, UPDATE_OF};
use engine::profile::VerifyBy;
use engine::run::{Appended, DaySource};
use engine::{CompareOptions, Profile};

use super::fingerprint::{ColumnArgs, PipeArgs, SpecArgs};
use super::values::{appended, choice, day, either, first_given};

/// Heading of the options of decisions.
const DECISIONS: &str = "Decisions";
/// The output of a run without --output.
pub const DEFAULT_OUTPUT: &str = "hits.parquet";
/// What is before the path in the rule of --prefer that names a file of sources.
pub const FILE_OF_SOURCES: &str = "source=@";
/// The placeholder for the date in paths.
const DAY: &str = "{day}";
/// The placeholder for the name of the batch.
const BATCH: &str = "{batch}";

#[derive(Debug, Clone, Default, Args)]
#[command(override_usage = "dedup-job run [OPTIONS] <NEW>...")]
pub struct RunArgs {
    /// Documents of the batch: files, directories or patterns
    ///
    /// Parquet; or JSON Lines, CSV, WARC, WET, HTML or plain text, each also compressed (.gz, .zst).
    #[arg(value_name = "NEW", conflicts_with = "new", value_hint = ValueHint::AnyPath)]
    pub documents: Vec<String>,
    /// The same as NEW, as an option
    #[arg(long, value_name = "PATH", num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub new: Vec<String>,
    /// Archive to compare the batch with [default: the batch alone]
    ///
    /// Or files with fingerprints or documents: a file, directory or pattern. Several times, for several archives and files; the
    /// settings of the first archive count.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub base: Vec<String>,
    /// File for the pairs: .parquet, .csv or .jsonl [default: hits.parquet]
    ///
    /// If --decisions or --kept is given, pairs are written only with this option. With -, the pairs go to standard output as JSON Lines, and the summary to standard error. There is one row for each pair of
    /// ids and day of the base document, with the smallest distance. Two near-duplicates in the batch that have the same id give a
    /// row of that id with itself.
    #[arg(long, short, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub output: Option<String>,
    /// Which pairs to write [default: all]
    #[arg(long, value_name = "WHICH")]
    pub pairs: Option<PairRows>,
    /// File for a row per document: whether it is kept or dropped, and why
    ///
    /// In the format of its ending, .parquet, .csv or .jsonl: id, kept, duplicate_of, duplicate_day, distance, similarity,
    /// group_size. A document is kept unless it has a pair with a kept document before it: of the archive, or of the batch in the
    /// order of --prefer.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = DECISIONS)]
    pub decisions: Option<String>,
    /// Copy the kept documents to this file or directory
    ///
    /// With all their columns, in the format, order and compression of the batch: to a file; or to a directory, if the batch has
    /// several files, unless these are JSON Lines.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = DECISIONS)]
    pub kept: Option<String>,
    /// Which of near-duplicates to keep: rules [default: longest]
    ///
    /// Rules in order, separated by commas; each decides where those before it see no difference, and at last the smallest id:
    /// COLUMN, its smallest value (COLUMN:desc, its largest); longest, the longest text, without markup, templates, scripts and white
    /// space; earliest or latest, by the time in a column such as date, or earliest=COLUMN; path, in the order of the given files and directories;
    /// first, in the order of the input; and as the last one source=NAME,NAME, these sources first, or source=@FILE, a file of
    /// them.
    #[arg(long, value_name = "RULE,...", help_heading = DECISIONS)]
    pub prefer: Vec<String>,
    /// Which captures count if the archive has another content of a document, by its id [default: both]
    #[arg(long, value_name = "WHICH", help_heading = DECISIONS)]
    pub on_update: Option<UpdateRule>,
    /// File of what people say of documents: which are the same, which are distinct, which are never dropped
    ///
    /// CSV or JSON Lines of pin, id and other: same or distinct with two ids, keep with one, forget with either. It wins over
    /// distances. With --append, the archive remembers it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = DECISIONS)]
    pub pins: Option<String>,
    /// Copy these columns of the documents into --decisions, after its own columns: names, separated by commas
    #[arg(id = "columns", long = "columns", value_name = "NAME", value_delimiter = ',', help_heading = DECISIONS)]
    pub carried: Vec<String>,
    /// Drop empty documents, too; they repeat nothing
    #[arg(long, help_heading = DECISIONS)]
    pub drop_empty: bool,
    /// Column that has the source of each document: a name, or a URL, whose host is the source. The template of a source is left
    /// out of its texts, and the summary says which sources lose most [default: the column url, or else ids that are URLs]
    #[arg(long, value_name = "COLUMN", help_heading = DECISIONS)]
    pub source: Option<String>,
    /// Compare N random drops by their texts, and count wrong ones
    ///
    /// Each is compared with the document that it repeats; wrong are those less similar than --min-similarity, or
    /// than 0.8 where texts do not decide. Of documents in the
    /// archive, the texts are those of --base-text.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = DECISIONS)]
    pub audit: Option<u32>,
    /// Refuse to drop more than this share, from 0 to 1
    ///
    /// Of all documents, or of those of a source that has ten or more. The run then ends with exit code 65, before anything is
    /// published.
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
    /// End with exit code 65, before anything is published, if a document or a file of the batch is not compared
    #[arg(long)]
    pub strict: bool,
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
    /// Largest distance of a pair, in bits of 64 [default: see --profile]
    ///
    /// From 0 to 16. Sharp archives, and texts without an archive, have 7; others 3.
    #[arg(long, short = 'k', value_name = "K", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub max_distance: Option<u32>,
    /// Also find pairs within the batch (the default)
    #[arg(long, overrides_with = "no_within")]
    pub within: bool,
    /// Do not find pairs within the batch
    #[arg(long, overrides_with = "within")]
    pub no_within: bool,
    /// Commit the batch to the archive, as the day of --day
    ///
    /// All documents, or with `--append kept` only those that are kept. If the archive has decisions, it gets those of this batch.
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
    /// Date of the batch; or yesterday, today, from-records
    ///
    /// In UTC. It replaces {day} in --new, --resume and the paths of all outputs. from-records: the day on which the documents of
    /// WARC files were fetched, which must be one; the run reads the files twice, and {day} cannot be used.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub day: Option<DaySource>,
    /// Name of the batch, if its day has several: each is committed once, and is compared with those before it. It replaces {batch}
    /// in paths
    #[arg(long = "batch", value_name = "NAME", requires = "day")]
    pub batch_name: Option<BatchName>,
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
    pub pipe: PipeArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    #[command(flatten)]
    pub spec: SpecArgs,
    #[command(flatten)]
    pub verify: VerifyArgs,
}

/// Which pairs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PairRows {
    /// Each pair of documents
    All,
    /// Of documents with equal fingerprints, and equal sketches where these are compared, one row each, with the first of them; only
    /// the first has pairs with other documents
    Classes,
}

/// Which captures of a document count, if their contents differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum UpdateRule {
    /// Both
    Both,
    /// The new one; with --append, later days no longer compare with the old one
    KeepNew,
    /// The old one: the new one is dropped
    KeepOld,
    /// Both, and the ids of the archive are not read to say which documents have another content
    Ignore,
}

impl From<UpdateRule> for OnUpdate {
    fn from(rule: UpdateRule) -> Self {
        match rule {
            UpdateRule::Both | UpdateRule::Ignore => Self::Both,
            UpdateRule::KeepNew => Self::KeepNew,
            UpdateRule::KeepOld => Self::KeepOld,
        }
    }
}

/// Options of the verification of pairs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Verification")]
pub struct VerifyArgs {
    /// Compare the documents of each pair, and drop pairs below --min-similarity [default: see --profile]
    ///
    /// The similarity of each pair is written.
    #[arg(long, value_name = "MEASURE", value_parser = choice::<VerifyBy>(None))]
    pub verify: Option<VerifyBy>,
    /// Least similarity, from 0 to 1 [default: of the archive, or 0.8 and by sketch 0.755]
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
        let needing = [
            ("--append", self.append.is_some()),
            ("--no-within", self.no_within),
        ];
        if let (true, Some(option)) = (self.base.is_empty(), first_given(&needing)) {
            return Err(format!("{option} needs --base: the archive; see --help"));
        }
        if self.pairs == Some(PairRows::Classes) && self.max_hits_per_document.is_some() {
            return Err("--pairs classes and --max-hits-per-document both leave out pairs: take one of them".into());
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
        if let Some(least) = self.verify.min_similarity
            && !(0.0..=1.0).contains(&least)
        {
            // Whether it is needed depends on the archive.
            return Err(format!("--min-similarity {least} is not between 0 and 1"));
        }
        self.check_decisions()?;
        self.check_carried()?;
        // Files of sources are read later.
        self.preference(|path| Ok(path.to_owned()))?;
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
            // If the archive has decisions, --append decides about the batch.
            let given = [
                ("--prefer", !self.prefer.is_empty()),
                ("--pins", self.pins.is_some()),
                ("--on-update", self.on_update.is_some()),
            ];
            return match first_given(&given).filter(|_| self.append.is_none()) {
                None => Ok(()),
                Some(option) => Err(format!(
                    "{option} needs --decisions, --kept or --append; see --help"
                )),
            };
        }
        if self.on_update.is_some() && self.base.is_empty() {
            return Err("--on-update needs --base: updates are of documents of an archive".into());
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
            let of_updates = [UPDATE_OF, UPDATE_DAY];
            if LAYOUT.iter().chain(&of_updates).any(|own| own == name) {
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

    /// The order of preference; `read` returns the text of a file that ranks sources.
    pub fn preference(
        &self,
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Prefer, String> {
        let rules = self.prefer.iter().map(|rules| Prefer::parse(rules, &read));
        let all = rules.reduce(|before, rules| Ok(before?.then(rules?)));
        let all = all
            .transpose()
            .map_err(|error| format!("--prefer: {error}"));
        Ok(all?.unwrap_or_default())
    }

    /// The files that rank sources.
    pub fn preference_files(&self) -> impl Iterator<Item = &str> {
        let rules = self.prefer.iter();
        rules.filter_map(|rules| Some(rules.rsplit_once(FILE_OF_SOURCES)?.1))
    }

    /// What the options say about the comparison.
    pub fn compare(&self) -> CompareOptions {
        CompareOptions {
            profile: self.profile,
            max_distance: self.max_distance,
            verify: self.verify.verify,
            min_similarity: self.verify.min_similarity,
            base_text: self.verify.base_text.clone(),
            audits: self.audit.is_some(),
        }
    }

    /// The paths of the batch, given as NEW or by --new.
    pub fn batch(&self) -> &[String] {
        either(&self.documents, &self.new)
    }

    /// `path` with `{day}` replaced by the date of --day, and `{batch}` by the name of --batch.
    pub fn with_day(&self, option: &str, path: &str) -> Result<String, String> {
        let placeholders = path
            .split('{')
            .skip(1)
            .filter_map(|rest| rest.split_once('}'));
        let is_word =
            |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        let mut unknown = placeholders.map(|(name, _)| name).filter(is_word);
        if let Some(name) = unknown.find(|name| !["day", "batch"].contains(name)) {
            return Err(format!(
                "{{{name}}} in {option}: the placeholders are {DAY} and {BATCH}"
            ));
        }
        let path = &match (path.contains(BATCH), self.batch_name) {
            (true, None) => return Err(format!("{BATCH} in {option} needs --batch")),
            (_, name) => path.replace(BATCH, &name.unwrap_or_default().to_string()),
        };
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
