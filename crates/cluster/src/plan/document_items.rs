//! Work items of map 1: files of documents or their row groups, as rows of a table in memory.
//!
//! In Ballista 55, every task runs the whole of a custom leaf operator. But Ballista divides the partitions of a
//! DataFusion table among tasks, so the items are rows of such a table, with a partition for each slice.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use datafusion::common::plan_err;
use datafusion::error::Result;

/// A work item of map 1: a file of documents, or one of its row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentItem {
    /// Number, unique in the map.
    pub(crate) number: u32,
    pub(crate) file: String,
    /// Number of the file among those of the batch.
    pub(crate) file_number: u32,
    /// Size of the file in bytes when the client made the item.
    pub(crate) size: u64,
    /// Number of rows of the item, if the client knows it.
    pub(crate) rows: Option<u64>,
    /// Number of the row group; `None` for the whole file.
    pub(crate) row_group: Option<u32>,
}

impl DocumentItem {
    /// Returns the schema of a table of items.
    pub(crate) fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("number", DataType::UInt32, false),
            Field::new("file", DataType::Utf8, false),
            Field::new("file_number", DataType::UInt32, false),
            Field::new("row_group", DataType::UInt32, true),
            Field::new("size", DataType::UInt64, false),
            Field::new("rows", DataType::UInt64, true),
        ]))
    }

    /// Encodes items as rows.
    pub(crate) fn encode(items: &[Self]) -> Result<RecordBatch> {
        let numbers: UInt32Array = items.iter().map(|item| Some(item.number)).collect();
        let files: StringArray = items.iter().map(|item| Some(&item.file)).collect();
        let file_numbers: UInt32Array = items.iter().map(|item| Some(item.file_number)).collect();
        let groups: UInt32Array = items.iter().map(|item| item.row_group).collect();
        let sizes: UInt64Array = items.iter().map(|item| Some(item.size)).collect();
        let rows: UInt64Array = items.iter().map(|item| item.rows).collect();
        Ok(RecordBatch::try_new(
            Self::schema(),
            vec![
                Arc::new(numbers),
                Arc::new(files),
                Arc::new(file_numbers),
                Arc::new(groups),
                Arc::new(sizes),
                Arc::new(rows),
            ],
        )?)
    }

    /// Decodes rows into items.
    pub(crate) fn decode(batch: &RecordBatch) -> Result<Vec<Self>> {
        if batch.schema().fields() != Self::schema().fields() {
            return plan_err!("work items of map 1 have another schema");
        }
        let numbers = batch.column(0).as_primitive::<UInt32Type>();
        let files = batch.column(1).as_string::<i32>();
        let file_numbers = batch.column(2).as_primitive::<UInt32Type>();
        let groups = batch.column(3).as_primitive::<UInt32Type>();
        let sizes = batch.column(4).as_primitive::<UInt64Type>();
        let counts = batch.column(5).as_primitive::<UInt64Type>();
        let item = |row| Self {
            number: numbers.value(row),
            file: files.value(row).to_owned(),
            file_number: file_numbers.value(row),
            size: sizes.value(row),
            rows: counts.is_valid(row).then(|| counts.value(row)),
            row_group: groups.is_valid(row).then(|| groups.value(row)),
        };
        Ok((0..batch.num_rows()).map(item).collect())
    }
}
