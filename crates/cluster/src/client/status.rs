//! [`StatusPoller`]: polls the status of a job, and decides when the scheduler or the executors count as lost.
//!
//! Ballista 55's client does not decide this. A failed call ends the query, and a job without executors waits as long
//! as the scheduler's configuration says.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::job_status::Status as JobStatus;

use super::connection::{RETRY_PAUSE, Remote};
use crate::error::{ClusterError, Result};
use crate::net::status_text;
use crate::wire::headers::ClusterState;

/// Pause between calls to a scheduler that has no executors.
const EXECUTORS_PAUSE: Duration = Duration::from_millis(100);
/// Time limit on one reply about a job.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without a useful reply after which the scheduler counts as lost.
const SCHEDULER_PATIENCE: Duration = Duration::from_secs(10);

/// Polls the scheduler, and remembers when it last replied and when it last had executors.
pub(super) struct StatusPoller<'a> {
    remote: &'a Remote,
    /// When the scheduler last gave a useful reply. A reply that does not know the job is useless.
    replied: Instant,
    /// When the scheduler last had an executor, or reported that the job was over.
    had_executors: Instant,
    /// Whether the last useful reply contained a job's status.
    known: bool,
}

impl<'a> StatusPoller<'a> {
    /// Creates a poller; both times start now.
    pub(super) fn new(remote: &'a Remote) -> Self {
        let now = Instant::now();
        Self {
            remote,
            replied: now,
            had_executors: now,
            known: false,
        }
    }

    /// Returns the status of a job, and the state of the cluster. The status is `None` if `job` is
    /// empty, or the scheduler does not know the job yet.
    ///
    /// # Errors
    /// [`ClusterError::SchedulerLost`] when the scheduler does not answer, or has forgotten the job;
    /// [`ClusterError::NoExecutors`] when there was no executor for longer than
    /// [`RemoteSettings::wait`](super::RemoteSettings).
    pub(super) async fn poll(&mut self, job: &str) -> Result<(Option<JobStatus>, ClusterState)> {
        let inner = &self.remote.0;
        loop {
            let reply =
                tokio::time::timeout(REPLY_TIMEOUT, inner.client.status_and_state(job)).await;
            let late = |_| Err(tonic::Status::deadline_exceeded("the reply takes too long"));
            match reply.unwrap_or_else(late) {
                Ok(reply) => {
                    let (status, state) = reply?;
                    let now = Instant::now();
                    if status.is_none() && !job.is_empty() {
                        // A new job is unknown for a moment; later only a restarted scheduler does not know it.
                        if self.known || self.replied.elapsed() > SCHEDULER_PATIENCE {
                            return Err(inner.client.scheduler_lost("it was restarted"));
                        }
                    } else {
                        self.known = status.is_some();
                        self.replied = now;
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
                        self.had_executors = now;
                    } else if self.had_executors.elapsed() > inner.settings.wait {
                        return Err(ClusterError::NoExecutors {
                            address: inner.client.address().to_string(),
                            reason: format!(
                                "no executor has been there for {} seconds; start one with `dedup-job executor`",
                                self.had_executors.elapsed().as_secs()
                            ),
                        });
                    }
                    return Ok((status, state));
                }
                Err(status) if self.replied.elapsed() > SCHEDULER_PATIENCE => {
                    return Err(inner.client.scheduler_lost(&status_text(&status)));
                }
                Err(status) => {
                    tracing::debug!("the scheduler does not answer: {}", status_text(&status));
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }
}

impl Remote {
    /// Waits until there is an executor, and returns the state of the cluster.
    pub(super) async fn wait_for_executors(&self) -> Result<ClusterState> {
        let mut poller = StatusPoller::new(self);
        loop {
            let (_, state) = poller.poll("").await?;
            if state.executors > 0 {
                return Ok(state);
            }
            tokio::time::sleep(EXECUTORS_PAUSE).await;
        }
    }

    /// Waits until the scheduler answers again.
    pub(super) async fn wait_for_scheduler(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let reason = match self.0.client.status_and_state("").await {
                Ok(state) => return state.map(drop),
                Err(status) => status_text(&status),
            };
            if begin.elapsed() > self.0.settings.wait {
                return Err(self.0.client.scheduler_lost(&reason));
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}
