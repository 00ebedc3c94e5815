//! What the log tells the reader of a data file: where its checksums are.

use serde::{Deserialize, Serialize};

use crate::tail::Tail;

/// What the log tells the reader of a data file. Empty for plain files and for files of other programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The place of its block sums, and the checksums of its tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}
