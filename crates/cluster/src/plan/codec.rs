//! Encodes our operators for Ballista's plans: a mark, then JSON. All other operators go to Ballista's own codec.
//!
//! Ballista's codec knows only Ballista's operators. The JSON begins with the version of the program, so that the error
//! for a plan of another version can name that version.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::{internal_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use engine::probe::{Probe, ProbeExec};
use serde::{Deserialize, Serialize};

use super::answer::AnswerExec;
use super::fingerprint::{FingerprintExec, FingerprintSettings};
use super::session;
use crate::wire::headers::VERSION;

/// First bytes of our operators; Ballista's operators are protobuf, which never begins with these bytes.
pub(crate) const MARK: &[u8] = b"\xffdedup-job\n";

/// Returns whether these are the bytes of one of our operators.
pub(crate) fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MARK)
}

/// Ballista's codec of physical plans, extended by our operators and functions.
#[derive(Debug, Default)]
pub struct Codec {
    ballista: BallistaPhysicalExtensionCodec,
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    /// Version of the program that encoded it.
    version: String,
    operator: Operator,
}

#[derive(Serialize, Deserialize)]
enum Operator {
    Answer {
        /// Name of the run.
        run: String,
    },
    Fingerprint(FingerprintSettings),
    Probe(Probe),
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(bytes) = bytes.strip_prefix(MARK) else {
            return self.ballista.try_decode(bytes, inputs, context, converter);
        };
        // Reads the version first: operators of another version may have other fields.
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        let bad =
            |error| DataFusionError::Plan(format!("an operator of dedup-job is damaged: {error}"));
        let Version { version } = serde_json::from_slice(bytes).map_err(bad)?;
        if version != VERSION {
            return plan_err!(
                "a plan of dedup-job {version} cannot be run by {VERSION}: all processes of a cluster, and its clients, must have the same version"
            );
        }
        let encoded: Encoded = serde_json::from_slice(bytes).map_err(bad)?;
        let [input] = inputs else {
            return plan_err!("an operator of dedup-job with {} inputs", inputs.len());
        };
        let input = Arc::clone(input);
        Ok(match encoded.operator {
            Operator::Answer { run } => Arc::new(AnswerExec::new(input, run)),
            Operator::Fingerprint(settings) => Arc::new(FingerprintExec::try_new(input, settings)?),
            Operator::Probe(probe) => Arc::new(ProbeExec::try_new(input, probe)?),
        })
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let operator = if let Some(answer) = node.downcast_ref::<AnswerExec>() {
            let run = answer.run_name().to_owned();
            Operator::Answer { run }
        } else if let Some(exec) = node.downcast_ref::<FingerprintExec>() {
            Operator::Fingerprint(exec.settings().clone())
        } else if let Some(exec) = node.downcast_ref::<ProbeExec>() {
            Operator::Probe(exec.probe().clone())
        } else {
            return self.ballista.try_encode(node, bytes, converter);
        };
        let encoded = Encoded {
            version: VERSION.to_owned(),
            operator,
        };
        bytes.extend_from_slice(MARK);
        match serde_json::to_writer(bytes, &encoded) {
            Ok(()) => Ok(()),
            Err(error) => internal_err!("an operator cannot be written: {error}"),
        }
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        match session::functions().remove(name) {
            Some(function) => Ok(function),
            None => self.ballista.try_decode_udf(name, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use archive::ColumnNames;
    use ballista_core::JobId;
    use ballista_core::execution_plans::ShuffleWriterExec;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::datasource::source::DataSourceExec;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_proto::physical_plan::{AsExecutionPlan as _, DefaultPhysicalProtoConverter};
    use datafusion_proto::protobuf::PhysicalPlanNode;
    use engine::batch::BatchRef;
    use engine::documents::Columns;
    use engine::work_items::{self, WorkItem};

    use super::*;
    use crate::sample_plans;

    fn probe() -> Probe {
        let sample = sample_plans::probe_settings();
        Probe {
            batch: BatchRef {
                location: "s3://crawl/scratch/\u{4e2d}.parquet".into(),
                bytes: u64::MAX,
                rows: 7,
                without_fingerprint: 1,
                bigint_ids: true,
                ..sample.batch
            },
            parts: 2,
            columns: ColumnNames::given_or_standard(Some("f"), None),
            ..sample
        }
    }

    fn settings() -> FingerprintSettings {
        FingerprintSettings {
            columns: Columns {
                text: Some("body".into()),
                ..Columns::default()
            },
            ..sample_plans::fingerprint_settings()
        }
    }

    /// Two partitions of work items.
    fn items() -> Arc<dyn ExecutionPlan> {
        let item = |number: u32| {
            let item = WorkItem::RowGroup {
                file: format!("s3://crawl/{number}.parquet"),
                size: 1,
                row_group: number,
                day: None,
                part: 0,
                bytes: 5,
                facts: archive::TailFacts::default(),
            };
            vec![work_items::encode(&[(number, item)]).unwrap()]
        };
        let table = MemorySourceConfig::try_new(&[item(0), item(1)], work_items::schema(), None);
        DataSourceExec::from_data_source(table.unwrap())
    }

    fn documents() -> Arc<dyn ExecutionPlan> {
        sample_plans::documents().unwrap()
    }

    /// Encodes and decodes a plan; fails unless it stays the same.
    fn round_trip(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let codec = Codec::default();
        let node = PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), &codec).unwrap();
        let mut bytes = Vec::new();
        node.try_encode(&mut bytes).unwrap();
        let node = PhysicalPlanNode::try_decode(&bytes).unwrap();
        let back = node.try_into_physical_plan(&TaskContext::default(), &codec);
        let back = back.unwrap();
        let shown =
            |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(true).to_string();
        assert_eq!(shown(plan), shown(&back));
        assert_eq!(plan.schema(), back.schema());
        back
    }

