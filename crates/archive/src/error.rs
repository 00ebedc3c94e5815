//! What can go wrong with an archive.

use deltalake_core::DeltaTableError;
use deltalake_core::kernel::transaction::TransactionError;
use simhash::{Difference, SpecError};
use storage::{ErrorKind, StorageError, cause_kind, plain_message};

/// Result of this crate.
pub type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// An operation on an archive that failed; every variant names its object.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// A file or a store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A directory without a Delta log, where an archive is needed.
    #[error(
        "{path}: not an archive (no Delta log); make one with `dedup-job archive create {path}`"
    )]
    NotAnArchive {
        /// The path as given.
        path: String,
    },
    /// `create` at the path of an existing table.
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
    /// `create` in a directory that holds something else.
    #[error(
        "{path}: not empty: {found} lies there; an archive needs a directory, or a prefix, of its own"
    )]
    NotEmpty {
        /// The path as given.
        path: String,
        /// What lies there.
        found: String,
    },
    /// A Delta table with a feature that makes its rows differ from those of its data files.
    #[error(
        "{path}: another program changed this Delta table in a way that this version cannot read correctly: {feature}"
    )]
    Unreadable {
        /// The path as given.
        path: String,
        /// The feature, by Delta's name.
        feature: String,
    },
    /// The day to be committed has rows that another program wrote.
    #[error(
        "{path}: another program wrote rows of day {day}; commit the documents as another day, or replace those rows by --replace-day"
    )]
    UnknownDay {
        /// The archive.
        path: String,
        /// The day.
        day: String,
    },
    /// The log no longer says which rows a day was compared with.
    #[error(
        "{path}: which rows day {day} was compared with can no longer be told: another program changed {file}; so it cannot be run again with the same result"
    )]
    Rewritten {
        /// The archive.
        path: String,
        /// The day.
        day: String,
        /// What another program changed: a file, or the log, with the version that it no longer has.
        file: String,
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
        lines(differences)
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
        /// The file, with row group and column if they are known.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// A Parquet file that cannot be read or written.
    #[error("{object}: {}", plain_message(source))]
    Parquet {
        /// The file, with row group and column if they are known.
        object: String,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
    /// Arrow data that cannot be handled.
    #[error("{object}: {source}")]
    Arrow {
        /// The object.
        object: String,
        /// The error of the Arrow library.
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
    /// A vacuum that could remove the files of a run in progress.
    #[error(
        "{path}: --older-than is less than 24h: files of a run in progress could be deleted; if no run is in progress, add --nothing-runs"
    )]
    TooYoung {
        /// The archive.
        path: String,
    },
    /// A data file of a day was removed before the day was committed.
    #[error("{object}: it was removed before the day was committed; run the same command again")]
    Unstaged {
        /// The data file.
        object: String,
    },
    /// Other programs commit to the archive faster than this one can.
    #[error("{path}: other commits came first, {attempts} times; try again")]
    Busy {
        /// The archive.
        path: String,
        /// How often the commit was tried.
        attempts: usize,
    },
    /// The Delta log cannot be read or written.
    #[error("{path}: {}", plain_message(source.as_ref()))]
    Delta {
        /// The table.
        path: String,
        /// The error of the Delta library.
        source: Box<DeltaTableError>,
    },
}

// Errors of libraries may quote what was sent, secrets included, so only the scrubbed message is shown.
impl std::fmt::Debug for ArchiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

/// One line for each difference.
fn lines(differences: &[Difference]) -> String {
    differences.iter().map(|d| format!("\n  {d}")).collect()
}

impl ArchiveError {
    /// Wraps an error of the Parquet library that concerns `object`.
    pub fn parquet(
        object: impl Into<String>,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        let object = object.into();
        move |source| Self::Parquet { object, source }
    }

    /// Wraps an error of the Delta library that concerns the table at `path`.
    pub(crate) fn delta(path: impl Into<String>) -> impl FnOnce(DeltaTableError) -> Self {
        let path = path.into();
        move |source| Self::Delta {
            path,
            source: Box::new(source),
        }
    }

    /// A data file that the log names is missing.
    pub(crate) fn missing(object: &str) -> Self {
        Self::BadData {
            object: object.to_owned(),
            reason: "the archive's log names this file, but it is missing".into(),
        }
    }

    /// Wraps the error of reading a data file that the log names.
    pub(crate) fn data_file(object: &str) -> impl FnOnce(StorageError) -> Self {
        move |error| match error {
            StorageError::NotFound { .. } => Self::missing(object),
            other => other.into(),
        }
    }

    /// The kind of failure: what it asks of the user, and the exit code.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Exists { .. } | Self::NotEmpty { .. } | Self::TooYoung { .. } => ErrorKind::Usage,
            Self::NotAnArchive { .. }
            | Self::ForeignTable { .. }
            | Self::Unreadable { .. }
            | Self::UnknownDay { .. }
            | Self::Rewritten { .. }
            | Self::Spec { .. }
            | Self::SpecMismatch { .. } => ErrorKind::Configuration,
            Self::BadData { .. } | Self::Digest { .. } | Self::DayDiffers { .. } => ErrorKind::Data,
            Self::Arrow { source, .. } => cause_kind(source).unwrap_or(ErrorKind::Data),
            Self::Parquet { source, .. } => cause_kind(source).unwrap_or(ErrorKind::Data),
            Self::Delta { source, .. } => delta_kind(source),
            Self::Busy { .. } | Self::Unstaged { .. } => ErrorKind::TryAgain,
        }
    }
}

fn delta_kind(error: &DeltaTableError) -> ErrorKind {
    let is_conflict = matches!(
        error,
        DeltaTableError::Transaction {
            source: TransactionError::MaxCommitAttempts(_)
                | TransactionError::CommitConflict(_)
                | TransactionError::VersionAlreadyExists(_)
        } | DeltaTableError::VersionAlreadyExists(_)
    );
    // The table requires a feature of its readers or writers that the library does not know.
    let is_unsupported = matches!(
        error,
        DeltaTableError::Transaction {
            source: TransactionError::UnsupportedTableFeatures(_)
                | TransactionError::TableFeaturesRequired(_)
                | TransactionError::DeltaTableAppendOnly
        }
    ) || error.to_string().contains("nsupported");
    match is_conflict {
        true => ErrorKind::TryAgain,
        false if is_unsupported => ErrorKind::Configuration,
        false => cause_kind(error).unwrap_or(ErrorKind::Data),
    }
}
