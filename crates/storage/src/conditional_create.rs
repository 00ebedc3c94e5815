//! Tests whether a store honours conditional creates: a create must fail if the object exists.
//!
//! A commit to an archive is one conditional create of a log entry. A server that ignores the condition lets two runs
//! overwrite each other's commits, and reports success to both.

use object_store::{Error, ObjectStoreExt as _, PutMode, PutOptions};

use crate::error::{Result, StorageError};
use crate::explain::explain;
use crate::location::Location;
use crate::store::NoReadBack;

/// The object that the test creates, below the archive's directory.
const NAME: &str = "_dedup-job/conditional-create";
const CONTENT: &str =
    "Kept to prove, before a commit, that the store does not create what is there already.\n";

/// Refuses a store or file system that does not honour conditional creates, or that this process may not write to. Leaves the object
/// of the test in a store, so that a later test needs only one small request.
///
/// # Errors
/// [`StorageError::Unconditional`] if the store does not honour them, after removing the object; or the store's own error.
pub async fn require_conditional_create(archive: &Location) -> Result<()> {
    let tested = archive.child(NAME)?;
    let unconditional = |reason: &str| StorageError::Unconditional {
        path: archive.to_string(),
        reason: reason.to_owned(),
    };
    for _ in 0..2 {
        let mut options = PutOptions::from(PutMode::Create);
        options.extensions.insert(NoReadBack);
        let created = tested
            .store()
            .put_opts(tested.path(), CONTENT.into(), options);
        match created.await {
            Ok(_) if archive.local().is_some() => {
                // If this fails, the file stays, which does no harm.
                let _ = tested.store().delete(tested.path()).await;
                return Ok(());
            }
            // The store created the object or overwrote an existing one; the second request shows
            // which.
            Ok(_) => {}
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => return Ok(()),
            Err(Error::NotSupported { source }) if archive.local().is_some() => {
                return Err(unconditional(&source.to_string()));
            }
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                return Err(unconditional("it has no conditional create"));
            }
            Err(error) if explain(&error).text.contains("NotImplemented") => {
                return Err(unconditional("it has no conditional create"));
            }
            Err(error) => return Err(StorageError::store(&tested)(error)),
        }
    }
    // If this fails, the object stays, which does no harm.
    let _ = tested.store().delete(tested.path()).await;
    Err(unconditional(
        "it creates an object that is there already, though asked not to",
    ))
}
