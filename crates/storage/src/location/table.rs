//! Finds the Delta table that a location lies in.

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use super::Location;
use crate::delta_log::{
    CHECKPOINT_HINT, LOG_DIRECTORY, is_local_table, local_table_above, table_of_entry,
};
use crate::error::{Result, StorageError};
use crate::error_kind::ErrorKind;

const CONCURRENT_REQUESTS: usize = 32;

impl Location {
    /// The path or URL of the nearest Delta table at or above this location, which need not exist.
    pub async fn table_above(&self) -> Result<Option<String>> {
        if let Some(local) = self.local() {
            return Ok(local_table_above(local).map(|table| table.display().to_string()));
        }
        let table = remote_table_above(self).await?;
        Ok(table.map(|table| url_of(self, table.as_ref())))
    }

    /// Whether this directory is a Delta table: its log has an entry.
    ///
    /// # Errors
    /// [`StorageError::ShortList`] when a list of the log shows no entry, but one is there.
    pub async fn is_table(&self) -> Result<bool> {
        match self.local() {
            Some(local) => Ok(is_local_table(local)),
            None => is_remote_table(self, self.path()).await,
        }
    }
}

/// The URL of a path in the location's store.
pub(super) fn url_of(location: &Location, path: &str) -> String {
    format!("{}/{path}", location.root.as_str().trim_end_matches('/'))
}

/// The error for a list of a directory's log that leaves out an object that is there.
pub(super) fn short_list(location: &Location, directory: &str, missing: &str) -> StorageError {
    StorageError::ShortList {
        path: url_of(location, &format!("{directory}/{LOG_DIRECTORY}")),
        missing: missing.to_owned(),
    }
}

/// The nearest table at or above a path in a remote store.
///
/// # Errors
/// When the store cannot be listed. A directory that this process may not list counts as no table:
/// its credentials may cover only one prefix.
pub(super) async fn remote_table_above(location: &Location) -> Result<Option<Path>> {
    let above = std::iter::successors(Some(location.path().clone()), Path::parent);
    let directories: Vec<Path> = above.collect();
    let tables: Vec<Option<Path>> = futures::stream::iter(directories)
        .map(|directory| async move {
            match is_remote_table(location, &directory).await {
                Ok(is_table) => Ok(is_table.then_some(directory)),
                Err(error) if error.kind() == ErrorKind::Permission => Ok(None),
                Err(error) => Err(error),
            }
        })
        .buffered(CONCURRENT_REQUESTS)
        .try_collect()
        .await?;
    Ok(tables.into_iter().flatten().next())
}

/// Whether a directory in the location's store is a table. A wrong list would make plain files of a table, so that removed documents
/// were read and outputs were written into it: if the list has no entry, the store is asked for what every log has.
async fn is_remote_table(location: &Location, directory: &Path) -> Result<bool> {
    let log = directory.clone().join(LOG_DIRECTORY);
    let mut unlisted = vec!["00000000000000000000.json", CHECKPOINT_HINT];
    let mut listed = location.store().list(Some(&log));
    let failed = |error| location.store_error(error);
    while let Some(meta) = listed.try_next().await.map_err(failed)? {
        if table_of_entry(meta.location.as_ref()) == Some(directory.as_ref()) {
            return Ok(true);
        }
        unlisted.retain(|name| meta.location.filename() != Some(*name));
    }
    for name in unlisted {
        match location.store().head(&log.clone().join(name)).await {
            Ok(_) => return Err(short_list(location, directory.as_ref(), name)),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(false)
}
