//! Versions of files: two processes that see the same ones read the same documents.

use futures::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use storage::Location;

use crate::error::Result;

/// Files that are looked at at the same time.
const AT_ONCE: usize = 64;

/// A file and its version when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Its absolute path, or its URL.
    pub path: String,
    /// Its size, time, and tag: see [`Location::version`].
    pub version: String,
}

/// The versions of files, in their order.
///
/// # Errors
/// Those of the files' stores.
pub async fn file_versions(files: impl IntoIterator<Item = &Location>) -> Result<Vec<FileVersion>> {
    let reading = files.into_iter().map(async |file: &Location| {
        Ok(FileVersion {
            path: file.absolute_name(),
            version: file.version().await?,
        })
    });
    futures::stream::iter(reading)
        .buffered(AT_ONCE)
        .try_collect()
        .await
}
