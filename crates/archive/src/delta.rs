//! Calls the Delta library: gives it the store of a table's log, and turns its panics into errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use deltalake_core::DeltaTableError;
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use futures::FutureExt as _;
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use storage::{Location, StorageError};
use url::Url;

use crate::error::Result;
use crate::remembered_log::{LogBy, RememberedLog};

/// Awaits `reading`, and turns a panic into an error: the Delta library panics on some forged checkpoints.
pub(crate) async fn catch_async_panic<T>(
    reading: impl Future<Output = Result<T, DeltaTableError>>,
) -> Result<T, DeltaTableError> {
    let read = AssertUnwindSafe(reading).catch_unwind().await;
    read.unwrap_or_else(|_| Err(damaged_log()))
}

/// Calls `read`, and turns a panic into an error, as [`catch_async_panic`] does.
pub(crate) fn catch_panic<T>(read: impl FnOnce() -> T) -> Result<T, DeltaTableError> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| damaged_log())
}

fn damaged_log() -> DeltaTableError {
    DeltaTableError::Generic("its log is damaged: an entry or a checkpoint cannot be read".into())
}

/// The store of a table's log: the table's own store, whose conditional creates make commits atomic.
pub(crate) fn log_store(location: &Location, by: LogBy) -> Result<LogStoreRef> {
    let url = table_url(location)?;
    let root: Arc<dyn ObjectStore> = Arc::new(RememberedLog::new(Arc::clone(location.store()), by));
    let prefixed: Arc<dyn ObjectStore> = if location.path().as_ref().is_empty() {
        Arc::clone(&root)
    } else {
        Arc::new(PrefixStore::new(Arc::clone(&root), location.path().clone()))
    };
    Ok(default_logstore(
        prefixed,
        root,
        &url,
        &StorageConfig::default(),
    ))
}

fn table_url(location: &Location) -> Result<Url, StorageError> {
    let bad = |reason: &str| StorageError::bad_path(location, reason);
    // The Delta library decodes names with these characters when it reads them back, and then finds
    // no file.
    if location.path().as_ref().contains(['%', '\\']) {
        return Err(bad("an archive's path must not contain % or \\"));
    }
    match location.local() {
        Some(local) => Url::from_directory_path(local).map_err(|()| bad("not an absolute path")),
        None => {
            let mut url = location.url();
            url.set_path(&format!("{}/", url.path().trim_end_matches('/')));
            Ok(url)
        }
    }
}
