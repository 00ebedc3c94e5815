//! `dedup-job archive create | info | append | compact | remove | vacuum`.

mod compact;
mod info;
mod remove;
mod vacuum;

use ::archive::{Archive, IdType};

use super::fingerprint::{Target, fingerprint};
use crate::args::{ArchiveCommand, CommonArgs, SpecArgs};
use crate::exit::Failure;
use crate::process::{self, Process};

pub fn run(common: &CommonArgs, command: ArchiveCommand) -> Result<(), Failure> {
    match command {
        ArchiveCommand::Create { dir, id_type, spec } => create(common, &dir, id_type, &spec),
        ArchiveCommand::Info { dir, verify } => info::run(common, &dir, verify),
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
        } => compact::run(common, &dir, before, rows_per_file),
        ArchiveCommand::Remove { dir, day, ids } => remove::run(common, &dir, day, ids.as_deref()),
        ArchiveCommand::Vacuum {
            dir,
            older_than,
            dry_run,
            nothing_runs,
        } => {
            let asked = ::archive::Vacuum {
                older_than,
                dry_run,
                nothing_runs,
            };
            vacuum::run(common, &dir, asked)
        }
    }
}

fn create(common: &CommonArgs, dir: &str, id_type: IdType, spec: &SpecArgs) -> Result<(), Failure> {
    let created = process::run(common, async |process: &Process| {
        let (model, files) = spec.wanted(process.stores()).await?.model_and_files()?;
        let location = process.locate(dir)?;
        let archive = Archive::create(&location, id_type, model.spec(), &files).await?;
        Ok(archive.info()?)
    })?;
    info::show(common, dir, &created, None)
}
