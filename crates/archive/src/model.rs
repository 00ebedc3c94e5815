//! The tables that an archive's spec names, kept with the archive.
//!
//! They are in `_dedup-job/` beside the Delta log, each under its kind and digest: what begins with `_` belongs to no
//! table's data, so that other programs pass it by.

use std::sync::Arc;

use object_store::{ObjectStoreExt as _, PutPayload};
use simhash::{DocumentFrequencies, Model, Spec, StopWords};

use crate::error::{ArchiveError, Result};
use crate::frequencies;
use crate::location::Location;

const DIRECTORY: &str = "_dedup-job";

/// What is kept with an archive besides its table.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// The document frequencies, and the spec of their features.
    pub frequencies: Option<(Spec, DocumentFrequencies)>,
    /// The words that are left out.
    pub stop_words: Option<StopWords>,
}

fn idf_name(digest: &str) -> String {
    format!("{DIRECTORY}/idf-{digest}.parquet")
}

fn stop_words_name(digest: &str) -> String {
    format!("{DIRECTORY}/stop-words-{digest}.txt")
}

/// Writes what `spec` names, before the archive's first commit.
///
/// # Errors
/// [`ArchiveError`] when it cannot be written.
pub async fn keep(location: &Location, spec: &Spec, kept: &Kept) -> Result<()> {
    let put = async |name: String, bytes: Vec<u8>| {
        let file = location.child(&name)?;
        let stored = file.store().put(file.path(), PutPayload::from(bytes)).await;
        stored.map_err(ArchiveError::store(file.to_string()))
    };
    if let (Some(digest), Some((features, of))) = (&spec.idf, &kept.frequencies) {
        let bytes = frequencies::encode(location.given(), features, of)?;
        put(idf_name(digest), bytes).await?;
    }
    if let (Some(digest), Some(list)) = (&spec.stop_words, &kept.stop_words) {
        put(stop_words_name(digest), list.stored().into_bytes()).await?;
    }
    Ok(())
}

/// The bytes of a file that the spec names.
async fn kept(file: &Location) -> Result<bytes::Bytes> {
    file.read().await.map_err(|error| match error {
        ArchiveError::NotFound { path } => ArchiveError::BadData {
            object: path,
            reason: "the archive's spec names this file, but it is missing".into(),
        },
        error => error,
    })
}

/// Reads what `spec` names.
///
/// # Errors
/// [`ArchiveError`] when it cannot be read, or is not what the spec says.
pub async fn load(location: &Location, spec: &Spec) -> Result<Model> {
    let idf = match &spec.idf {
        None => None,
        Some(digest) => {
            let file = location.child(&idf_name(digest))?;
            let (features, of) = frequencies::decode(file.given(), kept(&file).await?)?;
            let table = frequencies::table(file.given(), &features, spec.seed, &of)?;
            Some(Arc::new(table))
        }
    };
    let stop_words = match &spec.stop_words {
        None => None,
        Some(digest) => {
            let file = location.child(&stop_words_name(digest))?;
            let bytes = kept(&file).await?;
            let text = std::str::from_utf8(&bytes).map_err(|error| ArchiveError::BadData {
                object: file.to_string(),
                reason: error.to_string(),
            })?;
            Some(Arc::new(StopWords::load(text)))
        }
    };
    Model::new(spec.clone(), idf, stop_words).map_err(|error| ArchiveError::BadData {
        object: location.child_name(DIRECTORY),
        reason: error.to_string(),
    })
}
