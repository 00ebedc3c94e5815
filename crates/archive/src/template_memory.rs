//! What the archive remembers of the templates of sources, as a file [beside](crate::beside) the table.
//!
//! The Delta application transaction `templates` says which file counts. It is part of the commit of a day, so that the memory and the
//! day are committed together. The record of a day names the memory that its fingerprints were made with, for reruns. A vacuum
//! deletes files that no longer count.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use storage::Location;

use crate::beside::Beside;
use crate::error::{ArchiveError, Result};
use crate::table::Archive;

/// The application id of the transaction.
pub(crate) const TRANSACTION: &str = "templates";
pub(crate) const FILES: Beside = Beside {
    directory: "_dedup-job/templates",
    extension: "bin",
};

/// What a commit says of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommittedMemory {
    /// The memory that the day's fingerprints were made with; `None` if there was none.
    pub before: Option<i64>,
    /// The memory with the day.
    pub after: i64,
}

impl Archive {
    /// The memory that counts now, if there is any.
    pub async fn template_memory(&self) -> Result<Option<i64>> {
        self.app_transaction(TRANSACTION).await
    }

    /// Writes a memory, which counts when a commit names it. Returns its version.
    pub async fn write_template_memory(&self, file: Vec<u8>) -> Result<i64> {
        FILES.write(self.location(), file.into()).await
    }
}

/// Reads the memory of an archive, or of an index, at `place`.
///
/// # Errors
/// [`ArchiveError::NoTemplateMemory`] when it is gone, [`ArchiveError::BadData`] when it is damaged.
pub async fn read(place: &Location, version: i64) -> Result<Bytes> {
    let file = FILES.read(place, version).await?;
    file.ok_or_else(|| ArchiveError::NoTemplateMemory {
        object: place.child_name(&FILES.path(version)),
    })
}

/// Copies a memory of the archive at `from` to the index at `to`, if it is not there.
///
/// # Errors
/// As [`read`], or a store's error.
pub async fn copy(from: &Location, to: &Location, version: i64) -> Result<()> {
    if !to.child(&FILES.path(version))?.exists().await? {
        FILES.write(to, read(from, version).await?).await?;
    }
    Ok(())
}

/// Deletes the memories at `place` that were written before `time` and are none of `needed`.
pub async fn remove_old(place: &Location, needed: &[i64], time: DateTime<Utc>) -> Result<()> {
    FILES.remove_old(place, needed, time).await
}
