//! Conditional creates whose outcome is known.
//!
//! A create that ends in an error may still have created the object: the answer was lost, or the
//! client sent the request again and found the object of its first request. So after an error,
//! `create` reads the object back.

use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutOptions, PutPayload, PutResult, Result,
};

use crate::explain::explain;

/// Pause before the second attempt; each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(50);

/// Minimum timeout of one attempt, even after the deadline.
const MIN_TRY: Duration = Duration::from_secs(1);

/// Creates an object at `path`. Its `payload` must differ from that of every other writer, because an object with the
/// same bytes counts as this create's own.
///
/// # Errors
/// [`Error::AlreadyExists`] when another writer's object is at `path`. After any other error, this create's object may be
/// there, or appear later.
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
        // The client retries requests within one attempt; all attempts share one deadline.
        let left = deadline.saturating_sub(begin.elapsed()).max(MIN_TRY);
        let put = store.put_opts(path, payload.clone(), options.clone());
        let error = match tokio::time::timeout(left, put).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => error,
            Err(elapsed) => Error::Generic {
                store: "object store",
                source: elapsed.into(),
            },
        };
        let message = explain(&error).text;
        if was_not_tried(&error) {
            return Err(error);
        }
        let left = deadline.saturating_sub(begin.elapsed()).max(MIN_TRY);
        let found = tokio::time::timeout(left, read_object(store, path));
        match found.await {
            Ok(Ok(Some(bytes))) if bytes == Bytes::from(payload.clone()) => {
                tracing::info!(%path, "the store has what was written, though it answered: {message}");
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
            // The create failed, but no object is there: perhaps it collided with another writer's
            // create, which also failed.
            Ok(Ok(None)) if begin.elapsed() + pause < deadline => {
                tracing::debug!(%path, "trying to create it again: {message}");
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

/// Whether the store or its client refused the request before it tried to create anything.
fn was_not_tried(error: &Error) -> bool {
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

async fn read_object(store: &dyn ObjectStore, path: &Path) -> Result<Option<Bytes>> {
    match store.get(path).await {
        Ok(found) => found.bytes().await.map(Some),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
