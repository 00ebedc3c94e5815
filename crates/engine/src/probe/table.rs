//! The probe as a table: its rows are the pairs of work items. Its partitions take the items from one queue, fetch them ahead, and
//! hand them to the pipeline.
//!
//! Stock operators cannot do this: a join on Hamming distance has no equality to hash or sort by; as an equality
//! join for each block, it would materialise every candidate.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use tokio::sync::mpsc::Sender;

use super::emit::Emitter;
use super::fetch::FetchQueue;
use super::pipeline::Pipeline;
use super::request::Probe;
use crate::resources::Resources;
use crate::work_items::{Numbered, WorkItem};
use streams::{ended, limit_bytes, locked};

/// The most record batches of a partition that wait for their reader.
const OUTPUT_BATCHES: usize = 2;

impl Probe {
    /// The table of the pairs of `items`, with a partition for each thread. It can be read once.
    ///
    /// # Errors
    /// None in practice: the partitions have the schema of the table.
    pub fn table(self, context: &SessionContext, items: Vec<WorkItem>) -> Result<DataFrame> {
        let partitions = context.state().config().target_partitions();
        let partitions = partitions.clamp(1, items.len().max(1));
        let schema = self.schema();
        let items: Vec<Numbered> = (0..).zip(items).collect();
        let partition = Partition {
            schema: Arc::clone(&schema),
            probe: Arc::new(self),
            resources: Resources::from_session(context)?,
            queue: Arc::new(Mutex::new(items.into_iter())),
            fetches: Arc::default(),
        };
        let partitions = (0..partitions).map(|_| Arc::new(partition.clone()) as _);
        let table = StreamingTable::try_new(schema, partitions.collect())?;
        context.read_table(Arc::new(table))
    }
}

#[derive(Clone)]
struct Partition {
    schema: SchemaRef,
    probe: Arc<Probe>,
    resources: Arc<Resources>,
    /// Work items that all partitions take from, so that all are busy to the end.
    queue: Arc<Mutex<std::vec::IntoIter<Numbered>>>,
    /// The fetches of all partitions; the first to start makes the queue.
    fetches: Arc<OnceLock<FetchQueue>>,
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe: k={}", self.probe.max_distance)
    }
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, OUTPUT_BATCHES);
        builder.spawn(self.clone().answer_all(context, builder.tx()));
        builder.build()
    }
}

impl Partition {
    /// Answers all items; stops early when the receiver of the output is gone.
    async fn answer_all(
        self,
        context: Arc<TaskContext>,
        sender: Sender<Result<RecordBatch>>,
    ) -> Result<()> {
        let (probe, resources) = (self.probe, self.resources);
        let pool = Arc::clone(context.memory_pool());
        let threads = context.session_config().target_partitions();
        let new_queue = || FetchQueue::new(threads, limit_bytes(&pool));
        let fetches = self.fetches.get_or_init(new_queue);
        let begin = Instant::now();
        let batch = resources.batch(&probe.batch, &pool).await?;
        resources.progress.stages.prepare.add(begin.elapsed());
        let (own, shared) = (Arc::clone(&batch), Arc::clone(&resources));
        let emitter = Emitter::new(own, &probe, shared, sender.clone(), &pool)?;
        let (asked, shared) = (Arc::clone(&probe), Arc::clone(&resources));
        let mut pipeline = Pipeline::new(shared, asked, batch, emitter, (threads, pool));
        let (mut more, mut remote) = (true, false);
        loop {
            while more && fetches.has_room(remote) {
                let Some(next) = locked(&self.queue).next() else {
                    more = false;
                    break;
                };
                remote |= next.1.is_remote();
                fetches.fetch(next, Arc::clone(&resources), Arc::clone(&probe));
            }
            let Some(next) = fetches.next() else {
                if more { continue } else { break }
            };
            if sender.is_closed() {
                return Ok(());
            }
            let (number, next) = ended(next).await?;
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
