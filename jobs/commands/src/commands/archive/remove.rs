//! `dedup-job archive remove`, and its file of ids.

use std::collections::{BTreeSet, HashSet};

use ::archive::{Archive, ArchiveError, DataFile, DayBatch, IdSet, IdType, RowsByFile};
use engine::progress::Stage;
use engine::work_items::days_since_epoch;
use serde::Serialize;

use crate::args::{CommonArgs, RemoveArgs};
use crate::commands::dropped::{Again, decide_again, decided};
use crate::exit::{Failure, usage};
use crate::printing::{count, date, print_json, print_summary, visible};
use crate::process::{self, Process};

pub(super) fn run(common: &CommonArgs, args: &RemoveArgs) -> Result<(), Failure> {
    let (dir, day, batch, repair) = (&args.dir, args.day, args.batch, args.repair);
    let (removed, asked, later, repaired, has_kept) =
        process::run(common, async |process: &Process| {
            let mut archive = Archive::open(&process.locate(dir)?).await?;
            let ids = match &args.ids {
                Some(path) => Some(read_ids(process, path, archive.id_type()).await?),
                None => None,
            };
            let has_kept = archive.has_kept();
            if repair && !has_kept {
                return usage(format!(
                    "{dir} has no decisions, so --repair has nothing to do"
                ));
            }
            let (later, has_only_kept) = match day {
                Some(day) if has_kept => archive.later_batches(day, batch)?,
                _ => (BTreeSet::new(), archive.has_days_of_kept()?),
            };
            let later: Vec<String> = later.iter().map(DayBatch::to_string).collect();
            let originals = if repair {
                Some(with_original(process, dir, &archive).await?)
            } else {
                None
            };
            process.resources.progress.enter(Stage::Commit);
            let (removed, asked) = match (day, ids) {
                (Some(day), _) => (archive.remove_day(day, batch).await?, None),
                (None, Some(ids)) => (archive.remove_ids(&ids).await?, Some(ids.len() as u64)),
                (None, None) => {
                    return usage("--day or --ids is required; see --help");
                }
            };
            let repaired = match originals {
                // What was not removed dropped nothing.
                Some(mut originals) if removed.version.is_some() => {
                    originals.removed = removed.version;
                    process.resources.progress.begin_repair();
                    Some(repaired(process, dir, archive, &originals, has_only_kept).await?)
                }
                Some(_) => Some(Repaired::default()),
                None => None,
            };
            Ok((removed, asked, later, repaired, has_kept))
        })?;
    if common.json {
        return print_json(&serde_json::json!({
            "archive": dir,
            "removed_fingerprints": removed.documents,
            "ids_asked": asked,
            "ids_not_found": asked.map(|asked| asked - removed.ids),
            "first_ids_not_found": asked.map(|_| &removed.not_found),
            "days": removed.days,
            "rewritten_files": removed.files,
            "written_files": removed.written,
            "version": removed.version,
            "later_days": later,
            "repaired": repaired,
        }));
    }
    let mut text = match removed.version {
        None => format!("{dir}: nothing to remove\n"),
        Some(version) => format!(
            "{dir}: {} fingerprints of {} days removed; version {version}. `dedup-job archive vacuum {dir}` deletes their bytes after 7 days\n",
            count(removed.documents),
            count(removed.days),
        ),
    };
    if let (Some(repaired), Some(_)) = (&repaired, removed.version) {
        text.push_str(&repaired.text());
    } else if removed.version.is_some() && !later.is_empty() {
        text += &format!(
            "  later days were decided with these documents: what they dropped as duplicates of them stays dropped; --repair, given with the removal, keeps it. To decide anew now, remove these days, too, and run them again in order: {}\n",
            later.join(", ")
        );
    } else if removed.version.is_some() && asked.is_some() && has_kept {
        text.push_str(
            "  what was dropped as a duplicate of these documents stays dropped; --repair, given with the removal, keeps it\n",
        );
    }
    if let Some(asked) = asked {
        text += &format!(
            "  {} of {} ids were found\n",
            count(removed.ids),
            count(asked)
        );
        let named: Vec<String> = removed
            .not_found
            .iter()
            .map(|id| id.escape_debug().to_string())
            .collect();
        if !named.is_empty() {
            let more = match asked - removed.ids - named.len() as u64 {
                0 => String::new(),
                more => format!(" and {} more", count(more)),
            };
            text += &format!("  not found: {}{more}\n", named.join(", "));
        }
    }
    print_summary(common, &text)
}

/// Documents that are kept now.
#[derive(Default, Serialize)]
struct Repaired {
    documents: u64,
    version: Option<u64>,
    /// The first of them: the ids and the days.
    first: Vec<(String, Option<String>)>,
    /// Whether days were decided later of which the archive has only the kept documents: what they dropped cannot be kept now.
    has_days_of_kept: bool,
}

/// The most documents that are named.
const NAMED: usize = 1000;
/// How often a repair is tried if other programs change the archive.
const ATTEMPTS: usize = 20;
/// The most that are named for people.
const SHOWN: usize = 10;

