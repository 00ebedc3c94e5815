//! Reads outputs of pairs and of decisions, of this run or of an earlier one.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use archive::ArchiveError;
use archive::checked_pages::{CheckedRowGroups, FileParts};
use archive::schema::ID;
use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Field, Float64Type, Int32Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::file::metadata::ParquetMetaDataReader;
use storage::Location;

use super::existing::kind_by_columns;
use super::target::OutputFormat;
use super::{OutputKind, encode};
use crate::decide::{DUPLICATE_DAY, DUPLICATE_OF};
use crate::error::{EngineError, Result};
use crate::pairs::{BASE_DAY, BASE_ID, DISTANCE, NEW_ID, SIMILARITY};

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8192;

/// A row of an output: of pairs, a pair; of decisions, a duplicate and its kept document.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadPair {
    /// The document of the batch; a number in decimal.
    pub new_id: String,
    /// The other document; a number in decimal.
    pub base_id: String,
    /// Bits in which the fingerprints differ.
    pub distance: i32,
    /// Day of the other document, in days since 1970.
    pub base_day: Option<i32>,
    /// The similarity, if it is known.
    pub similarity: Option<f64>,
}

/// Calls `each` with the pairs of the output at `location`, in its order: a file of pairs, or of decisions.
///
/// # Errors
/// [`EngineError`] when it cannot be read, or is no such output.
pub async fn read_pairs(location: &Location, mut each: impl FnMut(ReadPair)) -> Result<()> {
    let name = location.to_string();
    let format = OutputFormat::from_name(&location.file_name());
    let format = format.ok_or_else(|| not_pairs(&name))?;
    let bytes = location.read().await?;
    match format {
        OutputFormat::Parquet => {
            // The Parquet library panics on some forged pages.
            let read = catch_unwind(AssertUnwindSafe(|| read_parquet(&name, bytes, &mut each)));
            read.unwrap_or_else(|_| Err(damaged(&name)))
        }
        OutputFormat::Csv => {
            let header = bytes
                .split(|&byte| byte == b'\n')
                .next()
                .unwrap_or_default();
            let header = String::from_utf8_lossy(header);
            let names: Vec<&str> = header.trim_end().split(',').collect();
            let schema = text_schema(&name, &names)?;
            let reader = arrow::csv::ReaderBuilder::new(schema).with_header(true);
            let reader = reader.build(Cursor::new(bytes));
            each_pair(
                &name,
                reader.map_err(|e| encode::arrow_error(&name, e))?,
                &mut each,
            )
        }
        OutputFormat::JsonLines => {
            if bytes.is_empty() {
                return Ok(());
            }
            let first = bytes
                .split(|&byte| byte == b'\n')
                .next()
                .unwrap_or_default();
            let first: serde_json::Map<String, serde_json::Value> =
                serde_json::from_slice(first).map_err(|_| not_pairs(&name))?;
            let names: Vec<&str> = first.keys().map(String::as_str).collect();
            let schema = text_schema(&name, &names)?;
            let reader = arrow::json::ReaderBuilder::new(schema).with_coerce_primitive(true);
            let reader = reader.build(Cursor::new(bytes));
            each_pair(
                &name,
                reader.map_err(|e| encode::arrow_error(&name, e))?,
                &mut each,
            )
        }
    }
}

fn read_parquet(name: &str, bytes: Bytes, each: &mut impl FnMut(ReadPair)) -> Result<()> {
    let failed = |error| EngineError::from(ArchiveError::parquet(name)(error));
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes);
    let metadata = Arc::new(metadata.map_err(failed)?);
    let fields = metadata
        .file_metadata()
        .schema_descr()
        .root_schema()
        .get_fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    check_columns(name, &names)?;
    let groups = 0..metadata.num_row_groups();
    let groups = CheckedRowGroups::new(FileParts::whole(bytes), Arc::clone(&metadata), groups);
    let reader = groups
        .read(ProjectionMask::all(), BATCH_ROWS, None)
        .map_err(failed)?;
    each_pair(name, reader, each)
}

/// Refuses columns that are neither those of pairs nor of decisions.
fn check_columns(name: &str, columns: &[&str]) -> Result<()> {
    match kind_by_columns(columns) {
        Some(OutputKind::Pairs | OutputKind::Decisions) => Ok(()),
        _ => Err(not_pairs(name)),
    }
}

/// The schema of rows of text: the columns that pairs need by their types, others as text.
fn text_schema(name: &str, columns: &[&str]) -> Result<SchemaRef> {
    check_columns(name, columns)?;
    let field = |column: &&str| {
        let data_type = match *column {
            DISTANCE => DataType::Int32,
            SIMILARITY => DataType::Float64,
            BASE_DAY | DUPLICATE_DAY => DataType::Date32,
            _ => DataType::Utf8,
        };
        Field::new(*column, data_type, true)
    };
    let fields: Vec<Field> = columns.iter().map(field).collect();
    Ok(Arc::new(Schema::new(fields)))
}

fn each_pair(
    name: &str,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    each: &mut impl FnMut(ReadPair),
) -> Result<()> {
    for batch in batches {
        let batch = batch.map_err(|error| encode::arrow_error(name, error))?;
        let is_decisions = batch.column_by_name(DUPLICATE_OF).is_some();
        let [new, base, day] = match is_decisions {
            true => [ID, DUPLICATE_OF, DUPLICATE_DAY],
            false => [NEW_ID, BASE_ID, BASE_DAY],
        };
        let column = |column: &str| batch.column_by_name(column).ok_or_else(|| not_pairs(name));
        let text = |name: &str| -> Result<_> {
            let ids = arrow::compute::cast(column(name)?, &DataType::Utf8);
            ids.map_err(|error| encode::arrow_error(name, error))
        };
        let (new, base) = (text(new)?, text(base)?);
        let (new, base) = (new.as_string::<i32>(), base.as_string::<i32>());
        let distances = column(DISTANCE)?.as_primitive_opt::<Int32Type>();
        let days = column(day)?.as_primitive_opt::<Date32Type>();
        let (Some(distances), Some(days)) = (distances, days) else {
            return Err(not_pairs(name));
        };
        let similarities = batch.column_by_name(SIMILARITY);
        let similarities = similarities.and_then(|column| column.as_primitive_opt::<Float64Type>());
        for row in
            (0..batch.num_rows()).filter(|&row| base.is_valid(row) && distances.is_valid(row))
        {
            let known = similarities.filter(|similarities| similarities.is_valid(row));
            each(ReadPair {
                new_id: new.value(row).to_owned(),
                base_id: base.value(row).to_owned(),
                distance: distances.value(row),
                base_day: days.is_valid(row).then(|| days.value(row)),
                similarity: known.map(|similarities| similarities.value(row)),
            });
        }
    }
    Ok(())
}

fn not_pairs(name: &str) -> EngineError {
    EngineError::BadData {
        object: name.to_owned(),
        reason: "neither pairs nor decisions of `dedup-job run`".into(),
    }
}

fn damaged(name: &str) -> EngineError {
    EngineError::BadData {
        object: name.to_owned(),
        reason: "the pages are damaged".into(),
    }
}
