//! `ProbeExec`: for each work item, fingerprints are fetched, decoded, and compared with the batch's tables.
//!
//! Stock operators cannot do this: a join on Hamming distance has no equality to hash or sort by, and spelt as
//! joins on blocks it materialises every candidate.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::{Chunk, FingerprintReader};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::plan_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning,
    PlanProperties,
};
use futures::StreamExt as _;
use hamming::{Kernel, Match, Scratch};
use tokio::sync::mpsc::Sender;

use super::hits::{HitBuilder, RowMatch};
use super::{Probe, hits_schema};
use crate::batch::NewBatch;
use crate::error::EngineError;
use crate::resources::Resources;
use crate::work::{self, WorkItem};

/// Fingerprints probed between two looks at whether anybody still wants the result.
const STEP: usize = 1 << 16;

/// The probe of work items. See the module.
#[derive(Debug)]
pub struct ProbeExec {
    input: Arc<dyn ExecutionPlan>,
    probe: Probe,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ProbeExec {
    /// The operator over `input`, whose rows must be work items.
    ///
    /// # Errors
    /// When the input has another schema.
    pub fn try_new(input: Arc<dyn ExecutionPlan>, probe: Probe) -> Result<Self> {
        if input.schema().fields() != work::schema().fields() {
            return plan_err!("ProbeExec needs work items, not {:?}", input.schema());
        }
        let schema = hits_schema(probe.batch.id_type());
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Self {
            input,
            probe,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
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

    // The items are dealt out already, evenly; a shuffle of the table would undo that.
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
        let mut items = self.input.execute(partition, Arc::clone(&context))?;
        let Some(resources) = context.session_config().get_extension::<Resources>() else {
            return plan_err!("ProbeExec runs in a session of this engine only");
        };
        let probe = self.probe.clone();
        let schema = hits_schema(probe.batch.id_type());
        let probed = MetricBuilder::new(&self.metrics).counter("probed", partition);
        let matched = MetricBuilder::new(&self.metrics).counter("matched", partition);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), 2);
        let sender = builder.tx();
        builder.spawn(async move {
            let batch = resources.batch(&probe, context.memory_pool()).await?;
            let mut task = Task {
                resources,
                probe,
                batch,
                schema,
                sender,
                probed,
                matched,
                buffers: Buffers::default(),
            };
            while let Some(rows) = items.next().await {
                for item in work::decode(&rows?)? {
                    if task.sender.is_closed() {
                        return Ok(());
                    }
                    match item {
                        WorkItem::Slice {
                            file,
                            size,
                            row_group,
                            day,
                        } => task.slice(&file, size, row_group as usize, day).await?,
                        WorkItem::Within { first, end } => task.within(first, end).await?,
                    }
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

/// Work on the items of one partition.
struct Task {
    resources: Arc<Resources>,
    probe: Probe,
    batch: Arc<NewBatch>,
    schema: SchemaRef,
    sender: Sender<Result<RecordBatch>>,
    probed: Count,
    matched: Count,
    buffers: Buffers,
}

/// Reused from item to item.
#[derive(Debug, Default)]
struct Buffers {
    chunk: Chunk,
    /// Fingerprints of the chunk, adjacent equal ones held once, and where each run of them begins.
    distinct: Vec<u64>,
    starts: Vec<u32>,
    scratch: Scratch,
    matches: Vec<Match>,
}

impl Task {
    /// Probes one row group of the history.
    async fn slice(
        &mut self,
        file: &str,
        size: u64,
        row_group: usize,
        day: Option<i32>,
    ) -> Result<()> {
        let reader = self.resources.reader(file, size, &self.probe).await?;
        let bytes = reader.fetch(row_group).await.map_err(EngineError::from)?;
        let encoded = bytes.len() as u64;
        let mut buffers = std::mem::take(&mut self.buffers);
        let (batch, sender, decoder) =
            (Arc::clone(&self.batch), self.sender.clone(), reader.clone());
        buffers = blocking(move || {
            decoder
                .decode(row_group, bytes, &mut buffers.chunk)
                .map_err(EngineError::from)?;
            let Buffers {
                chunk,
                distinct,
                starts,
                scratch,
                matches,
            } = &mut buffers;
            collapse(&chunk.values, distinct, starts);
            matches.clear();
            probe_steps(&batch, distinct, scratch, matches, &sender);
            Ok(buffers)
        })
        .await?;
        self.buffers = buffers;
        self.emit(&reader, row_group, day).await?;
        let rows = self.buffers.chunk.values.len();
        self.probed.add(rows);
        let progress = &self.resources.progress;
        progress.probed.fetch_add(rows as u64, Ordering::Relaxed);
        progress.bytes_read.fetch_add(encoded, Ordering::Relaxed);
        Ok(())
    }

    /// Fetches the ids of the matched rows and sends the hits.
    async fn emit(
        &self,
        reader: &FingerprintReader,
        row_group: usize,
        day: Option<i32>,
    ) -> Result<()> {
        let Buffers {
            chunk,
            starts,
            matches,
            ..
        } = &self.buffers;
        if matches.is_empty() {
            return Ok(());
        }
        // Matches are ordered by query, so each run's rows are listed once, ascending.
        let mut rows: Vec<u32> = Vec::new();
        let mut found: Vec<RowMatch> = Vec::with_capacity(matches.len());
        let mut last = None;
        for hit in matches {
            if last != Some(hit.query) {
                let run = starts[hit.query as usize]..starts[hit.query as usize + 1];
                rows.extend(run.map(|value| chunk.row(value as usize)));
                last = Some(hit.query);
            }
            let run = starts[hit.query as usize + 1] - starts[hit.query as usize];
            let end = rows.len() as u32;
            found.push(RowMatch {
                entry: hit.entry,
                distance: hit.distance,
                rows: end - run..end,
            });
        }
        let ids = reader
            .ids(row_group, &rows)
            .await
            .map_err(EngineError::from)?;
        let id_type = self.probe.batch.id_type();
        let ids = archive::reader::to_id_type(&ids, id_type)?;
        let builder = HitBuilder::new(&self.batch, Arc::clone(&self.schema), day);
        let hits = builder
            .history(&found, &ids, |batch| self.send(batch))
            .await?;
        self.count(hits);
        Ok(())
    }

    /// Probes a range of the batch's own fingerprints.
    async fn within(&mut self, first: u32, end: u32) -> Result<()> {
        let mut buffers = std::mem::take(&mut self.buffers);
        let (batch, sender) = (Arc::clone(&self.batch), self.sender.clone());
        buffers = blocking(move || {
            let values = &batch.tables.batch().values()[first as usize..end as usize];
            buffers.matches.clear();
            probe_steps(
                &batch,
                values,
                &mut buffers.scratch,
                &mut buffers.matches,
                &sender,
            );
            Ok(buffers)
        })
        .await?;
        self.buffers = buffers;
        let builder = HitBuilder::new(&self.batch, Arc::clone(&self.schema), self.probe.day);
        let hits = builder
            .within(&self.buffers.matches, first, |batch| self.send(batch))
            .await?;
        self.count(hits);
        Ok(())
    }

    /// Hands a batch on; false when nobody wants it any more.
    async fn send(&self, batch: RecordBatch) -> bool {
        self.sender.send(Ok(batch)).await.is_ok()
    }

    fn count(&self, hits: u64) {
        self.matched.add(hits as usize);
        self.resources
            .progress
            .hits
            .fetch_add(hits, Ordering::Relaxed);
    }
}

/// Runs CPU work where it does not hold up the others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T> {
    SpawnedTask::spawn_blocking(work)
        .join_unwind()
        .await
        .map_err(|error| DataFusionError::External(Box::new(error)))?
        .map_err(DataFusionError::from)
}

/// Probes `queries` in steps, until the end or until nobody wants the result.
fn probe_steps(
    batch: &NewBatch,
    queries: &[u64],
    scratch: &mut Scratch,
    matches: &mut Vec<Match>,
    sender: &Sender<Result<RecordBatch>>,
) {
    for (at, step) in queries.chunks(STEP).enumerate() {
        if sender.is_closed() {
            return;
        }
        let before = matches.len();
        batch.tables.probe(Kernel::detect(), step, scratch, matches);
        let offset = (at * STEP) as u32;
        matches[before..]
            .iter_mut()
            .for_each(|found| found.query += offset);
    }
}

/// Holds adjacent equal fingerprints once, so that a page copied many times is probed once.
fn collapse(values: &[u64], distinct: &mut Vec<u64>, starts: &mut Vec<u32>) {
    distinct.clear();
    starts.clear();
    for (at, &value) in values.iter().enumerate() {
        if distinct.last() != Some(&value) {
            distinct.push(value);
            starts.push(at as u32);
        }
    }
    starts.push(values.len() as u32);
}
