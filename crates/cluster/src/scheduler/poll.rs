//! Handles one call of an executor, which reports finished tasks and fetches new ones.
//!
//! Around Ballista's `poll_work`:
//!
//! ```text
//! reports ─▶ outstanding tasks ─▶ poll_work ─▶ no task? hold the reply, poll again ─▶ count hand-outs ─▶ reply
//!               └─ some are lost: the executor counts as stopped, which resets its tasks
//! ```

use std::time::{Duration, Instant};

use ballista_core::JobId;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc as _;
use ballista_core::serde::protobuf::{ExecutorStoppedParams, PollWorkParams, PollWorkResult};
use ballista_core::serde::scheduler::ExecutorSpecification;
use tonic::{Request, Response, Status};

use super::outstanding::Outstanding;
use super::tracking::TrackedExecutor;
use super::tracking_scheduler::TrackingScheduler;
use crate::wire::headers::{self, Announcement, EXECUTOR};

/// How long the scheduler holds its reply to an idle executor while there is no work.
const POLL_HOLD: Duration = Duration::from_secs(1);
/// Interval at which the scheduler asks Ballista again while it holds a reply.
pub(super) const HOLD_INTERVAL: Duration = Duration::from_millis(10);

impl TrackingScheduler {
    /// Takes an executor's reports, and returns its next tasks. The executor's announcement is in
    /// the header [`EXECUTOR`].
    pub(super) async fn poll(
        &self,
        request: Request<PollWorkParams>,
    ) -> Result<Response<PollWorkResult>, Status> {
        let announcement: Option<Announcement> = headers::get(request.metadata(), EXECUTOR);
        headers::check_version(announcement.as_ref().map(|said| said.version.as_str()))?;
        let (slots, memory) = announcement.map_or((0, 0), |said| (said.slots, said.memory));
        let params = request.get_ref();
        let Some(executor) = &params.metadata else {
            return Err(Status::invalid_argument("an executor without a name"));
        };
        let id = executor.id.clone();
        let specification: ExecutorSpecification =
            executor.specification.clone().unwrap_or_default().into();
        let busy = specification.vcores.saturating_sub(params.num_free_vcores) as usize;
        let now = Instant::now();
        let lost = {
            let mut tracking = self.tracking();
            let is_new = !tracking.executors.contains_key(&id);
            let known = tracking
                .executors
                .entry(id.clone())
                .or_insert_with(|| TrackedExecutor {
                    slots,
                    memory,
                    last_call: now,
                    tasks: Outstanding::default(),
                });
            known.last_call = now;
            if is_new {
                tracing::info!(executor = id, slots, "an executor has joined");
            }
            known
                .tasks
                .remove_reported_and_find_lost(&params.task_status, busy, now)
        };
        let without_reports = PollWorkParams {
            task_status: Vec::new(),
            ..params.clone()
        };
        let response = self.server.poll_work(request).await;
        if lost {
            tracing::warn!(
                executor = id,
                "tasks were lost on the way to or from an executor: they are handed out again"
            );
            let stopped = ExecutorStoppedParams {
                executor_id: id.clone(),
                reason: "it does not know of its tasks".into(),
            };
            // Its next call registers it again.
            self.server.executor_stopped(Request::new(stopped)).await?;
        }
        let mut response = response?;
        while busy == 0 && is_empty(response.get_ref()) && now.elapsed() < POLL_HOLD {
            tokio::time::sleep(HOLD_INTERVAL).await;
            let task_manager = &self.server.state.task_manager;
            if !task_manager.get_running_job_cache().is_empty() {
                let again = Request::new(without_reports.clone());
                response = self.server.poll_work(again).await?;
            }
        }
        let tasks = &mut response.get_mut().tasks;
        for task in tasks.iter_mut() {
            // `props` has thousands of bytes of session settings, which every executor has already.
            task.props.clear();
        }
        let doomed = {
            let mut tracking = self.tracking();
            if let Some(known) = tracking.executors.get_mut(&id) {
                known.tasks.add(tasks);
            }
            tracking.count_hand_outs(tasks)
        };
        for job in doomed {
            tracing::warn!(
                job,
                "every executor that gets a certain slice is lost: the job ends"
            );
            self.server
                .cancel_job(JobId::new(job.as_str()))
                .await
                .map_err(|error| Status::internal(error.to_string()))?;
        }
        Ok(response)
    }
}

/// Returns whether this reply leaves an executor with nothing to do.
fn is_empty(result: &PollWorkResult) -> bool {
    result.tasks.is_empty() && result.jobs_to_clean.is_empty()
}
