//! What a run has of a cluster: its maps become jobs, whose answers are fetched, checked and accounted for.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archive::fingerprints::FingerprintFile;
use archive::{IdType, Location};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use ballista_core::serde::protobuf::PartitionLocation;
use ballista_core::serde::protobuf::job_status::Status as JobStatus;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion_proto::physical_plan::AsExecutionPlan as _;
use datafusion_proto::protobuf::PhysicalPlanNode;
use engine::EngineError;
use engine::cluster::{
    Capacity, Cluster, ClusterSummary, ExecutorSummary, Fingerprinted, Fingerprinting,
};
use engine::draft::Draft;
use engine::probe::{BatchName, Probe, ProbeExec, hits_schema};
use engine::resources::Resources;
use engine::work::{self, Numbered, WorkItem};
use futures::StreamExt as _;
use tokio::sync::mpsc::Sender;

use crate::answer::{self, AnswerExec};
use crate::client::{Address, Client, told};
use crate::codec::Codec;
use crate::error::{ClusterError, Result};
use crate::fingerprint::{DocumentItem, FingerprintExec, Fingerprints};
use crate::protocol::{self, State};
use crate::receipt::Receipt;
use crate::slices;
use crate::tls::Tls;

/// How long is waited before a scheduler is asked again for executors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long is waited before a scheduler that does not answer is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long an answer about a job may take.
const ANSWER: Duration = Duration::from_secs(5);
/// For how long a scheduler that does not answer is asked again, before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Answers that are fetched at the same time.
const FETCHES: usize = 8;
/// Slices, and items, of a job at most: some hundred bytes of its plan each.
const SLICES: usize = 4096;
const ITEMS: usize = 50_000;
/// How often a scheduler is told, while answers are fetched, that the client is there.
const THERE: Duration = Duration::from_secs(10);
/// How long it may take to tidy up.
const CLOSE: Duration = Duration::from_secs(10);
/// How often slices are handed out again whose answers were lost with their executors.
const ROUNDS: u32 = 5;
/// Weight of documents whose size is not known.
const DOCUMENTS: u64 = 64 << 20;

/// How a run uses a cluster.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// The scheduler.
    pub scheduler: Address,
    /// The keys of this process.
    pub tls: Option<Tls>,
    /// Directory or prefix that this process and the executors reach.
    pub shared: String,
    /// Local directory for files in between; it must exist.
    pub scratch: PathBuf,
    /// How often the work is submitted again when the scheduler is lost.
    pub resubmit: u32,
    /// How long to wait for the scheduler, and for an executor when there is none.
    pub wait: Duration,
}

/// A run's part of a cluster.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    settings: RemoteSettings,
    client: Client,
    /// Name of the run, and of its session.
    run: String,
    resources: Arc<Resources>,
    /// Where the run puts what executors read.
    shared: Location,
    jobs: Mutex<HashSet<String>>,
    summary: Mutex<ClusterSummary>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("settings", &self.0.settings)
            .field("run", &self.0.run)
            .finish_non_exhaustive()
    }
}

/// Ends what a run left on its cluster, when it is dropped before [`Remote::close`].
#[derive(Debug)]
pub struct Guard(Option<Remote>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(remote) = self.0.take() {
            archive::store::give_up(async move { remote.abandon().await });
        }
    }
}

