//! `ProbeExec`: for each work item, fingerprints are fetched, decoded, and compared with the batch's tables.
//!
//! Stock operators cannot do this: a join on Hamming distance has no equality to hash or sort by, and spelt as
//! joins on blocks it materialises every candidate.
//!
//! While one item is probed, the next ones' bytes are fetched and the ids of the last ones' hits are read.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use archive::reader::STEP;
use archive::{Encoded, FingerprintReader, Step};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{internal_err, plan_err};
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
use hamming::{Kernel, Scratch};
use tokio::sync::{Semaphore, mpsc, watch};

use super::ahead::Ahead;
use super::emit::Emitter;
use super::lookup::Lookup;
use super::matches::{self, Gathered, Sink};
use super::{Probe, hits_schema};
use crate::batch::{NewBatch, PartTables};
use crate::error::EngineError;
use crate::resources::Resources;
use crate::work::{self, WorkItem};

/// Items of a partition whose ids are looked up while others are probed.
const LOOKUPS: usize = 12;
/// Items that are probed at once, of tables that are better probed with many: less than wait for their ids to be looked up,
/// because each holds one of these places.
pub const TOGETHER: usize = 8;
/// Matches that wait for their turn before their ids are read: where pages are copied by the thousand, those of many items
/// would not fit into the memory.
const MANY: usize = 1 << 14;

/// The probe of work items. See the module.
#[derive(Debug)]
pub struct ProbeExec {
    input: Arc<dyn ExecutionPlan>,
    probe: Probe,
    /// Shared by the partitions, made by the first that runs.
    ahead: Arc<OnceLock<Ahead<(u32, Fetched)>>>,
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
            ahead: Arc::default(),
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// What is probed with.
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
        let ahead = Arc::clone(&self.ahead);
        builder.spawn(async move {
            let pool = Arc::clone(context.memory_pool());
            let threads = context.session_config().target_partitions();
            let ahead = ahead.get_or_init(|| {
                let (threads, memory) = resources.ahead(threads, &pool);
                Ahead::new(threads, memory)
            });
            let begin = Instant::now();
            let batch = resources.batch(&probe.batch, &pool).await?;
            resources.progress.stages.prepare.add(begin.elapsed());
            let emitter = Emitter::new(
                Arc::clone(&batch),
                &probe,
                Arc::clone(&resources),
                sender.clone(),
                matched,
                &pool,
            );
            let mut task = Task {
                threads,
                resources: Arc::clone(&resources),
                probe: Arc::clone(&probe),
                lookup: Lookup::new(Arc::clone(&resources), batch.id_type()),
                lookups: Arc::new(Semaphore::new(LOOKUPS)),
                failed: Arc::default(),
                batch,
                pool,
                probed,
                buffers: Buffers::default(),
                emitting: SpawnedTask::spawn(async { Ok(emitter) }),
            };
            let items = items.map(|rows| work::decode(&rows?)).map_ok(|items| {
                futures::stream::iter(items.into_iter().map(Ok::<_, DataFusionError>))
            });
            let mut items = items.try_flatten().fuse();
            let (mut more, mut remote) = (true, false);
            loop {
                while more && ahead.has_room(remote) {
                    match items.try_next().await? {
                        Some((number, item)) => {
                            remote |= item.is_remote();
                            let bytes = item.bytes();
                            let (resources, probe) = (Arc::clone(&resources), Arc::clone(&probe));
                            ahead.fetch(bytes, async move {
                                Ok((number, Fetched::of(item, resources, probe).await?))
                            });
                        }
                        None => more = false,
                    }
                }
                let Some(next) = ahead.next() else {
                    match more {
                        true => continue,
                        false => break,
                    }
                };
                if sender.is_closed() {
                    return Ok(());
                }
                let (number, next) = joined(next).await?;
                task.probe(number, next).await?;
                if task.failed.load(Ordering::Relaxed) {
                    break;
                }
            }
            task.finish().await?;
            resources.progress.probe_done();
            Ok(())
        });
        Ok(builder.build())
    }
}

/// A work item with the bytes that it needs.
#[derive(Debug)]
enum Fetched {
    Slice {
        reader: Box<FingerprintReader>,
        row_group: usize,
        day: Option<i32>,
        part: u32,
        encoded: Encoded,
    },
    Within {
        first: u32,
        end: u32,
        part: u32,
    },
}

