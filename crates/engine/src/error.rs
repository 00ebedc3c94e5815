//! The errors of this crate, and their kinds.

use std::path::Path;

use crate::part_list::part_list;
use archive::ArchiveError;
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use hamming::{DesignError, PlanError};
use storage::{ErrorKind, StorageError, io_kind, plain_message, scrub, store_kind};

/// Result of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// A failure of a run. Every variant names its object.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The archive, or a file of fingerprints, failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file or a store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The tables of the batch cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Input data that cannot be used.
    #[error("{object}: {reason}")]
    BadData {
        /// The file, with row and column if they are known.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// A large file was cut where it must not be, to be read in parts: within a record, or behind another dictionary of zstd than
    /// the file starts with. [`Documents::uncut`](crate::documents::Documents::uncut) makes it whole again.
    #[error(
        "{file}, byte {offset}: the file was divided here for parallel reading, but this place is inside a record, or its frames need another zstd dictionary"
    )]
    WrongCut {
        /// The file.
        file: String,
        /// Offset of the cut, in bytes.
        offset: u64,
    },
    /// An option that the data does not allow, such as `--append` to plain files.
    #[error("{0}")]
    Usage(String),
    /// Specs, document frequencies and options that contradict each other.
    #[error("{0}")]
    Configuration(String),
    /// A defect of the program.
    #[error("{0}")]
    Internal(String),
    /// The memory limit does not allow the work.
    #[error("out of the memory limit: {what}; raise --memory-limit")]
    OutOfMemory {
        /// What did not fit.
        what: String,
    },
    /// A local file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The batch is committed or some outputs are in place, but another output could not be published.
    #[error("{}", not_in_place(day.as_deref(), placed, source))]
    Unpublished {
        /// The day of the batch, if it is committed.
        day: Option<String>,
        /// The outputs that are in place.
        placed: Vec<String>,
        /// The error of the output.
        source: Box<EngineError>,
    },
    /// What was read changed meanwhile, or is not there yet: the same command may succeed later.
    #[error("{0}")]
    TryAgain(String),
    /// Parts of a job's round that have no whole answer.
    #[error(
        "{job}: round {round} {}; do them: dedup-job map {job}{} --part {}",
        missing_parts(missing, damaged),
        if *is_current { String::new() } else { format!(" --round {round}") },
        part_list(missing.iter().chain(damaged))
    )]
    Unanswered {
        /// The job.
        job: String,
        /// Number of the round, from 1 on.
        round: u32,
        /// Whether it is the current round.
        is_current: bool,
        /// Parts without an answer, ascending.
        missing: Vec<u32>,
        /// Parts whose answer is damaged, ascending.
        damaged: Vec<u32>,
    },
    /// A job's round is planned: `split` ends here. No other command meets it.
    #[error("the next round of the job is planned")]
    Planned,
    /// A query failed.
    #[error("{}", query_message(operation, source))]
    Query {
        /// The operation that failed.
        operation: String,
        /// The error of DataFusion.
        source: DataFusionError,
    },
}

impl EngineError {
    /// Wraps an error of a query that was part of `operation`; an exhausted memory pool becomes [`Self::OutOfMemory`].
    pub fn query(operation: impl Into<String>) -> impl FnOnce(DataFusionError) -> Self {
        let operation = operation.into();
        move |source| match source.find_root() {
            DataFusionError::ResourcesExhausted(what)
                if !what.contains("disk") && !what.contains("allowable limit") =>
            {
                Self::OutOfMemory {
                    what: format!("{operation}: {}", first_line(what)),
                }
            }
            _ => Self::Query { operation, source },
        }
    }

    /// The error of a full disk, if DataFusion met it when it wrote to the scratch directory. Its errors name no file; those of all
    /// other files do.
    #[must_use]
    pub fn as_full_scratch(&self) -> Option<&std::io::Error> {
        let Self::Query { source, .. } = self else {
            return None;
        };
        let is_own = first_cause::<Self>(source).is_some()
            || first_cause::<ArchiveError>(source).is_some()
            || first_cause::<StorageError>(source).is_some();
        full_disk(source).filter(|_| !is_own)
    }

    /// The error when the Arrow file at `path` cannot be read or written.
    pub(crate) fn arrow(path: &Path, error: ArrowError) -> Self {
        let object = path.display().to_string();
        match error {
            ArrowError::IoError(_, source) => Self::Io {
                path: object,
                source,
            },
            source => ArchiveError::Arrow { object, source }.into(),
        }
    }

