//! `dedup-job archive create | info | set | append | compact | remove | templates | vacuum`.

mod compact;
mod create;
mod info;
mod merge;
mod remove;
mod set;
mod templates;
mod vacuum;

use super::fingerprint;
use crate::args::{ArchiveCommand, CommonArgs, FingerprintArgs};
use crate::exit::{Failure, usage};

pub fn run(common: &CommonArgs, command: ArchiveCommand) -> Result<(), Failure> {
    match command {
        ArchiveCommand::Create(args) => create::run(common, &args),
        ArchiveCommand::Info { dir, verify } => info::run(common, &dir, verify),
        ArchiveCommand::Set { dir, settings } => set::run(common, &dir, &settings),
        ArchiveCommand::Append {
            dir,
            input,
            day,
            batch,
            allow_empty,
            source,
            pipe,
            columns,
        } => {
            if merge::are_archives(common, &input)? {
                return merge::run(common, &dir, &input, day);
            }
            if day.is_none() {
                return usage("--day YYYY-MM-DD is missing: the date of the documents");
            }
            let args = FingerprintArgs {
                input,
                append: Some(dir),
                day,
                batch_name: batch,
                allow_empty,
                source,
                pipe,
                columns,
                ..FingerprintArgs::default()
            };
            fingerprint::run(common, &args)
        }
        ArchiveCommand::Compact {
            dir,
            before,
            rows_per_file,
        } => compact::run(common, &dir, before, rows_per_file),
        ArchiveCommand::Remove(args) => remove::run(common, &args),
        ArchiveCommand::Templates(args) => templates::run(common, &args),
        ArchiveCommand::Vacuum {
            dir,
            jobs,
            older_than,
            dry_run,
            nothing_runs,
        } => {
            let vacuum = ::archive::Vacuum {
                older_than,
                dry_run,
                nothing_runs,
            };
            match jobs {
                Some(prefix) => vacuum::jobs(common, &prefix, vacuum),
                None => vacuum::run(common, &dir.unwrap_or_default(), vacuum),
            }
        }
    }
}
