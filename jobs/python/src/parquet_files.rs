//! Parquet files by which the package hands data to the program, and reads its results, without pyarrow.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use engine::documents::ID_NAMES;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::Failed;
use crate::export::Table;
use crate::import::Chunks;
use crate::interrupt::check_signals;

/// Rows of a row group. The program reads row groups in parallel, so a batch of some size has several.
const ROW_GROUP_ROWS: usize = 1 << 16;
/// Bytes of a row group, about.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Write an Arrow table, or a column, to a Parquet file; return the number of rows.
///
/// A column of texts becomes the column text, one of 64-bit integers the column fp. If row_ids is true and the table has
/// no column that the program would take for the ids, a column id with the row numbers is added.
#[pyfunction]
pub(crate) fn write_parquet(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    path: String,
    row_ids: bool,
) -> PyResult<u64> {
    let chunks = Chunks::open(object)?;
    let chunks = chunks.ok_or_else(|| PyTypeError::new_err("the object has no Arrow interface"))?;
    py.detach(|| write(chunks, &path, row_ids))
}

fn write(mut chunks: Chunks, path: &str, row_ids: bool) -> PyResult<u64> {
    let name = match chunks.field.data_type() {
        DataType::Int64 | DataType::UInt64 => archive::schema::FINGERPRINT,
        _ => "text",
    };
    let given = chunks.schema(name);
    let adds_ids = row_ids && !ID_NAMES.iter().any(|name| given.index_of(name).is_ok());
    let schema = match adds_ids {
        true => with_id_field(&given),
        false => Arc::clone(&given),
    };
    let properties = WriterProperties::builder()
        // These would cost time, and the file is read once.
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .build();
    let failed = |error| Failed::parquet(path, &error);
    let file = File::create_new(path).map_err(|error| Failed::io(path, &error))?;
    let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
    let mut writer = writer.map_err(failed)?;
    let mut rows = 0;
    while let Some(batch) = chunks.next_batch(&given)? {
        let count = batch.num_rows();
        let batch = match adds_ids {
            true => with_ids(&batch, rows, &schema)?,
            false => batch,
        };
        // A chunk may be the whole table: written in pieces, Ctrl-C stops it soon.
        for start in (0..count).step_by(ROW_GROUP_ROWS) {
            check_signals()?;
            let piece = batch.slice(start, ROW_GROUP_ROWS.min(count - start));
            writer.write(&piece).map_err(failed)?;
        }
        rows += count as u64;
    }
    writer.close().map_err(failed)?;
    Ok(rows)
}

/// The schema with a column of ids before all others.
fn with_id_field(schema: &SchemaRef) -> SchemaRef {
    let id = Arc::new(Field::new(archive::schema::ID, DataType::Int64, false));
    let fields = std::iter::once(id).chain(schema.fields().iter().cloned());
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows with their numbers, from `first` on, as ids.
fn with_ids(batch: &RecordBatch, first: u64, schema: &SchemaRef) -> Result<RecordBatch, Failed> {
    let numbers = (first as i64..).take(batch.num_rows());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    let columns = std::iter::once(ids).chain(batch.columns().iter().cloned());
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
}

/// Read a Parquet file.
#[pyfunction]
pub(crate) fn read_parquet(py: Python<'_>, path: String) -> PyResult<Table> {
    Ok(py.detach(|| read(&path))?)
}

fn read(path: &str) -> Result<Table, Failed> {
    let failed = |error| Failed::parquet(path, &error);
    let file = File::open(path).map_err(|error| Failed::io(path, &error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    let schema = Arc::clone(builder.schema());
    let rows = builder
        .with_batch_size(ROW_GROUP_ROWS)
        .build()
        .map_err(failed)?;
    let batches: Result<Vec<RecordBatch>, _> = rows.collect();
    Ok(Table::new(schema, batches?))
}
