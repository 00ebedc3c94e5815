//! Whether a store keeps its word: a conditional create must fail where an object is.
//!
//! A commit is one conditional create of a log entry. A server that takes no notice of the condition lets two runs
//! overwrite each other's, and says that both succeeded.

use object_store::{Error, ObjectStoreExt as _, PutMode, PutOptions};

use super::guarded::AsAnswered;
use crate::error::{ArchiveError, Result};
use crate::location::Location;

/// The object that it is tried on, in the archive's own directory.
const NAME: &str = "_dedup-job/conditional-create";
const CONTENT: &str =
    "Kept to prove, before a commit, that the store does not create what is there already.\n";

/// Proves that the store of an archive honours conditional creates. The object that it is tried on stays, so that from
/// the second time on it takes one small request.
///
/// # Errors
/// [`ArchiveError::Unconditional`] when it does not; then nothing stays behind.
pub(crate) async fn preflight(archive: &Location) -> Result<()> {
    if archive.local().is_some() {
        return Ok(());
    }
    let probe = archive.child(NAME)?;
    let unconditional = |reason: &str| ArchiveError::Unconditional {
        path: archive.to_string(),
        reason: reason.to_owned(),
    };
    for _ in 0..2 {
        let mut options = PutOptions::from(PutMode::Create);
        options.extensions.insert(AsAnswered);
        let created = probe
            .store()
            .put_opts(probe.path(), CONTENT.into(), options);
        match created.await {
            // There was none; or it was overwritten, as the second time tells.
            Ok(_) => {}
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => return Ok(()),
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                return Err(unconditional("it has no conditional create"));
            }
            Err(error) if super::explain(&error).text.contains("NotImplemented") => {
                return Err(unconditional("it has no conditional create"));
            }
            Err(error) => return Err(ArchiveError::store(probe.to_string())(error)),
        }
    }
    // As far as possible.
    let _ = probe.store().delete(probe.path()).await;
    Err(unconditional(
        "it creates an object that is there already, though asked not to",
    ))
}
