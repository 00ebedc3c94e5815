//! [`TrackingScheduler`]: Ballista's scheduler with our [`Tracking`], and the state of the cluster,
//! which combines both.
//!
//! Ballista's reply about a job has neither the number of executors nor the number of finished
//! tasks, so [`ClusterState`] has both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballista_core::JobId;
use ballista_core::serde::protobuf::task_status;
use ballista_scheduler::scheduler_server::SchedulerServer;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};

use super::tracking::Tracking;
use crate::wire::headers::{ClusterState, VERSION};

/// Ballista's scheduler and the tracking beside it. Cheap to clone.
#[derive(Clone)]
pub(super) struct TrackingScheduler {
    pub(super) server: Arc<SchedulerServer<LogicalPlanNode, PhysicalPlanNode>>,
    tracking: Arc<Mutex<Tracking>>,
}

impl TrackingScheduler {
    /// Wraps Ballista's scheduler; nothing is tracked yet.
    pub(super) fn new(server: SchedulerServer<LogicalPlanNode, PhysicalPlanNode>) -> Self {
        Self {
            server: Arc::new(server),
            tracking: Arc::default(),
        }
    }

    /// Locks the tracking.
    pub(super) fn tracking(&self) -> MutexGuard<'_, Tracking> {
        self.tracking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the cluster, and of a job if `job` names one.
    pub(super) async fn cluster_state(&self, job: &str) -> ClusterState {
        let (executors, slots, memory, doomed) = {
            let tracking = self.tracking();
            let all = tracking.executors.values();
            (
                tracking.executors.len(),
                all.clone().map(|executor| executor.slots).sum(),
                all.map(|executor| executor.memory).min().unwrap_or(0),
                tracking.doomed_slice(job),
            )
        };
        let (mut done, mut began) = (0, None);
        let jobs = self.server.state.task_manager.get_running_job_cache();
        if let Some(job) = jobs.get(&JobId::new(job)) {
            let graph = job.execution_graph.read().await;
            let tasks = graph
                .stages()
                .values()
                .filter_map(|stage| stage.task_infos());
            for task in tasks.flatten() {
                if matches!(task.task_status, task_status::Status::Successful(_)) {
                    done += task.global_input_partition_ids.len();
                }
                let scheduled = u64::try_from(task.scheduled_time).ok();
                began = [began, scheduled].into_iter().flatten().min();
            }
        }
        ClusterState {
            version: VERSION.to_owned(),
            executors,
            slots,
            memory,
            done,
            began,
            doomed,
        }
    }
}
