//! `dedup-job fingerprint`; also `archive append`, which commits a day without searching for pairs.

use std::path::Path;

use ::archive::{Append, Archive, DayBatch, Existing, IdType, Snapshot};
use documents::ColumnsRead;
use documents::crawl_counts::CrawlRecordCounts;
use documents::read_counts::Notes;
use documents::{Columns, Documents};
use engine::fingerprint::{self, Beside, FingerprintedBatch, ShortDocuments};
use engine::output::OutputKind;
use engine::progress::Stage;
use engine::run::{Commit, DaySource, OpenedArchive, RunLimits, open_batch, remember_columns};
use engine::template::BatchTemplates;
use engine::{Profile, Recipe};
use serde::Serialize;
use simhash::Spec;
use storage::Draft;

use super::output_checks::Outputs;
use super::required;
use crate::args::{CommonArgs, FingerprintArgs};
use crate::exit::{Failure, usage};
use crate::printing::{
    self, count, crawl_records, print_json, print_summary, short_documents, some,
    without_fingerprint,
};
use crate::process::{self, Process};
use crate::spooled::spooled;

/// The destination of fingerprints.
enum Target<'a> {
    File(&'a str),
    /// A day of the archive at this place.
    Day(&'a str, DaySource),
}

#[derive(Serialize)]
struct Report {
    documents: u64,
    without_fingerprint: u64,
    duplicate_ids: u64,
    invalid_utf8: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    short: Option<ShortDocuments>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crawl_records: Option<CrawlRecordCounts>,
    columns: Vec<ColumnsRead>,
    #[serde(skip_serializing_if = "Notes::is_empty")]
    notes: Notes,
    digest: String,
    spec: Spec,
    spec_digest: String,
    output: String,
    commit: Commit,
}

pub fn run(common: &CommonArgs, args: &FingerprintArgs) -> Result<(), Failure> {
    let target = target(args)?;
    let (made, k, day) = process::run(common, async |process: &Process| {
        let input = &spooled(process, args.paths().to_vec(), Some(args.pipe)).await?;
        let (context, scratch) = (&process.context, process.scratch.path());
        let progress = &process.resources.progress;
        let stores = process.stores();
        let (archive, draft) = match target {
            Target::File(path) => {
                let inputs = input.iter().map(String::as_str);
                let outputs = Outputs {
                    stores,
                    inputs: inputs.chain(args.spec.table_files()).collect(),
                    overwrite: args.overwrite,
                };
                let place = outputs
                    .check_parquet("--output", path, OutputKind::Fingerprints)
                    .await?;
                let base = match &args.base {
                    Some(base) => Some(Archive::open(&stores.locate(base)?).await?),
                    None => None,
                };
                (base, Some(Draft::new(&place, scratch)?))
            }
            Target::Day(dir, _) => (Some(Archive::open(&stores.locate(dir)?).await?), None),
        };
        let options = args.spec.spec_options(stores).await?;
        let opened = match archive {
            Some(archive) => OpenedArchive::Archive(Box::new(archive)),
            None => OpenedArchive::Plain(Snapshot::none()),
        };
        let columns = Columns {
            source: args.source.clone(),
            with_sources: true,
            spooled: Some(scratch.to_owned()),
            ..args.columns.columns()
        };
        let (mut documents, recipe, id_type) =
            open_batch(context, input, &columns, &opened, &options, Profile::Paper).await?;
        documents.cut(context, process.threads()).await?;
        let day = match target {
            Target::Day(_, day) => Some(DayBatch {
                day: day.resolve(context, &mut documents).await?,
                name: args.batch_name.unwrap_or_default(),
            }),
            Target::File(_) => None,
        };
        let (batch, templates) = loop {
            let (archive, path) = (opened.archive(), draft.as_ref().map(Draft::path));
            let form = (id_type, &recipe);
            match make(process, archive, day, &mut documents, form, path).await {
                Ok(made) => break made,
                Err(error) if documents.uncut(error.wrong_cut()) => {}
                Err(error) => return Err(error.into()),
            }
            progress.reset_documents();
        };
        if day.is_some() {
            let limits = RunLimits {
                allow_empty: args.allow_empty,
                ..RunLimits::default()
            };
            limits.check_batch(documents.given(), batch.file.rows, true)?;
        }
        progress.enter(Stage::Commit);
        // That of runs with the fingerprints.
        let k = match opened.archive() {
            Some(archive) => archive.run_defaults().max_distance,
            None => Profile::Paper.max_distance(),
        };
        let commit = match (opened, day) {
            (OpenedArchive::Archive(mut archive), Some(day)) => {
                let is_first_day = archive.files()?.is_empty();
                let remember = async |archive: &Archive| match &templates {
                    Some(templates) => {
                        let memory = templates.remember(archive, day.day, batch.file.rows);
                        Ok::<_, engine::EngineError>(Some(memory.await?))
                    }
                    None => Ok(None),
                };
                let appended = archive.append_with(day, &batch.file, Existing::Keep, remember);
                match appended.await? {
                    Append::Committed(version) => {
                        if is_first_day {
                            remember_columns(&mut archive, &columns).await;
                        }
                        Commit::Committed(version)
                    }
                    Append::AlreadyThere | Append::Overtaken => Commit::AlreadyThere,
                }
            }
            _ => Commit::NotAsked,
        };
        if let Some(draft) = draft {
            draft.publish().await?;
        }
        let file = &batch.file;
        let made = Report {
            documents: file.rows,
            without_fingerprint: file.without_fingerprint,
            duplicate_ids: batch.duplicate_ids,
            invalid_utf8: batch.invalid_utf8(),
            short: batch.short_documents(&recipe, k),
            crawl_records: batch.read.crawl_records.clone(),
            columns: documents.columns_read(),
            notes: batch.notes(documents.skipped()),
            digest: file.day_digest.clone(),
            spec: file.spec.clone(),
            spec_digest: file.spec.digest(),
            output: match target {
                Target::File(place) | Target::Day(place, _) => place.to_owned(),
            },
            commit,
        };
        Ok((made, k, day))
    })?;
    report(common, &made, k, day)
}

/// Where the options put the fingerprints.
fn target(args: &FingerprintArgs) -> Result<Target<'_>, Failure> {
    if args.paths().is_empty() {
        return usage(
            "the documents are missing: name them after `fingerprint`, or by --input; see --help",
        );
    }
    match (&args.output, &args.append) {
        (Some(_), None) if args.day.is_some() => {
            usage("--day needs --append: a file of fingerprints has no day")
        }
        (Some(output), None) => Ok(Target::File(output)),
        (None, Some(archive)) => {
            let day = required(args.day, "--day YYYY-MM-DD")?;
            Ok(Target::Day(archive, day))
        }
        _ => usage("--output FILE or --append DIR is required; see --help"),
    }
}

