//! Files beside the table that are named by their content, `_dedup-job/DIRECTORY/VERSION.EXTENSION`: the version is the first 64 bits of
//! the file's SHA-256 without the sign bit. A Delta application transaction, or a file that one points to, says which count.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::ObjectStoreExt as _;
use sha2::{Digest as _, Sha256};
use storage::{Location, StorageError};

use crate::error::{ArchiveError, Result};

/// Files of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside {
    /// Their directory, below the archive's.
    pub(crate) directory: &'static str,
    /// What their names end with, after the dot.
    pub(crate) extension: &'static str,
}

/// The version that names a file: the first 64 bits of its SHA-256 without the sign bit.
pub(crate) fn version_of(file: &[u8]) -> i64 {
    let digest = Sha256::digest(file);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first) & i64::MAX
}

impl Beside {
    /// The path of a version below the archive's directory.
    pub(crate) fn path(self, version: i64) -> String {
        format!("{}/{version:016x}.{}", self.directory, self.extension)
    }

    /// The version in the path of a file of this kind.
    pub(crate) fn parse_path(self, path: &str) -> Option<i64> {
        let name = path.strip_prefix(self.directory)?.strip_prefix('/')?;
        let name = name.strip_suffix(self.extension)?.strip_suffix('.')?;
        let version = i64::from_str_radix(name, 16).ok()?;
        (self.path(version) == path).then_some(version)
    }

    /// Reads a version at `place`; `None` when it is gone.
    ///
    /// # Errors
    /// [`ArchiveError::BadData`] when it is damaged.
    pub(crate) async fn read(self, place: &Location, version: i64) -> Result<Option<Bytes>> {
        let location = place.child(&self.path(version))?;
        let bytes = match location.read().await {
            Err(StorageError::NotFound { .. }) => return Ok(None),
            bytes => bytes?,
        };
        if version_of(&bytes) == version {
            Ok(Some(bytes))
        } else {
            Err(ArchiveError::bad_data(
                &location,
                "damaged: it is not the file that its name says",
            ))
        }
    }

    /// Writes a file to `place`. Returns its version.
    pub(crate) async fn write(self, place: &Location, file: Bytes) -> Result<i64> {
        let version = version_of(&file);
        let location = place.child(&self.path(version))?;
        location.write_checked(file).await?;
        Ok(version)
    }

    /// Deletes the versions at `place` that were written before `time` and are none of `needed`.
    pub(crate) async fn remove_old(
        self,
        place: &Location,
        needed: &[i64],
        time: DateTime<Utc>,
    ) -> Result<()> {
        let directory = place.child(self.directory)?;
        for object in directory.list().await? {
            let name = object.location.filename().unwrap_or_default();
            let version = self.parse_path(&format!("{}/{name}", self.directory));
            let is_needed = version.is_none_or(|version| needed.contains(&version));
            if !is_needed && object.last_modified < time {
                let removed = directory.store().delete(&object.location).await;
                removed.map_err(StorageError::store(&directory))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_version() {
        let files = Beside {
            directory: "_dedup-job/templates",
            extension: "bin",
        };
        let version = version_of(b"x");
        assert_eq!(files.parse_path(&files.path(version)), Some(version));
        for other in [
            "_dedup-job/templates/x.bin",
            "_dedup-job/days/2026-01-03-00.json",
            "x",
        ] {
            assert_eq!(files.parse_path(other), None, "{other}");
        }
    }
}
