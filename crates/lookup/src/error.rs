//! The errors of this crate.

use archive::ArchiveError;
use storage::{ErrorKind, StorageError};
use tokio::task::JoinHandle;

pub type Result<T, E = LookupError> = std::result::Result<T, E>;

/// An operation on an index that failed; every variant names its object.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// A file or a store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A directory without a manifest, given as an index.
    #[error(
        "{path}: not an index (no manifest); make one with `dedup-job index build --base ARCHIVE --output {path}`"
    )]
    NotAnIndex { path: String },
    /// A directory that holds something other than an index.
    #[error(
        "{path}: has {found}, which is no file of an index; give the index a directory, or a prefix, of its own"
    )]
    NotEmpty { path: String, found: String },
    /// A file of an index whose content is not what it should be.
    #[error("{object}: {reason}")]
    Damaged { object: String, reason: String },
    /// A file in a format of another release.
    #[error(
        "{object}: index format {found}; this release reads format {known}: build the index again, in another directory"
    )]
    Format {
        object: String,
        found: u32,
        known: u32,
    },
    /// The archive is not the one that the index covers, or is older than the version that it covers.
    #[error("{index}: {reason}; build an index in another directory")]
    OtherArchive { index: String, reason: String },
    /// Another build published a version meanwhile.
    #[error("{path}: another build published version {version} meanwhile; run this build again")]
    Overtaken { path: String, version: u64 },
    /// Answers that are larger than the caller allows.
    #[error(
        "the answers have more than {bytes} bytes; ask for fewer queries at once, or for fewer documents"
    )]
    AnswerTooLarge { bytes: usize },
    /// A distance that an index cannot answer.
    #[error("k is {k}; a lookup takes a k of at most {}", crate::MAX_DISTANCE)]
    Distance { k: u32 },
    /// A least similarity that an index cannot answer.
    #[error("min_similarity {least}: {reason}")]
    Similarity { least: f64, reason: String },
    /// An address that other machines reach, without TLS or without client authentication.
    #[error(
        "--listen {address}: other machines reach this address, so it needs TLS (--tls-cert, --tls-key) and a token (--token-file) or \
         client certificates (--tls-ca); if you trust every process on the network, use --insecure"
    )]
    Exposed { address: std::net::SocketAddr },
    /// A key or a certificate that cannot be used.
    #[error("{path}: {reason}")]
    Tls { path: String, reason: String },
    /// A directory that another server uses.
    #[error("{path}: another server uses this --remember directory; give each server its own")]
    InUse { path: String },
    /// The table of remembered documents has no room.
    #[error(
        "{path}: the server has no room to remember more than {max} documents; start it with a larger --remember-max, or a shorter --remember-for"
    )]
    Full { path: String, max: usize },
}

// As in the other crates: a derived `Debug` would print the errors of libraries, which may quote a request's secrets.
impl std::fmt::Debug for LookupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

impl LookupError {
    /// Wraps an error of the system that concerns the file `path`.
    pub(crate) fn io<P: ToString>(path: P) -> impl FnOnce(std::io::Error) -> Self + use<P> {
        let failed = StorageError::io(path);
        move |source| failed(source).into()
    }

    /// What a task returns; a panic in it is an error of `work`.
    pub(crate) async fn joined<T>(task: JoinHandle<Result<T>>, work: &str) -> Result<T> {
        task.await
            .unwrap_or_else(|panic| Err(Self::io(work)(std::io::Error::other(panic))))
    }

    pub(crate) fn is_missing_file(&self) -> bool {
        match self {
            Self::Storage(StorageError::NotFound { .. }) => true,
            Self::Storage(StorageError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            _ => false,
        }
    }

    /// The error for a file whose content is not what it should be.
    pub(crate) fn damaged(object: impl ToString, reason: impl ToString) -> Self {
        Self::Damaged {
            object: object.to_string(),
            reason: reason.to_string(),
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Archive(error) => error.kind(),
            Self::AnswerTooLarge { .. }
            | Self::NotAnIndex { .. }
            | Self::NotEmpty { .. }
            | Self::Distance { .. }
            | Self::Similarity { .. }
            | Self::Exposed { .. } => ErrorKind::Usage,
            Self::Damaged { .. } => ErrorKind::Data,
            Self::Format { .. } | Self::OtherArchive { .. } | Self::Tls { .. } => {
                ErrorKind::Configuration
            }
            Self::Overtaken { .. } | Self::InUse { .. } | Self::Full { .. } => ErrorKind::TryAgain,
        }
    }
}
