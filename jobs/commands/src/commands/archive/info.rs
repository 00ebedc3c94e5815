//! `dedup-job archive info`, and the same summary after `create`.

use ::archive::{Archive, ArchiveError, DayInfo, Info, RunDefaults, Verified, template_memory};
use serde::Serialize;
use template::Memory;

use crate::args::CommonArgs;
use crate::exit::Failure;
use crate::printing::{count, print, print_json, size};
use crate::process::{self, Process};

pub(super) fn run(common: &CommonArgs, dir: &str, verify: bool) -> Result<(), Failure> {
    let (info, verified) = process::run(common, async |process: &Process| {
        let archive = Archive::open(&process.locate(dir)?).await?;
        let verified = if verify {
            archive.model().await?;
            Some(archive.verify().await?)
        } else {
            None
        };
        Ok((Known::read(&archive).await?, verified))
    })?;
    print_info(common, dir, &info, verified)
}

/// What an archive holds, and what it remembers of templates.
pub(super) struct Known {
    info: Info,
    templates: Option<TemplateFacts>,
}

/// What is remembered of the templates of sources.
#[derive(Serialize)]
struct TemplateFacts {
    sources: usize,
    passages: usize,
    bytes: usize,
}

impl Known {
    pub(super) async fn read(archive: &Archive) -> Result<Self, Failure> {
        let templates = match archive.template_memory().await? {
            Some(version) => match template_memory::read(archive.location(), version).await {
                Ok(file) => {
                    let memory = Memory::from_bytes(&file).map_err(|error| {
                        Failure::Data(format!("{}: {error}", archive.location()))
                    })?;
                    Some(TemplateFacts {
                        sources: memory.sources.len(),
                        passages: memory.template_passages(),
                        bytes: file.len(),
                    })
                }
                Err(error @ ArchiveError::NoTemplateMemory { .. }) => {
                    tracing::warn!("{error}");
                    None
                }
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        Ok(Self {
            info: archive.info()?,
            templates,
        })
    }
}

/// Prints what an archive contains, and how many of its files were verified.
pub(super) fn print_info(
    common: &CommonArgs,
    dir: &str,
    info: &Known,
    verified: Option<Verified>,
) -> Result<(), Failure> {
    if common.json {
        return print_json(&as_json(dir, info, verified));
    }
    print(&as_text(dir, info, verified))
}

/// The numbers of fingerprints, files and bytes of all days together.
fn totals(info: &Info) -> (u64, u64, u64) {
    let all = info.days.values().chain([&info.without_day]);
    all.fold((0, 0, 0), |sum, day| {
        (sum.0 + day.rows, sum.1 + day.files, sum.2 + day.bytes)
    })
}

fn as_json(dir: &str, known: &Known, verified: Option<Verified>) -> serde_json::Value {
    let Known { info, templates } = known;
    let (rows, files, bytes) = totals(info);
    let days: serde_json::Map<String, serde_json::Value> = info
        .days
        .iter()
        .map(|(date, day)| {
            let mut facts = serde_json::json!({
                "fingerprints": day.rows, "files": day.files, "bytes": day.bytes,
            });
            if has_names(day) {
                let batches = day.batches.iter();
                let batches = batches.map(|(name, rows)| (name.to_string(), (*rows).into()));
                facts["batches"] = serde_json::Value::Object(batches.collect());
            }
            (date.to_string(), facts)
        })
        .collect();
    serde_json::json!({
        "archive": dir,
        "version": info.version,
        "id_type": info.id_type.to_string(),
        "decisions": info.has_kept,
        "runs": info.defaults,
        "templates": templates,
        "spec": info.spec,
        "spec_digest": info.spec.digest(),
        "fingerprints": rows,
        "files": files,
        "bytes": bytes,
        "days": days,
        "unwritable": info.unwritable,
        "verified_files": verified.map(|verified| verified.files),
        "files_without_checksum": verified.map(|verified| verified.without_checksum),
    })
}

/// Whether batches of a day have names.
fn has_names(day: &DayInfo) -> bool {
    day.batches.keys().any(|name| !name.is_empty())
}

/// The batches of a day, if they have names.
fn batches_text(day: &DayInfo) -> String {
    if !has_names(day) {
        return String::new();
    }
    let batches = day.batches.iter().map(|(name, rows)| {
        let name = if name.is_empty() {
            "without a name".to_owned()
        } else {
            name.to_string()
        };
        format!("{name} {}", count(*rows))
    });
    let batches: Vec<String> = batches.collect();
    format!("; batches: {}", batches.join(", "))
}

/// The settings of runs that an archive records, for people.
pub(super) fn defaults_text(defaults: &RunDefaults) -> String {
    let mut text = format!("k = {}", defaults.max_distance);
    match defaults.min_similarity {
        Some(least) => {
            text += &format!(", verified by sketches, similarity from {least}");
        }
        None => text.push_str(", not verified"),
    }
    let columns = [
        ("ids", &defaults.id_column),
        ("texts", &defaults.text_column),
        ("sources", &defaults.source_column),
    ];
    for (what, name) in columns {
        if let Some(name) = name {
            text += &format!(", {what} in column {name}");
        }
    }
    text
}

fn as_text(dir: &str, known: &Known, verified: Option<Verified>) -> String {
    let Known { info, templates } = known;
    let (rows, files, bytes) = totals(info);
    let mut text = String::new();
    text += &format!(
        "{dir}: version {}, {} fingerprints of {} days in {} files, {}\n",
        info.version,
        count(rows),
        info.days.len(),
        count(files),
        size(bytes)
    );
    let decisions = if info.has_kept {
        "; decisions: which documents were kept"
    } else {
        ""
    };
    text += &format!("  ids: {}{decisions}\n", info.id_type);
    text += &format!("  runs: {}\n", defaults_text(&info.defaults));
    text += &format!("  spec: {}\n", info.spec.to_json());
    if let Some(templates) = templates {
        text += &format!(
            "  templates: {} passages of {} sources, {}\n",
            count(templates.passages as u64),
            count(templates.sources as u64),
            size(templates.bytes as u64)
        );
    }
    let sizes = |day: &DayInfo| {
        let (rows, bytes) = (count(day.rows), size(day.bytes));
        format!("{rows} fingerprints, {} files, {bytes}", day.files)
    };
    for (date, day) in &info.days {
        text += &format!("  {date}: {}{}\n", sizes(day), batches_text(day));
    }
    if info.without_day.files > 0 {
        text += &format!("  without a day: {}\n", sizes(&info.without_day));
    }
    if let Some(features) = &info.unwritable {
        text += &format!(
            "  nothing can be committed: another program set features that this version does not write: {features}\n"
        );
    }
    if let Some(Verified {
        files,
        without_checksum,
    }) = verified
    {
        text += &match without_checksum {
            0 => format!(
                "  verified: the SHA-256 of all {} files matches the log\n",
                count(files)
            ),
            _ => format!(
                "  verified: the SHA-256 of {} files matches the log; {} files, which another program wrote, have none there: they can be read, but a changed bit in them may go unnoticed\n",
                count(files),
                count(without_checksum)
            ),
        };
    }
    text
}
