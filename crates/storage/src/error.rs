//! The errors of this crate.

use crate::error_kind::{ErrorKind, io_kind};
use crate::explain::{REPLACED, explain};

pub type Result<T, E = StorageError> = std::result::Result<T, E>;

/// A failed operation on a file or a store; every variant names the file or store.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// There is nothing at the path.
    #[error("{path}: no such file or directory")]
    NotFound { path: String },
    /// A path that cannot be used.
    #[error("{path}: {reason}")]
    BadPath { path: String, reason: String },
    /// A path inside a Delta table: only the table's log says which of its files count.
    #[error(
        "{path}: lies in the Delta table {table}, whose log says which of its files count; give the table itself"
    )]
    InTable { path: String, table: String },
    /// A directory with a Delta table somewhere below it.
    #[error(
        "{path}: holds the Delta table {table}, whose log says which of its files count; give the table itself, and other \
         files apart from it"
    )]
    HoldsTable { path: String, table: String },
    /// A local file was replaced or written to since it was first opened.
    #[error("{path}: {REPLACED}; run it again")]
    Changed { path: String },
    /// What was there before is missing.
    #[error("{path}: it was removed meanwhile; if it should be there, run it again")]
    Gone { path: String },
    /// A store's list leaves out an object that is there.
    #[error("{path}: the store's list of it is wrong: it leaves out {missing}, which is there")]
    ShortList { path: String, missing: String },
    /// A store answered that it stored an object, and has a part of it.
    #[error("{path}: the store has kept {found} of the {expected} bytes that were written")]
    NotKept {
        path: String,
        found: u64,
        expected: u64,
    },
    /// Credentials for a store are missing.
    #[error("{url}: {reason}")]
    Credentials { url: String, reason: String },
    /// The settings for a store cannot be used.
    #[error("{url}: {reason}")]
    StoreOptions { url: String, reason: String },
    /// A store on which two runs could overwrite each other's commits.
    #[error(
        "{path}: its store cannot hold an archive: {reason}. Two runs could overwrite each other's commits"
    )]
    Unconditional { path: String, reason: String },
    /// The store refused or failed.
    #[error("{object}: {}", explain(source).text)]
    Store {
        object: String,
        source: object_store::Error,
    },
    /// A local file operation failed.
    #[error("{path}: {source}")]
    Io {
        path: String,
        source: std::io::Error,
    },
    /// A defect of this program.
    #[error("{0}")]
    Internal(String),
}

// Errors of libraries may quote a request with its secrets, so `Debug` shows only the scrubbed
// message.
impl std::fmt::Debug for StorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} error: {self}", self.kind())
    }
}

impl StorageError {
    /// Wraps an error of a store that concerns `object`.
    pub fn store(object: impl ToString) -> impl FnOnce(object_store::Error) -> Self {
        let object = object.to_string();
        move |source| Self::Store { object, source }
    }

    /// The error for a path that cannot be used.
    pub fn bad_path(path: impl ToString, reason: impl ToString) -> Self {
        Self::BadPath {
            path: path.to_string(),
            reason: reason.to_string(),
        }
    }

    /// Wraps an error of the system that concerns the file `path`, or something else with a name.
    pub fn io(path: impl ToString) -> Box<dyn Fn(std::io::Error) -> Self + Send + Sync> {
        let path = path.to_string();
        Box::new(move |source| Self::Io {
            path: path.clone(),
            source,
        })
    }

    pub(crate) fn in_table(path: impl ToString, table: impl ToString) -> Self {
        Self::InTable {
            path: path.to_string(),
            table: table.to_string(),
        }
    }

    /// The error for a directory with a table below it.
    pub(crate) fn holds_table(path: impl ToString, table: impl ToString) -> Self {
        Self::HoldsTable {
            path: path.to_string(),
            table: table.to_string(),
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. }
            | Self::BadPath { .. }
            | Self::InTable { .. }
            | Self::HoldsTable { .. } => ErrorKind::Usage,
            Self::Changed { .. } | Self::Gone { .. } => ErrorKind::TryAgain,
            Self::ShortList { .. } | Self::NotKept { .. } => ErrorKind::Unreachable,
            Self::Credentials { .. } => ErrorKind::Permission,
            Self::StoreOptions { .. } | Self::Unconditional { .. } => ErrorKind::Configuration,
            Self::Store { source, .. } => explain(source).kind,
            Self::Io { source, .. } => io_kind(source),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}
