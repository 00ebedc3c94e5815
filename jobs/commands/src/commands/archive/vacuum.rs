//! `dedup-job archive vacuum`.

use std::fmt::Write as _;

use ::archive::{Archive, Vacuum};

use crate::args::CommonArgs;
use crate::exit::Failure;
use crate::printing::{count, print, print_json};
use crate::process::{self, Process};

pub(super) fn run(common: &CommonArgs, dir: &str, vacuum: Vacuum) -> Result<(), Failure> {
    let vacuumed = process::run(common, async |process: &Process| {
        let mut archive = Archive::open(&process.locate(dir)?).await?;
        Ok(archive.vacuum(vacuum).await?)
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "archive": dir,
            "dry_run": vacuum.dry_run,
            "older_than_seconds": vacuum.older_than.as_secs(),
            "files": vacuumed.files,
        }));
    }
    if common.quiet {
        return Ok(());
    }
    let mut text = format!(
        "{dir}: {} files {}\n",
        count(vacuumed.files.len() as u64),
        match vacuum.dry_run {
            true => "would be deleted",
            false => "deleted",
        }
    );
    for file in &vacuumed.files {
        let _ = writeln!(text, "  {file}");
    }
    print(&text)
}
