//! From matches, whose ids are known, to hits: rows are multiplied out.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::metrics::Count;
use hamming::Match;
use tokio::sync::mpsc::Sender;

use super::hits::{HitBuilder, RowMatch};
use super::lookup::Found;
use super::nearest::Nearest;
use super::{Probe, hits_schema};
use crate::batch::NewBatch;
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
        }
    }

    /// Hits with rows of the history.
    pub(crate) async fn history(&mut self, found: Found) -> Result<()> {
        if let Some(nearest) = &mut self.nearest {
            let left_out = nearest.add(&found.matches, &found.ids, found.day, &self.batch)?;
            self.count(0, left_out);
            return Ok(());
        }
        self.send_history(&found.matches, &found.ids, found.day)
            .await
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
