//! [`Outstanding`]: the tasks that an executor was given and has not reported. If the executor runs
//! fewer tasks, a task or a report was lost on the way.
//!
//! An executor reports finished tasks and fetches new ones in the same call. Ballista 55's scheduler marks tasks as
//! running before its reply arrives, and Ballista's executor takes reports out of their queue before the call succeeds.
//! If the call fails, neither repeats what was lost, and the job waits for ever.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::{TaskDefinition, TaskStatus};

/// How long an executor may neither run nor report a task; a report may come one call late.
const PATIENCE: Duration = Duration::from_secs(3);

/// Job, stage and number of a task.
type Key = (String, u32, u32);

/// The tasks of one executor.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    tasks: HashSet<Key>,
    /// Since when the executor has run fewer tasks than `tasks` holds; `None` while it runs them
    /// all.
    missing: Option<Instant>,
}

impl Outstanding {
    /// Removes reported tasks, and returns whether some of the others are lost, given that the executor runs `busy`
    /// tasks. If some are lost, forgets all tasks of the executor.
    pub(crate) fn remove_reported_and_find_lost(
        &mut self,
        reports: &[TaskStatus],
        busy: usize,
        now: Instant,
    ) -> bool {
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

    /// Adds tasks that the executor is given.
    pub(crate) fn add(&mut self, tasks: &[TaskDefinition]) {
        for task in tasks {
            let key = (task.job_id.clone(), task.stage_id, task.task_id);
            self.tasks.insert(key);
        }
    }

    /// Keeps only the tasks of `jobs`.
    pub(crate) fn retain_jobs(&mut self, jobs: &HashMap<String, Instant>) {
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
    fn tasks_that_an_executor_does_not_run_are_lost() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut tasks = Outstanding::default();
        assert!(!tasks.remove_reported_and_find_lost(&[], 0, at(0)));
        tasks.add(&[task(1), task(2)]);
        // Running, for as long as it takes.
        assert!(!tasks.remove_reported_and_find_lost(&[], 2, at(1)));
        assert!(!tasks.remove_reported_and_find_lost(&[report(1)], 1, at(1000)));
        // Idle; the report comes one call late.
        assert!(!tasks.remove_reported_and_find_lost(&[], 0, at(1001)));
        assert!(!tasks.remove_reported_and_find_lost(&[report(2)], 0, at(1002)));
        assert!(!tasks.remove_reported_and_find_lost(&[], 0, at(2000)));
        // One of two is never reported, while the executor has other work.
        tasks.add(&[task(3), task(4)]);
        assert!(!tasks.remove_reported_and_find_lost(&[], 1, at(2001)));
        assert!(!tasks.remove_reported_and_find_lost(&[], 1, at(2003)));
        assert!(tasks.remove_reported_and_find_lost(&[], 1, at(2004)));
        // They are forgotten then.
        assert!(!tasks.remove_reported_and_find_lost(&[], 1, at(3000)));
    }
}
