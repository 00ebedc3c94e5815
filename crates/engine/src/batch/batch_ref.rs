//! A reference to a batch, also for other processes: what its file of fingerprints contains, and where this process has it.

use std::path::PathBuf;

use archive::IdType;
use archive::fingerprint_file::FingerprintFile;
use serde::{Deserialize, Serialize};
use simhash::Spec;

/// A reference to a batch's file of fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchRef {
    /// The file. Another process has it elsewhere.
    #[serde(skip)]
    pub path: PathBuf,
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
    /// A reference to `file`.
    #[must_use]
    pub fn new(file: &FingerprintFile) -> Self {
        Self {
            path: file.path.clone(),
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

    /// The file.
    #[must_use]
    pub fn file(&self) -> FingerprintFile {
        FingerprintFile {
            path: self.path.clone(),
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
