//! What can go wrong with an archive, and of which kind it is.

use deltalake_core::DeltaTableError;
use deltalake_core::kernel::transaction::TransactionError;
use simhash::{Difference, SpecError};

use crate::location::Location;
use crate::store::{REPLACED, explain, of_chain, scrub};

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
#[derive(thiserror::Error)]
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
    #[error("{object}: {}", told(source))]
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
    /// A local file is no longer the one that was opened.
    #[error("{path}: {REPLACED}; run it again")]
    Changed {
        /// The file.
        path: String,
    },
    /// A vacuum that could remove what a run is about to commit.
    #[error(
        "{path}: --older-than is less than 24h: files of a run that is going on could be removed; if none is, say --nothing-runs"
    )]
    TooYoung {
        /// The archive.
        path: String,
    },
    /// Data files of a day went away before the log could name them.
    #[error("{object}: it was removed before the day was committed; run it again")]
    Unstaged {
        /// The data file.
        object: String,
    },
    /// What is needed to be let into a store is missing.
    #[error("{url}: {reason}")]
    Credentials {
        /// The store.
        url: String,
        /// What is missing.
        reason: String,
    },
    /// A store cannot be reached as it was asked for.
    #[error("{url}: {reason}")]
    StoreOptions {
        /// The store.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A store on which two runs could overwrite each other's commits.
    #[error(
        "{path}: its store cannot hold an archive: {reason}. Two runs could overwrite each other's commits"
    )]
    Unconditional {
        /// The archive.
        path: String,
        /// What the store does.
        reason: String,
    },
    /// Other programs commit to the archive faster than this one can.
    #[error("{path}: other commits came first, {attempts} times; try again")]
    Busy {
        /// The archive.
        path: String,
        /// How often it was tried.
        attempts: usize,
    },
    /// The store refused or failed.
    #[error("{object}: {}", explain(source).text)]
    Store {
        /// The file or table.
        object: String,
        /// What the store said.
        source: object_store::Error,
    },
    /// The Delta log cannot be read or written.
    #[error("{path}: {}", told(source.as_ref()))]
    Delta {
        /// The table.
        path: String,
        /// What the library said.
        source: Box<DeltaTableError>,
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

// What libraries' errors hold may quote what was sent.
impl std::fmt::Debug for ArchiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

/// What an error says; of one that a store's is the cause of, what that means.
#[must_use]
pub fn told(error: &(dyn std::error::Error + 'static)) -> String {
    of_chain(error).map_or_else(|| scrub(&error.to_string()), |explained| explained.text)
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(|d| format!("\n  {d}")).collect()
}

impl ArchiveError {
    /// An error of the Parquet reader or writer, with the object that it is about.
    pub fn parquet(
        object: impl Into<String>,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let object = object.into();
        move |source| Self::Parquet { object, source }
    }

    pub(crate) fn delta(path: impl Into<String>) -> impl FnOnce(DeltaTableError) -> Self {
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

    /// An error of the store that holds `location`.
    #[must_use]
    pub fn stored(location: &Location, source: object_store::Error) -> Self {
        Self::Store {
            object: location.to_string(),
            source,
        }
    }

    /// A data file that the log names, but that is not there.
    pub(crate) fn missing(object: &str) -> Self {
        Self::BadData {
            object: object.to_owned(),
            reason: "the archive's log names this file, but it is missing".into(),
        }
    }

    /// The same, unless a data file that the log names was not found.
    pub(crate) fn or_missing(self, object: &str) -> Self {
        match self {
            Self::NotFound { .. } => Self::missing(object),
            other => other,
        }
    }

    /// What the failure calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. }
            | Self::BadPath { .. }
            | Self::Exists { .. }
            | Self::TooYoung { .. } => ErrorKind::Usage,
            Self::NotAnArchive { .. }
            | Self::ForeignTable { .. }
            | Self::Spec { .. }
            | Self::SpecMismatch { .. } => ErrorKind::Configuration,
            Self::BadData { .. } | Self::Digest { .. } | Self::DayDiffers { .. } => ErrorKind::Data,
            Self::Arrow { source, .. } => kind_of_chain(source),
            Self::Parquet { source, .. } => kind_of_chain(source),
            Self::Delta { source, .. } => of_delta(source),
            Self::Io { source, .. } => of_io(source),
            Self::Store { source, .. } => of_store(source),
            Self::Busy { .. } | Self::Changed { .. } | Self::Unstaged { .. } => ErrorKind::TryAgain,
            Self::Credentials { .. } => ErrorKind::Permission,
            Self::StoreOptions { .. } | Self::Unconditional { .. } => ErrorKind::Configuration,
        }
    }
}

/// The kind of the first cause that tells; what readers complain of else is data.
fn kind_of_chain(error: &(dyn std::error::Error + 'static)) -> ErrorKind {
    of_chain(error).map_or(ErrorKind::Data, |explained| explained.kind)
}

fn of_delta(error: &DeltaTableError) -> ErrorKind {
    let lost = matches!(
        error,
        DeltaTableError::Transaction {
            source: TransactionError::MaxCommitAttempts(_)
                | TransactionError::CommitConflict(_)
                | TransactionError::VersionAlreadyExists(_)
        } | DeltaTableError::VersionAlreadyExists(_)
    );
    match lost {
        true => ErrorKind::TryAgain,
        false => kind_of_chain(error),
    }
}

/// The kind of a store's error.
#[must_use]
pub fn of_store(error: &object_store::Error) -> ErrorKind {
    explain(error).kind
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
