//! The errors of this crate, and their kinds.

use archive::ArchiveError;
use datafusion::error::DataFusionError;
use storage::{ErrorKind, StorageError};
use streams::{Stopped, causes, exhausted_memory, query_kind, query_message};

/// Result of this crate.
pub type Result<T, E = DocumentsError> = std::result::Result<T, E>;

/// Documents cannot be read or copied. Every variant names its object.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// A file of Parquet failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file or a store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Input data that cannot be used.
    #[error("{object}: {reason}")]
    BadData { object: String, reason: String },
    /// A large file was cut where it must not be, to be read in parts: within a record, or behind another dictionary of zstd than
    /// the file starts with. [`Documents::uncut`](crate::Documents::uncut) makes it whole again.
    #[error(
        "{file}, byte {offset}: the file was divided here for parallel reading, but this place is inside a record, or its frames need another zstd dictionary"
    )]
    WrongCut { file: String, offset: u64 },
    /// Options that the files do not allow.
    #[error("{0}")]
    Usage(String),
    /// Options that contradict each other, or what was planned.
    #[error("{0}")]
    Configuration(String),
    /// A defect of the program.
    #[error("{0}")]
    Internal(String),
    /// The memory limit does not allow the work.
    #[error("out of the memory limit: {what}; raise --memory-limit")]
    OutOfMemory { what: String },
    /// What was read changed meanwhile: the same command may succeed later.
    #[error("{0}")]
    TryAgain(String),
    /// A query failed.
    #[error("{}", query_message(operation, source, own_kind))]
    Query {
        operation: String,
        source: DataFusionError,
    },
}

impl DocumentsError {
    /// The error for data of `object` that cannot be used.
    pub fn bad_data(object: impl ToString, reason: impl Into<String>) -> Self {
        Self::BadData {
            object: object.to_string(),
            reason: reason.into(),
        }
    }

    /// Wraps an error of a query that was part of `operation`; an exhausted memory pool becomes [`Self::OutOfMemory`].
    pub(crate) fn query(operation: impl Into<String>) -> impl FnOnce(DataFusionError) -> Self {
        let operation = operation.into();
        move |source| match exhausted_memory(&source) {
            Some(what) => Self::OutOfMemory {
                what: format!("{operation}: {what}"),
            },
            None => Self::Query { operation, source },
        }
    }

    /// The file and the offset of a wrong cut, if [`Self::WrongCut`] is the cause.
    pub fn wrong_cut(&self) -> Option<(&str, u64)> {
        match self {
            Self::WrongCut { file, offset } => Some((file.as_str(), *offset)),
            Self::Query { source, .. } => wrong_cut(source),
            _ => None,
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Archive(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            Self::Usage(_) => ErrorKind::Usage,
            Self::OutOfMemory { .. } | Self::TryAgain(_) => ErrorKind::TryAgain,
            Self::BadData { .. } | Self::WrongCut { .. } => ErrorKind::Data,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Internal(_) => ErrorKind::Internal,
            Self::Query { source, .. } => query_kind(source, own_kind),
        }
    }
}

/// The file and the offset of a wrong cut, if one is the cause of a query's error.
pub fn wrong_cut(error: &DataFusionError) -> Option<(&str, u64)> {
    causes(error).find_map(|cause| match cause.downcast_ref() {
        Some(DocumentsError::WrongCut { file, offset }) => Some((file.as_str(), *offset)),
        _ => None,
    })
}

/// The kind of an error of this crate, or of one below it.
pub fn own_kind(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let own = error.downcast_ref().map(DocumentsError::kind);
    let archive = || error.downcast_ref().map(ArchiveError::kind);
    own.or_else(archive)
        .or_else(|| error.downcast_ref().map(StorageError::kind))
}

// A library's error may quote a request with its secrets, so `Debug` shows only the scrubbed
// message.
impl std::fmt::Debug for DocumentsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

impl From<Stopped> for DocumentsError {
    fn from(error: Stopped) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<DocumentsError> for DataFusionError {
    fn from(error: DocumentsError) -> Self {
        Self::External(Box::new(error))
    }
}
