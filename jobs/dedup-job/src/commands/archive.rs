//! `dedup-job archive create | info | append`.

use std::fmt::Write as _;

use ::archive::{Archive, IdType, Info, Location};
use engine::Wanted;

use super::fingerprint::{Target, fingerprint};
use crate::args::{ArchiveCommand, CommonArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json, size};

pub fn run(common: &CommonArgs, command: ArchiveCommand) -> Result<(), Failure> {
    match command {
        ArchiveCommand::Create { dir, id_type, spec } => {
            create(common, &dir, id_type, &spec.wanted())
        }
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
            &Wanted::default(),
            &Target::Day(dir, day),
        ),
    }
}

fn create(common: &CommonArgs, dir: &str, id_type: IdType, wanted: &Wanted) -> Result<(), Failure> {
    let info = process::run(common, async |_: &Process| {
        let (model, kept) = wanted.model_and_kept()?;
        let location = Location::parse(dir)?;
        let archive = Archive::create(&location, id_type, model.spec(), &kept).await?;
        Ok(archive.info()?)
    })?;
    show(common, dir, &info, None)
}

fn info(common: &CommonArgs, dir: &str, verify: bool) -> Result<(), Failure> {
    let (info, verified) = process::run(common, async |_: &Process| {
        let archive = Archive::open(&Location::parse(dir)?).await?;
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
