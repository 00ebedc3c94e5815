//! Errors between the processes of a cluster.

use engine::EngineError;
use storage::ErrorKind;

/// A failure of a cluster's process, or of the connection to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A text that is not the address of a scheduler.
    #[error("{given}: {reason}")]
    Address {
        /// The text.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A key or certificate that cannot be used.
    #[error("{path}: {reason}")]
    Tls {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An address at which the process cannot listen.
    #[error("{address}: cannot listen: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An address that other machines can reach, without encryption.
    #[error(
        "{address}: other machines can reach this address, and whoever does could submit work and read its results: give \
         --tls-ca, --tls-cert and --tls-key, or --insecure if only processes that you trust can reach it"
    )]
    Exposed {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// A process that does not answer.
    #[error("{address}: {reason}")]
    Unreachable {
        /// The process.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A scheduler that no longer answers, or has forgotten the run's job.
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
        /// Both versions, or that the other process is not a scheduler of dedup-job.
        reason: String,
    },
    /// No executor is there to do the work.
    #[error("{address}: {reason}")]
    NoExecutors {
        /// The scheduler.
        address: String,
        /// How long the scheduler has had no executor, or how executors were lost.
        reason: String,
    },
    /// A task failed.
    #[error("{message}")]
    Task {
        /// The kind of failure.
        kind: ErrorKind,
        /// The message of the executor.
        message: String,
    },
    /// A large file was cut where it must not be, to be read in parts; see [`EngineError::WrongCut`].
    #[error(
        "{file}, byte {offset}: the file was divided here for parallel reading, but this place is inside a record, or its frames need another zstd dictionary"
    )]
    WrongCut {
        /// The file, as executors name it.
        file: String,
        /// Offset of the cut, in bytes.
        offset: u64,
    },
    /// A defect of this program, or a foreign process.
    #[error("{0}")]
    Internal(String),
}

impl ClusterError {
    /// Returns the kind of the failure, which decides the exit code.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Address { .. } | Self::Exposed { .. } => ErrorKind::Usage,
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
            Self::WrongCut { .. } => ErrorKind::Data,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

impl From<ClusterError> for EngineError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::WrongCut { file, offset } => Self::WrongCut { file, offset },
            other => Self::Cluster {
                kind: other.kind(),
                message: other.to_string(),
            },
        }
    }
}

/// Returns the message of the innermost cause of an error; the outer causes only name layers of the connection.
pub(crate) fn innermost_cause(error: &dyn std::error::Error) -> Option<String> {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes
        .last()
        .map(|cause| storage::scrub(&cause.to_string()))
}

/// The result type of this crate.
pub type Result<T, E = ClusterError> = std::result::Result<T, E>;
