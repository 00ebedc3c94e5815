//! `dedup-job archive compact`.

use ::archive::Archive;
use chrono::NaiveDate;
use engine::progress::Stage;

use crate::args::CommonArgs;
use crate::exit::Failure;
use crate::printing::{count, print_json, print_summary};
use crate::process::{self, Process};

pub(super) fn run(
    common: &CommonArgs,
    dir: &str,
    before: Option<NaiveDate>,
    rows_per_file: Option<u64>,
) -> Result<(), Failure> {
    let compacted = process::run(common, async |process: &Process| {
        let mut archive = Archive::open(&process.locate(dir)?).await?;
        if let Some(rows) = rows_per_file {
            archive = archive.with_file_rows(rows);
        }
        process.resources.progress.enter(Stage::Commit);
        Ok(archive.compact(before).await?)
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "archive": dir,
            "days": compacted.days,
            "merged_files": compacted.merged,
            "written_files": compacted.written,
            "fingerprints": compacted.rows,
            "skipped_files": compacted.skipped,
            "version": compacted.version,
        }));
    }
    let skipped = match compacted.skipped {
        0 => String::new(),
        some => format!(
            "  {} small files that other programs wrote stay: nothing says which commit their rows belong to\n",
            count(some)
        ),
    };
    let done = match compacted.version {
        None => format!("{dir}: nothing to merge\n"),
        Some(version) => format!(
            "{dir}: {} files of {} days merged into {}, {} fingerprints; version {version}. `dedup-job archive vacuum {dir}` deletes the old files after 7 days\n",
            count(compacted.merged),
            count(compacted.days),
            count(compacted.written),
            count(compacted.rows)
        ),
    };
    print_summary(common, &(done + &skipped))
}