impl Repaired {
    /// See [`repaired`].
    async fn add(
        &mut self,
        process: &Process,
        dir: &str,
        archive: &mut Archive,
        originals: &Originals,
    ) -> Result<(), Failure> {
        let had_one = |file: &DataFile, id: &str| {
            (file.base_version >= Some(originals.version) && file.base_version < originals.removed)
                || originals
                    .with
                    .contains(&(file.day.map(days_since_epoch), id.to_owned()))
        };
        for decided in decided(archive).await? {
            let (mut rows, mut found) = (RowsByFile::new(), Vec::new());
            let each = |again: Again| {
                if again.of.is_none() {
                    let (file, row) = again.place;
                    rows.entry(file).or_default().push(row);
                    found.push((again.id, again.day.map(date)));
                }
            };
            decide_again(process, (dir, archive), decided, had_one, true, each).await?;
            if !rows.is_empty() {
                rows.values_mut().for_each(|rows| rows.sort_unstable());
                self.version = Some(archive.record_kept(&rows).await?);
                self.documents += found.len() as u64;
                found.truncate(NAMED - self.first.len());
                self.first.extend(found);
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        let without = if self.has_days_of_kept {
            "  repair: of later days with only kept documents, the archive does not have what they dropped\n"
        } else {
            ""
        };
        let Some(version) = self.version else {
            return format!("  repair: nothing was dropped for these documents alone\n{without}");
        };
        let first = self.first.iter().take(SHOWN).map(|(id, day)| {
            let day = day
                .as_ref()
                .map_or(String::new(), |day| format!(" of {day}"));
            format!("{}{day}", visible(id))
        });
        let first: Vec<String> = first.collect();
        let more = match self.documents - first.len() as u64 {
            0 => String::new(),
            more => format!(" and {} more", count(more)),
        };
        format!(
            "  repair: {} documents that were dropped are kept now, version {version}: {}{more}\n{without}",
            count(self.documents),
            first.join(", ")
        )
    }
}

/// The dropped documents that may be kept once something is removed.
struct Originals {
    /// By day and id: those that are duplicates of something that is kept.
    with: HashSet<(Option<i32>, String)>,
    /// The version of the archive then. What was committed between it and the removal was perhaps dropped for what is removed.
    version: u64,
    /// The version of the removal.
    removed: Option<u64>,
}

async fn with_original(
    process: &Process,
    dir: &str,
    archive: &Archive,
) -> Result<Originals, Failure> {
    let (mut with, version) = (HashSet::new(), archive.version());
    for decided in decided(archive).await? {
        let each = |again: Again| {
            if again.of.is_some() {
                with.insert((again.day, again.id));
            }
        };
        decide_again(process, (dir, archive), decided, |_, _| true, false, each).await?;
    }
    Ok(Originals {
        with,
        version,
        removed: None,
    })
}

/// Keeps each dropped document that was a duplicate of a kept one before the removal (`originals`), and is of none now. Both are
/// found by the settings with which its day was decided. Documents of earlier commits are kept before later ones are looked at.
async fn repaired(
    process: &Process,
    dir: &str,
    mut archive: Archive,
    originals: &Originals,
    has_days_of_kept: bool,
) -> Result<Repaired, Failure> {
    let mut repaired = Repaired {
        has_days_of_kept,
        ..Repaired::default()
    };
    let mut attempts = 0;
    while let Err(failure) = repaired.add(process, dir, &mut archive, originals).await {
        attempts += 1;
        // Another program changed the files of these documents meanwhile: what is kept by now is not looked at again.
        let is_busy = matches!(failure, Failure::Archive(ArchiveError::Busy { .. }));
        if !is_busy || attempts == ATTEMPTS {
            tracing::warn!(
                "{dir}: the removal is committed; not all documents that were dropped for what it removed are kept"
            );
            return Err(failure);
        }
        archive.reopen().await?;
    }
    Ok(repaired)
}

/// Reads a file of ids: one per line, or one JSON value per line.
async fn read_ids(process: &Process, path: &str, id_type: IdType) -> Result<IdSet, Failure> {
    let bytes = process.locate(path)?.read().await?;
    let bad_data = |place: String, reason: String| {
        Failure::Archive(ArchiveError::bad_data(format!("{path}, {place}"), reason))
    };
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        bad_data(format!("line {line}"), "not UTF-8".into())
    })?;
    let ends_in = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if ends_in(&[".csv", ".parquet", ".gz", ".zst"]) {
        return usage(format!(
            "--ids {path}: the file must be a text file with one id per line, or a .jsonl file"
        ));
    }
    let is_json = ends_in(&[".jsonl", ".ndjson", ".json"]);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut ids: Vec<String> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() {
            continue;
        }
        if !is_json {
            ids.push(line.to_owned());
            continue;
        }
        let value = serde_json::from_str(line).map_err(|error| {
            let place = format!("line {number}, column {}", error.column());
            bad_data(place, json_message(&error))
        })?;
        ids.push(json_id(value).map_err(|reason| bad_data(format!("line {number}"), reason))?);
    }
    let set = IdSet::parse(ids.iter().map(String::as_str), id_type);
    set.map_err(|id| {
        Failure::Archive(ArchiveError::bad_data(
            path,
            format!("{id:?} is not of type {id_type}, the type of the archive's ids"),
        ))
    })
}

/// The message of a JSON error, without its line and column.
fn json_message(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = error.to_string();
    message.strip_suffix(&place).unwrap_or(&message).to_owned()
}

/// The id in a JSON value: a string, a number, or an object with one of these as `id`.
fn json_id(value: serde_json::Value) -> Result<String, String> {
    let value = match value {
        serde_json::Value::Object(mut object) => object
            .remove("id")
            .ok_or_else(|| "the object has no \"id\"".to_owned())?,
        value => value,
    };
    match value {
        serde_json::Value::String(id) => Ok(id),
        serde_json::Value::Number(id) if id.is_i64() || id.is_u64() => Ok(id.to_string()),
        other => Err(format!(
            "an id is a string or a 64-bit integer, not {other}"
        )),
    }
}
