//! Failures and their exit codes.

use std::io::Write as _;

use archive::ArchiveError;
use documents::DocumentsError;
use engine::run::Commit;
use engine::{EngineError, Summary};
use storage::{ErrorKind, StorageError};

use crate::own_names::{by_own_names, hint};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file or an object store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An index failed.
    #[error(transparent)]
    Lookup(#[from] lookup::LookupError),
    /// What was read, beside documents, is wrong.
    #[error("{0}")]
    Data(String),
    /// The arguments are wrong, or contradict each other.
    #[error("{0}")]
    Usage(String),
    /// clap has a message to print: help, the version, or an error.
    #[error(transparent)]
    Clap(#[from] clap::Error),
    /// The configuration file cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// A signal arrived.
    #[error("stopped by {name}; {when}")]
    Signal {
        name: &'static str,
        number: u8,
        when: StoppedWhile,
    },
    /// The run is done, but what comes behind it failed.
    #[error("{}, and the outputs are in place, but {what}: {source}", done(*.committed))]
    BehindRun {
        committed: Option<u64>,
        what: &'static str,
        source: Box<Failure>,
    },
    /// The reader closed standard output, because it has read enough.
    #[error("standard output is closed")]
    ClosedPipe,
}

impl From<DocumentsError> for Failure {
    fn from(error: DocumentsError) -> Self {
        Self::Engine(error.into())
    }
}

/// What a run did that ended without an error.
fn done(committed: Option<u64>) -> String {
    match committed {
        Some(version) => format!("the day is committed as version {version}"),
        None => "the run is done".into(),
    }
}

/// What a process did when a signal stopped it. Its text says what the signal leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoppedWhile {
    /// It read and computed, and had published nothing.
    #[error("the archive and an earlier output are as they were")]
    Working,
    /// A commit, or the publication of an output, had begun.
    #[error(
        "a commit in progress may be in the archive, and an output in place: run the same command again"
    )]
    Committing,
    /// It had removed documents, and looked for what was dropped for them.
    #[error(
        "the documents are removed, and what was dropped for them is not kept, or not all of it; to decide anew, remove the later days, too, and run them again in order"
    )]
    Repairing,
    /// It wrote an index, whose versions it publishes on the way.
    #[error("the index has its last whole version: run the same command again to continue")]
    Indexing,
    /// All was done, except to print the answer.
    #[error("all is done, but what it printed is cut off")]
    Printing,
}

impl Failure {
    /// This failure, of what comes behind a run with this summary.
    pub fn behind(self, summary: &Summary, what: &'static str) -> Self {
        Self::BehindRun {
            committed: match summary.commit {
                Commit::Committed(version) => Some(version),
                Commit::NotAsked | Commit::AlreadyThere => None,
            },
            what,
            source: Box::new(self),
        }
    }

    /// Prints the failure on standard error and returns its exit code.
    pub fn report(&self) -> u8 {
        if let Self::Clap(error) = self {
            // If standard output is closed, there is nowhere to report it.
            let _ = error.print();
        } else if !matches!(self, Self::ClosedPipe) {
            let mut text = self.to_string();
            if self.code() == exit_code(ErrorKind::Data) {
                text.push_str(hint(&text));
            }
            // Errors of libraries may quote requests, secrets included.
            let text = storage::scrub(&by_own_names(&text));
            // If the terminal is closed, as after SIGHUP, only the exit code reports the failure.
            let _ = writeln!(std::io::stderr(), "dedup-job: {text}");
        }
        self.code()
    }

    pub fn code(&self) -> u8 {
        let kind = match self {
            Self::Engine(error) => error.kind(),
            Self::Archive(error) => error.kind(),
            Self::Storage(error) => error.kind(),
            Self::Lookup(error) => error.kind(),
            Self::Data(_) => ErrorKind::Data,
            Self::Usage(_) => ErrorKind::Usage,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Signal { number, .. } => return 128 + number,
            Self::BehindRun { source, .. } => return source.code(),
            Self::Clap(error) if error.use_stderr() => ErrorKind::Usage,
            Self::Clap(_) | Self::ClosedPipe => return 0,
        };
        exit_code(kind)
    }
}

/// The failure of arguments that are wrong, or contradict each other.
pub fn usage<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(message.into()))
}

/// The exit code of the program after an error of this kind.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Usage => 64,
        ErrorKind::Data => 65,
        ErrorKind::Unreachable => 69,
        ErrorKind::Internal => 70,
        ErrorKind::Io => 74,
        ErrorKind::TryAgain => 75,
        ErrorKind::Permission => 77,
        ErrorKind::Configuration => 78,
    }
}
