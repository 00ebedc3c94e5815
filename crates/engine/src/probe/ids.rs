//! Stage 3, ids: reads the ids, sketches and decisions of matching rows. Several row groups are read at the same time, because each
//! waits for one or two answers of a store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use archive::{FingerprintReader, IdType, RowColumns, RowPages};
use arrow::array::Array as _;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use hamming::Match;
use tokio::sync::{OnceCell, mpsc, watch};

use super::pair_builder::{ArchiveRows, RowMatch};
use crate::error::EngineError;
use crate::resources::Resources;
use streams::locked;

/// The most matches whose ids are read before it is their item's turn to emit. Thousands of copies of a page make so many
/// matches that the ids of several items would not fit into the memory together.
const BEFORE_TURN: usize = 1 << 14;

/// Matches with rows of the archive, and what was read of these rows.
pub(super) struct ArchiveMatches {
    /// By row, ascending.
    pub(super) matches: Vec<RowMatch>,
    pub(super) rows: ArchiveRows,
}

/// The file whose rows were read last: its name, and the places of its pages, which the first task loads.
type LastPages = Mutex<Option<(String, Arc<OnceCell<RowPages>>)>>;

/// Reads ids for one partition.
#[derive(Clone)]
pub(super) struct IdReader {
    pub(super) resources: Arc<Resources>,
    /// The type of the batch's ids, to which the archive's are converted: plain files may have the other type.
    pub(super) id_type: Option<IdType>,
    /// The columns to read beside the ids.
    pub(super) columns: RowColumns,
    pub(super) pages: Arc<LastPages>,
}

/// A task that reads the ids of one row group's matching rows.
pub(super) struct Reading {
    /// What was read, in the order of the matches.
    pub(super) found: mpsc::Receiver<ArchiveMatches>,
    /// Set to true when the item's turn to emit has come.
    pub(super) turn: watch::Sender<bool>,
    /// The task that reads.
    pub(super) task: SpawnedTask<Result<()>>,
}

impl IdReader {
    /// Starts a task that reads the ids of `matches`; it sets `failed` when it fails.
    pub(super) fn start(
        &self,
        reader: Box<FingerprintReader>,
        row_group: usize,
        day: Option<i32>,
        mut matches: mpsc::Receiver<Vec<Match>>,
        failed: Arc<AtomicBool>,
    ) -> Reading {
        let ids = self.clone();
        let (sender, found) = mpsc::channel(1);
        let (turn, mut is_due) = watch::channel(false);
        let task = SpawnedTask::spawn(async move {
            let work = async {
                while let Some(matches) = matches.recv().await {
                    if matches.len() > BEFORE_TURN && is_due.wait_for(|due| *due).await.is_err() {
                        break;
                    }
                    let found = ids.read(&reader, row_group, day, &matches).await?;
                    if sender.send(found).await.is_err() {
                        break;
                    }
                }
                Ok(())
            };
            let done: Result<()> = work.await;
            failed.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        });
        Reading { found, turn, task }
    }

    /// Reads the rows of `matches`, which ascend by row of the row group. If decisions are read,
    /// leaves out matches with documents that are not kept.
    async fn read(
        &self,
        reader: &FingerprintReader,
        row_group: usize,
        day: Option<i32>,
        matches: &[Match],
    ) -> Result<ArchiveMatches> {
        // Each row is read once, though it may match several fingerprints.
        let mut rows: Vec<u32> = Vec::new();
        let mut row_matches: Vec<RowMatch> = Vec::with_capacity(matches.len());
        for found in matches {
            if rows.last() != Some(&found.query) {
                rows.push(found.query);
            }
            row_matches.push(RowMatch {
                entry: found.entry,
                distance: found.distance,
                row: rows.len() as u32 - 1,
            });
        }
        let begin = Instant::now();
        let cell = self.pages_cell(reader.name());
        let pages = cell.get_or_try_init(|| reader.row_pages()).await;
        let pages = pages.map_err(EngineError::from)?;
        let read = reader.rows(pages, row_group, &rows, self.columns).await;
        let read = read.map_err(EngineError::from)?;
        row_matches.retain(|found| {
            let row = found.row as usize;
            read.kept.is_null(row) || read.kept.value(row)
        });
        let ids = match self.id_type {
            Some(id_type) => archive::reader::to_id_type(&read.ids, id_type)?,
            None => read.ids,
        };
        self.resources.progress.stages.ids.add(begin.elapsed());
        Ok(ArchiveMatches {
            matches: row_matches,
            rows: ArchiveRows {
                ids,
                sketches: read.sketches,
                day,
            },
        })
    }

    /// The cell for a file's pages; a new, empty one unless the file is the one that was asked for last.
    fn pages_cell(&self, name: &str) -> Arc<OnceCell<RowPages>> {
        let mut last = locked(&self.pages);
        match &*last {
            Some((file, cell)) if file == name => Arc::clone(cell),
            _ => {
                let cell = Arc::default();
                *last = Some((name.to_owned(), Arc::clone(&cell)));
                cell
            }
        }
    }
}
