//! `dedup-job archive create | info | append | compact | vacuum`.

use std::fmt::Write as _;

use ::archive::{Archive, IdType, Info, Vacuum};
use chrono::NaiveDate;
use engine::progress::Stage;

use super::fingerprint::{Target, fingerprint};
use crate::args::{ArchiveCommand, CommonArgs, SpecArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json, size};

pub fn run(common: &CommonArgs, command: ArchiveCommand) -> Result<(), Failure> {
    match command {
        ArchiveCommand::Create { dir, id_type, spec } => create(common, &dir, id_type, &spec),
        ArchiveCommand::Info { dir, verify } => info(common, &dir, verify),
        ArchiveCommand::Append {
            dir,
            input,
            day,
            columns,
        } => fingerprint(
            common,
            &input,
            &columns,
            &SpecArgs::default(),
            &Target::Day(dir, day),
        ),
        ArchiveCommand::Compact {
            dir,
            before,
            rows_per_file,
        } => compact(common, &dir, before, rows_per_file),
        ArchiveCommand::Vacuum {
            dir,
            older_than,
            dry_run,
            nothing_runs,
        } => {
            let asked = Vacuum {
                older_than,
                dry_run,
                nothing_runs,
            };
            vacuum(common, &dir, asked)
        }
    }
}

fn create(common: &CommonArgs, dir: &str, id_type: IdType, spec: &SpecArgs) -> Result<(), Failure> {
    let info = process::run(common, async |process: &Process| {
        let (model, kept) = spec.wanted(process.stores()).await?.model_and_kept()?;
        let location = process.locate(dir)?;
        let archive = Archive::create(&location, id_type, model.spec(), &kept).await?;
        Ok(archive.info()?)
    })?;
    show(common, dir, &info, None)
}

fn info(common: &CommonArgs, dir: &str, verify: bool) -> Result<(), Failure> {
    let (info, verified) = process::run(common, async |process: &Process| {
        let archive = Archive::open(&process.locate(dir)?).await?;
        let verified = if verify {
            archive.model().await?;
            Some(archive.verify().await?)
        } else {
            None
        };
        Ok((archive.info()?, verified))
    })?;
    show(common, dir, &info, verified)
}

fn compact(
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
            "version": compacted.version,
        }));
    }
    if common.quiet {
        return Ok(());
    }
    print(&match compacted.version {
        None => format!("{dir}: nothing to merge\n"),
        Some(version) => format!(
            "{dir}: {} files of {} days merged into {}, {} fingerprints; version {version}. The old files stay until `dedup-job archive vacuum {dir}`\n",
            count(compacted.merged),
            count(compacted.days),
            count(compacted.written),
            count(compacted.rows)
        ),
    })
}

fn vacuum(common: &CommonArgs, dir: &str, vacuum: Vacuum) -> Result<(), Failure> {
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
            true => "would be removed",
            false => "removed",
        }
    );
    for file in &vacuumed.files {
        let _ = writeln!(text, "  {file}");
    }
    print(&text)
}

fn show(common: &CommonArgs, dir: &str, info: &Info, verified: Option<u64>) -> Result<(), Failure> {
    let total = info.days.values().fold((0, 0, 0), |sum, day| {
        (sum.0 + day.rows, sum.1 + day.files, sum.2 + day.bytes)
    });
    let (rows, files, bytes) = total;
    if common.json {
        let days: serde_json::Map<String, serde_json::Value> = info
            .days
            .iter()
            .map(|(day, of)| {
                let of = serde_json::json!({ "fingerprints": of.rows, "files": of.files, "bytes": of.bytes });
                (day.to_string(), of)
            })
            .collect();
        return print_json(&serde_json::json!({
            "archive": dir,
            "version": info.version,
            "id_type": info.id_type.to_string(),
            "spec": info.spec,
            "spec_digest": info.spec.digest(),
            "fingerprints": rows,
            "files": files,
            "bytes": bytes,
            "days": days,
            "verified_files": verified,
        }));
    }
    if common.quiet {
        return Ok(());
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{dir}: version {}, {} fingerprints of {} days in {} files, {}",
        info.version,
        count(rows),
        info.days.len(),
        count(files),
        size(bytes)
    );
    let _ = writeln!(text, "  ids: {}", info.id_type);
    let _ = writeln!(text, "  spec: {}", info.spec.to_json());
    for (day, of) in &info.days {
        let _ = writeln!(
            text,
            "  {day}: {} fingerprints, {} files, {}",
            count(of.rows),
            of.files,
            size(of.bytes)
        );
    }
    if let Some(files) = verified {
        let _ = writeln!(
            text,
            "  verified: the SHA-256 of all {} files is as the log says",
            count(files)
        );
    }
    print(&text)
}
