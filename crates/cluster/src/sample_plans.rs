//! Sample plans for tests and fuzz targets: both maps over a few work items, and plans that must be refused.

use std::sync::Arc;

use archive::{ColumnNames, TailFacts};
use arrow::array::RecordBatch;
use ballista_core::JobId;
use ballista_core::execution_plans::ShuffleWriterExec;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use engine::batch::BatchRef;
use engine::documents::{Columns, Extent};
use engine::probe::{Answer, CompareSketches, Originals, Probe, ProbeExec};
use engine::work_items::{self, WorkItem};
use simhash::Spec;

use crate::plan::answer::AnswerExec;
use crate::plan::document_items::DocumentItem;
use crate::plan::fingerprint::{FingerprintExec, FingerprintSettings};

pub(crate) type Plan = Arc<dyn ExecutionPlan>;

/// Returns a table of one partition with these rows.
fn in_memory(rows: RecordBatch) -> Result<Plan> {
    let schema = rows.schema();
    let table = MemorySourceConfig::try_new(&[vec![rows]], schema, None)?;
    Ok(DataSourceExec::from_data_source(table))
}

/// Returns a table of one work item of each kind.
pub(crate) fn work_items() -> Result<Plan> {
    let row_group = WorkItem::RowGroup {
        file: "s3://crawl/archive/a.parquet".into(),
        size: 9000,
        row_group: 0,
        day: Some(20_000),
        part: 0,
        bytes: 5000,
        facts: TailFacts {
            tail: "xxh3-4096:5:7:00000000000000ff:0000000000000001"
                .parse()
                .ok(),
        },
    };
    let within = WorkItem::Within {
        first: 0,
        end: 7,
        part: 0,
    };
    in_memory(work_items::encode(&[(0, row_group), (1, within)])?)
}

/// Returns a table of one work item of map 1.
pub(crate) fn documents() -> Result<Plan> {
    in_memory(DocumentItem::encode(&[DocumentItem {
        number: 3,
        file: "a.jsonl".into(),
        part_number: 2,
        size: 7,
        rows: Some(9),
        extent: Extent::Whole,
    }])?)
}

/// Returns the settings of map 2 in the sample plans.
pub(crate) fn probe_settings() -> Probe {
    Probe {
        batch: BatchRef {
            location: "s3://crawl/scratch/batch.parquet".into(),
            digest: "0123".into(),
            bytes: 1,
            rows: 1,
            without_fingerprint: 0,
            bigint_ids: false,
            spec: Spec::default(),
        },
        max_distance: 3,
        design: "choose-4".into(),
        parts: 1,
        max_hits: Some(9),
        day: Some(-1),
        columns: ColumnNames::given_or_standard(None, None),
        sketches: Some(CompareSketches { max_differing: 31 }),
        answer: Answer::ClassPairs(Originals::Nearest),
        kept_base: true,
    }
}

/// Returns the settings of map 1 in the sample plans.
pub(crate) fn fingerprint_settings() -> FingerprintSettings {
    FingerprintSettings {
        columns: Columns::default(),
        bigint_ids: false,
        spec: Spec::default(),
        spec_files: "s3://crawl/archive".into(),
        decision_columns: true,
    }
}

/// Returns map 2 over `items`.
fn probe_over(items: Plan) -> Result<Plan> {
    Ok(Arc::new(ProbeExec::try_new(items, probe_settings())?))
}

/// Returns map 1 over `documents`.
fn fingerprint_over(documents: Plan) -> Result<Plan> {
    let settings = fingerprint_settings();
    Ok(Arc::new(FingerprintExec::try_new(documents, settings)?))
}

/// Returns map 2 over [`work_items`].
pub(crate) fn probe() -> Result<Plan> {
    probe_over(work_items()?)
}

/// Returns map 1 over [`documents`].
pub(crate) fn fingerprint() -> Result<Plan> {
    fingerprint_over(documents()?)
}

/// Returns a plan: [`AnswerExec`] over `map`.
pub(crate) fn answer_over(map: Plan) -> Plan {
    Arc::new(AnswerExec::new(map, "a run".into()))
}

/// Returns the task that Ballista makes of a plan.
pub(crate) fn task(plan: Plan) -> Result<Plan> {
    let writer = ShuffleWriterExec::try_new(JobId::new("job"), 1, plan, String::new())?;
    Ok(Arc::new(writer))
}

/// Returns a whole plan of each map.
#[cfg(test)]
pub(crate) fn plans() -> Result<Vec<Plan>> {
    Ok(vec![answer_over(probe()?), answer_over(fingerprint()?)])
}

/// Returns plans that are not ours, each with the name of the operator that does not belong there.
#[cfg(test)]
pub(crate) fn foreign_plans() -> Result<Vec<(Plan, &'static str)>> {
    use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::{CsvSource, FileScanConfigBuilder};
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::empty::EmptyExec;

    /// Returns a scan of a file on the executor's machine.
    fn csv(schema: SchemaRef) -> Plan {
        let source = Arc::new(CsvSource::new(schema));
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_file(PartitionedFile::new("/etc/passwd".to_owned(), 1))
            .build();
        DataSourceExec::from_data_source(scan)
    }

    fn empty() -> Plan {
        Arc::new(EmptyExec::new(work_items::schema()))
    }

    fn coalesced(input: Plan) -> Plan {
        Arc::new(CoalescePartitionsExec::new(input))
    }

    let other = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true)]));
    let other_rows = in_memory(RecordBatch::new_empty(Arc::clone(&other)))?;
    Ok(vec![
        (csv(Arc::clone(&other)), "DataSourceExec"),
        (empty(), "EmptyExec"),
        // A map without `AnswerExec`.
        (probe()?, "ProbeExec"),
        // Work items that are not in the plan itself.
        (
            answer_over(probe_over(csv(work_items::schema()))?),
            "DataSourceExec",
        ),
        (answer_over(probe_over(empty())?), "EmptyExec"),
        (
            answer_over(fingerprint_over(csv(DocumentItem::schema()))?),
            "DataSourceExec",
        ),
        // `AnswerExec` over an operator that is no map.
        (answer_over(csv(other)), "DataSourceExec"),
        (answer_over(other_rows), "DataSourceExec"),
        // A foreign operator above, between and below ours.
        (coalesced(answer_over(probe()?)), "CoalescePartitionsExec"),
        (answer_over(coalesced(probe()?)), "CoalescePartitionsExec"),
        (
            answer_over(probe_over(coalesced(work_items()?))?),
            "CoalescePartitionsExec",
        ),
    ])
}
