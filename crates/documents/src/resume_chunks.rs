//! Cuts a batch into chunks: a run with `--resume` fingerprints one chunk after the other, and
//! keeps the finished ones.

use std::sync::Arc;

use archive::IdType;
use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;

use super::Documents;
use super::splits::{Split, total_bytes};
use super::wanted_rows::Rows;
use crate::error::Result;
use crate::read_counts::ReadCounters;
use crate::versions::file_versions;

/// The number of chunks that the chunk size aims at.
const CHUNKS: u64 = 64;
/// The smallest chunk size, in bytes.
const LEAST_BYTES: u64 = 8 << 20;
/// The largest chunk size, in bytes. A chunk exceeds it only to have a split for each thread.
const MOST_BYTES: u64 = 4 << 30;

/// Consecutive splits of the inputs.
#[derive(Debug, Clone)]
pub struct ResumeChunk {
    splits: Vec<Split>,
    /// Names the chunk's splits and the versions of their files, so that chunks of other rows have
    /// other names.
    pub name: String,
}

impl Documents {
    /// Cuts the inputs into chunks, in order. A chunk has at least one split for each of `threads` threads, but the last may have
    /// fewer.
    pub async fn chunks(&self, threads: usize) -> Result<Vec<ResumeChunk>> {
        let versions = file_versions(self.files.iter().map(|file| &file.location)).await?;
        let splits = self.all_splits();
        let most = (total_bytes(&splits) / CHUNKS).clamp(LEAST_BYTES, MOST_BYTES);
        let mut chunks: Vec<ResumeChunk> = Vec::new();
        let mut room = 0;
        for split in splits {
            let bytes = split.bytes;
            let number = split.file_number;
            // Rows name the part of their document by its number, which depends on how the files before it are cut; `--prefer path`
            // names its file by a number, too. A document without an id gets one from its file's short name, which depends on all
            // files.
            let of_file = format!(
                "{number} {} {:?} {:?} {:?}\n",
                split.part_number,
                split.to_string(),
                split.file.short_name,
                versions[number].version
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

    /// The table of a chunk's documents, as [`Self::table`].
    pub fn table_of_chunk(
        &self,
        context: &SessionContext,
        id_type: IdType,
        partitions: usize,
        decision_columns: bool,
        chunk: &ResumeChunk,
        counters: &Arc<ReadCounters>,
    ) -> Result<DataFrame> {
        let splits = chunk.splits.clone();
        let rows = Rows::to_fingerprint(decision_columns);
        self.table_of_splits(context, id_type, partitions, rows, splits, Some(counters))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Columns;
    use crate::session::test_session;

    /// Rows keep the numbers of their parts, so the rows of a file have other names when a file before it is cut otherwise.
    #[tokio::test]
    async fn a_cut_of_an_earlier_file_gives_other_names() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a.jsonl", "b.jsonl"].map(|name| dir.path().join(name));
        for path in &paths {
            std::fs::write(path, "{\"id\":\"x\",\"text\":\"one two three four\"}\n").unwrap();
        }
        let given = paths.map(|path| path.to_str().unwrap().to_owned());
        let context = test_session(1 << 30);
        let mut documents = Documents::open(&context, &given, &Columns::default())
            .await
            .unwrap();
        let mut names = Vec::new();
        for cuts in [vec![], vec![10], vec![20]] {
            Arc::make_mut(&mut documents.files[0]).cut_at(cuts);
            let chunks = documents.chunks(1).await.unwrap();
            let of_last_file = chunks.last().and_then(|chunk| chunk.name.lines().last());
            names.push(of_last_file.unwrap().to_owned());
        }
        assert!(names[0] != names[1] && names[1] == names[2], "{names:?}");
    }
}
