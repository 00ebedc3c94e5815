//! Conditional creates whose outcome is known.
//!
//! A create that ends in an error may have been carried out: the answer was lost, or the request was sent again and met
//! its own object. What is stored under the name tells.

use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutOptions, PutPayload, PutResult, Result,
};

use super::explain::explain;

/// The first pause before a create is tried again; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(50);

/// Time for a last try when there is none left.
const LEAST: Duration = Duration::from_secs(1);

/// Creates `path` with `payload`, whose bytes must be like no other writer's.
///
/// # Errors
/// [`Error::AlreadyExists`] when another object has the name; any other error leaves it open whether the object is, or
/// will be, there.
pub(super) async fn create(
    store: &dyn ObjectStore,
    path: &Path,
    payload: PutPayload,
    options: PutOptions,
    deadline: Duration,
) -> Result<PutResult> {
    let begin = Instant::now();
    let mut pause = PAUSE;
    loop {
        // Each try has the client's own patience, and all of them together no more than one.
        let left = deadline.saturating_sub(begin.elapsed()).max(LEAST);
        let put = store.put_opts(path, payload.clone(), options.clone());
        let error = match tokio::time::timeout(left, put).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => error,
            Err(elapsed) => Error::Generic {
                store: "object store",
                source: elapsed.into(),
            },
        };
        let told = explain(&error).text;
        if is_refused(&error) {
            return Err(error);
        }
        let left = deadline.saturating_sub(begin.elapsed()).max(LEAST);
        let look = tokio::time::timeout(left, stored(store, path));
        match look.await {
            Ok(Ok(Some(bytes))) if bytes == Bytes::from(payload.clone()) => {
                tracing::info!(%path, "the store has what was written, though it answered: {told}");
                return Ok(PutResult {
                    e_tag: None,
                    version: None,
                });
            }
            Ok(Ok(Some(_))) => {
                return Err(match error {
                    error @ Error::AlreadyExists { .. } => error,
                    error => Error::AlreadyExists {
                        path: path.to_string(),
                        source: error.into(),
                    },
                });
            }
            // A conflict with a writer that has not come through.
            Ok(Ok(None)) if begin.elapsed() + pause < deadline => {
                tracing::debug!(%path, "trying to create it again: {told}");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            Ok(Ok(None)) => {
                return Err(match error {
                    Error::AlreadyExists { source, .. } | Error::Precondition { source, .. } => {
                        Error::Generic {
                            store: "object store",
                            source,
                        }
                    }
                    error => error,
                });
            }
            Ok(Err(_)) | Err(_) => return Err(error),
        }
    }
}

/// Whether the store has not even tried.
fn is_refused(error: &Error) -> bool {
    matches!(
        error,
        Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::NotImplemented { .. }
            | Error::NotSupported { .. }
            | Error::InvalidPath { .. }
            | Error::NotFound { .. }
    )
}

/// What is stored at `path`.
async fn stored(store: &dyn ObjectStore, path: &Path) -> Result<Option<Bytes>> {
    match store.get(path).await {
        Ok(found) => found.bytes().await.map(Some),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
