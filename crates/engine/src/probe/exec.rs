//! `ProbeExec`: for each work item, fingerprints are fetched, decoded, and compared with the batch's tables.
//!
//! Stock operators cannot do this: a join on Hamming distance has no equality to hash or sort by, and spelt as
//! joins on blocks it materialises every candidate.
//!
//! While one item is probed, the next one's bytes are fetched and the ids of the last one's hits are read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use archive::{FingerprintReader, Step};
use bytes::Bytes;
use datafusion::common::plan_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
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
use futures::{StreamExt as _, TryStreamExt as _};
use hamming::{Kernel, Match, Scratch};

use super::emit::Emitter;
use super::{Probe, hits_schema};
use crate::batch::{NewBatch, PartTables};
use crate::error::EngineError;
use crate::resources::Resources;
use crate::work::{self, WorkItem};

/// Fingerprints of the batch probed between two looks at whether anybody still wants the result.
const STEP: usize = 1 << 14;
/// Items fetched at a time: the one that is wanted and the next.
const FETCHED: usize = 2;

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
        let items = self.input.execute(partition, Arc::clone(&context))?;
        let Some(resources) = context.session_config().get_extension::<Resources>() else {
            return plan_err!("ProbeExec runs in a session of this engine only");
        };
        let probe = Arc::new(self.probe.clone());
        let schema = hits_schema(probe.batch.id_type());
        let probed = MetricBuilder::new(&self.metrics).counter("probed", partition);
        let matched = MetricBuilder::new(&self.metrics).counter("matched", partition);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), 2);
        let sender = builder.tx();
        builder.spawn(async move {
            let pool = Arc::clone(context.memory_pool());
            let batch = resources.batch(&probe.batch, &pool).await?;
            let emitter = Emitter::new(
                Arc::clone(&batch),
                &probe,
                Arc::clone(&resources),
                sender.clone(),
                matched,
                &pool,
            );
            let mut task = Task {
                threads: context.session_config().target_partitions(),
                resources: Arc::clone(&resources),
                probe: Arc::clone(&probe),
                batch,
                pool,
                probed,
                buffers: Buffers::default(),
                emitting: SpawnedTask::spawn(async { Ok(emitter) }),
            };
            let items = items.map(|rows| work::decode(&rows?)).map_ok(|items| {
                futures::stream::iter(items.into_iter().map(Ok::<_, DataFusionError>))
            });
            let mut fetched = items
                .try_flatten()
                .map(|item| {
                    let fetch = Fetched::of(item, Arc::clone(&resources), Arc::clone(&probe));
                    SpawnedTask::spawn(fetch).join_unwind()
                })
                .buffered(FETCHED);
            while let Some(next) = fetched.next().await {
                if sender.is_closed() {
                    return Ok(());
                }
                let next = next.map_err(|error| DataFusionError::External(Box::new(error)))??;
                task.probe(next).await?;
            }
            task.finish().await?;
            resources.progress.probe_done();
            Ok(())
        });
        Ok(builder.build())
    }
}

/// A work item with the bytes that it needs.
enum Fetched {
    Slice {
        reader: FingerprintReader,
        row_group: usize,
        day: Option<i32>,
        part: u32,
        bytes: Bytes,
    },
    Within {
        first: u32,
        end: u32,
        part: u32,
    },
}

impl Fetched {
    async fn of(
        item: Result<WorkItem>,
        resources: Arc<Resources>,
        probe: Arc<Probe>,
    ) -> Result<Self> {
        match item? {
            WorkItem::Slice {
                file,
                size,
                row_group,
                day,
                part,
            } => {
                let begin = Instant::now();
                let reader = resources.reader(&file, size, &probe).await?;
                let row_group = row_group as usize;
                let bytes = reader.fetch(row_group).await.map_err(EngineError::from)?;
                let progress = &resources.progress;
                progress
                    .bytes_read
                    .fetch_add(bytes.len() as u64, Ordering::Relaxed);
                progress.stages.read.add(begin.elapsed());
                Ok(Self::Slice {
                    reader,
                    row_group,
                    day,
                    part,
                    bytes,
                })
            }
            WorkItem::Within { first, end, part } => Ok(Self::Within { first, end, part }),
        }
    }
}

/// Work on the items of one partition.
struct Task {
    threads: usize,
    resources: Arc<Resources>,
    probe: Arc<Probe>,
    batch: Arc<NewBatch>,
    pool: Arc<dyn MemoryPool>,
    probed: Count,
    buffers: Buffers,
    /// The last item's hits on their way out; gives the emitter back.
    emitting: SpawnedTask<Result<Emitter>>,
}