    /// The file and the offset of a wrong cut, if [`Self::WrongCut`] is the cause.
    #[must_use]
    pub fn wrong_cut(&self) -> Option<(&str, u64)> {
        match self {
            Self::WrongCut { file, offset } => Some((file.as_str(), *offset)),
            Self::Query { source, .. } => {
                causes(source).find_map(|cause| match cause.downcast_ref::<Self>() {
                    Some(Self::WrongCut { file, offset }) => Some((file.as_str(), *offset)),
                    _ => None,
                })
            }
            _ => None,
        }
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Archive(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            Self::Plan(PlanError::Design(_)) | Self::Usage(_) => ErrorKind::Usage,
            Self::Plan(PlanError::OutOfMemory { .. }) | Self::OutOfMemory { .. } => {
                ErrorKind::TryAgain
            }
            Self::BadData { .. } | Self::WrongCut { .. } => ErrorKind::Data,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Internal(_) | Self::Planned => ErrorKind::Internal,
            Self::TryAgain(_) | Self::Unanswered { .. } => ErrorKind::TryAgain,
            Self::Io { source, .. } => io_kind(source),
            Self::Unpublished { source, .. } => source.kind(),
            Self::Query { source, .. } => query_kind(source),
        }
    }
}

// A library's error may quote a request with its secrets, so `Debug` shows only the scrubbed
// message.
impl std::fmt::Debug for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

impl From<DesignError> for EngineError {
    fn from(error: DesignError) -> Self {
        Self::Plan(error.into())
    }
}

impl From<EngineError> for DataFusionError {
    fn from(error: EngineError) -> Self {
        Self::External(Box::new(error))
    }
}

/// The message of a query's error. Our own errors name their object; other errors get the name of
/// the operation.
fn query_message(operation: &str, error: &DataFusionError) -> String {
    let engine = first_cause::<EngineError>(error).map(ToString::to_string);
    let archive = || first_cause::<ArchiveError>(error).map(ToString::to_string);
    let storage = || first_cause::<StorageError>(error).map(ToString::to_string);
    let own = engine.or_else(archive).or_else(storage);
    own.unwrap_or_else(|| format!("{operation}: {}", root_message(error)))
}

/// The first error of type `E` among `error` and its causes.
fn first_cause<E: std::error::Error + 'static>(error: &DataFusionError) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref::<E>())
}

/// The first error of a full disk among an error and its causes. Libraries put errors into each other in several ways.
fn full_disk<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Some(error),
            _ => full_disk(error.get_ref()?),
        };
    }
    if let Some(ArrowError::IoError(_, error)) = error.downcast_ref() {
        return full_disk(error);
    }
    full_disk(error.source()?)
}

/// The error, its cause, and so on.
fn causes(error: &DataFusionError) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| {
        error.source()
    })
}

/// The message of the innermost error, without the names of its wrappers.
pub(crate) fn root_message(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::External(inner)
            if inner.is::<EngineError>()
                || inner.is::<ArchiveError>()
                || inner.is::<StorageError>() =>
        {
            inner.to_string()
        }
        DataFusionError::External(inner) => plain_message(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => inner.to_string(),
        DataFusionError::ObjectStore(inner) => plain_message(inner.as_ref()),
        DataFusionError::IoError(inner) => inner.to_string(),
        DataFusionError::Execution(message) | DataFusionError::Plan(message) => message.clone(),
        other => scrub(first_line(&other.to_string())),
    }
}

/// What is done, and what is not.
fn not_in_place(day: Option<&str>, placed: &[String], error: &EngineError) -> String {
    let placed = match placed {
        [] => String::new(),
        some => format!("; in place already: {}", some.join(", ")),
    };
    match day {
        Some(day) => format!(
            "day {day} is committed, but its output is not in place: {error}{placed}; run the same command again, which finds the day committed and writes the output"
        ),
        None => format!("{error}{placed}; run the command again, with --overwrite"),
    }
}

/// What is wrong with the parts of a round.
fn missing_parts(missing: &[u32], damaged: &[u32]) -> String {
    let of = |parts: &[u32], what: &str| match parts {
        [] => None,
        [one] => Some(format!("part {one} {what}")),
        many => Some(format!("parts {} {what}", part_list(many))),
    };
    let missing = of(missing, "not answered yet");
    let damaged = of(damaged, "damaged");
    let all: Vec<String> = missing.into_iter().chain(damaged).collect();
    format!("is incomplete: {}", all.join(", "))
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// The kind of the first cause that has one. Otherwise, errors of readers and casts are bad data.
fn query_kind(error: &DataFusionError) -> ErrorKind {
    for cause in causes(error) {
        if let Some(error) = cause.downcast_ref::<EngineError>() {
            return error.kind();
        }
        if let Some(error) = cause.downcast_ref::<ArchiveError>() {
            return error.kind();
        }
        if let Some(error) = cause.downcast_ref::<StorageError>() {
            return error.kind();
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            return io_kind(error);
        }
        if let Some(error) = cause.downcast_ref::<datafusion::object_store::Error>() {
            return store_kind(error);
        }
    }
    match error.find_root() {
        DataFusionError::ArrowError(..) | DataFusionError::Execution(_) => ErrorKind::Data,
        // The spill directory is full.
        DataFusionError::ResourcesExhausted(_) => ErrorKind::Io,
        _ => ErrorKind::Internal,
    }
}
