//! Finds the Delta table that a location lies in.

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use super::Location;
use crate::delta_log::{LOG_DIRECTORY, local_table_above, table_of_entry};
use crate::error::Result;
use crate::error_kind::ErrorKind;

const CONCURRENT_REQUESTS: usize = 32;

impl Location {
    /// The path or URL of the nearest Delta table at or above this location, which need not exist.
    pub async fn table_above(&self) -> Result<Option<String>> {
        if let Some(local) = self.local() {
            return Ok(local_table_above(local).map(|table| table.display().to_string()));
        }
        let root = self.root().as_str().trim_end_matches('/');
        let table = remote_table_above(self).await?;
        Ok(table.map(|table| format!("{root}/{table}")))
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

async fn is_remote_table(location: &Location, directory: &Path) -> Result<bool> {
    let log = directory.clone().join(LOG_DIRECTORY);
    let entries = location.store().list(Some(&log));
    let entries = entries.try_filter(|meta| {
        let is_entry = table_of_entry(meta.location.as_ref()) == Some(directory.as_ref());
        std::future::ready(is_entry)
    });
    let first = std::pin::pin!(entries).try_next().await;
    let first = first.map_err(|error| location.store_error(error))?;
    Ok(first.is_some())
}
