//! The probe as a table: its rows are the pairs of work items, its partitions take the items from one queue.
//!
//! Stock operators cannot do this: a join on Hamming distance has no equality to hash or sort by; as an equality
//! join for each block, it would materialise every candidate.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;

use super::driver::{Driver, Fetches, Queue};
use super::request::Probe;
use crate::resources::Resources;
use crate::work_items::{Numbered, WorkItem};

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
    queue: Queue,
    /// Shared by the partitions; the first to start makes it.
    fetches: Arc<OnceLock<Fetches>>,
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
        let driver = Driver {
            probe: Arc::clone(&self.probe),
            resources: Arc::clone(&self.resources),
            context,
            fetches: Arc::clone(&self.fetches),
            sender: builder.tx(),
        };
        builder.spawn(driver.answer_all(Arc::clone(&self.queue)));
        builder.build()
    }
}
