//! Checks that a plan is one of ours: `AnswerExec` over one of our maps over a table of work items, and nothing else.
//!
//! Ballista 55 runs any plan, so whoever reaches its port can read whatever its executors can read. The scheduler
//! checks the plans that clients submit. Executors check the tasks that the scheduler hands out, because the scheduler
//! may be a foreign one.

use std::sync::Arc;

use ballista_core::execution_plans::ShuffleWriterExec;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use engine::probe::ProbeExec;

use super::answer::AnswerExec;
use super::fingerprint::FingerprintExec;

/// Checks a submitted plan. The error names the operator that is not allowed.
pub(crate) fn check_plan(plan: &dyn ExecutionPlan) -> Result<(), String> {
    if !plan.is::<AnswerExec>() {
        return Err(misplaced(plan, "AnswerExec"));
    }
    let map = only_input(plan)?;
    if !map.is::<ProbeExec>() && !map.is::<FingerprintExec>() {
        return Err(misplaced(map.as_ref(), "a map"));
    }
    let items = only_input(map.as_ref())?;
    let is_in_memory = items.downcast_ref::<DataSourceExec>().is_some_and(|table| {
        let source: &dyn std::any::Any = table.data_source().as_ref();
        source.is::<MemorySourceConfig>()
    });
    match is_in_memory {
        true => Ok(()),
        false => Err(misplaced(
            items.as_ref(),
            "a table of work items in the plan itself",
        )),
    }
}

/// Checks that a task is one of our plans below the `ShuffleWriterExec` that Ballista puts on top.
pub(crate) fn check_task(task: &dyn ExecutionPlan) -> Result<(), String> {
    match task.is::<ShuffleWriterExec>() {
        true => check_plan(only_input(task)?.as_ref()),
        false => Err(misplaced(task, "ShuffleWriterExec")),
    }
}

/// Returns the input of an operator that must have exactly one.
fn only_input(plan: &dyn ExecutionPlan) -> Result<&Arc<dyn ExecutionPlan>, String> {
    match plan.children()[..] {
        [input] => Ok(input),
        _ => Err(format!("{} does not have one input", plan.name())),
    }
}

fn misplaced(plan: &dyn ExecutionPlan, expected: &str) -> String {
    format!("{} where {expected} belongs", plan.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_plans;

    #[test]
    fn our_plans_are_allowed() {
        for plan in sample_plans::plans().unwrap() {
            check_plan(plan.as_ref()).unwrap();
        }
    }

    /// Fault 47 (docs/faults.md), a process that is not ours: the scheduler takes no plan with a foreign operator.
    #[test]
    fn other_plans_are_refused() {
        for (plan, named) in sample_plans::foreign_plans().unwrap() {
            let reason = check_plan(plan.as_ref()).unwrap_err();
            assert!(reason.contains(named), "{reason}");
        }
    }
}
