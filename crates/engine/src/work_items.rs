//! Work items: the fingerprints to probe, as rows of a small table.
//!
//! An item is either a row group of a file of the archive, or a range of the batch's own distinct fingerprints, which are
//! probed for pairs inside the batch.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use archive::{Snapshot, TailFacts};
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Date32Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt as _;

/// The most distinct fingerprints of the batch in one item.
const WITHIN_STEP: u32 = 1 << 18;

/// A work item with its number in the run.
pub type Numbered = (u32, WorkItem);

/// Fingerprints that a partition probes in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkItem {
    /// A row group of a file of the archive.
    RowGroup {
        /// Path or URL of the file.
        file: String,
        /// Its size in bytes.
        size: u64,
        /// Number of the row group.
        row_group: u32,
        /// Day of its rows, in days since 1970.
        day: Option<i32>,
        /// Part of the batch to probe with.
        part: u32,
        /// Encoded bytes of its fingerprints.
        bytes: u64,
        /// What the archive's log records about the file's tail.
        facts: TailFacts,
    },
    /// The distinct fingerprints `first..end` of the batch, compared with the batch.
    Within {
        /// The first.
        first: u32,
        /// One past the last.
        end: u32,
        /// Part of the batch to probe with.
        part: u32,
    },
}

impl WorkItem {
    /// Its cost relative to other items, in bytes.
    #[must_use]
    pub fn weight(&self) -> u64 {
        match self {
            Self::RowGroup { bytes, .. } => *bytes,
            // An encoded fingerprint takes about 5 bytes.
            Self::Within { first, end, .. } => u64::from(end - first) * 5,
        }
    }

    /// Whether its bytes are in a store.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::RowGroup { file, .. } if file.contains("://"))
    }

    /// Bytes to fetch for it.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::RowGroup { bytes, .. } => *bytes,
            Self::Within { .. } => 0,
        }
    }
}

/// Schema of a table of work items.
#[must_use]
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("number", DataType::UInt32, false),
        Field::new("file", DataType::Utf8, true),
        Field::new("size", DataType::UInt64, true),
        Field::new("row_group", DataType::UInt32, true),
        Field::new("day", DataType::Date32, true),
        Field::new("first", DataType::UInt32, true),
        Field::new("end", DataType::UInt32, true),
        Field::new("part", DataType::UInt32, false),
        Field::new("bytes", DataType::UInt64, false),
        Field::new("facts", DataType::Utf8, true),
    ]))
}

/// The items of a run: for each part of the batch, every row group of `snapshot` and, if `within`, the batch's `distinct`
/// fingerprints.
#[must_use]
pub fn of_run(snapshot: &Snapshot, within: bool, distinct: usize, parts: u32) -> Vec<WorkItem> {
    (0..parts)
        .flat_map(|part| of_part(snapshot, within, distinct, part))
        .collect()
}

fn of_part(snapshot: &Snapshot, within: bool, distinct: usize, part: u32) -> Vec<WorkItem> {
    let row_groups = snapshot.files.iter().flat_map(|file| {
        (0..file.reader.row_groups().len()).map(move |row_group| WorkItem::RowGroup {
            file: file.location.given().to_owned(),
            size: file.size,
            row_group: row_group as u32,
            day: file.day.map(days_since_epoch),
            part,
            bytes: file.reader.fingerprint_bytes(row_group),
            facts: file.facts.clone(),
        })
    });
    let distinct = if within { distinct as u32 } else { 0 };
    let within = (0..distinct)
        .step_by(WITHIN_STEP as usize)
        .map(|first| WorkItem::Within {
            first,
            end: distinct.min(first.saturating_add(WITHIN_STEP)),
            part,
        });
    // The batch first: it is in memory, and is probed while the first row groups are fetched.
    within.chain(row_groups).collect()
}

/// Numbers the items, so that their answers can be counted.
#[must_use]
pub fn numbered(items: Vec<WorkItem>) -> Vec<Numbered> {
    (0..).zip(items).collect()
}

/// Days since 1970.
#[must_use]
pub fn days_since_epoch(day: chrono::NaiveDate) -> i32 {
    Date32Type::from_naive_date(day)
}

/// The items as a table whose partitions take from one queue, so that all are busy to the end. It can be read once.
///
/// # Errors
/// None in practice: the streams have the schema of the table.
pub fn table(items: Vec<WorkItem>, partitions: usize) -> Result<StreamingTable> {
    let partitions = partitions.clamp(1, items.len().max(1));
    let queue = Arc::new(Mutex::new(numbered(items).into_iter()));
    let streams = (0..partitions)
        .map(|_| Arc::new(Queue(Arc::clone(&queue))) as Arc<dyn PartitionStream>)
        .collect();
    StreamingTable::try_new(schema(), streams)
}

/// A partition of the table of items. It takes them from a queue that all partitions share.
#[derive(Debug)]
struct Queue(Arc<Mutex<std::vec::IntoIter<Numbered>>>);

impl PartitionStream for Queue {
    fn schema(&self) -> &SchemaRef {
        static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(schema);
        &SCHEMA
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let queue = Arc::clone(&self.0);
        let next = move || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let items = futures::stream::iter(std::iter::from_fn(next));
        let rows = items.map(|item| encode(&[item]));
        Box::pin(RecordBatchStreamAdapter::new(schema(), rows))
    }
}

