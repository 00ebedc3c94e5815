//! Checks the bytes of a plan from another process before DataFusion and Ballista decode them.
//!
//! Their decoders trust the bytes. They allocate what a forged length claims, which ends the
//! process. They can also panic, and Ballista 55's executor decodes tasks where nothing catches a
//! panic. So [`CheckedNode`] refuses operators that our plans do not contain, before a decoder gets
//! them; [`super::operator_check`] then checks that the operators form one of our plans.

use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ballista_core::serde::protobuf::BallistaPhysicalPlanNode;
use ballista_core::serde::protobuf::ballista_physical_plan_node::PhysicalPlanType as Ballista;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use datafusion_proto::protobuf::{MemoryScanExecNode, PhysicalPlanNode};
use prost::Message as _;
use prost::bytes::BufMut;

use super::codec;
use crate::wire::ipc_check;

/// Limit on the depth of a plan, in operators; our tasks have four.
const MAX_DEPTH: usize = 16;

/// An encoded plan that passed the checks.
#[derive(Debug, Clone)]
pub(crate) struct CheckedNode(PhysicalPlanNode);

impl CheckedNode {
    /// Checks an encoded plan.
    ///
    /// # Errors
    /// A plan error that names the part that is not allowed.
    pub(crate) fn try_new(node: PhysicalPlanNode) -> Result<Self> {
        match check(&node) {
            Ok(()) => Ok(Self(node)),
            Err(reason) => plan_err!("{reason}"),
        }
    }
}

impl AsExecutionPlan for CheckedNode {
    fn try_decode(bytes: &[u8]) -> Result<Self> {
        Self::try_new(PhysicalPlanNode::try_decode(bytes)?)
    }

    fn try_encode<B: BufMut>(&self, bytes: &mut B) -> Result<()> {
        self.0.try_encode(bytes)
    }

    fn try_into_physical_plan(
        &self,
        context: &TaskContext,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            self.0.try_into_physical_plan(context, codec)
        }));
        decoded.unwrap_or_else(|_| plan_err!("a damaged plan: its decoder panicked"))
    }

    fn try_from_physical_plan(
        plan: Arc<dyn ExecutionPlan>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<Self> {
        PhysicalPlanNode::try_from_physical_plan(plan, codec).map(Self)
    }
}

/// Checks that a plan is a chain of known operators over a table of work items.
fn check(mut node: &PhysicalPlanNode) -> Result<(), String> {
    for _ in 0..MAX_DEPTH {
        match &node.physical_plan_type {
            Some(PhysicalPlanType::Extension(operator)) => {
                check_operator(&operator.node)?;
                let [input] = &operator.inputs[..] else {
                    return Err(format!(
                        "an operator with {} inputs where one belongs",
                        operator.inputs.len()
                    ));
                };
                node = input;
            }
            Some(PhysicalPlanType::MemoryScan(items)) => return check_items(items),
            Some(other) => return Err(misplaced(other)),
            None => return Err("an operator of an unknown kind".into()),
        }
    }
    Err(format!("operators nested deeper than {MAX_DEPTH}"))
}

/// Checks that an operator is one of ours, or the writer that Ballista puts on top.
fn check_operator(bytes: &[u8]) -> Result<(), String> {
    if codec::is_ours(bytes) {
        return Ok(());
    }
    let operator = BallistaPhysicalPlanNode::decode(bytes)
        .map_err(|error| format!("an operator that is damaged: {error}"))?;
    match operator.physical_plan_type {
        Some(Ballista::ShuffleWriter(_)) => Ok(()),
        Some(other) => Err(misplaced(&other)),
        None => Err("an operator of an unknown kind".into()),
    }
}

/// Checks the encoded rows of a table of work items, and that the table has neither a projection nor an order.
fn check_items(items: &MemoryScanExecNode) -> Result<(), String> {
    if !items.projection.is_empty() || !items.sort_information.is_empty() {
        return Err("a table of work items with a projection or an order".into());
    }
    for (number, rows) in items.partitions.iter().enumerate() {
        ipc_check::check(rows)
            .map_err(|reason| format!("slice {number} of the work items: {reason}"))?;
    }
    Ok(())
}

fn misplaced(kind: &impl fmt::Debug) -> String {
    format!(
        "{} where an operator of dedup-job belongs",
        variant_name(kind)
    )
}

