//! Failures and the exit codes they give.

use std::process::ExitCode;

use archive::{ArchiveError, ErrorKind};
use engine::EngineError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A stage of the engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The archive failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A cluster, or a process of it, failed.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    /// The arguments make no sense together.
    #[error("{0}")]
    Usage(String),
    /// The configuration file cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// A local file operation failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A signal came.
    #[error("stopped by {name}; {}", match committing {
        false => "the archive and an earlier output are as they were",
        true => "the day was being committed, and may be in the archive: run the same command again",
    })]
    Signal {
        /// Name of the signal.
        name: &'static str,
        /// Its number.
        number: u8,
        /// Whether a commit had begun.
        committing: bool,
    },
    /// Standard output was closed by its reader, who has what he wanted.
    #[error("standard output is closed")]
    ClosedPipe,
}

impl Failure {
    /// Says what happened on standard error; the exit code tells programs.
    pub fn report(&self) -> ExitCode {
        if !matches!(self, Self::ClosedPipe) {
            // Libraries may quote what was sent.
            eprintln!("dedup-job: {}", archive::store::scrub(&self.to_string()));
        }
        ExitCode::from(self.code())
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        let kind = match self {
            Self::Engine(error) => error.kind(),
            Self::Archive(error) => error.kind(),
            Self::Cluster(error) => error.kind(),
            Self::Usage(_) => ErrorKind::Usage,
            Self::Configuration(_) => ErrorKind::Configuration,
            Self::Io { source, .. } => archive::error::of_io(source),
            Self::Signal { number, .. } => return 128 + number,
            Self::ClosedPipe => return 0,
        };
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
}

/// Prints what clap has to say: help and version are no errors, wrong arguments are 64.
pub fn of_clap(error: &clap::Error) -> ExitCode {
    // Where standard output is closed there is nobody to tell.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 64 } else { 0 })
}
