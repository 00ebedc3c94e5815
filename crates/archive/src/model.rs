//! The tables that an archive's spec names, kept with the archive.
//!
//! They are in `_dedup-job/` beside the Delta log, each under its kind and digest: what begins with `_` belongs to no
//! table's data, so that other programs pass it by.

use std::sync::Arc;

use object_store::path::Path;
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

fn idf_path(location: &Location, digest: &str) -> Path {
    let directory = location.path().clone().join(DIRECTORY);
    directory.join(format!("idf-{digest}.parquet"))
}

fn stop_words_path(location: &Location, digest: &str) -> Path {
    let directory = location.path().clone().join(DIRECTORY);
    directory.join(format!("stop-words-{digest}.txt"))
}

/// Writes what `spec` names, before the archive's first commit.
pub(crate) async fn keep(location: &Location, spec: &Spec, kept: &Kept) -> Result<()> {
    let put = async |path: Path, bytes: Vec<u8>| {
        let stored = location.store().put(&path, PutPayload::from(bytes)).await;
        stored.map_err(ArchiveError::store(format!("{location}: {path}")))
    };
    if let (Some(digest), Some((features, of))) = (&spec.idf, &kept.frequencies) {
        let bytes = frequencies::encode(location.given(), features, of)?;
        put(idf_path(location, digest), bytes).await?;
    }
    if let (Some(digest), Some(list)) = (&spec.stop_words, &kept.stop_words) {
        put(
            stop_words_path(location, digest),
            list.stored().into_bytes(),
        )
        .await?;
    }
    Ok(())
}

/// Reads what `spec` names.
pub(crate) async fn load(location: &Location, spec: &Spec) -> Result<Model> {
    let name = |path: &Path| {
        let file = path.filename().unwrap_or_default();
        format!(
            "{}/{DIRECTORY}/{file}",
            location.given().trim_end_matches('/')
        )
    };
    let get = async |path: &Path| {
        let object = name(path);
        let result = location.store().get(path).await;
        let result = result.map_err(ArchiveError::store(object.clone()))?;
        result.bytes().await.map_err(ArchiveError::store(object))
    };
    let idf = match &spec.idf {
        None => None,
        Some(digest) => {
            let path = idf_path(location, digest);
            let name = name(&path);
            let (features, of) = frequencies::decode(&name, get(&path).await?)?;
            Some(Arc::new(frequencies::table(
                &name, &features, spec.seed, &of,
            )?))
        }
    };
    let stop_words = match &spec.stop_words {
        None => None,
        Some(digest) => {
            let path = stop_words_path(location, digest);
            let bytes = get(&path).await?;
            let text = std::str::from_utf8(&bytes).map_err(|error| ArchiveError::BadData {
                object: name(&path),
                reason: error.to_string(),
            })?;
            Some(Arc::new(StopWords::load(text)))
        }
    };
    Model::new(spec.clone(), idf, stop_words).map_err(|error| ArchiveError::BadData {
        object: format!("{}/{DIRECTORY}", location.given().trim_end_matches('/')),
        reason: error.to_string(),
    })
}
