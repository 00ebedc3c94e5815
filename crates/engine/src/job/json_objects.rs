//! The JSON objects of a job. Each ends with a line of its own: a digest of its name in the job and of its JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use storage::{Location, StorageError};

use crate::error::{EngineError, Result};

/// What to do if a job is damaged.
pub(super) const ANEW: &str = "begin anew: `dedup-job split` with all options and --restart";
/// The plan of a round, in a directory of its own.
pub(super) const PLAN: &str = "plan.json";
/// Bytes of [`digest_line`].
const DIGEST_BYTES: usize = 65;

/// Creates an object; one with the same bytes may be there.
pub(super) async fn create_json(object: &Location, value: &impl Serialize) -> Result<()> {
    let bytes = to_json(object, value)?;
    if object.create(bytes.clone()).await? || object.read().await? == bytes {
        return Ok(());
    }
    Err(EngineError::TryAgain(format!(
        "{object}: another `split` wrote it meanwhile; run the same command again"
    )))
}

/// Reads and checks a JSON object of the job; `None` if the store has no such object.
pub(super) async fn read_json<T: DeserializeOwned>(object: &Location) -> Result<Option<T>> {
    let bytes = match object.read().await {
        Ok(bytes) => bytes,
        Err(StorageError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bad = |what: &str| EngineError::bad_data(object, format!("{what}; {ANEW}"));
    let json = bytes
        .len()
        .checked_sub(DIGEST_BYTES)
        .map(|end| bytes.split_at(end));
    let json = json.filter(|(json, digest)| *digest == digest_line(object, json).as_bytes());
    let (json, _) = json.ok_or_else(|| bad("it is damaged"))?;
    let value = serde_json::from_slice(json);
    let value = value.map_err(|error| bad(&format!("another version wrote it: {error}")))?;
    Ok(Some(value))
}

/// SHA-256 of the name that an object has in its job, and of its JSON, in hexadecimal; on a line of its own.
fn digest_line(object: &Location, json: &[u8]) -> String {
    let name = object.file_name();
    let mut digest = Sha256::new_with_prefix(&name);
    if name == PLAN {
        // Each round has one.
        let round = object.path().parts().nth_back(1);
        digest.update(round.as_ref().map_or("", |round| round.as_ref()));
    }
    digest.update(json);
    format!("\n{}", storage::hex(&digest.finalize()))
}

/// The bytes of an object of a job.
pub(super) fn to_json(object: &Location, value: &impl Serialize) -> Result<bytes::Bytes> {
    let json = serde_json::to_vec(value);
    let mut json = json.map_err(EngineError::internal)?;
    let digest = digest_line(object, &json);
    json.extend(digest.into_bytes());
    Ok(json.into())
}
