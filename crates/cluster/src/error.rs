//! What can go wrong between the processes of a cluster.

use archive::ErrorKind;
use engine::EngineError;

/// A failure of a cluster, or between its processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// An address that is none.
    #[error("{given}: {reason}")]
    Address {
        /// What was given.
        given: String,
        /// Why it is no address.
        reason: String,
    },
    /// Keys or certificates that cannot be used.
    #[error("{path}: {reason}")]
    Tls {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A port that cannot be listened on.
    #[error("{address}: cannot listen: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A process that does not answer.
    #[error("{address}: {reason}")]
    Unreachable {
        /// The process.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A process that was there is gone.
    #[error(
        "{address}: the scheduler is lost ({reason}); nothing was committed: run the same command again"
    )]
    SchedulerLost {
        /// The scheduler.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A process of another version, or of another program.
    #[error("{address}: {reason}")]
    Version {
        /// The process.
        address: String,
        /// What it said.
        reason: String,
    },
    /// No executor does the work.
    #[error("{address}: {reason}")]
    NoExecutors {
        /// The scheduler.
        address: String,
        /// Since when.
        reason: String,
    },
    /// An executor could not do its work.
    #[error("{message}")]
    Task {
        /// What kind of failure it was.
        kind: ErrorKind,
        /// What it said.
        message: String,
    },
    /// A defect, or a cluster of another make.
    #[error("{0}")]
    Internal(String),
}

impl ClusterError {
    /// What the failure calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. } => ErrorKind::Usage,
            Self::Tls { .. } | Self::Version { .. } => ErrorKind::Configuration,
            Self::Listen { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                ErrorKind::Permission
            }
            Self::Listen { .. } => ErrorKind::Io,
            Self::Unreachable { .. } | Self::NoExecutors { .. } => ErrorKind::Unreachable,
            Self::SchedulerLost { .. } => ErrorKind::TryAgain,
            Self::Task { kind, .. } => *kind,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

impl From<ClusterError> for EngineError {
    fn from(error: ClusterError) -> Self {
        Self::Cluster {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

/// What the innermost cause of an error says; those around it name layers of the connection.
pub(crate) fn innermost(error: &dyn std::error::Error) -> Option<String> {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes
        .last()
        .map(|cause| archive::store::scrub(&cause.to_string()))
}

/// Results of this crate.
pub type Result<T, E = ClusterError> = std::result::Result<T, E>;
