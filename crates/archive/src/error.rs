//! What can go wrong with an archive, and of which kind it is.

use simhash::{Difference, SpecError};

/// Result of this crate.
pub type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// What a failure calls for; each kind has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request makes no sense: correct the command.
    Usage,
    /// The data is wrong: correct the data.
    Data,
    /// The storage cannot be reached.
    Unreachable,
    /// A fault of this program.
    Internal,
    /// Local input or output failed, as when a disk is full.
    Io,
    /// The same command may succeed later, or with more memory.
    TryAgain,
    /// Access was refused.
    Permission,
    /// The configuration, or the fingerprint specs, do not go together.
    Configuration,
}

/// An operation on an archive that failed; every variant names its object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// There is nothing at the path.
    #[error("{path}: no such file or directory")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// A path that cannot be used.
    #[error("{path}: {reason}")]
    BadPath {
        /// The path as given.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A directory without a Delta log, where an archive is needed.
    #[error(
        "{path}: not an archive (no Delta log); make one with `dedup-job archive create {path}`"
    )]
    NotAnArchive {
        /// The path as given.
        path: String,
    },
    /// `create` where a table is already.
    #[error("{path}: there is a table already")]
    Exists {
        /// The path as given.
        path: String,
    },
    /// A Delta table that this program did not make.
    #[error("{path}: a Delta table, but not an archive of this program: {reason}")]
    ForeignTable {
        /// The path as given.
        path: String,
        /// What is missing or different.
        reason: String,
    },
    /// A stored spec that this version cannot read.
    #[error("{path}: {source}")]
    Spec {
        /// The file or table.
        path: String,
        /// What is wrong with it.
        source: SpecError,
    },
    /// Fingerprints made under different specs.
    #[error(
        "{left} and {right} hold fingerprints of different specs, which must not be compared:{}",
        list(differences)
    )]
    SpecMismatch {
        /// One side.
        left: String,
        /// The other side.
        right: String,
        /// The fields in which they differ, the left side's value first.
        differences: Vec<Difference>,
    },
    /// A file whose content is not what it should be.
    #[error("{object}: {reason}")]
    BadData {
        /// File, and row group and column where they are known.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// A Parquet file that cannot be read or written.
    #[error("{object}: {source}")]
    Parquet {
        /// File, and row group and column where they are known.
        object: String,
        /// What the reader said.
        source: parquet::errors::ParquetError,
    },
    /// Arrow data that cannot be handled.
    #[error("{object}: {source}")]
    Arrow {
        /// The object.
        object: String,
        /// What Arrow said.
        source: arrow::error::ArrowError,
    },
    /// A file whose digest is not the one in the log.
    #[error("{object}: damaged: its SHA-256 is {found}, the archive's log says {expected}")]
    Digest {
        /// The file.
        object: String,
        /// The digest in the log.
        expected: String,
        /// The digest of the bytes.
        found: String,
    },
    /// The day is in the archive with other content.
    #[error(
        "{path}: day {day} is in the archive already, with other content: its digest is {committed}, the new one {new}"
    )]
    DayDiffers {
        /// The archive.
        path: String,
        /// The day.
        day: String,
        /// Digest of the day as committed.
        committed: String,
        /// Digest of the day as given now.
        new: String,
    },
    /// The store refused or failed.
    #[error("{object}: {source}")]
    Store {
        /// The file or table.
        object: String,
        /// What the store said.
        source: object_store::Error,
    },
    /// The Delta log cannot be read or written.
    #[error("{path}: {source}")]
    Delta {
        /// The table.
        path: String,
        /// What the library said.
        source: Box<deltalake_core::DeltaTableError>,
    },
    /// A local file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(|d| format!("\n  {d}")).collect()
}

impl ArchiveError {
    pub(crate) fn parquet(
        object: impl Into<String>,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let object = object.into();
        move |source| Self::Parquet { object, source }
    }

    pub(crate) fn delta(
        path: impl Into<String>,
    ) -> impl FnOnce(deltalake_core::DeltaTableError) -> Self {
        let path = path.into();
        move |source| Self::Delta {
            path,
            source: Box::new(source),
        }
    }

    pub(crate) fn store(object: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let object = object.into();
        move |source| Self::Store { object, source }
    }

    /// What the failure calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } | Self::BadPath { .. } | Self::Exists { .. } => ErrorKind::Usage,
            Self::NotAnArchive { .. }
            | Self::ForeignTable { .. }
            | Self::Spec { .. }
            | Self::SpecMismatch { .. } => ErrorKind::Configuration,
            Self::BadData { .. } | Self::Digest { .. } | Self::DayDiffers { .. } => ErrorKind::Data,
            Self::Arrow { source, .. } => of_causes(source).unwrap_or(ErrorKind::Data),
            Self::Parquet { source, .. } => of_causes(source).unwrap_or(ErrorKind::Data),
            Self::Io { source, .. } => of_io(source),
            Self::Store { source, .. } => of_store(source),
            Self::Delta { source, .. } => of_causes(source.as_ref()).unwrap_or(ErrorKind::Data),
        }
    }
}

/// The kind of the first cause that tells.
fn of_causes(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| {
        if let Some(store) = error.downcast_ref::<object_store::Error>() {
            return Some(of_store(store));
        }
        // A wrapped error can hide behind `ParquetError::External`, whose source is the inner one.
        of_real_io(error)
    })
}

/// The kind of a store's error.
#[must_use]
pub fn of_store(error: &object_store::Error) -> ErrorKind {
    use object_store::Error;
    match error {
        // An object that a log or a listing named is gone.
        Error::NotFound { .. } => ErrorKind::Data,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::Permission,
        Error::Precondition { .. } | Error::AlreadyExists { .. } => ErrorKind::TryAgain,
        other => std::iter::successors(std::error::Error::source(other), |error| error.source())
            .find_map(of_real_io)
            .unwrap_or(match other {
                // A range that the file does not have: it is not the file that was opened.
                Error::Generic { store, .. } if *store == "LocalFileSystem" => ErrorKind::Data,
                _ => ErrorKind::Unreachable,
            }),
    }
}

/// The kind of an input or output error of the system; other errors are wrapped as such, and tell nothing.
fn of_real_io(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let error = error.downcast_ref::<std::io::Error>()?;
    (error.kind() != std::io::ErrorKind::Other || error.raw_os_error().is_some())
        .then(|| of_io(error))
}

/// The kind of a local input or output error.
#[must_use]
pub fn of_io(error: &std::io::Error) -> ErrorKind {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ErrorKind::Permission
        }
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => ErrorKind::Data,
        _ => ErrorKind::Io,
    }
}