    #[test]
    fn our_operators_survive_a_round_trip() {
        let probe_exec = Arc::new(ProbeExec::try_new(items(), probe()).unwrap());
        let plan: Arc<dyn ExecutionPlan> = Arc::new(AnswerExec::new(probe_exec, "a run".into()));
        let back = round_trip(&plan);
        let answer = back.downcast_ref::<AnswerExec>().unwrap();
        assert_eq!(answer.run_name(), "a run");
        let probed = answer.children()[0].downcast_ref::<ProbeExec>().unwrap();
        assert_eq!(*probed.probe(), probe());

        let exec = Arc::new(FingerprintExec::try_new(documents(), settings()).unwrap());
        let plan: Arc<dyn ExecutionPlan> = Arc::new(AnswerExec::new(exec, "another".into()));
        let back = round_trip(&plan);
        let exec = back.children()[0]
            .downcast_ref::<FingerprintExec>()
            .unwrap();
        assert_eq!(*exec.settings(), settings());
    }

    #[test]
    fn ballistas_operators_around_ours_survive_a_round_trip() {
        let probe_exec = Arc::new(ProbeExec::try_new(items(), probe()).unwrap());
        let answer = Arc::new(AnswerExec::new(probe_exec, "a run".into()));
        let writer = ShuffleWriterExec::try_new(JobId::new("job"), 1, answer, String::new());
        round_trip(&(Arc::new(writer.unwrap()) as Arc<dyn ExecutionPlan>));
    }

    fn decode(bytes: &[u8], inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Arc<dyn ExecutionPlan>> {
        let converter = DefaultPhysicalProtoConverter {};
        Codec::default().try_decode(bytes, inputs, &TaskContext::default(), &converter)
    }

    fn encode(node: Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let converter = DefaultPhysicalProtoConverter {};
        Codec::default().try_encode(node, &mut bytes, &converter)?;
        Ok(bytes)
    }

    #[test]
    fn bad_bytes_are_refused() {
        let exec = Arc::new(ProbeExec::try_new(items(), probe()).unwrap());
        let bytes = encode(exec).unwrap();
        assert!(decode(&bytes, &[items()]).is_ok());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], &[items()]).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            // A damaged name may decode; what counts is that nothing panics.
            let _ = decode(&damaged, &[items()]);
        }
        // No input, too many, or one of another kind.
        assert!(decode(&bytes, &[]).is_err());
        assert!(decode(&bytes, &[items(), items()]).is_err());
        assert!(decode(&bytes, &[documents()]).is_err());
        let other = Arc::new(EmptyExec::new(work_items::schema()));
        assert!(encode(other).is_err());
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let exec = Arc::new(ProbeExec::try_new(items(), probe()).unwrap());
        let text = String::from_utf8_lossy(&encode(exec).unwrap()[MARK.len()..]).into_owned();
        let old = text.replace(&format!("{:?}", VERSION), "\"0.0.1\"");
        let newer = old.replace("Probe", "SomethingNew");
        for text in [old, newer] {
            let bytes = [MARK, text.as_bytes()].concat();
            let error = decode(&bytes, &[items()]).unwrap_err().to_string();
            assert!(
                error.contains("0.0.1") && error.contains(VERSION),
                "{error}"
            );
        }
    }

    #[test]
    fn our_functions_are_found_by_name() {
        let codec = Codec::default();
        assert_eq!(
            codec
                .try_decode_udf("hamming_distance", &[])
                .unwrap()
                .name(),
            "hamming_distance"
        );
        assert!(codec.try_decode_udf("no_such_function", &[]).is_err());
    }
}
