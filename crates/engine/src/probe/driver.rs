//! The driver of one partition: takes items from the queue, fetches them ahead, and hands them to the pipeline.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use tokio::sync::mpsc::Sender;

use super::emit::Emitter;
use super::fetch::{FetchQueue, Fetched};
use super::pipeline::Pipeline;
use super::request::Probe;
use crate::resources::Resources;
use crate::work_items::Numbered;
use streams::{join, limit_bytes};

/// The fetches of all partitions: each returns the number of an item, and the item with its bytes.
pub(super) type Fetches = FetchQueue<(u32, Fetched)>;

/// Work items that all partitions take from, so that all are busy to the end.
pub(super) type Queue = Arc<Mutex<std::vec::IntoIter<Numbered>>>;

/// What one partition needs to answer its items.
pub(super) struct Driver {
    pub(super) probe: Arc<Probe>,
    pub(super) resources: Arc<Resources>,
    pub(super) context: Arc<TaskContext>,
    pub(super) fetches: Arc<OnceLock<Fetches>>,
    pub(super) sender: Sender<Result<RecordBatch>>,
}

impl Driver {
    /// Answers all items; stops early when the receiver of the output is gone.
    pub(super) async fn answer_all(self, items: Queue) -> Result<()> {
        let (probe, resources) = (self.probe, self.resources);
        let pool = Arc::clone(self.context.memory_pool());
        let threads = self.context.session_config().target_partitions();
        let new_queue = || FetchQueue::new(threads, limit_bytes(&pool));
        let fetches = self.fetches.get_or_init(new_queue);
        let begin = Instant::now();
        let batch = resources.batch(&probe.batch, &pool).await?;
        resources.progress.stages.prepare.add(begin.elapsed());
        let (own, shared) = (Arc::clone(&batch), Arc::clone(&resources));
        let emitter = Emitter::new(own, &probe, shared, self.sender.clone(), &pool)?;
        let (asked, shared) = (Arc::clone(&probe), Arc::clone(&resources));
        let mut pipeline = Pipeline::new(shared, asked, batch, emitter, (threads, pool));
        let (mut more, mut remote) = (true, false);
        loop {
            while more && fetches.has_room(remote) {
                let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((number, item)) = next else {
                    more = false;
                    break;
                };
                remote |= item.is_remote();
                let bytes = item.bytes();
                let (resources, probe) = (Arc::clone(&resources), Arc::clone(&probe));
                fetches.fetch(bytes, async move {
                    Ok((number, Fetched::fetch(item, resources, probe).await?))
                });
            }
            let Some(next) = fetches.next() else {
                if more { continue } else { break }
            };
            if self.sender.is_closed() {
                return Ok(());
            }
            let (number, next) = join(next).await?;
            pipeline.probe(number, next).await?;
            if pipeline.has_failed() {
                break;
            }
        }
        pipeline.finish().await?;
        resources.progress.note_probe_done();
        Ok(())
    }
}
