//! Kinds of failures.

/// What a failure asks of the user; each kind has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request makes no sense: correct the command.
    Usage,
    /// The data is wrong: correct the data.
    Data,
    /// The storage cannot be reached.
    Unreachable,
    /// A defect of this program.
    Internal,
    /// Local input or output failed, for example because a disk is full.
    Io,
    /// The same command may succeed later, or with more memory.
    TryAgain,
    /// Access was refused.
    Permission,
    /// The configuration contradicts itself, or two fingerprint specs differ.
    Configuration,
}

/// The kind of a local input or output error.
pub fn io_kind(error: &std::io::Error) -> ErrorKind {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ErrorKind::Permission
        }
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => ErrorKind::Data,
        // Of a decompressor, not of the system.
        std::io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => ErrorKind::Data,
        _ => ErrorKind::Io,
    }
}