/// Finds the templates of the documents, and makes the fingerprints of their texts without them, in the file `output`; without one,
/// they are for this process alone.
async fn make(
    process: &Process,
    archive: Option<&Archive>,
    day: Option<DayBatch>,
    documents: &mut Documents,
    (id_type, recipe): (IdType, &Recipe),
    output: Option<&Path>,
) -> engine::Result<(FingerprintedBatch, Option<BatchTemplates>)> {
    let (context, scratch) = (&process.context, process.scratch.path());
    let progress = &process.resources.progress;
    documents.leave_out(None);
    let batch = engine::template::Batch {
        context,
        documents,
        recipe,
        id_type,
        archive,
        day,
        existing: Existing::Keep,
    };
    let templates = batch.find(None).await?;
    let mut recipe = recipe.clone();
    if let Some(templates) = &templates {
        templates.leave_out(documents, &mut recipe);
    }
    progress.enter(Stage::Fingerprint);
    let beside = Beside::Nothing;
    let rows = fingerprint::local_rows(context, documents, &recipe, id_type, beside, progress)?;
    let given = documents.given();
    let form = (id_type, recipe.spec());
    let written = fingerprint::write_sorted(context, rows, given, form, output, scratch);
    let mut made = written.await?;
    if let Some(templates) = &templates {
        made.file.day_digest.clone_from(&templates.digest);
    }
    Ok((made, templates))
}

/// Prints what was made; `k` is the largest distance of a pair, to which `short` refers, and `day` that of the archive.
fn report(
    common: &CommonArgs,
    made: &Report,
    k: u32,
    day: Option<DayBatch>,
) -> Result<(), Failure> {
    if common.json {
        return print_json(made);
    }
    let outcome = match (day, made.commit) {
        (Some(day), Commit::Committed(version)) => {
            format!(", day {day}, committed as version {version}")
        }
        (Some(day), _) => {
            format!(", day {day}, was committed already; the archive is unchanged")
        }
        (None, _) => String::new(),
    };
    let short = made.short.map(|short| short_documents(short, k));
    let short = short.unwrap_or_default();
    let records = made.crawl_records.as_ref();
    let records = records.map_or(String::new(), crawl_records);
    let columns = printing::columns(&made.columns);
    let notes = printing::notes(&made.notes);
    print_summary(
        common,
        &format!(
            "{columns}{}{outcome}: {} documents{}\n{records}{notes}{short}",
            made.output,
            count(made.documents),
            some(&[
                (
                    made.without_fingerprint,
                    without_fingerprint(!made.spec.short_texts.is_unmarked()),
                ),
                (made.duplicate_ids, "repeated ids"),
                (made.invalid_utf8, "not UTF-8"),
            ])
        ),
    )
}
