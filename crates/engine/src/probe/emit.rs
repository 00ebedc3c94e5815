//! From the matches of a work item to hits: ids are read for hits alone, and rows multiplied out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use archive::{FingerprintReader, IdPages};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::metrics::Count;
use hamming::Match;
use tokio::sync::mpsc::Sender;

use super::hits::{HitBuilder, RowMatch};
use super::nearest::Nearest;
use super::{Probe, hits_schema};
use crate::batch::NewBatch;
use crate::error::EngineError;
use crate::resources::Resources;

/// Sends the hits of one partition.
pub(crate) struct Emitter {
    batch: Arc<NewBatch>,
    resources: Arc<Resources>,
    schema: SchemaRef,
    day: Option<i32>,
    sender: Sender<Result<RecordBatch>>,
    matched: Count,
    /// The nearest documents of the history so far, where only those are wanted.
    nearest: Option<Nearest>,
    /// Pages of ids of the file that was read last.
    pages: Option<(String, IdPages)>,
}

impl Emitter {
    pub(crate) fn new(
        batch: Arc<NewBatch>,
        probe: &Probe,
        resources: Arc<Resources>,
        sender: Sender<Result<RecordBatch>>,
        matched: Count,
        pool: &Arc<dyn MemoryPool>,
    ) -> Self {
        Self {
            schema: hits_schema(probe.batch.id_type()),
            day: probe.day,
            nearest: probe
                .max_hits
                .map(|limit| Nearest::new(limit as usize, pool)),
            batch,
            resources,
            sender,
            matched,
            pages: None,
        }
    }

    /// Hits with rows of the history: `matches` by row of the row group, ascending.
    pub(crate) async fn history(
        &mut self,
        reader: &FingerprintReader,
        row_group: usize,
        day: Option<i32>,
        matches: &[Match],
    ) -> Result<()> {
        // Each row once, though it may match several fingerprints.
        let mut rows: Vec<u32> = Vec::new();
        let mut found: Vec<RowMatch> = Vec::with_capacity(matches.len());
        for hit in matches {
            if rows.last() != Some(&hit.query) {
                rows.push(hit.query);
            }
            found.push(RowMatch {
                entry: hit.entry,
                distance: hit.distance,
                row: rows.len() as u32 - 1,
            });
        }
        let ids = self.ids(reader, row_group, &rows).await?;
        if let Some(nearest) = &mut self.nearest {
            let left_out = nearest.add(&found, &ids, day, &self.batch)?;
            self.count(0, left_out);
            return Ok(());
        }
        self.send_history(&found, &ids, day).await
    }

    /// Hits inside the batch: `matches` by index of the batch's values, ascending.
    pub(crate) async fn within(&mut self, matches: &[Match]) -> Result<()> {
        let builder = HitBuilder::new(&self.batch, Arc::clone(&self.schema), self.day);
        let send = |batch| self.send(batch);
        let (hits, left_out) = match &self.nearest {
            None => (builder.within(matches, send).await?, 0),
            Some(nearest) => {
                builder
                    .nearest_within(matches, nearest.limit(), send)
                    .await?
            }
        };
        self.count(hits, left_out);
        Ok(())
    }

    /// Sends what was kept back to the end.
    pub(crate) async fn finish(mut self) -> Result<()> {
        let Some(nearest) = self.nearest.take() else {
            return Ok(());
        };
        for (day, found, ids) in nearest.into_hits(&self.schema) {
            self.send_history(&found, &ids?, day).await?;
        }
        Ok(())
    }

    async fn send_history(
        &self,
        found: &[RowMatch],
        ids: &ArrayRef,
        day: Option<i32>,
    ) -> Result<()> {
        let builder = HitBuilder::new(&self.batch, Arc::clone(&self.schema), day);
        let hits = builder
            .history(found, ids, |batch| self.send(batch))
            .await?;
        self.count(hits, 0);
        Ok(())
    }

    /// The ids of some rows, ascending.
    async fn ids(
        &mut self,
        reader: &FingerprintReader,
        row_group: usize,
        rows: &[u32],
    ) -> Result<ArrayRef> {
        let begin = Instant::now();
        let pages = match self.pages.take() {
            Some((name, pages)) if name == reader.name() => pages,
            _ => reader.id_pages().await.map_err(EngineError::from)?,
        };
        let ids = reader
            .ids(&pages, row_group, rows)
            .await
            .map_err(EngineError::from)?;
        self.pages = Some((reader.name().to_owned(), pages));
        // The id types of the day and of plain files can differ.
        let wanted = self.batch.id_type();
        let ids = wanted.map_or(Ok(Arc::clone(&ids)), |wanted| {
            archive::reader::to_id_type(&ids, wanted)
        })?;
        self.resources.progress.stages.ids.add(begin.elapsed());
        Ok(ids)
    }

    /// Hands a batch on; false when nobody wants it any more.
    async fn send(&self, batch: RecordBatch) -> bool {
        self.sender.send(Ok(batch)).await.is_ok()
    }

    fn count(&self, hits: u64, left_out: u64) {
        self.matched.add(hits as usize);
        let progress = &self.resources.progress;
        progress.hits.fetch_add(hits, Ordering::Relaxed);
        progress.left_out.fetch_add(left_out, Ordering::Relaxed);
    }
}
