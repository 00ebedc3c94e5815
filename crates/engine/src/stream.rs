//! A stream that is there already, as a table of a plan.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::exec_err;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;

/// The rows of `stream`, which can be read once.
///
/// # Errors
/// None in practice.
pub fn table(context: &SessionContext, stream: SendableRecordBatchStream) -> Result<DataFrame> {
    let schema = stream.schema();
    let once = Arc::new(Once {
        schema: Arc::clone(&schema),
        stream: Mutex::new(Some(stream)),
    });
    context.read_table(Arc::new(StreamingTable::try_new(schema, vec![once])?))
}

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
        let stream = self
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        stream.unwrap_or_else(|| {
            let error = futures::stream::once(async { exec_err!("a stream is read once") });
            Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                error,
            ))
        })
    }
}
