//! What an archive's log says of a data file, for the reader of the file: its tail's offsets and checksums.

use serde::{Deserialize, Serialize};

use crate::file_checksums::Tail;

/// What the log says of a data file, for its reader. Empty for plain files and for files of other programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFacts {
    /// Offsets and checksums of its tail, which has the checksums of everything before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}
