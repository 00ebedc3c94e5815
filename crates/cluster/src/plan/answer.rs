//! `AnswerExec`: the top of every plan. Executes the map below it with the executor's cache for the
//! run, and appends a receipt to the map's rows.
//!
//! Ballista 55 runs a task again when its executor is lost, and may report both results. The receipt tells the client
//! whether an answer is whole, and which work items it answers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::DataType;
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
use storage::ErrorKind;

use super::run_cache::{RunCaches, TaskParts};
use crate::wire::answer::{answer_schema, receipt_batch};
use crate::wire::error_text;
use crate::wire::receipt::Receipt;

/// The top operator of a plan: the rows of a map, then a receipt.
#[derive(Debug)]
pub struct AnswerExec {
    input: Arc<dyn ExecutionPlan>,
    run_name: String,
    properties: Arc<PlanProperties>,
}

impl AnswerExec {
    /// Creates the operator over the map `input`, for the run called `run_name`.
    #[must_use]
    pub fn new(input: Arc<dyn ExecutionPlan>, run_name: String) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(answer_schema(&input.schema())),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self {
            input,
            run_name,
            properties,
        }
    }

    /// Returns the name of the run.
    #[must_use]
    pub fn run_name(&self) -> &str {
        &self.run_name
    }
}

impl DisplayAs for AnswerExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnswerExec: run={}", self.run_name)
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
            self.run_name.clone(),
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
        let Some(caches) = context.session_config().get_extension::<RunCaches>() else {
            return plan_err!("AnswerExec runs in executors of this program only");
        };
        let cache = caches.get_or_create(&self.run_name)?;
        let TaskParts { resources, context } = caches.new_task(&cache, context.task_id());
        let begin = Instant::now();
        let rows = self
            .input
            .execute(partition, context)
            .map_err(|error| encode_error(error, &caches))?;
        let caches_of_errors = Arc::clone(&caches);
        let schema = self.schema();
        let (schema_of_rows, schema_of_receipt) = (Arc::clone(&schema), Arc::clone(&schema));
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| encode_error(error, &caches_of_errors))?;
            let number = batch.num_rows();
            counted.fetch_add(number as u64, Ordering::Relaxed);
            let mut columns = batch.columns().to_vec();
            columns.push(new_null_array(&DataType::Utf8, number));
            Ok(RecordBatch::try_new(Arc::clone(&schema_of_rows), columns)?)
        });
        let receipt = futures::stream::once(async move {
            let executor = ExecutorSummary {
                id: caches.executor.clone(),
                seconds: begin.elapsed().as_secs_f64(),
                requests: resources.stores.traffic().requests(),
                ..ExecutorSummary::default()
            };
            tracing::debug!(seconds = executor.seconds, "a slice is answered");
            let receipt = Receipt {
                rows: count.load(Ordering::Relaxed),
                ..Receipt::from_progress(&resources.progress, executor)
            };
            // The task holds the cache until here, because the executor drops caches that no task
            // holds.
            drop(cache);
            receipt_batch(&schema_of_receipt, &receipt)
        });
        // The first error ends the answer, without a receipt.
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

/// Encodes an error with its kind as text. Ballista retries a task only when its error is an `IoError`.
fn encode_error(error: DataFusionError, caches: &RunCaches) -> DataFusionError {
    let error = EngineError::query("on the cluster")(error);
    if let Some((file, offset)) = error.wrong_cut() {
        let file = storage::scrub(file);
        return DataFusionError::Execution(error_text::encode_wrong_cut(&file, offset));
    }
    let text = error_text::encode(error.kind(), &storage::scrub(&error.to_string()));
    match error.kind() {
        ErrorKind::Unreachable => DataFusionError::IoError(std::io::Error::other(text)),
        // The cause may be memory that the unused cache of an earlier run still holds.
        ErrorKind::TryAgain => {
            caches.drop_all_unused();
            DataFusionError::IoError(std::io::Error::other(text))
        }
        _ => DataFusionError::Execution(text),
    }
}
