//! What can go wrong with an archive.

use deltalake_core::DeltaTableError;
use deltalake_core::kernel::transaction::TransactionError;
use parquet::errors::ParquetError;
use simhash::{Difference, SpecError};
use storage::{ErrorKind, StorageError, cause_kind, plain_message};

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
    NotAnArchive { path: String },
    /// The archive was created by another version of this program, in a format that this one does not read.
    #[error(
        "{path}: the archive has format {format}, of another version of dedup-job; this version, {version}, reads format {expected}: create the archive again",
        version = env!("CARGO_PKG_VERSION"), expected = crate::schema::FORMAT
    )]
    OtherFormat { path: String, format: String },
    /// `create` at the path of an existing table.
    #[error("{path}: there is a table already")]
    Exists { path: String },
    /// A Delta table that this program did not make.
    #[error("{path}: a Delta table, but not an archive of this program: {reason}")]
    ForeignTable { path: String, reason: String },
    /// What an archive, or an index of it, remembers of templates is missing.
    #[error(
        "{object}: it is missing, and says what was known of the templates of sources; if a vacuum deleted it, it is of a day that cannot be run again, else restore it from a copy"
    )]
    NoTemplateMemory { object: String },
    /// `create` in a directory that holds something else.
    #[error(
        "{path}: not empty: {found} lies there; an archive needs a directory, or a prefix, of its own"
    )]
    NotEmpty { path: String, found: String },
    /// A Delta table with a feature that makes its rows differ from those in its data files.
    #[error(
        "{path}: another program changed this Delta table in a way that this version cannot read correctly: {feature}"
    )]
    Unreadable { path: String, feature: String },
    /// A Delta table with a feature that its writers must know.
    #[error(
        "{path}: another program set a feature of this Delta table that this version does not write: {features}; the archive can be read, but nothing can be committed to it"
    )]
    Unwritable { path: String, features: String },
    /// Another program wrote rows of the day that is to be committed.
    #[error(
        "{path}: another program wrote rows of day {day}; commit the documents as another day, or replace those rows by --replace-day, or remove the day if it has batches"
    )]
    ForeignRows { path: String, day: String },
    /// The log no longer says which rows a day was compared with.
    #[error(
        "{path}: another program changed {file}, so the log no longer says which rows day {day} was compared with; a rerun cannot give the same result"
    )]
    Rewritten {
        path: String,
        day: String,
        /// A data file, or the log, named with the version that it lost.
        file: String,
    },
    /// A stored spec that this program cannot read.
    #[error("{path}: {source}")]
    Spec { path: String, source: SpecError },
    /// Fingerprints made under different specs.
    #[error(
        "{left} and {right} hold fingerprints of different specs, which must not be compared:{}",
        difference_lines(differences)
    )]
    SpecMismatch {
        left: String,
        right: String,
        /// The fields, the left side's value first.
        differences: Vec<Difference>,
    },
    /// A file whose content is not what it should be; `object` is the file, with row group and column if they are known.
    #[error("{object}: {reason}")]
    BadData { object: String, reason: String },
    /// A Parquet file that cannot be read or written.
    #[error("{object}: {}", plain_message(source))]
    Parquet {
        object: String,
        source: ParquetError,
    },
    /// Arrow data that cannot be handled.
    #[error("{object}: {source}")]
    Arrow {
        object: String,
        source: arrow::error::ArrowError,
    },
    /// A file whose digest is not the one in the log.
    #[error("{object}: damaged: its SHA-256 is {found}, the archive's log says {expected}")]
    Digest {
        object: String,
        expected: String,
        found: String,
    },
    /// The day is committed with other rows.
    #[error(
        "{path}: day {day} is in the archive already, with other content: its digest is {committed}, the new one {new}; read the documents as they were read then, commit them as another day, or replace that one with --replace-day"
    )]
    DayDiffers {
        path: String,
        day: String,
        committed: String,
        new: String,
    },
    /// The day is committed with the same rows, but other decisions about them.
    #[error(
        "{path}: day {day} is in the archive already, as {committed}; now it would be {new}; use the same options, or replace it with --replace-day"
    )]
    DecisionsDiffer {
        path: String,
        day: String,
        committed: String,
        new: String,
    },
    /// An archive whose days cannot be copied into another one.
    #[error("{path}: {from} cannot be merged into it: {reason}")]
    CannotMerge {
        path: String,
        from: String,
        reason: String,
    },
    /// A vacuum that could delete the files of a run in progress.
    #[error(
        "{path}: --older-than is less than 24h: files of a run in progress could be deleted; if no run is in progress, add --nothing-runs"
    )]
    TooYoung { path: String },
    /// A data file of a day was removed before the day was committed.
    #[error("{object}: it was removed before the day was committed; run the same command again")]
    StagedFileMissing { object: String },
    /// Other commits came first at every attempt to commit.
    #[error("{path}: other commits came first, {attempts} times; try again")]
    Busy { path: String, attempts: usize },
    /// Another commit removed or rewrote files that a compaction was about to replace, so that no attempt can succeed.
    #[error(
        "{path}: not compacted: another commit{} came first, and removed or rewrote files that were to be merged; {}; try again",
        in_brackets(operation.as_deref()),
        attempts_made(*attempts)
    )]
    CompactionOvertaken {
        path: String,
        operation: Option<String>,
        attempts: usize,
    },
    /// The Delta log cannot be read or written.
    #[error("{path}: {}", plain_message(source.as_ref()))]
    Delta {
        path: String,
        source: Box<DeltaTableError>,
    },
}

// Errors of libraries may quote a request with its secrets, so `Debug` shows only the scrubbed
// message.
impl std::fmt::Debug for ArchiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

