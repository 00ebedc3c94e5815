//! Stage 4, emit: makes rows of pairs from matches whose ids are known, and sends them to the output.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;
use datafusion::common::internal_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use hamming::Match;
use tokio::sync::mpsc::Sender;

use super::class_pairs::ClassPairs;
use super::ids::ArchiveMatches;
use super::nearest::Nearest;
use super::pair_builder::{ArchiveRows, PairBuilder, PairSource, RowMatch, Sent};
use super::request::{Answer, Probe};
use crate::batch::Batch;
use crate::resources::Resources;
use streams::ended;

/// Sends the pairs of one partition.
pub(super) struct Emitter {
    source: PairSource,
    resources: Arc<Resources>,
    /// The nearest documents of the archive so far; `None` when pairs are not limited.
    nearest: Option<Nearest>,
    /// Makes pairs of classes; `None` if pairs of documents are asked for.
    class_pairs: Option<ClassPairs>,
}

impl Emitter {
    pub(super) fn new(
        batch: Arc<Batch>,
        probe: &Probe,
        resources: Arc<Resources>,
        sender: Sender<Result<RecordBatch>>,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Self> {
        let class_pairs = match probe.answer {
            Answer::Pairs | Answer::PairsByClass => None,
            Answer::ClassPairs(originals) => {
                let sender = sender.clone();
                Some(ClassPairs::new(&batch, probe, originals, pool, sender)?)
            }
        };
        let classes = match probe.answer {
            Answer::PairsByClass => Some(batch.pair_classes(probe.sketches.is_some())?),
            _ => None,
        };
        Ok(Self {
            source: PairSource {
                batch,
                schema: probe.schema(),
                sketches: probe.sketches,
                day: probe.day,
                classes,
                sender,
            },
            resources,
            nearest: probe
                .max_hits
                .map(|limit| Nearest::new(limit as usize, pool)),
            class_pairs,
        })
    }

    /// Sends pairs with rows of the archive or, if pairs are limited, collects the nearest for
    /// [`Self::finish`].
    pub(super) async fn emit_archive_pairs(&mut self, found: ArchiveMatches) -> Result<()> {
        if let Some(pairs) = &mut self.class_pairs {
            let counts = pairs
                .add_archive_matches(&found, &self.source.batch)
                .await?;
            self.add_counts(counts, 0);
            return Ok(());
        }
        if let Some(nearest) = &mut self.nearest {
            let left_out = nearest.add(&found.matches, &found.rows, &self.source.batch)?;
            self.add_counts(Sent::default(), left_out);
            return Ok(());
        }
        self.send_archive_pairs(&found.matches, &found.rows).await
    }

    /// Sends pairs inside the batch. `matches` ascend by query; queries and entries are indexes of distinct fingerprints.
    pub(super) async fn emit_pairs_within(&mut self, matches: &[Match]) -> Result<()> {
        if let Some(pairs) = &self.class_pairs {
            let counts = pairs.send_within(matches, &self.source.batch).await?;
            self.add_counts(counts, 0);
            return Ok(());
        }
        let (sent, left_out) = match &self.nearest {
            None => (self.builder().send_pairs_within(matches).await?, 0),
            Some(nearest) => {
                let limit = nearest.limit;
                self.builder().send_nearest_within(matches, limit).await?
            }
        };
        self.add_counts(sent, left_out);
        Ok(())
    }

    /// Sends the pairs with the nearest documents of the archive, if they were collected.
    pub(super) async fn finish(mut self) -> Result<()> {
        if let Some(pairs) = &mut self.class_pairs {
            return pairs.send_nearest().await;
        }
        let Some(nearest) = self.nearest.take() else {
            return Ok(());
        };
        for (matches, rows) in nearest.into_matches(&self.source.schema) {
            self.send_archive_pairs(&matches, &rows).await?;
        }
        Ok(())
    }

    async fn send_archive_pairs(&self, matches: &[RowMatch], rows: &ArchiveRows) -> Result<()> {
        let sending = self.builder().send_archive_pairs(matches, rows);
        self.add_counts(sending.await?, 0);
        Ok(())
    }

    fn builder(&self) -> PairBuilder<'_> {
        PairBuilder::new(&self.source)
    }

    fn add_counts(&self, sent: Sent, left_out: u64) {
        let progress = &self.resources.progress;
        for (counter, number) in [
            (&progress.pairs, sent.pairs),
            (&progress.dissimilar, sent.dissimilar),
            (&progress.without_sketch, sent.without_sketch),
            (&progress.left_out, left_out),
        ] {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }
}

/// A task for each item, in order: a task gets the emitter from the task before it.
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

    /// Appends a task that does `work` with the emitter.
    pub(super) fn push<F: Future<Output = Result<Emitter>> + Send>(
        &mut self,
        work: impl FnOnce(Emitter) -> F + Send + 'static,
    ) {
        let idle = SpawnedTask::spawn(async { internal_err!("no emitter") });
        let before = std::mem::replace(&mut self.last, idle);
        self.last = SpawnedTask::spawn(async move { work(ended(before).await?).await });
    }

    /// Waits for the last item, then calls [`Emitter::finish`].
    pub(super) async fn finish(self) -> Result<()> {
        ended(self.last).await?.finish().await
    }
}
