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
use streams::join;
use streams::limit_bytes;

/// The fetches of all partitions: each returns the number of an item, and the item with its bytes.
pub(super) type Fetches = FetchQueue<(u32, Fetched)>;

/// Work items that all partitions take from, so that all are busy to the end.
pub(super) type Queue = Arc<Mutex<std::vec::IntoIter<Numbered>>>;

/// Takes the next work item.
fn take(queue: &Queue) -> Option<Numbered> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).next()
}

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
        let Self {
            probe,
            resources,
            context,
            fetches,
            sender,
        } = self;
        let pool = Arc::clone(context.memory_pool());
        let threads = context.session_config().target_partitions();
        let fetches = fetches.get_or_init(|| FetchQueue::new(threads, limit_bytes(&pool)));
        let begin = Instant::now();
        let batch = resources.batch(&probe.batch, &pool).await?;
        resources.progress.stages.prepare.add(begin.elapsed());
        let emitter = Emitter::new(
            Arc::clone(&batch),
            &probe,
            Arc::clone(&resources),
            sender.clone(),
            &pool,
        )?;
        let mut pipeline = Pipeline::new(
            Arc::clone(&resources),
            Arc::clone(&probe),
            batch,
            emitter,
            (threads, pool),
        );
        let (mut more, mut remote) = (true, false);
        loop {
            while more && fetches.has_room(remote) {
                match take(&items) {
                    Some((number, item)) => {
                        remote |= item.is_remote();
                        let bytes = item.bytes();
                        let (resources, probe) = (Arc::clone(&resources), Arc::clone(&probe));
                        fetches.fetch(bytes, async move {
                            Ok((number, Fetched::fetch(item, resources, probe).await?))
                        });
                    }
                    None => more = false,
                }
            }
            let Some(next) = fetches.next() else {
                if more { continue } else { break }
            };
            if sender.is_closed() {
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
