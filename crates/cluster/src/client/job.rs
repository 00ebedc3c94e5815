//! Runs one job: submits slices as a plan, waits until the job has ended, fetches its answers.
//!
//! Ballista ends a job when its tasks are done. Only then does the client fetch and settle the
//! answers. The next round repeats the slices whose answers are missing (see
//! [`rounds`](super::rounds)).

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::RecordBatch;
use ballista_core::serde::protobuf::PartitionLocation;
use ballista_core::serde::protobuf::job_status::Status as JobStatus;
use datafusion::common::runtime::SpawnedTask;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion_proto::physical_plan::AsExecutionPlan as _;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt as _;
use tokio::sync::mpsc::Sender;

use super::connection::Remote;
use super::fetch::{Answer, by_slice};
use super::map_parameters::{MapParameters, Rows};
use super::settle::{add_to_totals, settle};
use super::status::StatusPoller;
use crate::error::{ClusterError, Result};
use crate::plan::answer::AnswerExec;
use crate::plan::codec::Codec;
use crate::wire::error_text;

/// Number of answers that are fetched at the same time.
const FETCHES: usize = 8;
/// Interval at which the client calls the scheduler while it fetches answers, so that the scheduler keeps the job.
const ALIVE_INTERVAL: Duration = Duration::from_secs(10);

impl Remote {
    /// Runs one job over `slices`, and removes from `open` the items that got an answer. Returns
    /// the reason why answers are missing, if some are. `done_before` is the number of slices that
    /// earlier jobs did, for the progress.
    pub(super) async fn run_job<T>(
        &self,
        map: &MapParameters<'_, T>,
        slices: &[Vec<T>],
        done_before: u64,
        open: &mut BTreeSet<u32>,
        sender: &Sender<Rows>,
    ) -> Result<Option<String>> {
        let internal = |error: DataFusionError| ClusterError::Internal(format!("a plan: {error}"));
        let partitions: Vec<Vec<RecordBatch>> = slices
            .iter()
            .map(|slice| Ok(vec![(map.encode)(slice)?]))
            .collect::<Result<_, DataFusionError>>()
            .map_err(internal)?;
        let table = MemorySourceConfig::try_new(&partitions, Arc::clone(&map.item_schema), None);
        let table = table.map_err(internal)?;
        let mapped = (map.build)(DataSourceExec::from_data_source(table)).map_err(internal)?;
        let schema = mapped.schema();
        let plan = Arc::new(AnswerExec::new(mapped, self.0.run_name.clone()));
        let mut bytes = Vec::new();
        PhysicalPlanNode::try_from_physical_plan(plan, &Codec::default())
            .and_then(|plan| plan.try_encode(&mut bytes))
            .map_err(internal)?;
        {
            let mut summary = self.summary_mut();
            summary.jobs += 1;
            summary.plan_bytes += bytes.len() as u64;
        }
        let job = self.0.client.submit(&self.0.run_name, bytes).await?;
        self.jobs().insert(job.clone());
        let describe = |slice: u32| {
            slices
                .get(slice as usize)
                .map(|slice| (map.describe)(&slice[0]))
        };
        let locations = self.wait_for_job(&job, done_before, describe).await?;
        // The scheduler ends jobs whose client is silent.
        let (client, job_id) = (self.0.client.clone(), job.clone());
        let _alive = SpawnedTask::spawn(async move {
            loop {
                tokio::time::sleep(ALIVE_INTERVAL).await;
                let _ = client.status_and_state(&job_id).await;
            }
        });
        let mut missing = None;
        let dead: Mutex<HashSet<String>> = Mutex::default();
        let mut answers = futures::stream::iter(by_slice(locations))
            .map(|locations| self.fetch_any(map, locations, &schema, sender, &dead))
            .buffer_unordered(FETCHES);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(answer) => self.account(map, answer, open, sender).await?,
                Err(reason) => {
                    tracing::info!("an answer is lost: {reason}");
                    missing = Some(reason);
                }
            }
        }
        let _ = self.0.client.remove_answers(&job).await;
        self.jobs().remove(&job);
        Ok(missing)
    }

    /// Waits until a job has ended, and returns the locations of its answers. `describe` names a slice in messages.
    async fn wait_for_job(
        &self,
        job: &str,
        done_before: u64,
        describe: impl Fn(u32) -> Option<String>,
    ) -> Result<Vec<PartitionLocation>> {
        let progress = &self.0.resources.progress;
        let mut poller = StatusPoller::new(self);
        loop {
            let (status, state) = poller.poll(job).await?;
            let done = done_before + state.done as u64;
            match status {
                None | Some(JobStatus::Queued(_)) => {}
                Some(JobStatus::Running(running)) => {
                    progress.slices.store(done, Ordering::Relaxed);
                    if let Some(began) = state.began {
                        // Both times are by the scheduler's clock.
                        let waited = Duration::from_millis(began.saturating_sub(running.queued_at));
                        self.summary_mut().start_seconds = waited.as_secs_f64();
                    }
                }
                Some(JobStatus::Successful(job)) => return Ok(job.partition_location),
                Some(JobStatus::Failed(failed)) => {
                    return Err(match state.doomed {
                        Some(slice) => ClusterError::Task {
                            kind: storage::ErrorKind::TryAgain,
                            message: format!(
                                "{}: every executor that works on it is lost: it may need more memory than they have",
                                describe(slice).unwrap_or_default()
                            ),
                        },
                        None => self.job_error(&failed.error),
                    });
                }
            }
        }
    }

    /// Returns the error of a failed job from the text that Ballista reports.
    fn job_error(&self, text: &str) -> ClusterError {
        if let Some((file, offset)) = error_text::decode_wrong_cut(text) {
            return ClusterError::WrongCut { file, offset };
        }
        match error_text::decode(text) {
            Some((kind, message)) => ClusterError::Task { kind, message },
            None => ClusterError::Internal(format!(
                "{}: a job failed: {}",
                self.0.client.address(),
                storage::scrub(text.lines().next().unwrap_or_default())
            )),
        }
    }

    /// Settles an answer, and sends its unsent rows to the run; does nothing if its items were
    /// answered before.
    async fn account<T>(
        &self,
        map: &MapParameters<'_, T>,
        answer: Answer,
        open: &mut BTreeSet<u32>,
        sender: &Sender<Rows>,
    ) -> Result<()> {
        let Answer { receipt, unsent } = answer;
        if !settle(&receipt, open, map.exactly_once)? {
            tracing::debug!("a slice was answered twice");
            return Ok(());
        }
        for batch in unsent {
            if sender.send(Ok(batch)).await.is_err() {
                return Ok(());
            }
        }
        receipt.count(&map.counters);
        receipt.add_to(&self.0.resources.progress);
        add_to_totals(&mut self.summary_mut().executors, receipt.executor);
        Ok(())
    }
}
