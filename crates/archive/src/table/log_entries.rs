//! The entries of a table's log, and what is wrong with them.

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};
use serde::de::IgnoredAny;
use storage::{LOG_DIRECTORY, Location, StorageError, is_log_entry};

use crate::error::{ArchiveError, Result};

/// The entries of the log at `location`: their paths and sizes. None if there is no log.
pub(super) fn list(location: &Location) -> Result<impl Stream<Item = Result<ObjectMeta>> + use<>> {
    let has_log = location
        .local()
        .is_none_or(|local| local.join(LOG_DIRECTORY).is_dir());
    let log = location.child(LOG_DIRECTORY)?;
    let listed = match has_log {
        true => location.store().list(Some(log.path())),
        false => futures::stream::empty().boxed(),
    };
    let failed = location.clone();
    let is_entry = |entry: &ObjectMeta| entry.location.filename().is_some_and(is_log_entry);
    Ok(listed
        .try_filter(move |entry| std::future::ready(is_entry(entry)))
        .map_err(move |error| StorageError::store(&failed)(error).into()))
}

/// Whether there is a log with entries. Refuses an empty entry: the Delta library takes it for one that changes nothing, so that
/// what was committed by it would be missing.
pub(super) async fn has_any(location: &Location) -> Result<bool> {
    let mut entries = std::pin::pin!(list(location)?);
    let mut has_entries = false;
    while let Some(entry) = entries.next().await.transpose()? {
        if entry.size == 0 {
            let reason = "this entry of the log is empty, and was not when it was written";
            return Err(damaged(location, &entry, reason.to_owned()));
        }
        has_entries = true;
    }
    Ok(has_entries)
}

/// What is wrong with the log, if it is that an entry is missing, or that one is not JSON.
pub(super) async fn damage(location: &Location) -> Option<ArchiveError> {
    let entries: Vec<ObjectMeta> = list(location).ok()?.try_collect().await.ok()?;
    let version = |entry: &ObjectMeta| -> Option<u64> {
        let name = entry.location.filename()?;
        name.strip_suffix(".json")?.parse().ok()
    };
    let mut numbered: Vec<(u64, &ObjectMeta)> = entries
        .iter()
        .filter_map(|entry| Some((version(entry)?, entry)))
        .collect();
    numbered.sort_unstable_by_key(|(version, _)| *version);
    for next in numbered.windows(2) {
        let expected = next[0].0 + 1;
        if next[1].0 != expected {
            return Some(ArchiveError::BadData {
                object: location.child_name(&format!("{LOG_DIRECTORY}/{expected:020}.json")),
                reason: "this entry of the log is missing".into(),
            });
        }
    }
    for (_, entry) in numbered {
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
    }
    None
}

fn damaged(location: &Location, entry: &ObjectMeta, reason: String) -> ArchiveError {
    let name = entry.location.filename().unwrap_or_default();
    ArchiveError::BadData {
        object: location.child_name(&format!("{LOG_DIRECTORY}/{name}")),
        reason,
    }
}
