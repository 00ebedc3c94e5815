//! Cuts a batch into chunks: a run with `--resume` fingerprints one chunk after the other, and
//! keeps the finished ones.

use std::sync::Arc;

use archive::IdType;
use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};

use super::Documents;
use super::partition_reader::Rows;
use super::splits::Split;
use crate::crawl_counts::CrawlCounters;
use crate::error::Result;

/// The number of chunks that the chunk size aims at.
const CHUNKS: u64 = 64;
/// The smallest chunk size, in bytes.
const LEAST_BYTES: u64 = 8 << 20;
/// The largest chunk size, in bytes. A chunk exceeds it only to have a split for each thread.
const MOST_BYTES: u64 = 4 << 30;
/// Files whose version is looked up at the same time.
const FILES_AT_ONCE: usize = 32;

/// Consecutive splits of the inputs.
#[derive(Debug, Clone)]
pub(crate) struct ResumeChunk {
    splits: Vec<Split>,
    /// Names the chunk's splits and the versions of their files, so that chunks of other rows have
    /// other names.
    pub(crate) name: String,
}

impl Documents {
    /// Cuts the inputs into chunks, in order. A chunk has at least one split for each of `threads` threads, but the last may have
    /// fewer.
    ///
    /// # Errors
    /// When a file is missing, or its store fails.
    pub(crate) async fn chunks(&self, threads: usize) -> Result<Vec<ResumeChunk>> {
        let versions: Vec<String> = futures::stream::iter(&self.files)
            .map(|file| file.location.version())
            .buffered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        let splits = self.all_splits();
        let total = splits.iter().map(Split::bytes).fold(0, u64::saturating_add);
        let most = (total / CHUNKS).clamp(LEAST_BYTES, MOST_BYTES);
        let mut chunks: Vec<ResumeChunk> = Vec::new();
        let mut room = 0;
        for split in splits {
            let bytes = split.bytes();
            let number = split.file_number;
            // A document without an id gets one from its file's short name, which depends on all
            // files.
            let of_file = format!(
                "{number} {:?} {:?} {:?}\n",
                split.to_string(),
                split.file.short_name,
                versions[number]
            );
            match chunks.last_mut() {
                Some(chunk) if bytes <= room || chunk.splits.len() < threads => {
                    room = room.saturating_sub(bytes);
                    chunk.name.push_str(&of_file);
                    chunk.splits.push(split);
                }
                _ => {
                    room = most.saturating_sub(bytes);
                    chunks.push(ResumeChunk {
                        splits: vec![split],
                        name: of_file,
                    });
                }
            }
        }
        Ok(chunks)
    }

    /// The table of a chunk's documents, as [`Self::table_to_fingerprint`].
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn table_of_chunk(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
        decision_columns: bool,
        chunk: &ResumeChunk,
        crawl: &Arc<CrawlCounters>,
    ) -> Result<DataFrame> {
        let splits = chunk.splits.clone();
        let rows = Rows::to_fingerprint(decision_columns);
        self.table_of_splits(context, id_type, partitions, rows, splits, Some(crawl))
    }
}
