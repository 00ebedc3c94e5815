//! Reads outputs of pairs and of decisions, of this run or of an earlier one.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archive::ArchiveError;
use archive::schema::ID;
use archive::validated_pages::{FileParts, ValidatedRowGroups};
use arrow::array::{ArrayAccessor, AsArray as _, RecordBatch};
use arrow::datatypes::{
    DataType, Date32Type, Field, Float64Type, Int32Type, Int64Type, Schema, SchemaRef,
};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::ParquetMetaDataReader;
use storage::Location;

use super::OutputKind;
use super::encode::arrow_error;
use super::existing::kind_by_columns;
use super::target::OutputFormat;
use crate::decide::{DUPLICATE_DAY, DUPLICATE_OF, GROUP_SIZE, KEPT};
use crate::error::{EngineError, Result};
use crate::pairs::{BASE_DAY, BASE_ID, DISTANCE, NEW_ID, SIMILARITY};

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8192;
/// Columns that go along to decisions, and say where a document is from; the first that is there counts.
const SITE_COLUMNS: [&str; 2] = ["host", "url"];
const READ_COLUMNS: [&str; 10] = [
    ID,
    KEPT,
    DUPLICATE_OF,
    DUPLICATE_DAY,
    NEW_ID,
    BASE_ID,
    BASE_DAY,
    DISTANCE,
    SIMILARITY,
    GROUP_SIZE,
];

/// A row of an output of pairs or of decisions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadRow<'a> {
    /// Id of the document of the batch; an integer id in decimal.
    pub id: &'a str,
    /// The pair that the row states; `None` if the row is the decision on a kept document.
    pub pair: Option<ReadPair<'a>>,
    /// The number of documents of the group, if the row is a decision.
    pub group_size: Option<i64>,
    /// The host or the URL of the document, if the row is a decision with one of these columns.
    pub site: Option<&'a str>,
}

/// The other document of a pair. In a decision, it is the kept document that a duplicate repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadPair<'a> {
    /// Id of the other document; an integer id in decimal.
    pub base_id: &'a str,
    /// Bits in which the fingerprints differ.
    pub distance: i32,
    /// Day of the other document, in days since 1970.
    pub base_day: Option<i32>,
    /// The similarity, if it is known.
    pub similarity: Option<f64>,
}

/// The most documents of a group.
const MOST_DOCUMENTS: i64 = 1 << 40;

impl ReadRow<'_> {
    /// Checks that an output can have these values.
    fn check(&self) -> std::result::Result<(), String> {
        if let Some(pair) = self.pair {
            if !(0..=64).contains(&pair.distance) {
                return Err(format!("a distance of {} bits", pair.distance));
            }
            if let Some(similarity) = pair.similarity.filter(|value| !(0.0..=1.0).contains(value)) {
                return Err(format!("a similarity of {similarity}"));
            }
        }
        match self.group_size {
            Some(size) if !(1..=MOST_DOCUMENTS).contains(&size) => {
                Err(format!("a group of {size} documents"))
            }
            _ => Ok(()),
        }
    }
}

