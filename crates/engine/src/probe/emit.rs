//! Stage 4, emit: makes rows of pairs from matches whose ids are known, and sends them to the output.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::metrics::Count;
use hamming::Match;
use tokio::sync::mpsc::Sender;

use super::hits::{HitBuilder, RowMatch};
use super::ids::IdMatches;
use super::nearest::Nearest;
use super::request::Probe;
use crate::batch::Batch;
use crate::pairs;
use crate::resources::Resources;
use crate::stream::join;

/// Sends the pairs of one partition.
pub(super) struct Emitter {
    batch: Arc<Batch>,
    resources: Arc<Resources>,
    schema: SchemaRef,
    day: Option<i32>,
    sender: Sender<Result<RecordBatch>>,
    matched: Count,
    /// The nearest documents of the archive so far; `None` when all pairs are wanted.
    nearest: Option<Nearest>,
}

impl Emitter {
    pub(super) fn new(
        batch: Arc<Batch>,
        probe: &Probe,
        resources: Arc<Resources>,
        sender: Sender<Result<RecordBatch>>,
        matched: Count,
        pool: &Arc<dyn MemoryPool>,
    ) -> Self {
        Self {
            schema: pairs::schema(probe.batch.id_type()),
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

    /// Sends pairs with rows of the archive or, if pairs are limited, keeps the nearest for [`Self::finish`].
    pub(super) async fn archive(&mut self, found: IdMatches) -> Result<()> {
        if let Some(nearest) = &mut self.nearest {
            let left_out = nearest.add(&found.matches, &found.ids, found.day, &self.batch)?;
            self.add_counts(0, left_out);
            return Ok(());
        }
        self.send_archive(&found.matches, &found.ids, found.day)
            .await
    }

    /// Sends pairs inside the batch. `matches` ascend by query; queries and entries are indexes of distinct fingerprints.
    pub(super) async fn within(&mut self, matches: &[Match]) -> Result<()> {
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
        self.add_counts(hits, left_out);
        Ok(())
    }

    /// Sends the nearest documents that were kept.
    pub(super) async fn finish(mut self) -> Result<()> {
        let Some(nearest) = self.nearest.take() else {
            return Ok(());
        };
        for (day, found, ids) in nearest.into_hits(&self.schema) {
            self.send_archive(&found, &ids?, day).await?;
        }
        Ok(())
    }

    async fn send_archive(
        &self,
        found: &[RowMatch],
        ids: &ArrayRef,
        day: Option<i32>,
    ) -> Result<()> {
        let builder = HitBuilder::new(&self.batch, Arc::clone(&self.schema), day);
        let hits = builder
            .archive(found, ids, |batch| self.send(batch))
            .await?;
        self.add_counts(hits, 0);
        Ok(())
    }

    /// Sends a batch; false when the receiver is gone.
    async fn send(&self, batch: RecordBatch) -> bool {
        self.sender.send(Ok(batch)).await.is_ok()
    }

    fn add_counts(&self, hits: u64, left_out: u64) {
        self.matched.add(hits as usize);
        let progress = &self.resources.progress;
        progress.hits.fetch_add(hits, Ordering::Relaxed);
        progress.left_out.fetch_add(left_out, Ordering::Relaxed);
    }
}

/// A task for each item, in order: each gets the emitter when the item before is done with it.
pub(super) struct Chain {
    /// The last task; it returns the emitter.
    last: SpawnedTask<Result<Emitter>>,
}

impl Chain {
    pub(super) fn new(emitter: Emitter) -> Self {
        Self {
            last: SpawnedTask::spawn(async { Ok(emitter) }),
        }
    }

    /// Appends `work`.
    pub(super) fn push<F>(&mut self, work: impl FnOnce(Emitter) -> F + Send + 'static)
    where
        F: Future<Output = Result<Emitter>> + Send,
    {
        let idle = SpawnedTask::spawn(async { internal_err!("no emitter") });
        let before = std::mem::replace(&mut self.last, idle);
        self.last = SpawnedTask::spawn(async move { work(join(before).await?).await });
    }

    /// Waits for the last item, then sends the nearest documents that were kept.
    pub(super) async fn finish(self) -> Result<()> {
        join(self.last).await?.finish().await
    }
}