/// Encodes the items as a record batch of [`schema`].
///
/// # Errors
/// None in practice.
pub fn encode(items: &[Numbered]) -> Result<RecordBatch> {
    let (numbers, items): (Vec<u32>, Vec<&WorkItem>) =
        items.iter().map(|(number, item)| (*number, item)).unzip();
    let within = |item: &WorkItem| match item {
        WorkItem::RowGroup { .. } => None,
        WorkItem::Within { first, end, .. } => Some((*first, *end)),
    };
    let facts: Result<Vec<Option<String>>> = items.iter().map(|item| facts_json(item)).collect();
    let part = |item: &WorkItem| match item {
        WorkItem::RowGroup { part, .. } | WorkItem::Within { part, .. } => *part,
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(numbers)),
        Arc::new(
            items
                .iter()
                .map(|i| row_group_of(i).map(|s| s.0))
                .collect::<StringArray>(),
        ),
        Arc::new(
            items
                .iter()
                .map(|i| row_group_of(i).map(|s| s.1))
                .collect::<UInt64Array>(),
        ),
        Arc::new(
            items
                .iter()
                .map(|i| row_group_of(i).map(|s| s.2))
                .collect::<UInt32Array>(),
        ),
        Arc::new(
            items
                .iter()
                .map(|i| row_group_of(i).and_then(|s| s.3))
                .collect::<Date32Array>(),
        ),
        Arc::new(
            items
                .iter()
                .map(|i| within(i).map(|w| w.0))
                .collect::<UInt32Array>(),
        ),
        Arc::new(
            items
                .iter()
                .map(|i| within(i).map(|w| w.1))
                .collect::<UInt32Array>(),
        ),
        Arc::new(items.iter().map(|i| Some(part(i))).collect::<UInt32Array>()),
        Arc::new(
            items
                .iter()
                .map(|i| Some(i.bytes()))
                .collect::<UInt64Array>(),
        ),
        Arc::new(facts?.into_iter().collect::<StringArray>()),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// File, size, number and day of a row group; `None` for other items.
fn row_group_of(item: &WorkItem) -> Option<(&str, u64, u32, Option<i32>)> {
    match item {
        WorkItem::RowGroup {
            file,
            size,
            row_group,
            day,
            ..
        } => Some((file, *size, *row_group, *day)),
        WorkItem::Within { .. } => None,
    }
}

/// The facts about a row group's file as JSON; `None` if there are none.
fn facts_json(item: &WorkItem) -> Result<Option<String>> {
    match item {
        WorkItem::RowGroup { facts, .. } if *facts != TailFacts::default() => {
            let text = serde_json::to_string(facts);
            text.map(Some)
                .map_err(|error| DataFusionError::External(error.into()))
        }
        _ => Ok(None),
    }
}

/// Decodes the items in a record batch of [`schema`].
///
/// # Errors
/// When the record batch has another schema, or a row is neither a row group nor a range.
pub fn decode(batch: &RecordBatch) -> Result<Vec<Numbered>> {
    if batch.schema().fields() != schema().fields() {
        return Err(DataFusionError::Plan(
            "work items have another schema".into(),
        ));
    }
    let column = |name: &str| {
        let column = batch.column_by_name(name);
        column.ok_or_else(|| DataFusionError::Plan(format!("work items have no column {name:?}")))
    };
    let numbers = column("number")?.as_primitive::<UInt32Type>();
    let files = column("file")?.as_string::<i32>();
    let sizes = column("size")?.as_primitive::<UInt64Type>();
    let groups = column("row_group")?.as_primitive::<UInt32Type>();
    let days = column("day")?.as_primitive::<Date32Type>();
    let firsts = column("first")?.as_primitive::<UInt32Type>();
    let ends = column("end")?.as_primitive::<UInt32Type>();
    let parts = column("part")?.as_primitive::<UInt32Type>();
    let bytes = column("bytes")?.as_primitive::<UInt64Type>();
    let facts = column("facts")?.as_string::<i32>();
    let read_facts = |row| match facts.is_valid(row) {
        true => serde_json::from_str(facts.value(row))
            .map_err(|error| DataFusionError::Plan(format!("work item {row}: {error}"))),
        false => Ok(TailFacts::default()),
    };
    let item = |row| match (files.is_valid(row), firsts.is_valid(row)) {
        (true, false) => Ok(WorkItem::RowGroup {
            file: files.value(row).to_owned(),
            size: sizes.value(row),
            row_group: groups.value(row),
            day: days.is_valid(row).then(|| days.value(row)),
            part: parts.value(row),
            bytes: bytes.value(row),
            facts: read_facts(row)?,
        }),
        (false, true) => Ok(WorkItem::Within {
            first: firsts.value(row),
            end: ends.value(row),
            part: parts.value(row),
        }),
        _ => Err(DataFusionError::Plan(format!(
            "work item {row} is neither a row group nor a range"
        ))),
    };
    (0..batch.num_rows())
        .map(|row| Ok((numbers.value(row), item(row)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_survive_the_table() {
        let items = vec![
            WorkItem::RowGroup {
                file: "a b,\n.parquet".into(),
                size: 9,
                row_group: 3,
                day: Some(20_000),
                part: 0,
                bytes: 7,
                facts: TailFacts {
                    tail: "xxh3-4096:5:7:00000000000000ff:0000000000000001"
                        .parse()
                        .ok(),
                },
            },
            WorkItem::RowGroup {
                file: "c".into(),
                size: 0,
                row_group: 0,
                day: None,
                part: 3,
                bytes: 0,
                facts: TailFacts::default(),
            },
            WorkItem::Within {
                first: 5,
                end: 7,
                part: 1,
            },
        ];
        let items = numbered(items);
        assert_eq!(decode(&encode(&items).unwrap()).unwrap(), items);
        let other = encode(&items).unwrap().project(&[0, 1]).unwrap();
        assert!(decode(&other).is_err());
    }
}
