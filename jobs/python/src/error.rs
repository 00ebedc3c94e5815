//! [`Failed`]: an error on its way to Python, where it becomes the exception of its exit code.

use archive::ArchiveError;
use arrow::error::ArrowError;
use documents::DocumentsError;
use engine::EngineError;
use hamming::PlanError;
use lookup::LookupError;
use parquet::errors::ParquetError;
use pyo3::prelude::*;
use simhash::{ModelError, SpecError};
use storage::{ErrorKind, StorageError};

/// The Python module that has the exceptions, and the function there that makes one from an exit code and a message.
const EXCEPTIONS: (&str, &str) = ("dedup_job._process", "native_error");

/// An error that any thread can return: it holds no Python object.
#[derive(Debug)]
pub(crate) struct Failed {
    kind: ErrorKind,
    message: String,
}

impl Failed {
    pub(crate) fn new(kind: ErrorKind, message: impl ToString) -> Self {
        Self {
            kind,
            // Errors of libraries may quote requests, secrets included.
            message: storage::scrub(&message.to_string()),
        }
    }

    /// The caller's mistake.
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Data that cannot be used.
    pub(crate) fn data(message: impl ToString) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// An error of the system about `object`.
    pub(crate) fn io(object: &str, error: &std::io::Error) -> Self {
        Self::new(storage::io_kind(error), format!("{object}: {error}"))
    }

    /// An error of the Parquet library about the file `path`.
    pub(crate) fn parquet(path: &str, error: &ParquetError) -> Self {
        Self::data(format!("{path}: {error}"))
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Python's exception.
    fn exception<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (module, function) = EXCEPTIONS;
        let make = py.import(module)?.getattr(function)?;
        make.call1((commands::exit_code(self.kind), self.message.as_str()))
    }
}

impl From<Failed> for PyErr {
    fn from(failed: Failed) -> Self {
        Python::attach(|py| {
            failed
                .exception(py)
                .map_or_else(|error| error, Self::from_value)
        })
    }
}

impl From<DocumentsError> for Failed {
    fn from(error: DocumentsError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<ArchiveError> for Failed {
    fn from(error: ArchiveError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<LookupError> for Failed {
    fn from(error: LookupError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self::new(ErrorKind::Configuration, error)
    }
}

impl From<SpecError> for Failed {
    fn from(error: SpecError) -> Self {
        Self::new(ErrorKind::Configuration, error)
    }
}

impl From<PlanError> for Failed {
    fn from(error: PlanError) -> Self {
        let kind = match error {
            PlanError::Design(_) => ErrorKind::Usage,
            PlanError::OutOfMemory { .. } => ErrorKind::TryAgain,
        };
        Self::new(kind, error)
    }
}

impl From<ArrowError> for Failed {
    fn from(error: ArrowError) -> Self {
        Self::data(error)
    }
}
