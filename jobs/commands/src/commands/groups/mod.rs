//! `dedup-job groups`: the groups of duplicates over many days, and the connected components of
//! pairs.

mod components;
mod days;
mod text;

use std::collections::HashMap;

use archive::Archive;
use engine::output::{OutputKind, read_rows};
use engine::work_items::days_since_epoch;
use serde_json::json;
use storage::Location;

use self::components::{COLUMNS, Components, Summary};
use self::days::{Day, Groups};
use super::dropped::{Again, decide_again, decided};
use super::output_checks::Outputs;
use super::output_files;
use crate::args::{CommonArgs, GroupsArgs};
use crate::exit::{Failure, usage};
use crate::printing::{print, print_json};
use crate::process::{self, Process};

/// Groups that are shown unless -n says otherwise.
const DEFAULT_COUNT: u32 = 10;

pub fn run(common: &CommonArgs, args: &GroupsArgs) -> Result<(), Failure> {
    if args.decisions.is_empty() {
        return usage(
            "the decisions are missing: name outputs of `dedup-job run --decisions`; see --help",
        );
    }
    let most = args.count.unwrap_or(DEFAULT_COUNT) as usize;
    let (groups, components) = process::run(common, async |process: &Process| {
        for dir in &args.decisions {
            if !dir.contains(['*', '?', '[']) && Archive::is_at(&process.locate(dir)?).await? {
                return match args.decisions.len() {
                    1 => Ok((of_archive(process, args, dir).await?, None)),
                    _ => usage(format!(
                        "{dir} is an archive: name it alone, for its groups are over all its days"
                    )),
                };
            }
        }
        let days = output_files(process, &args.decisions).await?;
        let pairs = output_files(process, &args.pairs).await?;
        let groups = read_days(&days).await?;
        let components = match &args.components {
            Some(path) => Some(write_components(process, args, path, &days, &pairs).await?),
            None => None,
        };
        Ok((groups, components))
    })?;
    if common.json {
        let mut value = groups.as_json(most);
        value["components"] = json!(components);
        return print_json(&value);
    }
    let mut shown = text::groups(&groups, most);
    if let Some(components) = &components {
        shown.push_str(&text::components(components));
    }
    print(&shown)
}

/// The groups of an archive, which says what was dropped, and not for which document: that is found again.
async fn of_archive(process: &Process, args: &GroupsArgs, dir: &str) -> Result<Groups, Failure> {
    if args.components.is_some() {
        return usage("--components needs decisions and pairs: an archive has neither");
    }
    let archive = Archive::open(&process.locate(dir)?).await?;
    if !archive.has_kept() {
        return usage(format!(
            "{dir} has no decisions: it does not say which documents were dropped"
        ));
    }
    let days = archive.info()?.days;
    let mut dropped: HashMap<Option<i32>, Day> = HashMap::new();
    for decided in decided(&archive).await? {
        let each = |again: Again| {
            dropped.entry(again.day).or_default().add_dropped(&again);
        };
        decide_again(process, (dir, &archive), decided, |_, _| true, false, each).await?;
    }
    let days = days
        .iter()
        .map(|(day, info)| (days_since_epoch(*day), info.rows));
    Ok(Groups::of_archive(days, dropped))
}

async fn read_days(files: &[Location]) -> Result<Groups, Failure> {
    let mut groups = Groups::default();
    for file in files {
        let mut day = Day::default();
        let kind = read_rows(file, |row| day.add(&row)).await?;
        check_kind(file, kind, OutputKind::Decisions)?;
        groups.add(file.to_string(), day);
    }
    for (number, file) in files.iter().enumerate() {
        read_rows(file, |row| groups.add_again(number, &row)).await?;
    }
    Ok(groups)
}

fn check_kind(
    file: &Location,
    found: Option<OutputKind>,
    wanted: OutputKind,
) -> Result<(), Failure> {
    if found.is_none_or(|found| found == wanted) {
        return Ok(());
    }
    let reason = match wanted {
        OutputKind::Decisions => {
            "pairs, not decisions: name the output of `run --decisions`, and pairs with --pairs"
        }
        _ => "decisions, not pairs: --pairs takes the output of `run --output`",
    };
    Err(engine::EngineError::bad_data(file, reason).into())
}

/// Writes the component of each document of the decisions.
async fn write_components(
    process: &Process,
    args: &GroupsArgs,
    path: &str,
    decisions: &[Location],
    pairs: &[Location],
) -> Result<Summary, Failure> {
    if path == "-" {
        return usage("--components -: the groups go to standard output; name a file");
    }
    let inputs = args.decisions.iter().chain(&args.pairs);
    let outputs = Outputs {
        stores: process.stores(),
        inputs: inputs.map(String::as_str).collect(),
        overwrite: args.overwrite,
    };
    let target = outputs
        .check_rows("--components", path, OutputKind::Components)
        .await?;
    let mut components = Components::default();
    for file in pairs {
        let kind = read_rows(file, |row| components.add_pair(&row)).await?;
        check_kind(file, kind, OutputKind::Pairs)?;
    }
    for file in decisions {
        read_rows(file, |row| components.count(&row)).await?;
    }
    let mut rows = components.rows();
    for file in decisions {
        read_rows(file, |row| rows.add(&row)).await?;
    }
    let (rows, summary) = rows.finish()?;
    let stream = streams::of_batches(COLUMNS.clone(), rows.into_iter());
    let draft =
        engine::output::write_draft(stream, &COLUMNS, &target, process.scratch.path(), None);
    draft.await?.draft.publish().await?;
    Ok(summary)
}
