//! [`CheckedEngine`]: Ballista's execution engine behind a check of every task.
//!
//! Ballista 55 executes any plan that a scheduler hands out, and writes its results to a directory named after the job,
//! whatever that name is. An executor cannot know whether its scheduler is ours.

use std::sync::Arc;

use ballista_core::JobId;
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;

use crate::plan::operator_check::check_task;

/// Ballista's execution engine; a task that fails [`check_task`] does not reach it.
#[derive(Default)]
pub(crate) struct CheckedEngine(DefaultExecutionEngine);

impl ExecutionEngine for CheckedEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let checked = check_job_name(job_id.as_str()).and_then(|()| check_task(plan.as_ref()));
        if let Err(reason) = checked {
            tracing::error!(
                "the scheduler hands out a task that is not dedup-job's ({reason}); it is refused"
            );
            return plan_err!("not a plan of dedup-job: {reason}");
        }
        self.0.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        )
    }
}

/// Checks that a job's name has only letters, digits, `-` and `_`: Ballista writes answers to a
/// directory of that name.
fn check_job_name(job: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match !job.is_empty() && job.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(format!("{job:?} is not a valid job name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_plans;

    /// Hands a task to an executor's execution engine.
    fn hand_out(task: Arc<dyn ExecutionPlan>, job: &str) -> Result<Arc<dyn QueryStageExecutor>> {
        CheckedEngine::default().create_query_stage_exec(
            JobId::new(job),
            1,
            0,
            vec![0],
            task,
            "/nowhere",
            &SessionConfig::new(),
        )
    }

    #[test]
    fn our_tasks_are_allowed() {
        for plan in sample_plans::plans().unwrap() {
            hand_out(sample_plans::task(plan).unwrap(), "aB3xyz7").unwrap();
        }
    }

    /// Fault 47 (docs/faults.md), a process that is not ours: an executor takes no task with a foreign operator.
    #[test]
    fn other_tasks_are_refused() {
        for (plan, named) in sample_plans::foreign_plans().unwrap() {
            let task = sample_plans::task(plan).unwrap();
            let error = hand_out(task, "job").unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn tasks_are_below_one_writer_of_a_plain_job() {
        let plan = || sample_plans::plans().unwrap().swap_remove(0);
        let task = |plan| sample_plans::task(plan).unwrap();
        for bare in [plan(), task(task(plan()))] {
            let error = hand_out(bare, "job").unwrap_err().to_string();
            assert!(error.contains("ShuffleWriterExec") || error.contains("AnswerExec"));
        }
        for job in ["", ".", "../../etc", "/etc", "a/b", "a\0b"] {
            let error = hand_out(task(plan()), job).unwrap_err().to_string();
            assert!(error.contains("not a valid job name"), "{error}");
        }
    }
}
