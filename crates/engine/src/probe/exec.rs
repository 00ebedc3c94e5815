//! `ProbeExec`: the operator that compares work items with the tables of the batch.
//!
//! Stock operators cannot do this: a join on Hamming distance has no equality to hash or sort by; as an equality
//! join for each block, it would materialise every candidate.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning,
    PlanProperties,
};

use super::driver::{Driver, Fetches};
use super::request::Probe;
use crate::resources::Resources;
use crate::work_items;

/// The most record batches of a partition that wait for their reader.
const OUTPUT_BATCHES: usize = 2;

/// The operator: work items in, pairs out.
#[derive(Debug)]
pub struct ProbeExec {
    input: Arc<dyn ExecutionPlan>,
    probe: Probe,
    /// Shared by the partitions; the first to start makes it.
    fetches: Arc<OnceLock<Fetches>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ProbeExec {
    /// An operator that probes the work items in `input`.
    ///
    /// # Errors
    /// When `input` has another schema than [`work_items::schema`].
    pub fn try_new(input: Arc<dyn ExecutionPlan>, probe: Probe) -> Result<Self> {
        if input.schema().fields() != work_items::schema().fields() {
            return plan_err!("ProbeExec needs work items, not {:?}", input.schema());
        }
        let schema = probe.schema();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self {
            input,
            probe,
            fetches: Arc::default(),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The request: the batch, and the settings to probe with.
    #[must_use]
    pub fn probe(&self) -> &Probe {
        &self.probe
    }
}

impl DisplayAs for ProbeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProbeExec: k={}", self.probe.max_distance)
    }
}

impl ExecutionPlan for ProbeExec {
    fn name(&self) -> &str {
        "ProbeExec"
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
        Ok(Arc::new(Self::try_new(
            children.swap_remove(0),
            self.probe.clone(),
        )?))
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

    // The partitions share one queue of items; a repartition would undo that.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let items = self.input.execute(partition, Arc::clone(&context))?;
        let Some(resources) = context.session_config().get_extension::<Resources>() else {
            return plan_err!("ProbeExec runs in a session of this engine only");
        };
        let schema = self.probe.schema();
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, OUTPUT_BATCHES);
        let driver = Driver {
            probe: Arc::new(self.probe.clone()),
            resources,
            context,
            fetches: Arc::clone(&self.fetches),
            sender: builder.tx(),
            probed: MetricBuilder::new(&self.metrics).counter("probed", partition),
            matched: MetricBuilder::new(&self.metrics).counter("matched", partition),
        };
        builder.spawn(driver.answer_all(items));
        Ok(builder.build())
    }
}
