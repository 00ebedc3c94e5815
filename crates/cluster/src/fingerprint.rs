//! `FingerprintExec`: map 1 as an operator over slices of documents.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::IdType;
use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
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
use engine::resources::Resources;
use engine::session::BATCH_ROWS;
use engine::{EngineError, Recipe, day, stream};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use simhash::Spec;

use crate::runs::{Run, changed};

/// How documents are fingerprinted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fingerprints {
    pub(crate) columns: Columns,
    pub(crate) bigint_ids: bool,
    pub(crate) spec: Spec,
    /// Where the tables are that the spec names.
    pub(crate) tables: String,
}

impl Fingerprints {
    fn id_type(&self) -> IdType {
        match self.bigint_ids {
            true => IdType::Bigint,
            false => IdType::String,
        }
    }
}

/// A slice of documents with its number in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentItem {
    pub(crate) number: u32,
    pub(crate) file: String,
    /// Bytes of the file, and rows of the slice where they are known, as the client found them.
    pub(crate) size: u64,
    pub(crate) rows: Option<u64>,
    pub(crate) row_group: Option<u32>,
}

impl DocumentItem {
    pub(crate) fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("number", DataType::UInt32, false),
            Field::new("file", DataType::Utf8, false),
            Field::new("row_group", DataType::UInt32, true),
            Field::new("size", DataType::UInt64, false),
            Field::new("rows", DataType::UInt64, true),
        ]))
    }

    pub(crate) fn encode(items: &[Self]) -> Result<RecordBatch> {
        let numbers: UInt32Array = items.iter().map(|item| Some(item.number)).collect();
        let files: StringArray = items.iter().map(|item| Some(&item.file)).collect();
        let groups: UInt32Array = items.iter().map(|item| item.row_group).collect();
        let sizes: UInt64Array = items.iter().map(|item| Some(item.size)).collect();
        let rows: UInt64Array = items.iter().map(|item| item.rows).collect();
        Ok(RecordBatch::try_new(
            Self::schema(),
            vec![
                Arc::new(numbers),
                Arc::new(files),
                Arc::new(groups),
                Arc::new(sizes),
                Arc::new(rows),
            ],
        )?)
    }

    pub(crate) fn decode(batch: &RecordBatch) -> Result<Vec<Self>> {
        if batch.schema().fields() != Self::schema().fields() {
            return plan_err!("slices of documents have another schema");
        }
        let numbers = batch.column(0).as_primitive::<UInt32Type>();
        let files = batch.column(1).as_string::<i32>();
        let groups = batch.column(2).as_primitive::<UInt32Type>();
        let sizes = batch.column(3).as_primitive::<UInt64Type>();
        let counts = batch.column(4).as_primitive::<UInt64Type>();
        let item = |row| Self {
            number: numbers.value(row),
            file: files.value(row).to_owned(),
            size: sizes.value(row),
            rows: counts.is_valid(row).then(|| counts.value(row)),
            row_group: groups.is_valid(row).then(|| groups.value(row)),
        };
        Ok((0..batch.num_rows()).map(item).collect())
    }
}

/// See the module.
#[derive(Debug)]
pub struct FingerprintExec {
    input: Arc<dyn ExecutionPlan>,
    fingerprints: Fingerprints,
    properties: Arc<PlanProperties>,
}

impl FingerprintExec {
    /// The operator over `input`, whose rows must be slices of documents.
    ///
    /// # Errors
    /// When the input has another schema.
    pub(crate) fn try_new(
        input: Arc<dyn ExecutionPlan>,
        fingerprints: Fingerprints,
    ) -> Result<Self> {
        if input.schema().fields() != DocumentItem::schema().fields() {
            return plan_err!(
                "FingerprintExec needs slices of documents, not {:?}",
                input.schema()
            );
        }
        let schema = archive::schema::fingerprints(fingerprints.id_type(), true);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self {
            input,
            fingerprints,
            properties,
        })
    }

    pub(crate) fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }
}

impl DisplayAs for FingerprintExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FingerprintExec: spec={}",
            self.fingerprints.spec.digest()
        )
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
            self.fingerprints.clone(),
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
        let mut slices = self.input.execute(partition, Arc::clone(&context))?;
        let config = context.session_config();
        let (Some(run), Some(resources)) = (
            config.get_extension::<Run>(),
            config.get_extension::<Resources>(),
        ) else {
            return plan_err!("FingerprintExec runs in executors of this program only");
        };
        // One task computes on one core.
        let config = config.clone().with_target_partitions(1);
        let context = SessionContext::new_with_config_rt(config, context.runtime_env());
        let how = self.fingerprints.clone();
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema(), 2);
        let sender = builder.tx();
        builder.spawn(async move {
            let invalid_utf8 = Arc::new(AtomicU64::new(0));
            let recipe = Recipe::Texts(run.model(&how.spec, &how.tables).await?);
            while let Some(batch) = slices.next().await {
                for item in DocumentItem::decode(&batch?)? {
                    let _core = resources.core().await;
                    let (file, size) = (&item.file, item.size);
                    let documents = run.documents(&context, file, size, &how.columns).await?;
                    let mut count = 0;
                    let row_group = item.row_group.map(|group| group as usize);
                    let failed = || EngineError::query(documents.given());
                    let table = documents.slice_table(&context, how.id_type(), row_group)?;
                    let rows = day::with_fingerprints(table, &recipe, &invalid_utf8);
                    let rows = rows
                        .map_err(failed())?
                        .execute_stream()
                        .await
                        .map_err(failed())?;
                    let mut rows = stream::coalesced(rows, BATCH_ROWS);
                    while let Some(batch) = rows.next().await {
                        let batch = batch.map_err(failed())?;
                        count += batch.num_rows() as u64;
                        if sender.send(Ok(batch)).await.is_err() {
                            return Ok(());
                        }
                    }
                    if item.rows.is_some_and(|rows| rows != count) {
                        return Err(changed(&item.file).into());
                    }
                    resources.progress.answer([item.number]);
                }
            }
            let invalid_utf8 = invalid_utf8.load(Ordering::Relaxed);
            let counter = &resources.progress.invalid_utf8;
            counter.fetch_add(invalid_utf8, Ordering::Relaxed);
            Ok(())
        });
        Ok(builder.build())
    }
}
