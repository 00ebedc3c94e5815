//! Watches for executors and clients that do not call any more.
//!
//! Ballista 55 expires silent executors itself, and resets their tasks; here our tracking forgets
//! them, too. Ballista never ends a job whose client is gone, which would keep executors busy in
//! vain; this module does.

use std::time::Duration;

use ballista_core::JobId;
use ballista_core::serde::protobuf::CleanJobDataParams;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc as _;
use tonic::Request;

use super::tracking::Tracking;
use super::tracking_scheduler::TrackingScheduler;

/// Interval of the checks.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);
/// How long a client may be silent before its job ends.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Forgets silent executors, and ends jobs of silent clients; runs until it is aborted.
pub(super) async fn watch(scheduler: TrackingScheduler, executor_timeout: Duration) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let mut gone = Vec::new();
        {
            let mut tracking = scheduler.tracking();
            tracking.executors.retain(|id, executor| {
                let alive = executor.last_call.elapsed() < executor_timeout;
                if !alive {
                    tracing::warn!(executor = id, "an executor is lost: it does not call");
                }
                alive
            });
            tracking.jobs.retain(|job, asked| {
                let alive = asked.elapsed() < CLIENT_TIMEOUT;
                if !alive {
                    gone.push(job.clone());
                }
                alive
            });
            for job in &gone {
                tracking.forget_job(job);
            }
            let Tracking {
                executors, jobs, ..
            } = &mut *tracking;
            for executor in executors.values_mut() {
                executor.tasks.retain_jobs(jobs);
            }
        }
        for job in gone {
            tracing::warn!(job, "the client of a job is gone: the job ends");
            // A finished job cannot be cancelled, but has answers to remove.
            let _ = scheduler.server.cancel_job(JobId::new(job.as_str())).await;
            let clean = Request::new(CleanJobDataParams {
                job_id: job,
                remove_stage_ids: Vec::new(),
            });
            let _ = scheduler.server.clean_job_data(clean).await;
        }
    }
}
