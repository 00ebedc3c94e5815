//! The probe in a logical plan, and the planner that makes the operator from it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::exec::ProbeExec;
use super::request::Probe;

/// The probe of a table of work items.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProbeNode {
    input: LogicalPlan,
    probe: Probe,
    schema: DFSchemaRef,
}

impl ProbeNode {
    /// Plans the probe of the work items in `items`.
    ///
    /// # Errors
    /// None in practice: the schema of pairs is valid.
    pub fn over(items: DataFrame, probe: Probe) -> Result<DataFrame> {
        let (state, input) = items.into_parts();
        let schema = Arc::new(DFSchema::try_from(probe.schema())?);
        let node = Arc::new(Self {
            input,
            probe,
            schema,
        });
        Ok(DataFrame::new(
            state,
            LogicalPlan::Extension(Extension { node }),
        ))
    }
}

// Schemas have no order, so two nodes are equal or not comparable.
impl PartialOrd for ProbeNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ProbeNode {
    fn name(&self) -> &str {
        "Probe"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe: k={}", self.probe.max_distance)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        Ok(Self {
            input: inputs.swap_remove(0),
            ..self.clone()
        })
    }
}

/// Plans [`ProbeNode`] as [`ProbeExec`].
#[derive(Debug)]
pub struct ProbePlanner;

#[async_trait]
impl ExtensionPlanner for ProbePlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<ProbeNode>() else {
            return Ok(None);
        };
        let exec = ProbeExec::try_new(Arc::clone(&inputs[0]), node.probe.clone())?;
        Ok(Some(Arc::new(exec)))
    }
}
