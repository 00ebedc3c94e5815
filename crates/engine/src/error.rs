//! The errors of this crate, and their kinds.

use std::path::Path;

use crate::part_list::part_list;
use archive::ArchiveError;
use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use documents::DocumentsError;
use hamming::{DesignError, PlanError};
use storage::{ErrorKind, StorageError};
use streams::{Stopped, causes, exhausted_memory, full_disk, query_kind, query_message};

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
    /// The documents cannot be read or copied.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// The tables of the batch cannot be planned.
    #[error(transparent)]
    Plan(PlanError),
    /// Input data that cannot be used.
    #[error("{object}: {reason}")]
    BadData { object: String, reason: String },
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
    OutOfMemory { what: String },
    /// The batch is committed or some outputs are in place, but another output could not be published.
    #[error("{}", not_in_place(day.as_deref(), placed, source))]
    Unpublished {
        day: Option<String>,
        placed: Vec<String>,
        source: Box<EngineError>,
    },
    /// What was read changed meanwhile, or is not there yet: the same command may succeed later.
    #[error("{0}")]
    TryAgain(String),
    /// Parts of a job's round that have no whole answer.
    #[error(
        "{job}: round {round} {}; do them: {} --part {}",
        missing_parts(missing, damaged),
        map_command(job, *round, *is_current),
        part_list(missing.iter().chain(damaged))
    )]
    Unanswered {
        job: String,
        /// From 1 on.
        round: u32,
        is_current: bool,
        /// Ascending, as the damaged ones.
        missing: Vec<u32>,
        damaged: Vec<u32>,
    },
    /// A job's round is planned: `split` ends here. No other command meets it.
    #[error("the next round of the job is planned")]
    Planned,
    #[error("{}", query_message(operation, source, own_kind))]
    Query {
        operation: String,
        source: DataFusionError,
    },
}

impl EngineError {
    /// The error for data of `object` that cannot be used.
    pub fn bad_data(object: impl ToString, reason: impl Into<String>) -> Self {
        Self::BadData {
            object: object.to_string(),
            reason: reason.into(),
        }
    }

    /// The error for what only a defect of the program makes fail.
    pub(crate) fn internal<E: ToString>(error: E) -> Self {
        Self::Internal(error.to_string())
    }

    /// Wraps an error of a query that was part of `operation`; an exhausted memory pool becomes [`Self::OutOfMemory`].
    pub fn query(operation: impl Into<String>) -> impl FnOnce(DataFusionError) -> Self {
        let operation = operation.into();
        move |source| match exhausted_memory(&source) {
            Some(what) => Self::OutOfMemory {
                what: format!("{operation}: {what}"),
            },
            None => Self::Query { operation, source },
        }
    }

    /// The error of a full disk, if DataFusion met it when it wrote to the scratch directory. Its errors name no file; those of all
    /// other files do.
    pub fn as_full_scratch(&self) -> Option<&std::io::Error> {
        let (Self::Query { source, .. } | Self::Documents(DocumentsError::Query { source, .. })) =
            self
        else {
            return None;
        };
        let is_own = causes(source).any(|cause| own_kind(cause).is_some());
        full_disk(source).filter(|_| !is_own)
    }

    /// The error when the Arrow file at `path` cannot be read or written.
    pub(crate) fn arrow(path: &Path, error: ArrowError) -> Self {
        let object = path.display().to_string();
        match error {
            ArrowError::IoError(_, source) => StorageError::io(object)(source).into(),
            source => ArchiveError::arrow(object)(source).into(),
        }
    }

    /// The file and the offset of a wrong cut, if [`DocumentsError::WrongCut`] is the cause.
    pub fn wrong_cut(&self) -> Option<(&str, u64)> {
        match self {
            Self::Documents(error) => error.wrong_cut(),
            Self::Query { source, .. } => documents::error::wrong_cut(source),
            _ => None,
        }
    }

    /// The error for tables that cannot be planned, where `others` bytes of the memory limit are not for tables.
    pub(crate) fn plan(error: PlanError, others: usize) -> Self {
        match error {
            PlanError::OutOfMemory {
                fingerprints,
                needed,
                ..
            } => {
                let mebibytes = needed.saturating_add(others).div_ceil(1 << 20);
                let what = format!(
                    "even in parts, the tables of {fingerprints} distinct fingerprints need some {mebibytes}MiB"
                );
                Self::OutOfMemory { what }
            }
            error => Self::Plan(error),
        }
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Archive(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            Self::Documents(error) => error.kind(),
            Self::Plan(PlanError::Design(_)) | Self::Usage(_) => ErrorKind::Usage,
            Self::Plan(PlanError::OutOfMemory { .. }) | Self::OutOfMemory { .. } => {
                ErrorKind::TryAgain
            }
            Self::BadData { .. } => ErrorKind::Data,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Internal(_) | Self::Planned => ErrorKind::Internal,
            Self::TryAgain(_) | Self::Unanswered { .. } => ErrorKind::TryAgain,
            Self::Unpublished { source, .. } => source.kind(),
            Self::Query { source, .. } => query_kind(source, own_kind),
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

impl From<PlanError> for EngineError {
    fn from(error: PlanError) -> Self {
        Self::plan(error, 0)
    }
}

impl From<DesignError> for EngineError {
    fn from(error: DesignError) -> Self {
        Self::Plan(error.into())
    }
}

impl From<Stopped> for EngineError {
    fn from(error: Stopped) -> Self {
        Self::internal(error)
    }
}

impl From<EngineError> for DataFusionError {
    fn from(error: EngineError) -> Self {
        Self::External(Box::new(error))
    }
}

/// The kind of an error of this crate, or of one below it.
fn own_kind(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let own = error.downcast_ref().map(EngineError::kind);
    own.or_else(|| documents::error::own_kind(error))
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

/// The command that does parts of a round of a job; they are to be named behind it.
pub(crate) fn map_command(job: &str, round: u32, is_current: bool) -> String {
    let of_round = if is_current {
        String::new()
    } else {
        format!(" --round {round}")
    };
    format!("dedup-job map {job}{of_round}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_do_not_fit_say_which_limit_would_do() {
        let too_large = PlanError::OutOfMemory {
            fingerprints: 5,
            needed: 3 << 20,
            allowed: 0,
        };
        let error = EngineError::plan(too_large, 97 << 20);
        assert_eq!(error.kind(), ErrorKind::TryAgain);
        assert_eq!(
            error.to_string(),
            "out of the memory limit: even in parts, the tables of 5 distinct fingerprints need some 100MiB; raise --memory-limit"
        );
    }
}
