//! What can go wrong in a run, and of which kind it is.

use archive::{ArchiveError, ErrorKind};
use datafusion::error::DataFusionError;
use hamming::{DesignError, PlanError};

/// Result of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// A stage of a run that failed; every variant names its object.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The archive, or a file of fingerprints.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The tables of the new batch.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Documents that are not what they should be.
    #[error("{object}: {reason}")]
    BadData {
        /// File, and row and column where they are known.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// Input that the data does not allow, such as a day in a plain directory.
    #[error("{0}")]
    Usage(String),
    /// Specs, tables and options that do not go together.
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
        /// What the system said.
        source: std::io::Error,
    },
    /// The day is committed, but its hits did not get their name.
    #[error(
        "day {day} is committed, but its output is not in place: {source}; run the same command again, which finds the day committed and writes the output"
    )]
    Unpublished {
        /// The day.
        day: String,
        /// Why not.
        source: Box<EngineError>,
    },
    /// A cluster, or a process of it, failed.
    #[error("{message}")]
    Cluster {
        /// What kind of failure it was.
        kind: ErrorKind,
        /// What it said.
        message: String,
    },
    /// A query failed.
    #[error("{}", query_message(stage, source))]
    Query {
        /// What was being done.
        stage: String,
        /// What DataFusion said.
        source: DataFusionError,
    },
}

impl EngineError {
    /// An error of a query, as what it was before DataFusion wrapped it.
    pub fn query(stage: impl Into<String>) -> impl FnOnce(DataFusionError) -> Self {
        let stage = stage.into();
        move |source| match source.find_root() {
            DataFusionError::ResourcesExhausted(what)
                if !what.contains("disk") && !what.contains("allowable limit") =>
            {
                Self::OutOfMemory {
                    what: format!("{stage}: {}", first_line(what)),
                }
            }
            _ => Self::Query { stage, source },
        }
    }

    /// What the failure calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Archive(error) => error.kind(),
            Self::Plan(PlanError::Design(_)) | Self::Usage(_) => ErrorKind::Usage,
            Self::Plan(PlanError::OutOfMemory { .. }) | Self::OutOfMemory { .. } => {
                ErrorKind::TryAgain
            }
            Self::BadData { .. } => ErrorKind::Data,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Internal(_) => ErrorKind::Internal,
            Self::Cluster { kind, .. } => *kind,
            Self::Io { source, .. } => archive::error::of_io(source),
            Self::Unpublished { source, .. } => source.kind(),
            Self::Query { source, .. } => of_query(source),
        }
    }
}

// What libraries' errors hold may quote what was sent.
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

/// What failed; an error of our own names its object itself.
fn query_message(stage: &str, error: &DataFusionError) -> String {
    let own = causes(error).find_map(|cause| cause.downcast_ref::<EngineError>());
    let of_archive = causes(error).find_map(|cause| cause.downcast_ref::<ArchiveError>());
    match (own, of_archive) {
        (Some(own), _) => own.to_string(),
        (None, Some(error)) => error.to_string(),
        (None, None) => format!("{stage}: {}", root_message(error)),
    }
}

/// The error, its cause, and so on.
fn causes(error: &DataFusionError) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| {
        error.source()
    })
}

/// What the innermost error says, without the names of its wrappers.
pub(crate) fn root_message(error: &DataFusionError) -> String {
    match error.find_root() {
        // Errors of our own name their object.
        DataFusionError::External(inner)
            if inner.is::<EngineError>() || inner.is::<ArchiveError>() =>
        {
            inner.to_string()
        }
        DataFusionError::External(inner) => archive::error::told(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => inner.to_string(),
        DataFusionError::ObjectStore(inner) => archive::error::told(inner.as_ref()),
        DataFusionError::IoError(inner) => inner.to_string(),
        DataFusionError::Execution(message) | DataFusionError::Plan(message) => message.clone(),
        other => archive::store::scrub(first_line(&other.to_string())),
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// The kind of the first cause that tells; what readers and casts complain of is data.
fn of_query(error: &DataFusionError) -> ErrorKind {
    for cause in causes(error) {
        if let Some(error) = cause.downcast_ref::<EngineError>() {
            return error.kind();
        }
        if let Some(error) = cause.downcast_ref::<ArchiveError>() {
            return error.kind();
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            return archive::error::of_io(error);
        }
        if let Some(error) = cause.downcast_ref::<datafusion::object_store::Error>() {
            return archive::error::of_store(error);
        }
    }
    match error.find_root() {
        DataFusionError::ArrowError(..) | DataFusionError::Execution(_) => ErrorKind::Data,
        // The spill directory's own limit.
        DataFusionError::ResourcesExhausted(_) => ErrorKind::Io,
        _ => ErrorKind::Internal,
    }
}
