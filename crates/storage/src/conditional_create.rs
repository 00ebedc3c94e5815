//! Tests whether a store honours conditional creates: a create must fail if the object exists.
//!
//! A commit to an archive is one conditional create of a log entry. A server that ignores the condition lets two runs
//! overwrite each other's commits, and reports success to both.

use std::time::SystemTime;

use object_store::{Error, ObjectStoreExt as _, PutMode, PutOptions};

use crate::delta_log::LOG_DIRECTORY;
use crate::error::{Result, StorageError};
use crate::explain::explain;
use crate::location::Location;
use crate::store::NoReadBack;

/// The object that the test creates, below the archive's directory.
const NAME: &str = "_dedup-job/conditional-create";
const CONTENT: &str =
    "Kept to prove, before a commit, that the store does not create what is there already.\n";

/// The directories of a local archive to which a commit writes.
const WRITTEN: [&str; 2] = [LOG_DIRECTORY, "_dedup-job/days"];
/// How the names of the files begin that the test creates there.
const LOCAL_NAME: &str = "conditional-create-";

/// Whether a path below an archive's directory is that of a file of the test, which removes it unless it is killed.
pub fn is_tested_name(path: &str) -> bool {
    let Some((directory, name)) = path.rsplit_once('/') else {
        return false;
    };
    let is_number =
        |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    WRITTEN.contains(&directory)
        && name
            .strip_prefix(LOCAL_NAME)
            .and_then(|numbers| numbers.split_once('-'))
            .is_some_and(|(process, time)| is_number(process) && is_number(time))
}

/// Refuses a store or file system that does not honour conditional creates, or that this process may not write to. Leaves the object
/// of the test in a store, so that a later test needs only one small request.
///
/// # Errors
/// [`StorageError::Unconditional`] if the store does not honour them, after removing the object; or the store's own error.
pub async fn require_conditional_create(archive: &Location) -> Result<()> {
    let Some(local) = archive.local() else {
        return require_of(archive, &archive.child(NAME)?).await;
    };
    for directory in WRITTEN.into_iter().filter(|name| local.join(name).is_dir()) {
        // Another process may test at the same time.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!(
            "{directory}/{LOCAL_NAME}{}-{}",
            std::process::id(),
            now.as_nanos()
        );
        let tested = archive.child(&name)?;
        let required = require_of(archive, &tested).await;
        // If this fails, the file stays, which does no harm.
        let _ = tested.store().delete(tested.path()).await;
        required?;
    }
    Ok(())
}

/// Tests an object of an archive; see [`require_conditional_create`].
async fn require_of(archive: &Location, tested: &Location) -> Result<()> {
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
            Err(error) => return Err(StorageError::store(tested)(error)),
        }
    }
    // If this fails, the object stays, which does no harm.
    let _ = tested.store().delete(tested.path()).await;
    Err(unconditional(
        "it creates an object that is there already, though asked not to",
    ))
}
