//! The entries of a table's log, and what is wrong with them.

use deltalake_core::DeltaTable;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};
use serde::de::IgnoredAny;
use storage::{
    CHECKPOINT_HINT, DAMAGED_ENTRY, ErrorKind, LOG_DIRECTORY, Location, StorageError, is_log_entry,
};

use crate::entry_digest::is_damaged;
use crate::error::{ArchiveError, Result};

/// The entries of the log at `location`, or those of a version and later ones: their paths and sizes. None if there is no
/// log.
fn list(
    location: &Location,
    from: Option<u64>,
) -> Result<impl Stream<Item = Result<ObjectMeta>> + use<>> {
    let has_log = location
        .local()
        .is_none_or(|local| local.join(LOG_DIRECTORY).is_dir());
    let log = location.child(LOG_DIRECTORY)?;
    let store = location.store();
    let listed = match (has_log, from) {
        (false, _) => futures::stream::empty().boxed(),
        (true, None) => store.list(Some(log.path())),
        (true, Some(version)) => {
            // The names of the version's entries begin with this one.
            let offset = log.child(&format!("{version:020}"))?;
            store.list_with_offset(Some(log.path()), offset.path())
        }
    };
    let failed = location.clone();
    let is_entry = |entry: &ObjectMeta| entry.location.filename().is_some_and(is_log_entry);
    Ok(listed
        .try_filter(move |entry| std::future::ready(is_entry(entry)))
        .map_err(move |error| StorageError::store(&failed)(error).into()))
}

/// The entries of a log behind its last checkpoint, with their versions, ascending.
struct Behind {
    checkpoint: Option<u64>,
    entries: Vec<(u64, ObjectMeta)>,
}

