//! Tables of streams.

use std::sync::{Arc, Mutex};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::exec_err;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;

use crate::threads::locked;

/// A table of the rows of `streams`, with a partition for each. It can be read once.
pub fn table(
    context: &SessionContext,
    schema: SchemaRef,
    streams: Vec<SendableRecordBatchStream>,
) -> Result<DataFrame> {
    let once = |stream| {
        Arc::new(Once {
            schema: Arc::clone(&schema),
            stream: Mutex::new(Some(stream)),
        }) as Arc<dyn PartitionStream>
    };
    let partitions = streams.into_iter().map(once).collect();
    context.read_table(Arc::new(StreamingTable::try_new(
        Arc::clone(&schema),
        partitions,
    )?))
}

/// A partition that gives its stream to the first reader.
struct Once {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let stream = locked(&self.stream).take();
        stream.unwrap_or_else(|| {
            let error = futures::stream::once(async { exec_err!("a stream is read once") });
            Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                error,
            ))
        })
    }
}
