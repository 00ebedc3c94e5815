//! Entry points for fuzz targets into private code. Compiled only with `--cfg fuzzing`, see `.ci/fuzz`.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use archive::IdType;
use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray, new_null_array};
use arrow::datatypes::DataType;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion_proto::physical_plan::{
    AsExecutionPlan as _, DefaultPhysicalProtoConverter, PhysicalExtensionCodec as _,
};
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use datafusion_proto::protobuf::{PhysicalExtensionNode, PhysicalPlanNode};
use engine::map_counters::MapCounters;
use engine::progress::Progress;
use engine::work_items;
use futures::StreamExt as _;
use prost::bytes::Bytes;
use simhash::SketchBits;
use storage::ErrorKind;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

use crate::client::settle::{AnswerCheck, settle};
use crate::plan::codec::Codec;
use crate::plan::document_items::DocumentItem;
use crate::plan::encoded_check::CheckedNode;
use crate::plan::operator_check::{check_plan, check_task};
use crate::sample_plans::{self, Plan};
use crate::wire::headers::{self, Announcement, ClusterState, EXECUTOR, STATE, VERSION};
use crate::wire::receipt::Receipt;
use crate::wire::{answer as wire_answer, error_text};

static CONTEXT: LazyLock<TaskContext> = LazyLock::new(TaskContext::default);

/// Returns an encoded sample task, as an executor receives it.
///
/// # Errors
/// None in practice: the samples are valid.
pub fn sample_task() -> Result<Vec<u8>> {
    let task = sample_plans::task(sample_plans::answer_over(sample_plans::probe()?))?;
    let node = PhysicalPlanNode::try_from_physical_plan(task, &Codec::default())?;
    let mut bytes = Vec::new();
    node.try_encode(&mut bytes)?;
    Ok(bytes)
}

/// Decodes a task as an executor does, checks it, and decodes its items.
///
/// # Errors
/// The reason why it is refused.
pub fn read_task(bytes: &[u8]) -> Result<(), String> {
    let text = |error: DataFusionError| error.to_string();
    let node = CheckedNode::try_decode(bytes).map_err(text)?;
    let plan = node.try_into_physical_plan(&CONTEXT, &Codec::default());
    let plan = plan.map_err(text)?;
    check_task(plan.as_ref())?;
    read_items(&plan);
    Ok(())
}

/// Decodes the items of a plan, as its map does.
fn read_items(plan: &Plan) {
    if let Some(table) = plan.downcast_ref::<DataSourceExec>() {
        let source: &dyn std::any::Any = table.data_source().as_ref();
        let items = source.downcast_ref::<MemorySourceConfig>();
        for batch in items.iter().flat_map(|items| items.partitions()).flatten() {
            // The items belong to map 1 or to map 2; the decoder of the other map refuses them.
            let _ = work_items::decode(batch);
            let _ = DocumentItem::decode(batch);
        }
    }
    plan.children().into_iter().for_each(read_items);
}

/// Returns a sample of each of our operators, encoded: a mark that ends with a line feed, then JSON.
///
/// # Errors
/// None in practice.
pub fn sample_operators() -> Result<Vec<Vec<u8>>> {
    let operators = [
        sample_plans::answer_over(sample_plans::probe()?),
        sample_plans::fingerprint()?,
        sample_plans::probe()?,
    ];
    let encoded = operators.map(|operator| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let converter = DefaultPhysicalProtoConverter {};
        Codec::default().try_encode(operator, &mut bytes, &converter)?;
        Ok(bytes)
    });
    encoded.into_iter().collect()
}

/// Decodes an operator over each kind of input, and checks the resulting plan.
pub fn read_operator(bytes: &[u8]) {
    let codec = Codec::default();
    let inputs = [
        sample_plans::work_items(),
        sample_plans::documents(),
        sample_plans::probe(),
        sample_plans::fingerprint(),
    ];
    for input in inputs.into_iter().flatten() {
        let Ok(input) = PhysicalPlanNode::try_from_physical_plan(input, &codec) else {
            continue;
        };
        let operator = PhysicalExtensionNode {
            node: bytes.to_vec(),
            inputs: vec![input],
        };
        let node = CheckedNode::try_new(PhysicalPlanNode {
            physical_plan_type: Some(PhysicalPlanType::Extension(operator)),
        });
        let plan = node.and_then(|node| node.try_into_physical_plan(&CONTEXT, &codec));
        if let Ok(plan) = plan {
            // `check_plan` refuses most operators when they stand alone.
            let _ = check_plan(plan.as_ref());
        }
    }
}

