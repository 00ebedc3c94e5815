//! The pipeline of one partition: work items go in, pairs come out, in the order of the items.
//!
//! ```text
//!  shared by the partitions of a process            one partition
//! ┌──────────────────────────────────┐  ┌──────────────────────────────────────────────────────────────┐
//! │ 1 fetch          (fetch.rs)      │  │ 2 probe (probing.rs)   3 ids (ids.rs)     4 emit (emit.rs)   │
//! │                                  │  │                                                              │
//! │ FetchQueue: a task an item,      │  │ one item at a time     a task an item     a chain of tasks,  │
//! │ local: 2 items a thread          ├─▶│ on a blocking thread   ┌────────────┐     one an item        │
//! │ store: 64 items, 64 MiB or a     │  │ ────matches, 1 Vec────▶│ read ids   │──found, 1──▶ rows ──2──┼─▶
//! │        16th of the memory        │  │       (mpsc)           └────────────┘   (mpsc)      (mpsc)   │
//! │ oldest first                     │  │ ────done (oneshot)──────────────────────────▶                │
//! └──────────────────────────────────┘  │                         ◀──turn (watch)──────                │
//!                                       │ range of the batch: ────matches, 1 Vec──────▶ (no ids stage) │
//!                                       └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! Bounds. A row group of the archive takes one of [`PERMITS`] permits before its ids task starts, and gives it back when
//! its pairs are sent: so at most 12 items have matches, ids or a place in the chain. Every channel is bounded, so a slow
//! reader of the output stops the emitter, then the ids tasks, then the probe, then the fetch.
//!
//! Who waits for whom:
//! - The emitter of an item waits for the emitter of the item before it, which hands it the [`Emitter`]. Then it sets
//!   `turn`, and takes what was found until the ids task ends.
//! - An ids task reads the ids of many matches only after its `turn`, so that one item at a time holds many ids.
//! - The probe waits for its item's ids task while one `Vec` of matches is unread. Items that are coalesced
//!   (`coalesce.rs`) are probed together, at most [`TOGETHER`](super::TOGETHER); each is ended before the next gets
//!   matches, because the emitters wait for them in order. `TOGETHER` is less than [`PERMITS`], so coalescing never
//!   waits for a permit that only a coalesced item could give back.
//!
//! Errors and the end:
//! - Fetch and probe: the error ends the partition's task, which drops the chain; dropped tasks are aborted.
//! - Ids: the task sets `failed`, and its error travels down the chain to [`Pipeline::finish`]. The partition (`table.rs`)
//!   sees `failed` after the item that it probes, and stops.
//! - A receiver that is gone (the plan was cancelled, or a later stage failed) makes the probe stop in the middle of the
//!   item. The item's `done` is then dropped unsent, and the emitter fails: an item that was not probed to its end is
//!   never counted as answered.
//! - The partition also stops before the next item when the output is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
use tokio::sync::Semaphore;

use super::channel::item_channel;
use super::emit::{Chain, Emitter};
use super::fetch::{Fetched, RowGroup};
use super::ids::IdReader;
use super::probing::{self, Buffers, TOGETHER};
use super::request::Probe;
use crate::batch::{Batch, PartTables};
use crate::error::EngineError;
use crate::resources::Resources;
use streams::{blocking, ended};

/// The most items of a partition whose pairs are not all sent.
const PERMITS: usize = 12;

/// The work on the items of one partition. See the module.
pub(super) struct Pipeline {
    threads: usize,
    resources: Arc<Resources>,
    probe: Arc<Probe>,
    batch: Arc<Batch>,
    ids: IdReader,
    permits: Arc<Semaphore>,
    /// Set when ids could not be read: nothing more needs to be probed then.
    failed: Arc<AtomicBool>,
    pool: Arc<dyn MemoryPool>,
    buffers: Buffers,
    chain: Chain,
}

impl Pipeline {
    /// A pipeline without items, whose pairs go to `emitter`.
    pub(super) fn new(
        resources: Arc<Resources>,
        probe: Arc<Probe>,
        batch: Arc<Batch>,
        emitter: Emitter,
        (threads, pool): (usize, Arc<dyn MemoryPool>),
    ) -> Self {
        Self {
            threads,
            ids: IdReader {
                resources: Arc::clone(&resources),
                id_type: batch.id_type(),
                columns: probe.row_columns(),
                pages: Arc::default(),
            },
            resources,
            probe,
            batch,
            permits: Arc::new(Semaphore::new(PERMITS)),
            failed: Arc::default(),
            pool,
            buffers: Buffers::default(),
            chain: Chain::new(emitter),
        }
    }

