//! `FingerprintExec`: map 1, which reads documents and returns their fingerprints and ids.
//!
//! DataFusion's operators cannot share one fingerprint model and one set of open files among the
//! tasks of a run; this operator does.

use std::fmt;
use std::sync::Arc;

use archive::IdType;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning,
    PlanProperties,
};
use datafusion::prelude::SessionContext;
use engine::documents::Columns;
use engine::map_counters::MapCounters;
use engine::resources::Resources;
use engine::stream::{self, BatchSize};
use engine::{EngineError, Recipe, fingerprint};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use simhash::Spec;

use super::document_items::DocumentItem;
use super::run_cache::{RunCache, file_changed_error};

/// Settings of map 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FingerprintSettings {
    pub(crate) columns: Columns,
    /// Whether ids are 64-bit integers; otherwise they are strings.
    pub(crate) bigint_ids: bool,
    pub(crate) spec: Spec,
    /// Location under which the spec's IDF table and stop words are stored.
    pub(crate) spec_files: String,
    /// Whether the rows also get the columns by which the run decides which documents to keep.
    #[serde(rename = "keys")]
    pub(crate) decision_columns: bool,
}

impl FingerprintSettings {
    fn id_type(&self) -> IdType {
        match self.bigint_ids {
            true => IdType::Bigint,
            false => IdType::String,
        }
    }
}

/// Map 1 as an operator: reads the documents of its work items, returns their fingerprints and ids.
#[derive(Debug)]
pub struct FingerprintExec {
    input: Arc<dyn ExecutionPlan>,
    settings: FingerprintSettings,
    properties: Arc<PlanProperties>,
}

impl FingerprintExec {
    /// Creates the operator over `input`, a table of [`DocumentItem`]s.
    ///
    /// # Errors
    /// A plan error when the input has another schema.
    pub(crate) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        settings: FingerprintSettings,
    ) -> Result<Self> {
        if input.schema().fields() != DocumentItem::schema().fields() {
            return plan_err!(
                "FingerprintExec needs work items of map 1, not {:?}",
                input.schema()
            );
        }
        let schema = fingerprint::rows_schema(
            settings.id_type(),
            &settings.spec,
            settings.decision_columns,
        );
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self {
            input,
            settings,
            properties,
        })
    }

    pub(crate) fn settings(&self) -> &FingerprintSettings {
        &self.settings
    }
}

impl DisplayAs for FingerprintExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FingerprintExec: spec={}", self.settings.spec.digest())
    }
}

impl ExecutionPlan for FingerprintExec {
    fn name(&self) -> &str {
        "FingerprintExec"
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
            self.settings.clone(),
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

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut items = self.input.execute(partition, Arc::clone(&context))?;
        let config = context.session_config();
        let (Some(cache), Some(resources)) = (
            config.get_extension::<RunCache>(),
            config.get_extension::<Resources>(),
        ) else {
            return plan_err!("FingerprintExec runs in executors of this program only");
        };
        // A task computes on one core.
        let config = config.clone().with_target_partitions(1);
        let context = SessionContext::new_with_config_rt(config, context.runtime_env());
        let settings = self.settings.clone();
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema(), 2);
        let sender = builder.tx();
        builder.spawn(async move {
            let counters = MapCounters::default();
            let recipe = Recipe::Texts(cache.model(&settings.spec, &settings.spec_files).await?);
            while let Some(batch) = items.next().await {
                for item in DocumentItem::decode(&batch?)? {
                    let _core = resources.acquire_core().await;
                    let (file, size) = (&item.file, item.size);
                    let documents = cache
                        .documents(&context, file, size, &settings.columns)
                        .await?;
                    let mut count = 0;
                    let failed = || EngineError::query(documents.given());
                    let part_number = settings
                        .decision_columns
                        .then_some(item.part_number as usize);
                    let id_type = settings.id_type();
                    let crawl = &counters.crawl;
                    let table = documents.extent_table(
                        &context,
                        id_type,
                        &item.extent,
                        part_number,
                        crawl,
                    )?;
                    let rows = fingerprint::with_fingerprints(table, &recipe, &counters.texts);
                    let rows = rows
                        .map_err(failed())?
                        .execute_stream()
                        .await
                        .map_err(failed())?;
                    let mut rows = stream::coalesced(rows, BatchSize::default());
                    while let Some(batch) = rows.next().await {
                        let batch = batch.map_err(failed())?;
                        count += batch.num_rows() as u64;
                        if sender.send(Ok(batch)).await.is_err() {
                            return Ok(());
                        }
                    }
                    if item.rows.is_some_and(|rows| rows != count) {
                        return Err(file_changed_error(&item.file).into());
                    }
                    resources.progress.note_answered([item.number]);
                }
            }
            resources.progress.texts.add(&counters.texts.counts());
            if let Some(records) = counters.crawl.counts() {
                resources.progress.crawl.add(&records);
            }
            Ok(())
        });
        Ok(builder.build())
    }
}
