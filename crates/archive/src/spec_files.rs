//! The files that an archive's spec names: document frequencies and stop words, stored with the archive.
//!
//! They are in `_dedup-job/` beside the Delta log, each named by its kind and digest. Other programs ignore directories
//! that begin with `_`.

use std::sync::Arc;

use simhash::{DocumentFrequencies, Model, Spec, StopWords};
use storage::{Location, StorageError};

use crate::error::{ArchiveError, Result};
use crate::frequencies;

const DIRECTORY: &str = "_dedup-job";

/// The contents of the files that a spec names.
#[derive(Debug, Clone, Default)]
pub struct SpecFiles {
    /// The document frequencies, and the spec of their features.
    pub frequencies: Option<(Spec, DocumentFrequencies)>,
    /// The words left out of features.
    pub stop_words: Option<StopWords>,
}

fn idf_name(digest: &str) -> String {
    format!("{DIRECTORY}/idf-{digest}.parquet")
}

fn stop_words_name(digest: &str) -> String {
    format!("{DIRECTORY}/stop-words-{digest}.txt")
}

/// Whether a path below an archive's directory is that of such a file, but of none that `spec` names: a `create` that was killed left it.
pub(crate) fn is_of_other_spec(path: &str, spec: &Spec) -> bool {
    let digest_in = |before: &str, after: &str| {
        let name = path.strip_prefix(DIRECTORY)?.strip_prefix(before)?;
        let digest = name.strip_suffix(after)?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then_some(digest)
    };
    let is_other = |digest: Option<&str>, named: &Option<String>| {
        digest.is_some_and(|digest| named.as_deref() != Some(digest))
    };
    is_other(digest_in("/idf-", ".parquet"), &spec.idf)
        || is_other(digest_in("/stop-words-", ".txt"), &spec.stop_words)
}

/// Writes the files that `spec` names below the archive's `location`. `Archive::create` calls this
/// before its first commit.
pub async fn write(location: &Location, spec: &Spec, files: &SpecFiles) -> Result<()> {
    if let (Some(digest), Some((features, frequencies))) = (&spec.idf, &files.frequencies) {
        let bytes = frequencies::encode(location.given(), features, frequencies)?;
        let file = location.child(&idf_name(digest))?;
        file.write_checked(bytes.into()).await?;
    }
    if let (Some(digest), Some(list)) = (&spec.stop_words, &files.stop_words) {
        let file = location.child(&stop_words_name(digest))?;
        file.write_checked(list.encode().into()).await?;
    }
    Ok(())
}

/// Copies the files that `spec` names from below one location to below another.
pub async fn copy(from: &Location, to: &Location, spec: &Spec) -> Result<()> {
    let names = [
        spec.idf.as_deref().map(idf_name),
        spec.stop_words.as_deref().map(stop_words_name),
    ];
    for name in names.into_iter().flatten() {
        let bytes = read(&from.child(&name)?).await?;
        to.child(&name)?.write_checked(bytes).await?;
    }
    Ok(())
}

/// Reads a file that the spec names.
async fn read(file: &Location) -> Result<bytes::Bytes> {
    file.read().await.map_err(|error| match error {
        StorageError::NotFound { path } => ArchiveError::bad_data(
            path,
            "the archive's spec names this file, but it is missing",
        ),
        error => error.into(),
    })
}

/// Reads the files that `spec` names below the archive's `location`, and builds the model of
/// `spec`.
pub async fn load(location: &Location, spec: &Spec) -> Result<Model> {
    let idf = match &spec.idf {
        None => None,
        Some(digest) => {
            let file = location.child(&idf_name(digest))?;
            let (features, frequencies) = frequencies::decode(file.given(), read(&file).await?)?;
            let weights = frequencies::weights(file.given(), &features, spec, &frequencies)?;
            Some(Arc::new(weights))
        }
    };
    let stop_words = match &spec.stop_words {
        None => None,
        Some(digest) => {
            let file = location.child(&stop_words_name(digest))?;
            let bytes = read(&file).await?;
            let text = std::str::from_utf8(&bytes)
                .map_err(|error| ArchiveError::bad_data(&file, error.to_string()))?;
            Some(Arc::new(StopWords::decode(text)))
        }
    };
    Model::new(spec.clone(), idf, stop_words)
        .map_err(|error| ArchiveError::bad_data(location.child_name(DIRECTORY), error.to_string()))
}
