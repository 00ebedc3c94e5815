//! `AnswerExec`: the top of each plan. It runs the map below it with what the executor holds for the run, and ends its
//! rows with a receipt.
//!
//! Ballista hands out a task again when its executor is lost, and takes what comes for an answer. The receipt lets the client
//! tell a whole answer from a broken one, and know which work items it is for, whatever happened on the way.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use archive::ErrorKind;
use arrow::array::{Array as _, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning,
    PlanProperties,
};
use engine::EngineError;
use engine::cluster::ExecutorSummary;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::protocol;
use crate::receipt::Receipt;
use crate::runs::{Runs, Task};

/// Name of the column of receipts.
const RECEIPT: &str = "receipt";

/// See the module.
#[derive(Debug)]
pub struct AnswerExec {
    input: Arc<dyn ExecutionPlan>,
    run: String,
    properties: Arc<PlanProperties>,
}

impl AnswerExec {
    /// The answers of `input`, for the run called `run`.
    #[must_use]
    pub fn new(input: Arc<dyn ExecutionPlan>, run: String) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(answer_schema(&input.schema())),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self {
            input,
            run,
            properties,
        }
    }

    /// The name of the run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }
}

/// The columns of the rows, and one for the receipt, on whose row the others are null.
fn answer_schema(rows: &Schema) -> SchemaRef {
    let fields = rows.fields().iter().map(|field| {
        let field = Field::clone(field).with_nullable(true);
        Arc::new(field)
    });
    let receipt = Field::new(RECEIPT, DataType::Utf8, true);
    Arc::new(Schema::new(
        fields.chain([Arc::new(receipt)]).collect::<Vec<_>>(),
    ))
}

/// Parts a batch of an answer into the rows that it has, in their own schema, and the receipt.
pub(crate) fn part(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> std::result::Result<(Option<RecordBatch>, Option<Receipt>), String> {
    let width = schema.fields().len();
    if batch.num_columns() != width + 1 {
        return Err(format!(
            "an answer of {} columns, not {}",
            batch.num_columns(),
            width + 1
        ));
    }
    let column = batch.column(width);
    if column.null_count() == batch.num_rows() {
        let columns = batch.columns()[..width].to_vec();
        return RecordBatch::try_new(Arc::clone(schema), columns)
            .map(|rows| (Some(rows), None))
            .map_err(|error| error.to_string());
    }
    let receipts = column.as_any().downcast_ref::<StringArray>();
    let receipt = receipts
        .filter(|receipts| receipts.len() == 1)
        .ok_or("an answer with rows and receipt in one batch")?;
    let receipt = serde_json::from_str(receipt.value(0)).map_err(|error| error.to_string())?;
    Ok((None, Some(receipt)))
}

impl DisplayAs for AnswerExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnswerExec: run={}", self.run)
    }
}

impl ExecutionPlan for AnswerExec {
    fn name(&self) -> &str {
        "AnswerExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(
            children.swap_remove(0),
            self.run.clone(),
        )))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(runs) = context.session_config().get_extension::<Runs>() else {
            return plan_err!("AnswerExec runs in executors of this program only");
        };
        let run = runs.enter(&self.run)?;
        let Task { resources, context } = runs.task(&run, context.task_id());
        let begin = Instant::now();
        let rows = self
            .input
            .execute(partition, context)
            .map_err(|error| marked(error, &runs))?;
        let of_errors = Arc::clone(&runs);
        let schema = self.schema();
        let (of_rows, of_receipt) = (Arc::clone(&schema), Arc::clone(&schema));
        let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| marked(error, &of_errors))?;
            let number = batch.num_rows();
            counted.fetch_add(number as u64, std::sync::atomic::Ordering::Relaxed);
            let mut columns = batch.columns().to_vec();
            columns.push(new_null_array(&DataType::Utf8, number));
            Ok(RecordBatch::try_new(Arc::clone(&of_rows), columns)?)
        });
        let receipt = futures::stream::once(async move {
            let executor = ExecutorSummary {
                id: runs.executor.clone(),
                seconds: begin.elapsed().as_secs_f64(),
                requests: resources.stores.traffic().requests(),
                ..ExecutorSummary::default()
            };
            tracing::debug!(seconds = executor.seconds, "a slice is answered");
            let receipt = Receipt {
                rows: count.load(std::sync::atomic::Ordering::Relaxed),
                ..Receipt::of(&resources.progress, executor)
            };
            // Held to the end, so that what the run needs stays.
            drop(run);
            receipt_row(&of_receipt, &receipt)
        });
        // The rows end at their first error; there is no receipt then.
        let answer = rows.chain(receipt).scan(false, |failed, batch| {
            let before = std::mem::replace(failed, *failed || batch.is_err());
            std::future::ready((!before).then_some(batch))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            answer.into_stream(),
        )))
    }
}

fn receipt_row(schema: &SchemaRef, receipt: &Receipt) -> Result<RecordBatch> {
    let text = serde_json::to_string(receipt)
        .map_err(|error| DataFusionError::Internal(error.to_string()))?;
    let rows = schema.fields().len() - 1;
    let nulls = schema.fields()[..rows]
        .iter()
        .map(|field| new_null_array(field.data_type(), 1));
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let columns: Vec<ArrayRef> = nulls.chain([text]).collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The error as it travels: in words, with its kind. Ballista tries tasks again whose error is one of input or output.
fn marked(error: DataFusionError, runs: &Runs) -> DataFusionError {
    let error = EngineError::query("on the cluster")(error);
    let text = protocol::mark(error.kind(), &archive::store::scrub(&error.to_string()));
    match error.kind() {
        ErrorKind::Unreachable => DataFusionError::IoError(std::io::Error::other(text)),
        // Such as memory that a run before this one still has.
        ErrorKind::TryAgain => {
            runs.make_room();
            DataFusionError::IoError(std::io::Error::other(text))
        }
        _ => DataFusionError::Execution(text),
    }
}
