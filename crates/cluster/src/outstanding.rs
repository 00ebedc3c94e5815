//! Tasks that executors were given and have not reported, to notice those whose report, or whose handing out, was lost.
//!
//! An executor fetches its tasks and reports them in the same call. If a call is answered but the answer does not arrive, or
//! fails after the reports were taken out of the executor's queue, Ballista would wait for these tasks for ever.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::{TaskDefinition, TaskStatus};

/// For how long an executor may have tasks that it neither works on nor reports: reports may come one call late.
const PATIENCE: Duration = Duration::from_secs(3);

/// A task: job, stage and number.
type Key = (String, u32, u32);

/// The tasks of one executor.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    tasks: HashSet<Key>,
    /// Since when it has had more than it works on.
    missing: Option<Instant>,
}

impl Outstanding {
    /// Notes what the executor reports, and how many tasks it works on. True when others are lost.
    pub(crate) fn report(&mut self, reports: &[TaskStatus], busy: usize, now: Instant) -> bool {
        for task in reports {
            let key = (task.job_id.clone(), task.stage_id, task.task_id);
            self.tasks.remove(&key);
        }
        if self.tasks.len() <= busy {
            self.missing = None;
            return false;
        }
        let since = *self.missing.get_or_insert(now);
        if now - since < PATIENCE {
            return false;
        }
        *self = Self::default();
        true
    }

    /// Notes what it is given.
    pub(crate) fn hand_out(&mut self, tasks: &[TaskDefinition]) {
        for task in tasks {
            let key = (task.job_id.clone(), task.stage_id, task.task_id);
            self.tasks.insert(key);
        }
    }

    /// Forgets the tasks of jobs that have ended.
    pub(crate) fn retain(&mut self, jobs: &HashMap<String, Instant>) {
        self.tasks.retain(|(job, ..)| jobs.contains_key(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u32) -> TaskDefinition {
        TaskDefinition {
            job_id: "job".into(),
            stage_id: 1,
            task_id: number,
            ..TaskDefinition::default()
        }
    }

    fn report(number: u32) -> TaskStatus {
        TaskStatus {
            job_id: "job".into(),
            stage_id: 1,
            task_id: number,
            ..TaskStatus::default()
        }
    }

    #[test]
    fn tasks_that_an_executor_does_not_work_on_are_lost() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut tasks = Outstanding::default();
        assert!(!tasks.report(&[], 0, at(0)));
        tasks.hand_out(&[task(1), task(2)]);
        // Busy for as long as it takes.
        assert!(!tasks.report(&[], 2, at(1)));
        assert!(!tasks.report(&[report(1)], 1, at(1000)));
        // Idle, and the report is one call late.
        assert!(!tasks.report(&[], 0, at(1001)));
        assert!(!tasks.report(&[report(2)], 0, at(1002)));
        assert!(!tasks.report(&[], 0, at(2000)));
        // One of two never comes, though there is other work.
        tasks.hand_out(&[task(3), task(4)]);
        assert!(!tasks.report(&[], 1, at(2001)));
        assert!(!tasks.report(&[], 1, at(2003)));
        assert!(tasks.report(&[], 1, at(2004)));
        // Then they are somebody else's.
        assert!(!tasks.report(&[], 1, at(3000)));
    }
}
