//! What the archive remembers of the templates of sources, as a file beside the table.
//!
//! The Delta application transaction `templates` points to the file that counts, `_dedup-job/templates/VERSION.bin`: its version is
//! the first 64 bits of the file's SHA-256 without the sign bit. It is part of the commit of a day, so that the memory and the day
//! are committed together. The record of a day names the memory that its fingerprints were made with, for reruns. A vacuum
//! deletes files that no longer count.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};
use sha2::{Digest as _, Sha256};
use storage::{Location, StorageError};

use crate::error::{ArchiveError, Result};
use crate::table::Archive;

/// The application id of the transaction.
pub(crate) const TRANSACTION: &str = "templates";
const DIRECTORY: &str = "_dedup-job/templates";

/// What a commit says of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedMemory {
    /// The memory that the day's fingerprints were made with; `None` if there was none.
    pub before: Option<i64>,
    /// The memory with the day.
    pub after: i64,
}

/// The version of a file.
fn version_of(file: &[u8]) -> i64 {
    let digest = Sha256::digest(file);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first) & i64::MAX
}

fn path(version: i64) -> String {
    format!("{DIRECTORY}/{version:016x}.bin")
}

/// The version in the path of a file.
pub(crate) fn parse_path(path_of_file: &str) -> Option<i64> {
    let name = path_of_file.strip_prefix(DIRECTORY)?.strip_prefix('/')?;
    let version = i64::from_str_radix(name.strip_suffix(".bin")?, 16).ok()?;
    (path(version) == path_of_file).then_some(version)
}

impl Archive {
    /// The memory that counts now, if there is any.
    ///
    /// # Errors
    /// [`ArchiveError::Delta`] when the log cannot be read.
    pub async fn template_memory(&self) -> Result<Option<i64>> {
        self.app_transaction(TRANSACTION).await
    }

    /// Reads a memory.
    ///
    /// # Errors
    /// [`ArchiveError::NoTemplateMemory`] when it is gone, [`ArchiveError::BadData`] when it is damaged.
    pub async fn read_template_memory(&self, version: i64) -> Result<Bytes> {
        read(self.location(), version).await
    }

    /// Writes a memory, which counts when a commit names it. Returns its version.
    ///
    /// # Errors
    /// A store's error.
    pub async fn write_template_memory(&self, file: Vec<u8>) -> Result<i64> {
        write(self.location(), file.into()).await
    }
}

/// Reads the memory of an archive, or of an index, at `place`.
///
/// # Errors
/// [`ArchiveError::NoTemplateMemory`] when it is gone, [`ArchiveError::BadData`] when it is damaged.
pub async fn read(place: &Location, version: i64) -> Result<Bytes> {
    let location = place.child(&path(version))?;
    let bytes = match location.read().await {
        Err(StorageError::NotFound { .. }) => {
            return Err(ArchiveError::NoTemplateMemory {
                object: location.to_string(),
            });
        }
        bytes => bytes?,
    };
    match version_of(&bytes) == version {
        true => Ok(bytes),
        false => Err(ArchiveError::BadData {
            object: location.to_string(),
            reason: "damaged: it is not the file that its name says".into(),
        }),
    }
}

/// Writes a memory to `place`. Returns its version.
async fn write(place: &Location, file: Bytes) -> Result<i64> {
    let version = version_of(&file);
    let location = place.child(&path(version))?;
    let stored = location.store().put(location.path(), file.into());
    stored.await.map_err(StorageError::store(&location))?;
    Ok(version)
}

/// Copies a memory of the archive at `from` to the index at `to`, if it is not there.
///
/// # Errors
/// As [`read`], or a store's error.
pub async fn copy(from: &Location, to: &Location, version: i64) -> Result<()> {
    if !to.child(&path(version))?.exists().await? {
        write(to, read(from, version).await?).await?;
    }
    Ok(())
}

/// Deletes the memories at `place` that were written before `time` and are none of `needed`.
///
/// # Errors
/// A store's error.
pub async fn remove_old(place: &Location, needed: &[i64], time: DateTime<Utc>) -> Result<()> {
    let directory = place.child(DIRECTORY)?;
    let failed = || StorageError::store(&directory);
    let store = directory.store();
    let listed: Vec<ObjectMeta> = store
        .list(Some(directory.path()))
        .try_collect()
        .await
        .map_err(failed())?;
    for object in listed {
        let name = object.location.filename().unwrap_or_default();
        let version = parse_path(&format!("{DIRECTORY}/{name}"));
        let is_needed = version.is_none_or(|version| needed.contains(&version));
        if !is_needed && object.last_modified < time {
            store.delete(&object.location).await.map_err(failed())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_version() {
        let version = version_of(b"x");
        assert_eq!(parse_path(&path(version)), Some(version));
        for other in [
            "_dedup-job/templates/x.bin",
            "_dedup-job/days/2026-01-03-00.json",
            "x",
        ] {
            assert_eq!(parse_path(other), None, "{other}");
        }
    }
}