fn difference_lines(differences: &[Difference]) -> String {
    differences.iter().map(|d| format!("\n  {d}")).collect()
}

/// A space and the operation in brackets, if it is known.
fn in_brackets(operation: Option<&str>) -> String {
    operation.map_or_else(String::new, |operation| format!(" ({operation})"))
}

fn attempts_made(attempts: usize) -> String {
    match attempts {
        1 => "1 attempt was made".into(),
        attempts => format!("{attempts} attempts were made"),
    }
}

/// Makes an error of this crate of another one.
type OfError<E> = Box<dyn Fn(E) -> ArchiveError + Send + Sync>;

impl ArchiveError {
    /// The error for data of `object` that cannot be used.
    pub fn bad_data(object: impl ToString, reason: impl Into<String>) -> Self {
        Self::BadData {
            object: object.to_string(),
            reason: reason.into(),
        }
    }

    /// Wraps an error of the Arrow library that concerns `object`.
    pub fn arrow(object: impl ToString) -> OfError<arrow::error::ArrowError> {
        let object = object.to_string();
        Box::new(move |source| Self::Arrow {
            object: object.clone(),
            source,
        })
    }

    /// Wraps an error of the Parquet library that concerns `object`.
    pub fn parquet(object: impl Into<String>) -> impl FnOnce(ParquetError) -> Self {
        let object = object.into();
        // The library would say how it was built.
        move |source| {
            let text = source.to_string();
            // The metadata of an encrypted column lacks what others have.
            if text.contains("encrypted footer") || text.contains("Required field type_ is missing")
            {
                let reason = "the file, or a column of it, is encrypted; decrypt it first";
                return Self::bad_data(object, reason);
            }
            match source {
                ParquetError::External(inner) => match inner.downcast::<StorageError>() {
                    Ok(error) => Self::Storage(*error),
                    Err(inner) => Self::Parquet {
                        object,
                        source: ParquetError::External(inner),
                    },
                },
                source => Self::Parquet { object, source },
            }
        }
    }

    /// Wraps an error of the Delta library that concerns the table at `path`.
    pub(crate) fn delta(path: impl Into<String>) -> impl FnOnce(DeltaTableError) -> Self {
        let path = path.into();
        move |source| Self::Delta {
            path,
            source: Box::new(source),
        }
    }

    /// The error for a missing data file that the log names.
    pub fn missing(object: &str) -> Self {
        let reason = "the archive's log names this file, but it is missing";
        Self::bad_data(object, reason)
    }

    /// Wraps the error of reading a data file that the log names.
    pub(crate) fn data_file(object: &str) -> impl FnOnce(StorageError) -> Self {
        move |error| match error {
            StorageError::NotFound { .. } => Self::missing(object),
            other => other.into(),
        }
    }

    /// Wraps the error of opening a file again.
    pub(crate) fn read_file(object: &str) -> impl FnOnce(StorageError) -> Self {
        move |error| match error {
            StorageError::NotFound { .. } | StorageError::Gone { .. } => {
                Self::bad_data(object, "it was removed while it was in use")
            }
            other => other.into(),
        }
    }

    /// Whether it says that an object is not there.
    pub fn is_not_found(&self) -> bool {
        let found = match self {
            Self::Storage(StorageError::NotFound { .. }) => return true,
            Self::Storage(StorageError::Store { source, .. }) => Some(source),
            Self::Parquet {
                source: ParquetError::External(inner),
                ..
            } => inner.downcast_ref(),
            _ => None,
        };
        matches!(found, Some(object_store::Error::NotFound { .. }))
    }

    /// The kind of failure: what it asks of the user, and the exit code.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Storage(error) => error.kind(),
            Self::Exists { .. } | Self::NotEmpty { .. } | Self::TooYoung { .. } => ErrorKind::Usage,
            Self::NotAnArchive { .. }
            | Self::OtherFormat { .. }
            | Self::ForeignTable { .. }
            | Self::NoTemplateMemory { .. }
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::ForeignRows { .. }
            | Self::Rewritten { .. }
            | Self::Spec { .. }
            | Self::SpecMismatch { .. } => ErrorKind::Configuration,
            Self::BadData { .. }
            | Self::CannotMerge { .. }
            | Self::Digest { .. }
            | Self::DayDiffers { .. }
            | Self::DecisionsDiffer { .. } => ErrorKind::Data,
            Self::Arrow { source, .. } => cause_kind(source).unwrap_or(ErrorKind::Data),
            Self::Parquet { source, .. } => cause_kind(source).unwrap_or(ErrorKind::Data),
            Self::Delta { source, .. } => delta_kind(source),
            Self::Busy { .. }
            | Self::CompactionOvertaken { .. }
            | Self::StagedFileMissing { .. } => ErrorKind::TryAgain,
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
    // The table requires a reader or writer feature that the library does not know.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_that_was_overtaken_says_by_what() {
        let error = |operation: Option<&str>, attempts| ArchiveError::CompactionOvertaken {
            path: "archive".into(),
            operation: operation.map(str::to_owned),
            attempts,
        };
        let known = error(Some("OPTIMIZE"), 1);
        assert_eq!(known.kind(), ErrorKind::TryAgain);
        assert_eq!(
            known.to_string(),
            "archive: not compacted: another commit (OPTIMIZE) came first, and removed or rewrote files that were to be merged; \
             1 attempt was made; try again"
        );
        let unknown = error(None, 3).to_string();
        assert!(unknown.contains("another commit came first"), "{unknown}");
        assert!(unknown.contains("3 attempts were made"), "{unknown}");
    }
}
