//! The errors of queries. DataFusion puts errors into each other in several ways; what counts is the cause.

use std::error::Error;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use storage::{ErrorKind, io_kind, plain_message, scrub, store_kind};

/// Returns the kind of a cause that is an error of a crate's own, or of a crate below it. Such an error names its object.
pub type Own = fn(&(dyn Error + 'static)) -> Option<ErrorKind>;

/// The error, its cause, and so on.
pub fn causes(error: &DataFusionError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error| (*error).source())
}

/// The message of a query's error. Own errors name their object; other errors get the name of the operation.
pub fn query_message(operation: &str, error: &DataFusionError, own: Own) -> String {
    let own = causes(error).find(|cause| own(*cause).is_some());
    own.map_or_else(
        || format!("{operation}: {}", root_message(error)),
        ToString::to_string,
    )
}

/// The kind of the first cause that has one. Otherwise, errors of readers and casts are bad data.
pub fn query_kind(error: &DataFusionError, own: Own) -> ErrorKind {
    for cause in causes(error) {
        if let Some(kind) = own(cause) {
            return kind;
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

/// The message of the innermost error, without the names of its wrappers.
pub fn root_message(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::External(inner) => plain_message(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => inner.to_string(),
        DataFusionError::ObjectStore(inner) => plain_message(inner.as_ref()),
        DataFusionError::IoError(inner) => inner.to_string(),
        DataFusionError::Execution(message) | DataFusionError::Plan(message) => message.clone(),
        other => scrub(other.to_string().lines().next().unwrap_or_default()),
    }
}

/// What did not fit, if an error says that a session's memory is exhausted, and not its disk.
pub fn exhausted_memory(error: &DataFusionError) -> Option<&str> {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(what)
            if !what.contains("disk") && !what.contains("allowable limit") =>
        {
            what.lines().next()
        }
        _ => None,
    }
}

/// The first error of a full disk among an error and its causes.
pub fn full_disk<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e std::io::Error> {
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