/// Calls `each` with the rows of the output at `location`, in its order. Returns whether they are
/// pairs or decisions; `None` for an empty JSON Lines file, which does not say it.
pub async fn read_rows(
    location: &Location,
    mut each: impl FnMut(ReadRow<'_>),
) -> Result<Option<OutputKind>> {
    let name = location.to_string();
    let format = OutputFormat::from_name(&location.file_name());
    let format = format.ok_or_else(|| {
        let endings = OutputFormat::endings();
        let reason = format!("the name must end in {endings}, which says the format");
        EngineError::bad_data(&name, reason)
    })?;
    let bytes = location.read().await?;
    let first_line = || {
        bytes
            .split(|&byte| byte == b'\n')
            .next()
            .unwrap_or_default()
    };
    let kind = match format {
        OutputFormat::Parquet => {
            // The Parquet library panics on some forged pages.
            let read = catch_unwind(AssertUnwindSafe(|| read_parquet(&name, bytes, &mut each)));
            let damaged = |_| Err(EngineError::bad_data(&name, "the pages are damaged"));
            read.unwrap_or_else(damaged)
        }
        OutputFormat::Csv => {
            let header = String::from_utf8_lossy(first_line());
            let names: Vec<&str> = header.trim_end().split(',').collect();
            let (kind, schema) = text_schema(&name, &names)?;
            let reader = arrow::csv::ReaderBuilder::new(schema).with_header(true);
            let reader = reader.build(Cursor::new(bytes.clone()));
            each_row(&name, kind, reader.map_err(arrow_error(&name))?, &mut each)
        }
        // JSON Lines has the names of the columns in its rows only, and this file has no row.
        OutputFormat::JsonLines if bytes.is_empty() => return Ok(None),
        OutputFormat::JsonLines => {
            let first: serde_json::Map<String, serde_json::Value> =
                serde_json::from_slice(first_line()).map_err(|_| foreign(&name))?;
            let names: Vec<&str> = first.keys().map(String::as_str).collect();
            let (kind, schema) = text_schema(&name, &names)?;
            let reader = arrow::json::ReaderBuilder::new(schema).with_coerce_primitive(true);
            let reader = reader.build(Cursor::new(bytes.clone()));
            each_row(&name, kind, reader.map_err(arrow_error(&name))?, &mut each)
        }
    };
    kind.map(Some)
}

fn read_parquet(
    name: &str,
    bytes: Bytes,
    each: &mut impl FnMut(ReadRow<'_>),
) -> Result<OutputKind> {
    let failed = |error| EngineError::from(ArchiveError::parquet(name)(error));
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes);
    let metadata = Arc::new(metadata.map_err(failed)?);
    let schema = metadata.file_metadata().schema_descr();
    let fields = schema.root_schema().get_fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    let kind = kind(name, &names)?;
    let is_read = |name: &&str| READ_COLUMNS.contains(name) || SITE_COLUMNS.contains(name);
    let read = (0..names.len()).filter(|&column| is_read(&names[column]));
    let mask = ProjectionMask::roots(schema, read);
    let groups = 0..metadata.num_row_groups();
    let groups = ValidatedRowGroups::new(FileParts::whole(bytes), Arc::clone(&metadata), groups);
    let reader = groups.read(mask, BATCH_ROWS, None).map_err(failed)?;
    each_row(name, kind, reader, each)
}

/// The kind of an output with these columns; an error if it has neither pairs nor decisions.
fn kind(name: &str, columns: &[&str]) -> Result<OutputKind> {
    match kind_by_columns(columns) {
        Some(kind @ (OutputKind::Pairs | OutputKind::Decisions)) => Ok(kind),
        _ => Err(foreign(name)),
    }
}

/// The kind and the schema of rows of CSV or JSON Lines: ids and unknown columns are text.
fn text_schema(name: &str, columns: &[&str]) -> Result<(OutputKind, SchemaRef)> {
    let kind = kind(name, columns)?;
    let field = |column: &&str| {
        let data_type = match *column {
            DISTANCE => DataType::Int32,
            SIMILARITY => DataType::Float64,
            BASE_DAY | DUPLICATE_DAY => DataType::Date32,
            GROUP_SIZE => DataType::Int64,
            KEPT => DataType::Boolean,
            _ => DataType::Utf8,
        };
        Field::new(*column, data_type, true)
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    Ok((kind, Arc::new(Schema::new(fields))))
}

fn each_row(
    name: &str,
    kind: OutputKind,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    each: &mut impl FnMut(ReadRow<'_>),
) -> Result<OutputKind> {
    let [id, base, day] = match kind {
        OutputKind::Decisions => [ID, DUPLICATE_OF, DUPLICATE_DAY],
        _ => [NEW_ID, BASE_ID, BASE_DAY],
    };
    let mut number = 0_u64;
    for batch in batches {
        let batch = batch.map_err(arrow_error(name))?;
        let column = |column: &str| batch.column_by_name(column).ok_or_else(|| foreign(name));
        let text = |name_of: &str| -> Result<_> {
            let ids = arrow::compute::cast(column(name_of)?, &DataType::Utf8);
            ids.map_err(arrow_error(name))
        };
        let (ids, bases) = (text(id)?, text(base)?);
        let (ids, bases) = (ids.as_string::<i32>(), bases.as_string::<i32>());
        let distances = column(DISTANCE)?.as_primitive_opt::<Int32Type>();
        let days = column(day)?.as_primitive_opt::<Date32Type>();
        let (Some(distances), Some(days)) = (distances, days) else {
            return Err(foreign(name));
        };
        let similarities = batch.column_by_name(SIMILARITY);
        let similarities = similarities.and_then(|column| column.as_primitive_opt::<Float64Type>());
        let sizes = batch.column_by_name(GROUP_SIZE);
        let sizes = sizes.and_then(|column| column.as_primitive_opt::<Int64Type>());
        let kept = batch.column_by_name(KEPT);
        let kept = kept.and_then(|column| column.as_boolean_opt());
        let mut sites = SITE_COLUMNS.iter();
        let sites = sites.find_map(|name| batch.column_by_name(name));
        let sites = sites.and_then(|sites| arrow::compute::cast(sites, &DataType::Utf8).ok());
        let sites = sites.as_ref();
        let sites = sites.and_then(|sites| sites.as_string_opt::<i32>());
        for row in 0..batch.num_rows() {
            let is_dropped = kept.and_then(|kept| value(kept, row)) == Some(false);
            // In CSV, the empty id reads as null.
            let pair = value(distances, row).map(|distance| ReadPair {
                base_id: value(bases, row).unwrap_or_default(),
                distance,
                base_day: value(days, row),
                similarity: similarities.and_then(|similarities| value(similarities, row)),
            });
            let row = ReadRow {
                id: value(ids, row).unwrap_or_default(),
                pair,
                group_size: sizes.and_then(|sizes| value(sizes, row)),
                site: sites.and_then(|sites| value(sites, row)),
            };
            number += 1;
            if row.group_size == Some(0) && row.pair.is_none() && is_dropped {
                // An empty document: it is in no group.
                continue;
            }
            row.check()
                .map_err(|reason| EngineError::bad_data(name, format!("row {number}: {reason}")))?;
            each(row);
        }
    }
    Ok(kind)
}

/// The value of a row; `None` for null.
fn value<A: ArrayAccessor>(column: A, row: usize) -> Option<A::Item> {
    column.is_valid(row).then(|| column.value(row))
}

fn foreign(name: &str) -> EngineError {
    EngineError::bad_data(name, "neither pairs nor decisions of `dedup-job run`")
}