/// Returns an encoded sample answer: a record batch of fingerprints, then the receipt.
///
/// # Errors
/// None in practice.
pub fn sample_answer() -> Result<Vec<u8>> {
    let rows = archive::schema::fingerprint_schema(IdType::String, SketchBits::None, true);
    let schema = wire_answer::answer_schema(&rows);
    let fingerprints: ArrayRef = Arc::new(Int64Array::from(vec![Some(-5), Some(7), None]));
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "bc", "\u{e9}"]));
    let receipts = new_null_array(&DataType::Utf8, 3);
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![fingerprints, ids, receipts])?;
    let receipt = Receipt {
        items: vec![0, 1],
        rows: 3,
        ..Receipt::default()
    };
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.write(&wire_answer::receipt_batch(&schema, &receipt)?)?;
    Ok(writer.into_inner()?)
}

/// Decodes an answer that arrives in two blocks, and accounts for it, as a run does.
///
/// # Errors
/// The reason why the answer counts as lost.
pub async fn read_answer(blocks: [Vec<u8>; 2]) -> Result<(), String> {
    let blocks = blocks.map(|block| Ok::<_, String>(Bytes::from(block)));
    let mut batches = wire_answer::decode(futures::stream::iter(blocks)).await?;
    let schema = archive::schema::fingerprint_schema(IdType::String, SketchBits::None, true);
    let mut check = AnswerCheck::default();
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|error| error.to_string())?;
        if let Some(rows) = check.add(&batch, &schema)? {
            let ids = rows.column(1).as_string::<i32>();
            let characters: usize = ids.iter().flatten().map(|id| id.chars().count()).sum();
            assert!(characters <= ids.value_data().len(), "ids are text");
        }
    }
    account(&check.finish()?);
    Ok(())
}

/// Settles a receipt, and adds it to a run's progress.
fn account(receipt: &Receipt) {
    let mut open = BTreeSet::from([0, 1, 2]);
    // An error means that some items of the receipt were answered before.
    let _ = settle(receipt, &mut open, true);
    receipt.count(&MapCounters::default());
    receipt.add_to(&Progress::default());
}

/// Returns a sample receipt as JSON.
#[must_use]
pub fn sample_receipt() -> String {
    serde_json::to_string(&Receipt::default()).unwrap_or_default()
}

/// Decodes a receipt, and accounts for it.
///
/// # Errors
/// An error when the text is no receipt.
pub fn read_receipt(text: &str) -> Result<(), String> {
    let rows = archive::schema::fingerprint_schema(IdType::String, SketchBits::None, true);
    let schema = wire_answer::answer_schema(&rows);
    let null = |column: usize| new_null_array(schema.field(column).data_type(), 1);
    let receipt: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![null(0), null(1), receipt]);
    let batch = batch.map_err(|error| error.to_string())?;
    if let (_, Some(receipt)) = wire_answer::split(&batch, &rows)? {
        account(&receipt);
    }
    Ok(())
}

/// Returns sample headers of an executor and of the scheduler, as JSON.
#[must_use]
pub fn sample_headers() -> [String; 2] {
    let announcement = Announcement {
        version: VERSION.into(),
        slots: 4,
        memory: 1 << 30,
    };
    let state = ClusterState {
        version: VERSION.into(),
        executors: 2,
        slots: 8,
        memory: 1 << 30,
        done: 3,
        began: Some(1_700_000_000_000),
        doomed: Some(7),
    };
    let encoded = |text: serde_json::Result<String>| text.unwrap_or_default();
    [
        encoded(serde_json::to_string(&announcement)),
        encoded(serde_json::to_string(&state)),
    ]
}

/// Decodes a header, once as an executor's and once as the scheduler's.
pub fn read_header(text: &str) {
    let Ok(value) = AsciiMetadataValue::try_from(text.to_owned()) else {
        return;
    };
    let mut headers = MetadataMap::new();
    headers.insert(EXECUTOR, value.clone());
    headers.insert(STATE, value);
    let announcement: Option<Announcement> = headers::get(&headers, EXECUTOR);
    let state: Option<ClusterState> = headers::get(&headers, STATE);
    // Formats both values, as log and error messages do.
    let _ = format!("{announcement:?} {state:?}");
}

/// Returns an error encoded as text.
#[must_use]
pub fn encoded_error(message: &str) -> String {
    error_text::encode(ErrorKind::Data, message)
}

/// Decodes an error that a text quotes.
pub fn read_error(text: &str) {
    let _ = error_text::decode(text);
    let _ = error_text::decode_wrong_cut(text);
}
