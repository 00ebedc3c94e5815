//! `dedup-job index build | info`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::archive::Archive;
use engine::progress::Stage;
use lookup::{Index, IndexFiles, IndexInfo, Settings};
use storage::{Location, StorageError};

use super::required;
use crate::args::{CacheArgs, CommonArgs, IndexBuildArgs, IndexCommand};
use crate::exit::{Failure, usage};
use crate::printing::{count, print, print_json, print_summary, size, visible};
use crate::process::{self, Process};

pub fn run(common: &CommonArgs, command: IndexCommand) -> Result<(), Failure> {
    match command {
        IndexCommand::Build(args) => build(common, &args),
        IndexCommand::Info { dir, verify, cache } => info(common, &dir, verify, &cache),
    }
}

fn build(common: &CommonArgs, args: &IndexBuildArgs) -> Result<(), Failure> {
    let base = required(args.base.as_deref(), "--base DIR")?;
    let output = required(args.output.as_deref(), "--output DIR")?;
    let built = process::run(common, async |process: &Process| {
        let (archive, index) = (process.locate(base)?, process.locate(output)?);
        if archive.is_within(&index) || index.is_within(&archive) {
            return usage(format!(
                "--output {output}: the archive is in it or around it; give the index its own directory, or prefix"
            ));
        }
        let archive = Archive::open(&archive).await?;
        let files = files(process, &index, &args.cache)?;
        let settings = Settings {
            threads: process::threads(common),
            merge_all: args.merge_all,
        };
        process.resources.progress.enter(Stage::Index);
        let resources = Arc::clone(&process.resources);
        let rows_done = move |rows| {
            resources
                .progress
                .indexed
                .fetch_add(rows, Ordering::Relaxed);
        };
        Ok(lookup::build(&archive, &files, settings, Arc::new(rows_done)).await?)
    })?;
    if common.json {
        return print_json(&built);
    }
    let text = format!(
        "{output}: version {}, {} documents in {} segments, {}; covers version {} of the archive\n  {} documents added, {} removed; {} segments merged\n",
        built.version,
        count(built.rows),
        built.segments,
        size(built.bytes),
        built.archive_version,
        count(built.added_rows),
        count(built.removed_rows),
        built.merged
    );
    print_summary(common, &text)
}

fn info(common: &CommonArgs, dir: &str, verify: bool, cache: &CacheArgs) -> Result<(), Failure> {
    let (info, spec) = process::run(common, async |process: &Process| {
        let index = Index::open(&files(process, &process.locate(dir)?, cache)?).await?;
        if verify {
            index.model().await?;
            let index = index.clone();
            let verified = tokio::task::spawn_blocking(move || index.verify()).await;
            verified.map_err(|panic| StorageError::io("verifying")(panic.into()))??;
        }
        Ok((index.info(), index.spec().clone()))
    })?;
    if common.json {
        let mut value = serde_json::json!(info);
        value["index"] = dir.into();
        value["spec"] = serde_json::json!(spec);
        value["verified"] = verify.into();
        return print_json(&value);
    }
    print(&info_text(dir, &info, &spec.to_json(), verify))
}

fn info_text(dir: &str, info: &IndexInfo, spec: &str, verified: bool) -> String {
    let mut text = format!(
        "{dir}: version {}, {} documents of {} days with {} distinct fingerprints\n",
        info.version,
        count(info.rows),
        info.days,
        count(info.fingerprints)
    );
    text += &format!(
        "  archive: {}, version {}\n",
        visible(&info.archive),
        info.archive_version
    );
    text += &format!("  answers distances up to {}\n", info.max_distance);
    let each = info.table_bytes as f64 / info.fingerprints.max(1) as f64;
    text += &format!(
        "  tables: {} ({each:.2} bytes a fingerprint); ids, days and sketches: {}; directories, in memory: {}\n",
        size(info.table_bytes),
        size(info.row_bytes),
        size(info.directory_bytes)
    );
    text += &format!("  spec: {spec}\n");
    for segment in &info.segments {
        let days: Vec<String> = segment
            .parts
            .iter()
            .map(|part| part.day.map_or("no day".into(), |day| day.to_string()))
            .collect();
        let days = match (days.iter().min(), days.iter().max()) {
            (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
            (first, _) => first.cloned().unwrap_or_default(),
        };
        text += &format!(
            "  {}: {} documents, {}\n",
            days,
            count(segment.rows),
            size(segment.table_bytes + segment.row_bytes)
        );
    }
    if verified {
        text += "  verified: all checksums are right, and both tables of each segment have the same fingerprints\n";
    }
    text
}

/// The files of an index; if it is in a store, its segments are copied to the cache.
pub fn files(
    process: &Process,
    location: &Location,
    cache: &CacheArgs,
) -> Result<IndexFiles, Failure> {
    let cache = match &cache.cache {
        Some(given) => given.clone(),
        None => user_cache().unwrap_or_else(|| process.scratch.path().to_owned()),
    };
    // All indexes can share one cache, because a segment's name is a digest of what went into it.
    Ok(IndexFiles::new(location, &cache, process.scratch.path())?)
}

/// `dedup-job/index` below the user's cache directory.
fn user_cache() -> Option<PathBuf> {
    let directory = |variable: &str| {
        std::env::var_os(variable)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = directory("XDG_CACHE_HOME").or_else(|| Some(directory("HOME")?.join(".cache")))?;
    Some(cache.join("dedup-job/index"))
}
