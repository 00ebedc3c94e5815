//! `dedup-job fingerprint`, and the append of a day without a search for duplicates.

use ::archive::{Append, Archive};
use chrono::NaiveDate;
use engine::day::{self, Day};
use engine::draft::Draft;
use engine::progress::Stage;
use engine::run::{Commit, Opened, open_day};
use serde::Serialize;
use simhash::Spec;

use super::{output, required};
use crate::args::{ColumnArgs, CommonArgs, FingerprintArgs, SpecArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json};

/// Where the fingerprints go.
#[derive(Debug, Clone)]
pub enum Target {
    /// A Parquet file.
    File(String),
    /// A day of an archive.
    Day(String, NaiveDate),
}

#[derive(Serialize)]
struct Report {
    documents: u64,
    without_fingerprint: u64,
    duplicate_ids: u64,
    invalid_utf8: u64,
    digest: String,
    spec: Spec,
    spec_digest: String,
    output: String,
    commit: Commit,
}

pub fn run(common: &CommonArgs, args: &FingerprintArgs) -> Result<(), Failure> {
    if args.input.is_empty() {
        return Err(Failure::Usage(
            "--input is needed: the documents; see --help".into(),
        ));
    }
    let target = match (&args.output, &args.append) {
        (Some(output), None) => Target::File(output.clone()),
        (None, Some(archive)) => {
            Target::Day(archive.clone(), required(args.day, "--day YYYY-MM-DD")?)
        }
        _ => {
            return Err(Failure::Usage(
                "either --output FILE or --append DIR is needed; see --help".into(),
            ));
        }
    };
    fingerprint(common, &args.input, &args.columns, &args.spec, &target)
}

/// Fingerprints `input` into `target`.
pub fn fingerprint(
    common: &CommonArgs,
    input: &[String],
    columns: &ColumnArgs,
    spec: &SpecArgs,
    target: &Target,
) -> Result<(), Failure> {
    let (day, commit) = process::run(common, async |process: &Process| {
        let Process {
            context,
            resources,
            scratch,
        } = process;
        let progress = &resources.progress;
        let stores = process.stores();
        let (archive, kept) = match target {
            Target::File(path) => {
                let inputs: Vec<&str> = input.iter().map(String::as_str).collect();
                let place = output(stores, "--output", path, &inputs).await?;
                (None, Some(Draft::new(&place, scratch.path())?))
            }
            Target::Day(dir, _) => (Some(Archive::open(&stores.locate(dir)?).await?), None),
        };
        let wanted = spec.wanted(stores).await?;
        let opened = archive.map(|archive| Opened::Archive(Box::new(archive)));
        let columns = columns.columns();
        let (documents, recipe, id_type) =
            open_day(context, input, &columns, opened.as_ref(), &wanted).await?;
        progress.enter(Stage::Fingerprint);
        let path = kept.as_ref().map_or_else(
            || scratch.path().join("fingerprints.parquet"),
            |draft| draft.path().to_owned(),
        );
        let rows = day::rows(context, &documents, &recipe, id_type, progress)?;
        let given = documents.given();
        let day = day::write(rows, given, recipe.spec(), id_type, &path).await?;
        progress.enter(Stage::Commit);
        let commit = match (opened, target) {
            (Some(Opened::Archive(mut archive)), Target::Day(_, date)) => {
                match archive.append(*date, &day.file).await? {
                    Append::Committed(version) => Commit::Committed(version),
                    Append::AlreadyThere | Append::Overtaken => Commit::AlreadyThere,
                }
            }
            _ => Commit::NotAsked,
        };
        if let Some(draft) = kept {
            draft.publish().await?;
        }
        Ok((day, commit))
    })?;
    report(common, target, &day, commit)
}

fn report(common: &CommonArgs, target: &Target, day: &Day, commit: Commit) -> Result<(), Failure> {
    let output = match target {
        Target::File(path) => path.clone(),
        Target::Day(dir, _) => dir.clone(),
    };
    let file = &day.file;
    if common.json {
        return print_json(&Report {
            documents: file.rows,
            without_fingerprint: file.without_fingerprint,
            duplicate_ids: day.duplicate_ids,
            invalid_utf8: day.invalid_utf8,
            digest: file.digest.clone(),
            spec: file.spec.clone(),
            spec_digest: file.spec.digest(),
            output,
            commit,
        });
    }
    if common.quiet {
        return Ok(());
    }
    let outcome = match (target, commit) {
        (Target::Day(_, date), Commit::Committed(version)) => {
            format!(", day {date}, committed as version {version}")
        }
        (Target::Day(_, date), _) => {
            format!(", day {date}, was committed already; the archive is unchanged")
        }
        (Target::File(_), _) => String::new(),
    };
    print(&format!(
        "{output}{outcome}: {} documents, {} without a fingerprint, {} repeated ids, {} not UTF-8\n",
        count(file.rows),
        count(file.without_fingerprint),
        count(day.duplicate_ids),
        count(day.invalid_utf8)
    ))
}