/// Reused from item to item.
#[derive(Debug, Default)]
struct Buffers {
    step: Step,
    scratch: Scratch,
}

impl Task {
    /// Probes one item; its hits go out while the next is probed.
    async fn probe(&mut self, item: Fetched) -> Result<()> {
        match item {
            Fetched::Slice {
                reader,
                row_group,
                day,
                part,
                bytes,
            } => {
                let decoder = reader.clone();
                let (rows, matches) = self
                    .blocking(part, move |tables, buffers| {
                        slice(&decoder, row_group, bytes, &tables, buffers)
                    })
                    .await?;
                self.probed.add(rows as usize);
                self.resources
                    .progress
                    .probed
                    .fetch_add(rows, Ordering::Relaxed);
                if !matches.is_empty() {
                    let mut emitter = self.emitter().await?;
                    self.emitting = SpawnedTask::spawn(async move {
                        emitter.history(&reader, row_group, day, &matches).await?;
                        Ok(emitter)
                    });
                }
            }
            Fetched::Within { first, end, part } => {
                let batch = Arc::clone(&self.batch);
                let matches = self
                    .blocking(part, move |tables, buffers| {
                        let queries = &batch.distinct.values()[first as usize..end as usize];
                        Ok(within(queries, first, &tables, buffers))
                    })
                    .await?;
                let mut emitter = self.emitter().await?;
                self.emitting = SpawnedTask::spawn(async move {
                    emitter.within(&matches).await?;
                    Ok(emitter)
                });
            }
        }
        Ok(())
    }

    /// Waits for the last item's hits, and sends what waited for the end.
    async fn finish(mut self) -> Result<()> {
        self.emitter().await?.finish().await
    }

    /// The emitter, once it is done with the last item's hits.
    async fn emitter(&mut self) -> Result<Emitter> {
        let idle = SpawnedTask::spawn(async { datafusion::common::internal_err!("no emitter") });
        let emitting = std::mem::replace(&mut self.emitting, idle);
        let emitter = emitting.join_unwind().await;
        emitter.map_err(|error| DataFusionError::External(Box::new(error)))?
    }

    /// Runs CPU work on the tables of a part where it does not hold up the others.
    async fn blocking<T: Send + 'static>(
        &mut self,
        part: u32,
        work: impl FnOnce(PartTables, &mut Buffers) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T> {
        let tables = self
            .batch
            .tables(&self.probe, part, &self.pool, self.threads)
            .await?;
        let mut buffers = std::mem::take(&mut self.buffers);
        let resources = Arc::clone(&self.resources);
        let done = SpawnedTask::spawn_blocking(move || {
            let begin = Instant::now();
            let result = work(tables, &mut buffers);
            let scratch = &mut buffers.scratch;
            let (filter, verify) = (
                std::mem::take(&mut scratch.filtering),
                std::mem::take(&mut scratch.verifying),
            );
            let stages = &resources.progress.stages;
            stages
                .decode
                .add(begin.elapsed().saturating_sub(filter + verify));
            stages.filter.add(filter);
            stages.verify.add(verify);
            (result, buffers)
        })
        .join_unwind()
        .await;
        let (result, buffers) = done.map_err(|error| DataFusionError::External(Box::new(error)))?;
        self.buffers = buffers;
        result.map_err(DataFusionError::from)
    }
}

/// Decodes and probes a row group. Gives the fingerprints probed, and matches by row, ascending.
fn slice(
    reader: &FingerprintReader,
    row_group: usize,
    bytes: Bytes,
    tables: &PartTables,
    buffers: &mut Buffers,
) -> Result<(u64, Vec<Match>), EngineError> {
    let Buffers { step, scratch } = buffers;
    let (mut rows, mut matches) = (0, Vec::new());
    reader.decode(row_group, bytes, step, |step| {
        let before = matches.len();
        tables.probe(Kernel::detect(), step.values(), scratch, &mut matches);
        for found in &mut matches[before..] {
            found.query = step.row(found.query as usize);
        }
        rows += step.values().len() as u64;
        true
    })?;
    Ok((rows, matches))
}

/// Probes values of the batch, the first of which has index `first`. Gives matches by that index, ascending.
fn within(queries: &[u64], first: u32, tables: &PartTables, buffers: &mut Buffers) -> Vec<Match> {
    let mut matches = Vec::new();
    for (at, step) in queries.chunks(STEP).enumerate() {
        let before = matches.len();
        tables.probe(Kernel::detect(), step, &mut buffers.scratch, &mut matches);
        for found in &mut matches[before..] {
            found.query += first + (at * STEP) as u32;
        }
    }
    matches
}