/// The version of the checkpoint that the hint names, in a store, where a list has a page for each thousand entries.
async fn hinted_checkpoint(location: &Location) -> Result<Option<u64>> {
    if location.local().is_some() {
        return Ok(None);
    }
    let hint = location.child(&format!("{LOG_DIRECTORY}/{CHECKPOINT_HINT}"))?;
    let hint = match hint.read().await {
        Ok(hint) => hint,
        // A list would wait as long.
        Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let hint: Option<serde_json::Value> = serde_json::from_slice(&hint).ok();
    Ok(hint.and_then(|hint| hint.get("version")?.as_u64()))
}

/// The entries behind the last checkpoint; `None` if there is no entry at all. Lists entries from the version `from` on.
async fn behind_checkpoint(location: &Location, from: Option<u64>) -> Result<Option<Behind>> {
    let mut listed = std::pin::pin!(list(location, from)?);
    let (mut checkpoint, mut entries) = (None, Vec::new());
    while let Some(entry) = listed.next().await.transpose()? {
        let name = entry.location.filename().unwrap_or_default();
        let Some((version, rest)) = name.split_once('.') else {
            continue;
        };
        let Ok(version) = version.parse::<u64>() else {
            continue;
        };
        match rest {
            "json" => entries.push((version, entry)),
            _ => checkpoint = checkpoint.max(Some(version)),
        }
    }
    if entries.is_empty() && checkpoint.is_none() {
        return Ok(None);
    }
    entries.retain(|(version, _)| checkpoint.is_none_or(|checkpoint| *version > checkpoint));
    entries.sort_unstable_by_key(|(version, _)| *version);
    Ok(Some(Behind {
        checkpoint,
        entries,
    }))
}

/// Whether there is a log with entries. Refuses an empty entry: the Delta library takes it for one that changes nothing, so that
/// what was committed by it would be missing.
pub(super) async fn has_any(location: &Location) -> Result<bool> {
    let hint = hinted_checkpoint(location).await?;
    let mut behind = behind_checkpoint(location, hint).await?;
    // A hint may name what is not there, and a list may be wrong.
    if behind.is_none() && location.is_table().await? {
        behind = behind_checkpoint(location, None).await?;
    }
    let Some(behind) = behind else {
        return Ok(false);
    };
    match behind.entries.iter().find(|(_, entry)| entry.size == 0) {
        None => Ok(true),
        Some((_, entry)) => {
            let reason = "this entry of the log is empty, and was not when it was written";
            Err(damaged(location, entry, reason.to_owned()))
        }
    }
}

pub(super) fn entry_name(version: u64) -> String {
    format!("{version:020}.json")
}

/// Whether a store has the entry behind the last one of a table, which no list need have shown.
pub(super) async fn has_entry_behind(location: &Location, table: &DeltaTable) -> Result<bool> {
    if location.local().is_some() {
        return Ok(false);
    }
    let version = table.version().map_or(0, |version| version + 1);
    let entry = location.child(&format!("{LOG_DIRECTORY}/{}", entry_name(version)))?;
    Ok(entry.exists().await?)
}

/// If the log has every entry since version 0, no reader needs its checkpoints: then the name of the last one, or of the hint if there
/// is no checkpoint. `None` if an entry is missing.
pub(super) async fn dispensable_checkpoint(location: &Location) -> Result<Option<String>> {
    let mut listed = std::pin::pin!(list(location, None)?);
    let (mut checkpoint, mut versions) = (None, Vec::new());
    while let Some(entry) = listed.next().await.transpose()? {
        let name = entry.location.filename().unwrap_or_default().to_owned();
        match name.strip_suffix(".json").map(str::parse::<u64>) {
            Some(Ok(version)) => versions.push(version),
            _ => checkpoint = checkpoint.max(Some(name)),
        }
    }
    versions.sort_unstable();
    let has_all =
        !versions.is_empty() && versions.iter().zip(0..).all(|(found, all)| *found == all);
    let name = checkpoint.unwrap_or_else(|| CHECKPOINT_HINT.to_owned());
    Ok(has_all.then(|| location.child_name(&format!("{LOG_DIRECTORY}/{name}"))))
}

/// What is wrong with the log, if it is that an entry is missing, is not JSON, or is not what was written.
pub(super) async fn damage(location: &Location) -> Option<ArchiveError> {
    let behind = behind_checkpoint(location, None).await.ok()??;
    let hint = location
        .child(&format!("{LOG_DIRECTORY}/{CHECKPOINT_HINT}"))
        .ok()?;
    if behind.checkpoint.is_none() && hint.exists().await.ok()? {
        let missing = ArchiveError::bad_data(
            &hint,
            "it names a checkpoint that is missing, and so are entries of the log",
        );
        return match hinted_checkpoint(location).await.ok()? {
            Some(version) => {
                let name = format!("{version:020}.checkpoint.parquet");
                unlisted(location, name, missing).await
            }
            None => Some(missing),
        };
    }
    let first = behind.checkpoint.map_or(0, |checkpoint| checkpoint + 1);
    for ((version, _), expected) in behind.entries.iter().zip(first..) {
        if *version != expected {
            let name = entry_name(expected);
            let object = location.child_name(&format!("{LOG_DIRECTORY}/{name}"));
            let missing = ArchiveError::bad_data(object, "this entry of the log is missing");
            return unlisted(location, name, missing).await;
        }
    }
    for (_, entry) in &behind.entries {
        let answer = location.store().get(&entry.location).await.ok()?;
        let bytes = answer.bytes().await.ok()?;
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Err(error) = serde_json::from_slice::<IgnoredAny>(line) {
                let reason =
                    format!("this entry of the log is damaged: line {number} is not JSON: {error}");
                return Some(damaged(location, entry, reason));
            }
        }
        if is_damaged(entry.location.filename().unwrap_or_default(), &bytes) {
            return Some(damaged(location, entry, DAMAGED_ENTRY.to_owned()));
        }
    }
    None
}

/// The error for an object of the log that no list shows: `missing`, unless it is there.
async fn unlisted(
    location: &Location,
    name: String,
    missing: ArchiveError,
) -> Option<ArchiveError> {
    let object = location.child(&format!("{LOG_DIRECTORY}/{name}")).ok()?;
    let is_there = object.exists().await.ok()?;
    Some(if is_there {
        short_list(location, name)
    } else {
        missing
    })
}

/// The error for a list of the log that leaves out an object that is there.
pub(super) fn short_list(location: &Location, missing: String) -> ArchiveError {
    let path = location.child_name(LOG_DIRECTORY);
    StorageError::ShortList { path, missing }.into()
}

fn damaged(location: &Location, entry: &ObjectMeta, reason: String) -> ArchiveError {
    let name = entry.location.filename().unwrap_or_default();
    ArchiveError::bad_data(
        location.child_name(&format!("{LOG_DIRECTORY}/{name}")),
        reason,
    )
}
