//! A reference to a batch, for other processes: where its file of fingerprints is, and what the file
//! must contain.

use std::path::PathBuf;

use archive::IdType;
use archive::fingerprint_file::FingerprintFile;
use serde::{Deserialize, Serialize};
use simhash::Spec;

/// A reference to a batch's file of fingerprints, which one process sends to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchRef {
    /// Path or URL of the file.
    pub location: String,
    /// Digest of its rows.
    pub digest: String,
    /// See [`FingerprintFile::day_digest`].
    pub day_digest: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Rows of the file.
    pub rows: u64,
    /// Rows without a fingerprint.
    pub without_fingerprint: u64,
    /// Whether its ids are integers.
    pub bigint_ids: bool,
    /// The spec of its fingerprints.
    pub spec: Spec,
}

impl BatchRef {
    /// A reference to `file`, which other processes find at `location`.
    #[must_use]
    pub fn new(file: &FingerprintFile, location: String) -> Self {
        Self {
            location,
            digest: file.digest.clone(),
            day_digest: file.day_digest.clone(),
            bytes: file.bytes,
            rows: file.rows,
            without_fingerprint: file.without_fingerprint,
            bigint_ids: file.id_type == IdType::Bigint,
            spec: file.spec.clone(),
        }
    }

    /// The type of the ids.
    #[must_use]
    pub fn id_type(&self) -> IdType {
        if self.bigint_ids {
            IdType::Bigint
        } else {
            IdType::String
        }
    }

    /// The file, which this process has at `path`.
    #[must_use]
    pub fn file(&self, path: PathBuf) -> FingerprintFile {
        FingerprintFile {
            path,
            bytes: self.bytes,
            rows: self.rows,
            without_fingerprint: self.without_fingerprint,
            digest: self.digest.clone(),
            day_digest: self.day_digest.clone(),
            id_type: self.id_type(),
            spec: self.spec.clone(),
        }
    }
}
