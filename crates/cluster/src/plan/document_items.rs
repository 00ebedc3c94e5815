//! Work items of map 1: files of documents or their splits, as rows of a table in memory.
//!
//! In Ballista 55, every task runs the whole of a custom leaf operator. But Ballista divides the partitions of a
//! DataFusion table among tasks, so the items are rows of such a table, with a partition for each slice.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type, UInt64Type};
use datafusion::common::plan_err;
use datafusion::error::Result;
use engine::documents::Extent;

/// A work item of map 1: a file of documents, or a split of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentItem {
    /// Number, unique in the map.
    pub(crate) number: u32,
    pub(crate) file: String,
    /// Number that positions have for it: of its part of the file among all parts of all files.
    pub(crate) part_number: u32,
    /// Size of the file in bytes when the client made the item.
    pub(crate) size: u64,
    /// Number of rows of the item, if the client knows it.
    pub(crate) rows: Option<u64>,
    /// What it has of the file.
    pub(crate) extent: Extent,
}

impl DocumentItem {
    /// Returns the schema of a table of items.
    pub(crate) fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("number", DataType::UInt32, false),
            Field::new("file", DataType::Utf8, false),
            Field::new("part_number", DataType::UInt32, false),
            Field::new("row_group", DataType::UInt64, true),
            Field::new("start", DataType::UInt64, true),
            Field::new("end", DataType::UInt64, true),
            Field::new("size", DataType::UInt64, false),
            Field::new("rows", DataType::UInt64, true),
        ]))
    }

    /// Encodes items as rows.
    pub(crate) fn encode(items: &[Self]) -> Result<RecordBatch> {
        let numbers: UInt32Array = items.iter().map(|item| Some(item.number)).collect();
        let files: StringArray = items.iter().map(|item| Some(&item.file)).collect();
        let part_numbers: UInt32Array = items.iter().map(|item| Some(item.part_number)).collect();
        let group = |item: &Self| match &item.extent {
            Extent::RowGroup(group) => Some(*group as u64),
            Extent::Whole | Extent::Bytes(_) => None,
        };
        let bytes = |item: &Self| match &item.extent {
            Extent::Bytes(bytes) => Some((bytes.start, bytes.end)),
            Extent::Whole | Extent::RowGroup(_) => None,
        };
        let groups: UInt64Array = items.iter().map(group).collect();
        let starts: UInt64Array = items.iter().map(|item| Some(bytes(item)?.0)).collect();
        let ends: UInt64Array = items.iter().map(|item| Some(bytes(item)?.1)).collect();
        let sizes: UInt64Array = items.iter().map(|item| Some(item.size)).collect();
        let rows: UInt64Array = items.iter().map(|item| item.rows).collect();
        Ok(RecordBatch::try_new(
            Self::schema(),
            vec![
                Arc::new(numbers),
                Arc::new(files),
                Arc::new(part_numbers),
                Arc::new(groups),
                Arc::new(starts),
                Arc::new(ends),
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
        let part_numbers = batch.column(2).as_primitive::<UInt32Type>();
        let [groups, starts, ends, sizes, counts] =
            [3, 4, 5, 6, 7].map(|column| batch.column(column).as_primitive::<UInt64Type>());
        let value = |of: &UInt64Array, row| of.is_valid(row).then(|| of.value(row));
        let extent = |row| match (value(groups, row), value(starts, row), value(ends, row)) {
            (None, None, None) => Ok(Extent::Whole),
            (Some(group), None, None) => Ok(Extent::RowGroup(group as usize)),
            (None, Some(start), Some(end)) if start <= end => Ok(Extent::Bytes(start..end)),
            _ => plan_err!("a work item of map 1 has no extent"),
        };
        let item = |row| {
            Ok(Self {
                number: numbers.value(row),
                file: files.value(row).to_owned(),
                part_number: part_numbers.value(row),
                size: sizes.value(row),
                rows: value(counts, row),
                extent: extent(row)?,
            })
        };
        (0..batch.num_rows()).map(item).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[test]
    fn items_of_every_extent_are_decoded() {
        let item = |number: u32, extent: Extent| DocumentItem {
            number,
            file: format!("{number}.warc.gz"),
            part_number: 10 + number,
            size: 100,
            rows: (number == 1).then_some(7),
            extent,
        };
        let items = [
            item(0, Extent::Whole),
            item(1, Extent::RowGroup(3)),
            item(2, Extent::Bytes(5..90)),
        ];
        let rows = DocumentItem::encode(&items).unwrap();
        assert_eq!(DocumentItem::decode(&rows).unwrap(), items);
        let wrong = Extent::Bytes(Range { start: 90, end: 5 });
        let rows = DocumentItem::encode(&[item(0, wrong)]).unwrap();
        assert!(DocumentItem::decode(&rows).is_err());
    }
}