/// Returns the name of an enum's variant without its fields, which may be a whole plan.
fn variant_name(variant: &impl fmt::Debug) -> String {
    struct Name(String);

    impl fmt::Write for Name {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let end = text.find(|letter: char| !letter.is_alphanumeric());
            self.0.push_str(&text[..end.unwrap_or(text.len())]);
            // An error makes `write!` stop.
            end.map_or(Ok(()), |_| Err(fmt::Error))
        }
    }

    let mut name = Name(String::new());
    let _ = write!(name, "{variant:?}");
    name.0
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::UnresolvedShuffleExecNode;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_proto::physical_plan::PhysicalProtoConverterExtension;
    use datafusion_proto::protobuf::PhysicalExtensionNode;
    use engine::work_items;

    use super::*;
    use crate::plan::codec::{Codec, MARK};
    use crate::sample_plans;
    use crate::wire::ipc_check::tests::with_body_length;

    fn encoded(plan: Arc<dyn ExecutionPlan>) -> PhysicalPlanNode {
        PhysicalPlanNode::try_from_physical_plan(plan, &Codec::default()).unwrap()
    }

    fn scan() -> MemoryScanExecNode {
        let node = encoded(sample_plans::documents().unwrap());
        match node.physical_plan_type {
            Some(PhysicalPlanType::MemoryScan(scan)) => scan,
            other => panic!("{other:?}"),
        }
    }

    fn node(kind: PhysicalPlanType) -> PhysicalPlanNode {
        PhysicalPlanNode {
            physical_plan_type: Some(kind),
        }
    }

    fn items() -> PhysicalPlanNode {
        node(PhysicalPlanType::MemoryScan(scan()))
    }

    fn operator(bytes: &[u8], inputs: Vec<PhysicalPlanNode>) -> PhysicalPlanNode {
        node(PhysicalPlanType::Extension(PhysicalExtensionNode {
            node: bytes.to_vec(),
            inputs,
        }))
    }

    /// Returns why an executor would not decode the plan.
    fn refusal(node: &PhysicalPlanNode) -> String {
        let mut bytes = Vec::new();
        node.try_encode(&mut bytes).unwrap();
        CheckedNode::try_decode(&bytes).unwrap_err().to_string()
    }

    /// Fault 47 (docs/faults.md), a process that is not ours: a task that makes a library allocate
    /// 32 TiB would end the process.
    #[test]
    fn a_forged_length_is_refused() {
        let mut forged = scan();
        forged.partitions[0] = with_body_length(&forged.partitions[0], 1 << 45);
        let forged = node(PhysicalPlanType::MemoryScan(forged));
        for plan in [forged.clone(), operator(MARK, vec![forged])] {
            let reason = refusal(&plan);
            assert!(
                reason.contains("slice 0") && reason.contains("35184372088832"),
                "{reason}"
            );
        }
    }

    /// Fault 47 (docs/faults.md): operators that our plans never contain are not decoded.
    #[test]
    fn foreign_operators_are_refused_by_name() {
        let empty = encoded(Arc::new(EmptyExec::new(work_items::schema())));
        let shuffle = BallistaPhysicalPlanNode {
            physical_plan_type: Some(Ballista::UnresolvedShuffle(
                UnresolvedShuffleExecNode::default(),
            )),
        };
        let mut projected = scan();
        projected.projection = vec![0; 9];
        let cases = [
            (empty.clone(), "Empty where"),
            (operator(MARK, vec![empty]), "Empty where"),
            (
                operator(&shuffle.encode_to_vec(), vec![items()]),
                "UnresolvedShuffle where",
            ),
            (operator(b"\xff\xff", vec![items()]), "damaged"),
            (operator(b"", vec![items()]), "unknown kind"),
            (PhysicalPlanNode::default(), "unknown kind"),
            (operator(MARK, Vec::new()), "0 inputs"),
            (operator(MARK, vec![items(), items()]), "2 inputs"),
            (node(PhysicalPlanType::MemoryScan(projected)), "projection"),
        ];
        for (plan, named) in cases {
            let reason = refusal(&plan);
            assert!(reason.contains(named), "{named}: {reason}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let nested =
            |depth: usize| (1..depth).fold(items(), |input, _| operator(MARK, vec![input]));
        CheckedNode::try_new(nested(MAX_DEPTH)).unwrap();
        let reason = refusal(&nested(MAX_DEPTH + 1));
        assert!(reason.contains("deeper than 16"), "{reason}");
    }

    /// A codec that panics, as those of libraries do on some damaged plans.
    #[derive(Debug)]
    struct Panicking;

    impl PhysicalExtensionCodec for Panicking {
        fn try_decode(
            &self,
            _: &[u8],
            _: &[Arc<dyn ExecutionPlan>],
            _: &TaskContext,
            _: &dyn PhysicalProtoConverterExtension,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            panic!("a decoder's panic, which the test expects")
        }

        fn try_encode(
            &self,
            _: Arc<dyn ExecutionPlan>,
            _: &mut Vec<u8>,
            _: &dyn PhysicalProtoConverterExtension,
        ) -> Result<()> {
            plan_err!("it decodes only")
        }
    }

    /// Fault 47 (docs/faults.md): an uncaught panic would end Ballista's executor.
    #[test]
    fn a_decoders_panic_is_an_error() {
        let plan = CheckedNode::try_new(operator(MARK, vec![items()])).unwrap();
        let decoded = plan.try_into_physical_plan(&TaskContext::default(), &Panicking);
        let error = decoded.unwrap_err().to_string();
        assert!(error.contains("panicked"), "{error}");
    }
}
