//! What the scheduler tracks beside Ballista: executors, clients that wait for jobs, and how often each slice was
//! handed out.
//!
//! Ballista 55 does not count the loss of an executor as a failure of its tasks: a slice that needs too much memory
//! would kill one executor after the other. Nor does it know whether the client of a job is still connected.

use std::collections::HashMap;
use std::time::Instant;

use ballista_core::serde::protobuf::TaskDefinition;

use super::outstanding::Outstanding;

/// Limit on the hand-outs of a slice. If this many executors were lost with the slice, the slice
/// counts as the cause.
const MAX_HAND_OUTS: u32 = 6;

/// An executor that has called.
pub(super) struct TrackedExecutor {
    pub(super) slots: usize,
    /// Bytes that it has for batches and tables.
    pub(super) memory: u64,
    pub(super) last_call: Instant,
    pub(super) tasks: Outstanding,
}

/// Executors and jobs, by id.
#[derive(Default)]
pub(super) struct Tracking {
    pub(super) executors: HashMap<String, TrackedExecutor>,
    /// When the client of each job last asked about it.
    pub(super) jobs: HashMap<String, Instant>,
    /// By job and slice: how often the slice was handed out.
    hand_outs: HashMap<String, HashMap<u32, u32>>,
    /// By job: the slice that makes the scheduler end the job.
    doomed: HashMap<String, u32>,
}

impl Tracking {
    /// Counts tasks that are handed out, and returns the jobs that must end because a slice was handed out too often.
    pub(super) fn count_hand_outs(&mut self, tasks: &[TaskDefinition]) -> Vec<String> {
        let mut doomed = Vec::new();
        for task in tasks {
            let counts = self.hand_outs.entry(task.job_id.clone()).or_default();
            for slice in &task.global_output_partition_ids {
                let count = counts.entry(*slice).or_default();
                *count += 1;
                if *count > MAX_HAND_OUTS && !self.doomed.contains_key(&task.job_id) {
                    self.doomed.insert(task.job_id.clone(), *slice);
                    doomed.push(task.job_id.clone());
                }
            }
        }
        doomed
    }

    /// Returns the slice that made the scheduler end a job.
    pub(super) fn doomed_slice(&self, job: &str) -> Option<u32> {
        self.doomed.get(job).copied()
    }

    /// Forgets a job that has ended.
    pub(super) fn forget_job(&mut self, job: &str) {
        self.jobs.remove(job);
        self.hand_outs.remove(job);
        self.doomed.remove(job);
    }
}