impl Remote {
    /// Connects to a cluster.
    ///
    /// # Errors
    /// [`ClusterError`] when no scheduler answers; [`EngineError`] for a shared place that is none.
    pub async fn connect(
        settings: RemoteSettings,
        resources: Arc<Resources>,
    ) -> Result<(Self, Guard), EngineError> {
        let begin = Instant::now();
        let client = loop {
            let connecting = Client::connect(settings.scheduler.clone(), settings.tls.clone());
            match connecting.await {
                Ok(client) => break client,
                Err(error) if error.kind() != archive::ErrorKind::Unreachable => {
                    return Err(error.into());
                }
                Err(error) if begin.elapsed() + AGAIN > settings.wait => return Err(error.into()),
                Err(error) => {
                    if begin.elapsed() < AGAIN {
                        tracing::warn!("{error}; waiting for it");
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };
        let run = uuid::Uuid::new_v4().simple().to_string();
        let shared = resources.stores.locate(&settings.shared)?;
        let shared = shared.child(&format!("dedup-job-{run}"))?;
        let summary = ClusterSummary {
            scheduler: settings.scheduler.to_string(),
            ..ClusterSummary::default()
        };
        let remote = Self(Arc::new(Inner {
            settings,
            client,
            run,
            resources,
            shared,
            jobs: Mutex::default(),
            summary: Mutex::new(summary),
        }));
        Ok((remote.clone(), Guard(Some(remote))))
    }

    /// Removes what the run put into the shared place, and what executors hold of it.
    pub async fn close(&self, mut guard: Guard) {
        guard.0 = None;
        if tokio::time::timeout(CLOSE, self.abandon()).await.is_err() {
            tracing::warn!("the cluster does not answer; what the executors read may stay behind");
        }
    }

    /// Ends the jobs that run still, and removes what is left behind; what cannot be removed is none of the run's
    /// business any more.
    async fn abandon(&self) {
        // A scheduler that does not answer must not keep what lies in a store.
        let (cleared, ()) = futures::join!(self.0.shared.clear(), self.cancel_jobs());
        if let Err(error) = cleared {
            tracing::warn!("what the executors read stays behind: {error}");
        }
    }

    fn summary_mut(&self) -> std::sync::MutexGuard<'_, ClusterSummary> {
        self.0
            .summary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an executor, and gives the state of the cluster.
    async fn executors(&self) -> Result<State> {
        let mut vigil = Vigil::new(self);
        loop {
            let (_, state) = vigil.ask("").await?;
            if state.executors > 0 {
                return Ok(state);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Has the map that `plan` makes of a table of items done for all of them, and sends its rows.
    async fn answer<T>(&self, map: &Map<'_, T>, items: Vec<T>, rows: Sender<Rows>) -> Result<()> {
        let mut open: BTreeSet<u32> = items.iter().map(map.number).collect();
        let progress = &self.0.resources.progress;
        let state = self.executors().await?;
        // Cut once, so that what is handed out again is the same.
        let mut slices = slices::cut(items, state.slots, map.weight, map.group);
        self.summary_mut().slices += slices.len() as u64;
        let (mut rounds, mut resubmitted) = (0, 0);
        while !open.is_empty() {
            slices.retain(|slice| slice.iter().any(|item| open.contains(&(map.number)(item))));
            if rounds + resubmitted > 0 {
                self.summary_mut().slices_again += slices.len() as u64;
            }
            progress.slices.store(0, Ordering::Relaxed);
            let all = slices.len() as u64;
            progress.slices_total.store(all, Ordering::Relaxed);
            let mut lost = None;
            let mut before = 0;
            let mut rest = slices.as_slice();
            while !rest.is_empty() {
                let (slices, later) = rest.split_at(of_a_job(rest));
                match self.job(map, slices, before, &mut open, &rows).await {
                    Ok(reason) => lost = reason.or(lost),
                    Err(ClusterError::SchedulerLost { address, reason })
                        if resubmitted < self.0.settings.resubmit =>
                    {
                        resubmitted += 1;
                        tracing::warn!(
                            "{address}: the scheduler is lost ({reason}); its work is submitted again"
                        );
                        self.scheduler_again().await?;
                        // If it was only out of reach, it works for the job still.
                        self.cancel_jobs().await;
                        break;
                    }
                    Err(error) => return Err(error),
                }
                if rows.is_closed() {
                    return Ok(());
                }
                before += slices.len() as u64;
                rest = later;
            }
            if open.is_empty() || !rest.is_empty() {
                continue;
            }
            rounds += 1;
            let reason = lost.unwrap_or_else(|| "no answer to some work".into());
            if rounds > ROUNDS {
                return Err(ClusterError::NoExecutors {
                    address: self.0.client.address().to_string(),
                    reason: format!(
                        "executors are lost again and again before their answers are fetched: {reason}"
                    ),
                });
            }
            tracing::warn!("answers were lost: {reason}; their slices are handed out again");
        }
        Ok(())
    }

    /// Waits for a scheduler that is back.
    async fn scheduler_again(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let reason = match self.0.client.state("").await {
                Ok(state) => return state.map(drop),
                Err(status) => told(&status),
            };
            if begin.elapsed() > self.0.settings.wait {
                return Err(self.0.client.lost(&reason));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Runs one job and takes what it answers off the `open` items. Gives the reason why answers are missing, if some are.
    async fn job<T>(
        &self,
        map: &Map<'_, T>,
        slices: &[Vec<T>],
        before: u64,
        open: &mut BTreeSet<u32>,
        rows: &Sender<Rows>,
    ) -> Result<Option<String>> {
        let internal = |error: DataFusionError| ClusterError::Internal(format!("a plan: {error}"));
        let partitions: Vec<Vec<RecordBatch>> = slices
            .iter()
            .map(|slice| Ok(vec![(map.encode)(slice)?]))
            .collect::<Result<_, DataFusionError>>()
            .map_err(internal)?;
        let table = MemorySourceConfig::try_new(&partitions, Arc::clone(&map.items), None);
        let table = table.map_err(internal)?;
        let mapped = (map.plan)(DataSourceExec::from_data_source(table)).map_err(internal)?;
        let schema = mapped.schema();
        let plan = Arc::new(AnswerExec::new(mapped, self.0.run.clone()));
        let mut bytes = Vec::new();
        PhysicalPlanNode::try_from_physical_plan(plan, &Codec::default())
            .and_then(|plan| plan.try_encode(&mut bytes))
            .map_err(internal)?;
        {
            let mut summary = self.summary_mut();
            summary.jobs += 1;
            summary.plan_bytes += bytes.len() as u64;
        }
        let job = self.0.client.submit(&self.0.run, bytes).await?;
        self.jobs().insert(job.clone());
        let name = |slice: u32| {
            slices
                .get(slice as usize)
                .map(|slice| (map.name)(&slice[0]))
        };
        let locations = self.wait_for(&job, before, name).await?;
        // As long as answers are fetched, the client is there.
        let (client, of) = (self.0.client.clone(), job.clone());
        let _there = SpawnedTask::spawn(async move {
            loop {
                tokio::time::sleep(THERE).await;
                let _ = client.state(&of).await;
            }
        });
        let mut lost = None;
        let dead = Mutex::default();
        let mut answers = futures::stream::iter(by_slice(locations))
            .map(|locations| self.fetch_one(map, locations, &schema, rows, &dead))
            .buffer_unordered(FETCHES);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(answer) => self.account(map, answer, open, rows).await?,
                Err(reason) => {
                    tracing::info!("an answer is lost: {reason}");
                    lost = Some(reason);
                }
            }
        }
        let _ = self.0.client.clean(&job).await;
        self.jobs().remove(&job);
        Ok(lost)
    }

    fn jobs(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the jobs that run still.
    async fn cancel_jobs(&self) {
        let jobs: Vec<String> = self.jobs().drain().collect();
        for job in &jobs {
            let _ = self.0.client.cancel(job).await;
        }
    }

    /// Waits until a job is done, and gives where its answers are; `name` says what a slice is about.
    async fn wait_for(
        &self,
        job: &str,
        before: u64,
        name: impl Fn(u32) -> Option<String>,
    ) -> Result<Vec<PartitionLocation>> {
        let progress = &self.0.resources.progress;
        let mut vigil = Vigil::new(self);
        loop {
            let (status, state) = vigil.ask(job).await?;
            let done = before + state.done as u64;
            match status {
                None | Some(JobStatus::Queued(_)) => {}
                Some(JobStatus::Running(running)) => {
                    progress.slices.store(done, Ordering::Relaxed);
                    if let Some(began) = state.began {
                        // Both by the scheduler's clock.
                        let waited = Duration::from_millis(began.saturating_sub(running.queued_at));
                        self.summary_mut().start_seconds = waited.as_secs_f64();
                    }
                }
                Some(JobStatus::Successful(done)) => return Ok(done.partition_location),
                Some(JobStatus::Failed(failed)) => {
                    return Err(match state.doomed {
                        Some(slice) => ClusterError::Task {
                            kind: archive::ErrorKind::TryAgain,
                            message: format!(
                                "{}: every executor that works on it is lost: it may need more memory than they have",
                                name(slice).unwrap_or_default()
                            ),
                        },
                        None => self.failed(&failed.error),
                    });
                }
            }
        }
    }

    /// Why a job failed.
    fn failed(&self, text: &str) -> ClusterError {
        match protocol::unmark(text) {
            Some((kind, message)) => ClusterError::Task { kind, message },
            None => ClusterError::Internal(format!(
                "{}: a job failed: {}",
                self.0.client.address(),
                archive::store::scrub(text.lines().next().unwrap_or_default())
            )),
        }
    }

    /// Fetches the answer to one slice from one of the places where it is: the last is of the latest attempt. Executors that are
    /// `dead` are not asked again.
    async fn fetch_one<T>(
        &self,
        map: &Map<'_, T>,
        locations: Vec<PartitionLocation>,
        schema: &SchemaRef,
        rows: &Sender<Rows>,
        dead: &Mutex<HashSet<String>>,
    ) -> Result<Answer, String> {
        let mut lost = "an answer to nothing".to_owned();
        for location in locations.into_iter().rev() {
            let executor = location.executor_meta.as_ref();
            let executor = executor.map_or(String::new(), |of| of.id.clone());
            let is_dead = |id: &String| {
                let dead = dead.lock().unwrap_or_else(PoisonError::into_inner);
                dead.contains(id)
            };
            if is_dead(&executor) {
                lost = format!("executor {executor} is gone");
                continue;
            }
            match self.fetch(map, location, schema, rows).await {
                Ok(answer) => return Ok(answer),
                Err(reason) => {
                    lost = reason;
                    let mut dead = dead.lock().unwrap_or_else(PoisonError::into_inner);
                    dead.insert(executor);
                }
            }
        }
        Err(lost)
    }

    /// Fetches one answer. Rows of a map that may be answered twice go out as they come, others are kept until it is
    /// known that they are wanted. The error says why the answer is lost.
    async fn fetch<T>(
        &self,
        map: &Map<'_, T>,
        location: PartitionLocation,
        schema: &SchemaRef,
        rows: &Sender<Rows>,
    ) -> Result<Answer, String> {
        let mut batches = self.0.client.fetch(location).await?;
        let mut kept = Vec::new();
        let mut checked = Checked::default();
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| error.to_string())?;
            let Some(part) = checked.add(&batch, schema)? else {
                continue;
            };
            match map.once {
                true => kept.push(part),
                // A reader that is gone is noticed later.
                false => drop(rows.send(Ok(part)).await),
            }
        }
        let receipt = checked.finish()?;
        Ok(Answer { receipt, kept })
    }

    /// Takes an answer for its items, unless they were answered before.
    async fn account<T>(
        &self,
        map: &Map<'_, T>,
        answer: Answer,
        open: &mut BTreeSet<u32>,
        rows: &Sender<Rows>,
    ) -> Result<()> {
        let Answer { receipt, kept } = answer;
        if !settle(&receipt, open, map.once)? {
            tracing::debug!("a slice was answered twice");
            return Ok(());
        }
        for batch in kept {
            if rows.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
        map.invalid_utf8
            .fetch_add(receipt.invalid_utf8, Ordering::Relaxed);
        receipt.add_to(&self.0.resources.progress);
        add(&mut self.summary_mut().executors, receipt.executor);
        Ok(())
    }
}

/// Slices of one job, of those that are left: so many that its plan is a message.
fn of_a_job<T>(slices: &[Vec<T>]) -> usize {
    let mut items = 0;
    let fits = slices.iter().take(SLICES).take_while(|slice| {
        items += slice.len();
        items <= ITEMS
    });
    fits.count().max(1)
}

/// The places of answers, those to one slice together, in the order that they were given.
fn by_slice(locations: Vec<PartitionLocation>) -> Vec<Vec<PartitionLocation>> {
    let mut slices: BTreeMap<u32, Vec<PartitionLocation>> = BTreeMap::new();
    for location in locations {
        let slice = location.partition_id.as_ref().map(|of| of.partition_id);
        slices
            .entry(slice.unwrap_or(u32::MAX))
            .or_default()
            .push(location);
    }
    slices.into_values().collect()
}

/// Takes what a receipt is for off the `open` items. False when all of it was answered before.
fn settle(receipt: &Receipt, open: &mut BTreeSet<u32>, once: bool) -> Result<bool> {
    let new = receipt
        .items
        .iter()
        .filter(|item| open.contains(item))
        .count();
    if new == 0 {
        return Ok(false);
    }
    if once && new < receipt.items.len() {
        return Err(ClusterError::Internal(
            "an answer to some items that were answered before, and some that were not".into(),
        ));
    }
    for item in &receipt.items {
        open.remove(item);
    }
    Ok(true)
}

/// An answer as far as it was read.
#[derive(Debug, Default)]
struct Checked {
    rows: u64,
    receipt: Option<Receipt>,
}

impl Checked {
    /// The rows of a batch, if it has any.
    fn add(
        &mut self,
        batch: &RecordBatch,
        schema: &SchemaRef,
    ) -> Result<Option<RecordBatch>, String> {
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        if self.receipt.is_some() {
            return Err("an answer goes on behind its receipt".into());
        }
        let (rows, receipt) = answer::part(batch, schema)?;
        self.receipt = receipt;
        self.rows += rows.as_ref().map_or(0, |rows| rows.num_rows() as u64);
        Ok(rows)
    }

    /// The receipt, if it is for the rows that were read.
    fn finish(self) -> Result<Receipt, String> {
        let receipt = self.receipt.ok_or("an answer without a receipt")?;
        match receipt.rows == self.rows {
            true => Ok(receipt),
            false => Err(format!(
                "{} of {} rows of an answer",
                self.rows, receipt.rows
            )),
        }
    }
}

/// A batch of rows of a map.
type Rows = datafusion::error::Result<RecordBatch>;

/// A whole answer.
struct Answer {
    receipt: Receipt,
    /// Rows that have not gone out yet.
    kept: Vec<RecordBatch>,
}

/// A map over items of a kind.
struct Map<'a, T> {
    number: fn(&T) -> u32,
    weight: &'a (dyn Fn(&T) -> u64 + Sync),
    /// Items of different groups are in different slices.
    group: fn(&T) -> u32,
    /// The schema of a table of items.
    items: SchemaRef,
    encode: fn(&[T]) -> datafusion::error::Result<RecordBatch>,
    /// What an item is about, for people.
    name: fn(&T) -> String,
    plan: &'a (
            dyn Fn(Arc<dyn ExecutionPlan>) -> datafusion::error::Result<Arc<dyn ExecutionPlan>>
                + Sync
        ),
    /// Whether rows that come twice do harm.
    once: bool,
    invalid_utf8: Arc<AtomicU64>,
}

/// Asks the scheduler, and judges for how long it may not answer, or have no executors.
struct Vigil<'a> {
    remote: &'a Remote,
    answered: Instant,
    executors: Instant,
    known: bool,
}

impl<'a> Vigil<'a> {
    fn new(remote: &'a Remote) -> Self {
        let now = Instant::now();
        Self {
            remote,
            answered: now,
            executors: now,
            known: false,
        }
    }

    async fn ask(&mut self, job: &str) -> Result<(Option<JobStatus>, State)> {
        let inner = &self.remote.0;
        loop {
            let answer = tokio::time::timeout(ANSWER, inner.client.state(job)).await;
            let late = |_| Err(tonic::Status::deadline_exceeded("it takes too long"));
            match answer.unwrap_or_else(late) {
                Ok(answer) => {
                    let (status, state) = answer?;
                    let now = Instant::now();
                    if status.is_none() && !job.is_empty() {
                        // It takes a moment until a job is known; then it is, for as long as the scheduler lives.
                        if self.known || self.answered.elapsed() > PATIENCE {
                            return Err(inner.client.lost("it was started anew"));
                        }
                    } else {
                        self.known = status.is_some();
                        self.answered = now;
                    }
                    inner
                        .resources
                        .progress
                        .executors
                        .store(state.executors as u64, Ordering::Relaxed);
                    let is_over = matches!(
                        status,
                        Some(JobStatus::Successful(_) | JobStatus::Failed(_))
                    );
                    if state.executors > 0 || is_over {
                        self.executors = now;
                    } else if self.executors.elapsed() > inner.settings.wait {
                        return Err(ClusterError::NoExecutors {
                            address: inner.client.address().to_string(),
                            reason: format!(
                                "no executor has been there for {} seconds; start one with `dedup-job executor`",
                                self.executors.elapsed().as_secs()
                            ),
                        });
                    }
                    return Ok((status, state));
                }
                Err(status) if self.answered.elapsed() > PATIENCE => {
                    return Err(inner.client.lost(&told(&status)));
                }
                Err(status) => {
                    tracing::debug!("the scheduler does not answer: {}", told(&status));
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}

/// Adds what an executor did to what it, and others, did before.
fn add(executors: &mut Vec<ExecutorSummary>, more: ExecutorSummary) {
    let Some(of) = executors.iter_mut().find(|of| of.id == more.id) else {
        executors.push(more);
        return;
    };
    of.slices += more.slices;
    of.probed += more.probed;
    of.documents += more.documents;
    of.seconds += more.seconds;
    // Several wait for the same.
    of.prepare_seconds = of.prepare_seconds.max(more.prepare_seconds);
    of.bytes_read += more.bytes_read;
    // They are counted by the executor, since the run began.
    of.requests = of.requests.max(more.requests);
}

#[async_trait]
impl Cluster for Remote {
    async fn fingerprint(&self, task: Fingerprinting<'_>) -> engine::Result<Option<Fingerprinted>> {
        let inner = &self.0;
        let slices = task.documents.slices();
        let in_stores = inner.shared.local().is_none();
        if in_stores && slices.iter().any(|slice| slice.location.local().is_some()) {
            tracing::info!("the new day is on this machine, and is fingerprinted here");
            return Ok(None);
        }
        let names_tables = task.spec.idf.is_some() || task.spec.stop_words.is_some();
        let tables = match task.archive {
            Some(archive) => archive.location().shared_name(),
            None => {
                if names_tables {
                    make(&inner.shared)?;
                    let kept = task.wanted.kept(task.spec)?;
                    archive::model::keep(&inner.shared, task.spec, &kept).await?;
                }
                inner.shared.shared_name()
            }
        };
        let how = Fingerprints {
            columns: task.columns.clone(),
            bigint_ids: task.id_type == IdType::Bigint,
            spec: task.spec.clone(),
            tables,
        };
        let total = task.documents.known_rows().unwrap_or(0);
        let progress = &inner.resources.progress;
        progress.documents_total.store(total, Ordering::Relaxed);
        let mut bytes = Vec::new();
        let mut items: Vec<DocumentItem> = Vec::new();
        for (number, slice) in (0..).zip(slices) {
            bytes.push(slice.bytes.unwrap_or(DOCUMENTS));
            let file = slice.location.shared_name();
            let size = match items.last() {
                Some(last) if last.file == file => last.size,
                _ => slice.location.size().await?,
            };
            items.push(DocumentItem {
                number,
                file,
                size,
                rows: slice.rows,
                row_group: slice.row_group.map(|group| group as u32),
            });
        }
        let schema = archive::schema::fingerprints(task.id_type, true);
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, 4);
        let (rows, remote) = (builder.tx(), self.clone());
        let invalid_utf8 = Arc::new(AtomicU64::new(0));
        let invalid = Arc::clone(&invalid_utf8);
        builder.spawn(async move {
            let map = Map {
                number: |item: &DocumentItem| item.number,
                weight: &|item: &DocumentItem| bytes[item.number as usize],
                group: |_| 0,
                items: DocumentItem::schema(),
                encode: DocumentItem::encode,
                name: |item| item.file.clone(),
                plan: &|input| Ok(Arc::new(FingerprintExec::try_new(input, how.clone())?)),
                once: true,
                invalid_utf8: invalid,
            };
            let answered = remote.answer(&map, items, rows).await;
            remote.0.resources.progress.take_answered();
            answered.map_err(|error| EngineError::from(error).into())
        });
        Ok(Some(Fingerprinted {
            rows: builder.build(),
            invalid_utf8,
        }))
    }

    async fn capacity(&self) -> engine::Result<Capacity> {
        let state = self.executors().await?;
        Ok(Capacity {
            executors: state.executors,
            memory: usize::try_from(state.memory).unwrap_or(usize::MAX),
        })
    }

    async fn share(&self, file: &FingerprintFile) -> engine::Result<BatchName> {
        let inner = &self.0;
        make(&inner.shared)?;
        let target = inner.shared.child("batch.parquet")?;
        let draft = Draft::new(&target, &inner.settings.scratch)?;
        let io = |source| EngineError::Io {
            path: draft.path().display().to_string(),
            source,
        };
        std::fs::copy(&file.path, draft.path()).map_err(io)?;
        draft.publish().await?;
        Ok(BatchName::of(file, target.shared_name()))
    }

    async fn probe(
        &self,
        items: Vec<Numbered>,
        probe: Probe,
    ) -> engine::Result<SendableRecordBatchStream> {
        let inner = &self.0;
        // Executors were started elsewhere.
        let absolute = |(number, mut item): Numbered| {
            if let WorkItem::Slice { file, .. } = &mut item {
                *file = inner.resources.stores.locate(file)?.shared_name();
            }
            Ok((number, item))
        };
        let items: Vec<Numbered> = items
            .into_iter()
            .map(absolute)
            .collect::<engine::Result<_>>()?;
        let schema = hits_schema(probe.batch.id_type());
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, 4);
        let (rows, remote) = (builder.tx(), self.clone());
        builder.spawn(async move {
            let map = Map {
                number: |item: &Numbered| item.0,
                weight: &|item: &Numbered| item.1.weight(),
                group: |item| match &item.1 {
                    WorkItem::Slice { part, .. } | WorkItem::Within { part, .. } => *part,
                },
                items: work::schema(),
                encode: work::encode,
                name: |item| match &item.1 {
                    WorkItem::Slice { file, .. } => file.clone(),
                    WorkItem::Within { .. } => "the new day".into(),
                },
                plan: &|input| Ok(Arc::new(ProbeExec::try_new(input, probe.clone())?)),
                once: false,
                invalid_utf8: Arc::default(),
            };
            let answered = remote.answer(&map, items, rows).await;
            remote.0.resources.progress.probe_done();
            answered.map_err(|error| EngineError::from(error).into())
        });
        Ok(builder.build())
    }

    fn summary(&self) -> ClusterSummary {
        self.summary_mut().clone()
    }
}

/// Makes a directory of a shared place that is on a file system.
fn make(shared: &Location) -> engine::Result<()> {
    match shared.local() {
        None => Ok(()),
        Some(local) => std::fs::create_dir_all(local).map_err(|source| EngineError::Io {
            path: local.display().to_string(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn receipt(items: &[u32], rows: u64) -> Receipt {
        Receipt {
            items: items.to_vec(),
            rows,
            ..Receipt::default()
        }
    }

    #[test]
    fn items_are_settled_once() {
        let mut open: BTreeSet<u32> = (0..6).collect();
        assert!(settle(&receipt(&[0, 1], 0), &mut open, true).unwrap());
        assert_eq!(open, BTreeSet::from([2, 3, 4, 5]));
        // Twice, and by somebody who answers nothing, or to what nobody asked.
        for items in [&[0, 1][..], &[], &[77]] {
            assert!(!settle(&receipt(items, 0), &mut open, true).unwrap());
        }
        assert_eq!(open.len(), 4);
        // Half of it was answered before: its documents would be there twice, its hits would do no harm.
        assert!(settle(&receipt(&[1, 2], 0), &mut open, true).is_err());
        assert_eq!(open.len(), 4);
        assert!(settle(&receipt(&[1, 2], 0), &mut open, false).unwrap());
        assert_eq!(open, BTreeSet::from([3, 4, 5]));
    }

    fn batch(numbers: Vec<Option<i32>>, receipts: Vec<Option<String>>) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int32, true),
            Field::new("receipt", DataType::Utf8, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(numbers)),
            Arc::new(StringArray::from(receipts)),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    /// Reads an answer of these batches.
    fn read(batches: &[RecordBatch]) -> Result<(u64, Receipt), String> {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
        let mut checked = Checked::default();
        let mut rows = 0;
        for batch in batches {
            let part = checked.add(batch, &schema)?;
            rows += part.map_or(0, |part| part.num_rows() as u64);
        }
        Ok((rows, checked.finish()?))
    }

    #[test]
    fn broken_answers_are_no_answers() {
        let text = |receipt: &Receipt| Some(serde_json::to_string(receipt).unwrap());
        let rows = batch(vec![Some(1), Some(2)], vec![None, None]);
        let none = batch(vec![], vec![]);
        let end = batch(vec![None], vec![text(&receipt(&[3], 2))]);
        let whole = [rows.clone(), none, end.clone()];
        assert_eq!(read(&whole).unwrap(), (2, receipt(&[3], 2)));
        for broken in [
            // Cut off, twice, in disorder, of another length.
            vec![rows.clone()],
            vec![],
            vec![rows.clone(), rows.clone(), end.clone()],
            vec![end.clone()],
            vec![rows.clone(), end.clone(), rows.clone()],
            vec![rows.clone(), end.clone(), end.clone()],
            // Receipts that are none.
            vec![rows.clone(), batch(vec![None], vec![Some("{".into())])],
            vec![batch(
                vec![Some(1), None],
                vec![None, text(&receipt(&[3], 1))],
            )],
            // Rows that are null.
            vec![
                batch(vec![None], vec![None]),
                batch(vec![None], vec![text(&receipt(&[3], 1))]),
            ],
        ] {
            assert!(read(&broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn jobs_have_plans_of_a_bounded_size() {
        assert_eq!(of_a_job(&vec![vec![0; 10]; 10_000]), 4096);
        assert_eq!(of_a_job(&vec![vec![0; 1000]; 10_000]), 50);
        assert_eq!(of_a_job(&[vec![0; 1_000_000]]), 1);
    }
}
