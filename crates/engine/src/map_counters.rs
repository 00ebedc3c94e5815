//! [`MapCounters`]: what map 1 counts while it reads documents.

use std::sync::Arc;

use crate::crawl_counts::CrawlCounters;
use crate::text_counts::TextCounters;

/// Counts of the texts and of the records that map 1 reads. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct MapCounters {
    /// The texts that are fingerprinted.
    pub texts: Arc<TextCounters>,
    /// The records of WARC files, of files and parts that were read to their ends.
    pub crawl: Arc<CrawlCounters>,
}
