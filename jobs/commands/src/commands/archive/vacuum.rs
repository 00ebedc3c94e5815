//! `dedup-job archive vacuum`.

use std::time::Duration;

use ::archive::{Archive, Vacuum};
use engine::job::left_behind;

use crate::args::CommonArgs;
use crate::exit::{Failure, usage};
use crate::printing::{count, print_json, print_summary, size};
use crate::process::{self, Process};

/// Younger jobs may run.
const MIN_AGE: Duration = Duration::from_secs(24 * 3600);

/// Deletes jobs that were left behind.
pub(super) fn jobs(common: &CommonArgs, prefix: &str, vacuum: Vacuum) -> Result<(), Failure> {
    if vacuum.older_than < MIN_AGE && !vacuum.nothing_runs && !vacuum.dry_run {
        return usage(
            "--older-than of less than 24h could delete jobs that run: add --nothing-runs if none does",
        );
    }
    let left = process::run(common, async |process: &Process| {
        let stores = process.stores();
        let left = left_behind(stores, prefix, vacuum.older_than).await?;
        if !vacuum.dry_run {
            for job in &left {
                job.remove(stores).await?;
            }
        }
        Ok(left)
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "prefix": prefix,
            "dry_run": vacuum.dry_run,
            "older_than_seconds": vacuum.older_than.as_secs(),
            "jobs": left,
        }));
    }
    let (number, deleted) = (count(left.len() as u64), deleted(vacuum));
    let mut text = format!("{prefix}: {number} jobs {deleted}\n");
    for job in &left {
        let idle = Duration::from_secs(job.idle_seconds);
        text += &format!(
            "  {}: {} in {} objects, nothing written for {}\n",
            job.job,
            size(job.bytes),
            count(job.objects),
            humantime::format_duration(idle)
        );
    }
    print_summary(common, &text)
}

pub(super) fn run(common: &CommonArgs, dir: &str, vacuum: Vacuum) -> Result<(), Failure> {
    let files = process::run(common, async |process: &Process| {
        let mut archive = Archive::open(&process.locate(dir)?).await?;
        Ok(archive.vacuum(vacuum).await?)
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "archive": dir,
            "dry_run": vacuum.dry_run,
            "older_than_seconds": vacuum.older_than.as_secs(),
            "files": files,
        }));
    }
    let (number, deleted) = (count(files.len() as u64), deleted(vacuum));
    let mut text = format!("{dir}: {number} files {deleted}\n");
    for file in &files {
        text += &format!("  {file}\n");
    }
    print_summary(common, &text)
}

fn deleted(vacuum: Vacuum) -> &'static str {
    if vacuum.dry_run {
        "would be deleted"
    } else {
        "deleted"
    }
}