    /// Whether a later stage failed, so that nothing more needs to be probed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Probes the item with this number in the run. Its pairs are sent while it and the next items are probed.
    pub(super) async fn probe(&mut self, number: u32, item: Fetched) -> Result<()> {
        match item {
            Fetched::RowGroup(row_group) => self.probe_row_group(number, row_group).await,
            Fetched::Within { first, end, part } => {
                self.probe_within(number, first..end, part).await
            }
        }
    }

    async fn probe_row_group(&mut self, item: u32, row_group: RowGroup) -> Result<()> {
        let (reader, number) = (row_group.reader, row_group.number);
        let resources = Arc::clone(&self.resources);
        let (sink, matches, done) = item_channel();
        let decoder = reader.clone();
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let failed = Arc::clone(&self.failed);
        let ids = &self.ids;
        let mut reading = ids.start(reader, number, row_group.day, matches, failed);
        self.chain.push(move |mut emitter| async move {
            reading.turn.send_replace(true);
            while let Some(found) = reading.found.recv().await {
                emitter.emit_archive_pairs(found).await?;
            }
            ended(reading.task).await?;
            done.check().await?;
            drop(permit);
            resources.progress.note_answered([item]);
            Ok(emitter)
        });
        // Items are coalesced within one part: its tables are gone when those of the next part are built.
        let together = match self.probe.parts {
            0 | 1 => TOGETHER,
            _ => 1,
        };
        let rows = self
            .with_tables(row_group.part, move |tables, buffers| {
                let row_group = (&*decoder, number, row_group.encoded);
                probing::probe_row_group(row_group, &tables, buffers, together, sink)
            })
            .await?;
        let progress = &self.resources.progress;
        progress.probed.fetch_add(rows, Ordering::Relaxed);
        Ok(())
    }

    async fn probe_within(
        &mut self,
        item: u32,
        range: std::ops::Range<u32>,
        part: u32,
    ) -> Result<()> {
        // The emitters of coalesced items come first in the chain.
        self.probe_coalesced().await?;
        let resources = Arc::clone(&self.resources);
        let (sink, mut matches, done) = item_channel();
        self.chain.push(move |mut emitter| async move {
            while let Some(matches) = matches.recv().await {
                emitter.emit_pairs_within(&matches).await?;
            }
            done.check().await?;
            resources.progress.note_answered([item]);
            Ok(emitter)
        });
        let resources = Arc::clone(&self.resources);
        self.with_tables(part, move |tables, buffers| {
            let probed = &resources.progress.probed_within;
            probing::probe_within(range, &tables, buffers, sink, probed);
            Ok(())
        })
        .await
    }

    /// Probes the fingerprints that were coalesced and not probed yet.
    async fn probe_coalesced(&mut self) -> Result<()> {
        if self.buffers.coalesced.items() == 0 {
            return Ok(());
        }
        // Items are coalesced only when there is one part.
        self.with_tables(0, |tables, buffers| {
            probing::probe_coalesced(&tables, buffers);
            Ok(())
        })
        .await
    }

    /// Probes the coalesced fingerprints that are left, waits for the last item's pairs, and lets
    /// the emitter finish.
    pub(super) async fn finish(mut self) -> Result<()> {
        if self.has_failed() {
            self.buffers.coalesced.give_up()
        } else {
            self.probe_coalesced().await?
        }
        self.chain.finish().await
    }

    /// Does CPU work with the tables of a part on a blocking thread, so that it does not hold up
    /// other tasks.
    async fn with_tables<T: Send + 'static>(
        &mut self,
        part: u32,
        work: impl FnOnce(PartTables, &mut Buffers) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T> {
        let begin = Instant::now();
        let tables = self
            .batch
            .tables(self.probe.tables(part), &self.pool, self.threads)
            .await?;
        self.resources.progress.stages.prepare.add(begin.elapsed());
        let mut buffers = std::mem::take(&mut self.buffers);
        let resources = Arc::clone(&self.resources);
        let done = blocking(move || {
            let begin = Instant::now();
            let result = work(tables, &mut buffers);
            buffers.report(begin, &resources.progress.stages);
            Ok::<_, DataFusionError>((result, buffers))
        });
        let (result, buffers) = done.await?;
        self.buffers = buffers;
        Ok(result?)
    }
}
