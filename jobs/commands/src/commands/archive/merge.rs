//! `dedup-job archive append DIR --input ARCHIVE`: the days of other archives, with their decisions.

use std::sync::atomic::Ordering;

use ::archive::{Archive, ArchiveError, Merge, Merged};
use chrono::NaiveDate;
use engine::progress::Stage;
use engine::run::DaySource;

use crate::args::CommonArgs;
use crate::exit::{Failure, usage};
use crate::printing::{count, print_json, print_summary};
use crate::process::{self, Process};

/// Whether the inputs are archives.
///
/// # Errors
/// If only some of them are.
pub(super) fn are_archives(common: &CommonArgs, input: &[String]) -> Result<bool, Failure> {
    let quiet = &CommonArgs {
        quiet: true,
        ..common.clone()
    };
    let archives = process::run(quiet, async |process: &Process| {
        let mut archives = Vec::new();
        for path in input {
            let location = process.locate(path)?;
            archives.push(match Archive::is_at(&location).await {
                // A store may refuse to list what begins like a pattern.
                Err(_) if path.contains(['*', '?', '[']) => false,
                is_archive => is_archive?,
            });
        }
        Ok(archives)
    })?;
    let number = archives.iter().filter(|is_archive| **is_archive).count();
    match archives.iter().position(|is_archive| !is_archive) {
        Some(other) if number > 0 => usage(format!(
            "--input {}: archives are merged by themselves, and this is none",
            input[other]
        )),
        _ => Ok(number > 0),
    }
}

/// Copies the days of the archives `input` to the archive at `dir`: all, or only `day`.
pub(super) fn run(
    common: &CommonArgs,
    dir: &str,
    input: &[String],
    day: Option<DaySource>,
) -> Result<(), Failure> {
    let day = match day {
        None => None,
        Some(DaySource::Date(day)) => Some(day),
        Some(DaySource::Records) => {
            return usage("--day from-records is for WARC files; the days of an archive are known");
        }
    };
    let merged = process::run(common, async |process: &Process| {
        merge(process, dir, input, day).await
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "archive": dir,
            "days": merged.days,
            "days_already_there": merged.there,
            "fingerprints": merged.rows,
            "version": merged.version,
        }));
    }
    let there = match merged.there {
        0 => String::new(),
        1 => "; 1 day was there already".to_owned(),
        days => format!("; {} days were there already", count(days)),
    };
    print_summary(
        common,
        &match merged.version {
            None => format!("{dir}: nothing to merge{there}\n"),
            Some(version) => format!(
                "{dir}: {} merged with their decisions, {} fingerprints; version {version}{there}\n",
                days(merged.days),
                count(merged.rows)
            ),
        },
    )
}

fn days(number: u64) -> String {
    match number {
        1 => "1 day".to_owned(),
        number => format!("{} days", count(number)),
    }
}

async fn merge(
    process: &Process,
    dir: &str,
    input: &[String],
    day: Option<NaiveDate>,
) -> Result<Merged, Failure> {
    let progress = &process.resources.progress;
    let mut archive = Archive::open(&process.locate(dir)?).await?;
    let mut plans: Vec<(Archive, Merge)> = Vec::new();
    let place = process.locate(dir)?;
    for path in input {
        let location = process.locate(path)?;
        if location.is(&place) {
            return usage(format!("--input {path} is the archive itself"));
        }
        let other = Archive::open(&location).await?;
        let plan = archive.plan_merge(&other, day).await?;
        for (before, planned) in &plans {
            if let Some(day) = plan.conflict(planned) {
                return Err(Failure::Archive(ArchiveError::CannotMerge {
                    path: before.location().to_string(),
                    from: other.location().to_string(),
                    reason: format!("both have day {day}, with other documents or decisions"),
                }));
            }
        }
        plans.push((other, plan));
    }
    progress.enter(Stage::Commit);
    let mut all = Merged::default();
    for (number, (other, checked)) in plans.into_iter().enumerate() {
        let plan = match number {
            0 => checked,
            // The archives before it may have brought some of its days.
            _ => archive.plan_merge(&other, day).await?,
        };
        let count = |rows: usize| {
            progress.steps.fetch_add(rows as u64, Ordering::Relaxed);
        };
        let merged = archive.merge(&other, plan, count).await?;
        all.days += merged.days;
        all.there += merged.there;
        all.rows += merged.rows;
        all.version = merged.version.or(all.version);
    }
    Ok(all)
}
