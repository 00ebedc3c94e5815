//! [`TailFacts`]: offsets and checksums of a data file's tail, which the reader of the file takes
//! from the archive's log.

use serde::{Deserialize, Serialize};

use crate::file_checksums::Tail;

/// What the log records about a data file's tail, for the file's reader. Empty for plain files and
/// for files that other programs wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailFacts {
    /// Offsets and checksums of the file's tail; the tail has the checksums of everything before
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}