impl Fetched {
    async fn of(item: WorkItem, resources: Arc<Resources>, probe: Arc<Probe>) -> Result<Self> {
        match item {
            WorkItem::Slice {
                file,
                size,
                row_group,
                day,
                part,
                bytes,
            } => {
                let begin = Instant::now();
                let reader = Box::new(resources.reader(&file, size, &probe).await?);
                let row_group = row_group as usize;
                let encoded = reader.fetch(row_group).await.map_err(EngineError::from)?;
                let progress = &resources.progress;
                progress.bytes_read.fetch_add(bytes, Ordering::Relaxed);
                // A local file is read, and that timed, when it is decoded.
                if matches!(encoded, Encoded::Fetched(_)) {
                    progress.stages.read.add(begin.elapsed());
                }
                Ok(Self::Slice {
                    reader,
                    row_group,
                    day,
                    part,
                    encoded,
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
    lookup: Lookup,
    /// Bounds what waits to be emitted.
    lookups: Arc<Semaphore>,
    /// Whether ids could not be read; then nothing more needs to be probed.
    failed: Arc<AtomicBool>,
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
    gathered: Gathered,
}

impl Task {
    /// Probes one item; its hits go out while it and the next are probed.
    async fn probe(&mut self, number: u32, item: Fetched) -> Result<()> {
        let resources = Arc::clone(&self.resources);
        let answer = move || resources.progress.answer([number]);
        match item {
            Fetched::Slice {
                reader,
                row_group,
                day,
                part,
                encoded,
            } => {
                let (sink, mut matches, done) = matches::way();
                let decoder = reader.clone();
                let permit = Arc::clone(&self.lookups).acquire_owned().await;
                let lookup = self.lookup.clone();
                let (looked_up, mut found) = mpsc::channel(1);
                let (turn, mut is_due) = watch::channel(false);
                let failed = Arc::clone(&self.failed);
                let looking = SpawnedTask::spawn(async move {
                    let work = async {
                        while let Some(matches) = matches.recv().await {
                            if matches.len() > MANY && is_due.wait_for(|due| *due).await.is_err() {
                                break;
                            }
                            let found = lookup.of(&reader, row_group, day, &matches).await?;
                            if looked_up.send(found).await.is_err() {
                                break;
                            }
                        }
                        Ok(())
                    };
                    let looked_up: Result<()> = work.await;
                    failed.fetch_or(looked_up.is_err(), Ordering::Relaxed);
                    looked_up
                });
                self.emit(move |mut emitter| async move {
                    turn.send_replace(true);
                    while let Some(found) = found.recv().await {
                        emitter.history(found).await?;
                    }
                    joined(looking).await?;
                    done.check().await?;
                    drop(permit);
                    answer();
                    Ok(emitter)
                });
                // The tables of a part are gone when those of the next one are built.
                let together = match self.probe.parts {
                    0 | 1 => TOGETHER,
                    _ => 1,
                };
                let rows = self
                    .blocking(part, move |tables, buffers| {
                        let slice = (&*decoder, row_group, encoded);
                        probe_slice(slice, &tables, buffers, together, sink)
                    })
                    .await?;
                self.probed.add(rows as usize);
                self.resources
                    .progress
                    .probed
                    .fetch_add(rows, Ordering::Relaxed);
            }
            Fetched::Within { first, end, part } => {
                // Its matches go out behind theirs.
                self.probe_gathered().await?;
                let (sink, mut matches, done) = matches::way();
                self.emit(move |mut emitter| async move {
                    while let Some(matches) = matches.recv().await {
                        emitter.within(&matches).await?;
                    }
                    done.check().await?;
                    answer();
                    Ok(emitter)
                });
                self.blocking(part, move |tables, buffers| {
                    probe_within(first..end, &tables, buffers, sink);
                    Ok(())
                })
                .await?;
            }
        }
        Ok(())
    }

    /// Has the emitter do something once it is done with the item before.
    fn emit<F>(&mut self, work: impl FnOnce(Emitter) -> F + Send + 'static)
    where
        F: Future<Output = Result<Emitter>> + Send,
    {
        let idle = SpawnedTask::spawn(async { internal_err!("no emitter") });
        let before = std::mem::replace(&mut self.emitting, idle);
        self.emitting = SpawnedTask::spawn(async move { work(joined(before).await?).await });
    }

    /// Probes what was gathered and not probed yet.
    async fn probe_gathered(&mut self) -> Result<()> {
        if self.buffers.gathered.items() == 0 {
            return Ok(());
        }
        // It is gathered only where there is one part.
        self.blocking(0, |tables, buffers| {
            let Buffers {
                scratch, gathered, ..
            } = buffers;
            let probe = |values: &[u64], from, found: &mut _| {
                tables.probe_some(Kernel::detect(), values, from, scratch, found)
            };
            match gathered.probe(probe) {
                true => gathered.end(),
                false => gathered.clear(),
            }
            Ok(())
        })
        .await
    }

    /// Waits for the last item's hits, and sends what waited for the end.
    async fn finish(mut self) -> Result<()> {
        match self.failed.load(Ordering::Relaxed) {
            true => self.buffers.gathered.clear(),
            false => self.probe_gathered().await?,
        }
        joined(self.emitting).await?.finish().await
    }

    /// Runs CPU work on the tables of a part where it does not hold up the others.
    async fn blocking<T: Send + 'static>(
        &mut self,
        part: u32,
        work: impl FnOnce(PartTables, &mut Buffers) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T> {
        let begin = Instant::now();
        let tables = self
            .batch
            .tables(&self.probe, part, &self.pool, self.threads)
            .await?;
        self.resources.progress.stages.prepare.add(begin.elapsed());
        // Behind the tables: who waits for a core keeps those that he needs.
        let core = self.resources.core().await;
        let mut buffers = std::mem::take(&mut self.buffers);
        let resources = Arc::clone(&self.resources);
        let done = SpawnedTask::spawn_blocking(move || {
            let begin = Instant::now();
            let result = work(tables, &mut buffers);
            let scratch = &mut buffers.scratch;
            let [partition, filter, verify] = [
                &mut scratch.partitioning,
                &mut scratch.filtering,
                &mut scratch.verifying,
            ]
            .map(std::mem::take);
            let read = std::mem::take(&mut buffers.step.reading);
            let stages = &resources.progress.stages;
            let decode = begin
                .elapsed()
                .saturating_sub(partition + filter + verify + read);
            stages.decode.add(decode);
            stages.read.add(read);
            stages.partition.add(partition);
            stages.filter.add(filter);
            stages.verify.add(verify);
            drop(core);
            (result, buffers)
        })
        .join_unwind()
        .await;
        let (result, buffers) = done.map_err(|error| DataFusionError::External(Box::new(error)))?;
        self.buffers = buffers;
        result.map_err(DataFusionError::from)
    }
}

/// What a task gives back.
async fn joined<T: Send + 'static>(task: SpawnedTask<Result<T>>) -> Result<T> {
    let done = task.join_unwind().await;
    done.map_err(|error| DataFusionError::External(Box::new(error)))?
}

/// Decodes a row group and probes it, or gathers it to be probed with the next ones, `together` at most. Sends matches by row,
/// ascending; gives the number of fingerprints.
fn probe_slice(
    (reader, row_group, encoded): (&FingerprintReader, usize, Encoded),
    tables: &PartTables,
    buffers: &mut Buffers,
    together: usize,
    sink: Sink,
) -> Result<u64, EngineError> {
    let Buffers {
        step,
        scratch,
        gathered,
    } = buffers;
    let mut probe = |values: &[u64], from, found: &mut _| {
        tables.probe_some(Kernel::detect(), values, from, scratch, found)
    };
    let (mut rows, mut wanted) = (0, true);
    if tables.chunk() <= STEP {
        let mut found = Vec::new();
        reader.decode(row_group, encoded, step, |step| {
            let values = step.values();
            rows += values.len() as u64;
            let probe = |from, found: &mut _| probe(values, from, found);
            let row = |query| step.row(query as usize);
            wanted = matches::send_all(&sink, &mut found, values.len(), probe, row);
            wanted
        })?;
        if wanted {
            matches::finish(sink, found);
        }
        return Ok(rows);
    }
    gathered.begin(sink);
    reader.decode(row_group, encoded, step, |step| {
        rows += step.values().len() as u64;
        gathered.add(step);
        if gathered.values() + STEP > tables.chunk() {
            wanted = gathered.probe(&mut probe);
        }
        wanted
    })?;
    if wanted && gathered.items() >= together {
        wanted = gathered.probe(&mut probe);
    }
    if !wanted {
        gathered.clear();
    } else if gathered.values() == 0 {
        gathered.end();
    }
    Ok(rows)
}

/// Probes the values of the batch with these indexes. Sends matches by that index, ascending, those of one value together.
fn probe_within(range: Range<u32>, tables: &PartTables, buffers: &mut Buffers, sink: Sink) {
    let own = range.start as usize..range.end as usize;
    let scratch = &mut buffers.scratch;
    let mut found = Vec::new();
    let probe =
        |from, found: &mut _| tables.probe_own(Kernel::detect(), own.clone(), from, scratch, found);
    let row = |query| range.start + query;
    if matches::send_all(&sink, &mut found, own.len(), probe, row) {
        matches::finish(sink, found);
    }
}
