//! [`MapCounters`]: what map 1 counts while it reads documents.

use std::sync::Arc;

use crate::text_counts::TextCounters;
use documents::read_counts::ReadCounters;

/// Counts of the texts and of the records that map 1 reads. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct MapCounters {
    /// The texts that are fingerprinted.
    pub texts: Arc<TextCounters>,
    /// What is read of the files; of WARC files, of those and of parts that were read to their ends.
    pub read: Arc<ReadCounters>,
}
