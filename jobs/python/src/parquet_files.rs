//! Parquet files by which the package hands data to the program, and reads its results, without pyarrow.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int64Array, RecordBatch, RecordBatchOptions,
};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use documents::ID_NAMES;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::Failed;
use crate::import::Chunks;
use crate::interrupt::check_signals;
use crate::needed::Needed;
use crate::table::{Table, concat};

/// Rows of a row group. The program reads row groups in parallel, so a batch of some size has several.
const ROW_GROUP_ROWS: usize = 1 << 16;
/// Bytes of a row group, about.
const ROW_GROUP_BYTES: usize = 128 << 20;

/// Write the columns of an Arrow table that are needed, or an Arrow column, to a Parquet file; return the number of rows.
///
/// A column of texts becomes the column text, one of 64-bit integers the column fp. If row_ids is true and the table has
/// no column that the program would take for the ids, a column id with the row numbers is added.
#[pyfunction]
pub(crate) fn write_parquet(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    path: String,
    needed: Needed,
) -> PyResult<u64> {
    let chunks = Chunks::open(object)?;
    let chunks = chunks.ok_or_else(|| PyTypeError::new_err("the object has no Arrow interface"))?;
    py.detach(|| write(chunks, &path, &needed))
}

fn write(mut chunks: Chunks, path: &str, needed: &Needed) -> PyResult<u64> {
    let name = match chunks.field.data_type() {
        DataType::Int64 | DataType::UInt64 => archive::schema::FINGERPRINT,
        _ => "text",
    };
    let given = chunks.schema(name);
    let names: Vec<&str> = given
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let columns = needed.columns(&names);
    let selected = given.project(&columns).map_err(Failed::from)?;
    let adds_ids = needed.row_ids && !ID_NAMES.iter().any(|name| given.index_of(name).is_ok());
    let id = || Arc::new(Field::new(archive::schema::ID, DataType::Int64, false));
    let fields = adds_ids.then(id).into_iter();
    let fields = fields.chain(selected.fields().iter().map(unpacked));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let properties = WriterProperties::builder()
        // Level 1 takes little time, and texts much less space.
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
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
        let batch = batch.project(&columns).map_err(Failed::from)?;
        let batch = with_schema(&batch, &schema, rows)?;
        let count = batch.num_rows();
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

/// A field with plain values for dictionaries of string views, such as Polars' categories: the Parquet library panics on them.
fn unpacked(field: &FieldRef) -> FieldRef {
    use DataType::{BinaryView, Dictionary, FixedSizeList, LargeList, List, Struct, Utf8View};
    let data_type = match field.data_type() {
        Dictionary(_, values) if matches!(**values, Utf8View | BinaryView) => {
            DataType::clone(values)
        }
        List(item) => List(unpacked(item)),
        LargeList(item) => LargeList(unpacked(item)),
        FixedSizeList(item, length) => FixedSizeList(unpacked(item), *length),
        Struct(fields) => Struct(fields.iter().map(unpacked).collect()),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Rows with columns of the types of `schema`; if that has a column more, it comes first, with the numbers of the rows, from `first`
/// on.
fn with_schema(batch: &RecordBatch, schema: &SchemaRef, first: u64) -> Result<RecordBatch, Failed> {
    let count = batch.num_rows();
    let numbers = (first as i64..).take(count);
    let numbers = || Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef;
    let adds_ids = schema.fields().len() > batch.num_columns();
    let columns = adds_ids.then(numbers).into_iter();
    let columns = columns.chain(batch.columns().iter().cloned());
    let columns = columns.zip(schema.fields());
    let columns = columns.map(|(column, field)| arrow::compute::cast(&column, field.data_type()));
    let columns: Result<Vec<ArrayRef>, ArrowError> = columns.collect();
    let rows = RecordBatchOptions::new().with_row_count(Some(count));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns?, &rows);
    Ok(batch?)
}

/// Read a Parquet file.
///
/// With batch, the path of a Parquet file with a batch of documents, the rows, one for each document, come in the order of the
/// batch. id_column is the batch's column of ids; by default its first column with a common name of ids.
#[pyfunction]
#[pyo3(signature = (path, batch = None, id_column = None))]
pub(crate) fn read_parquet(
    py: Python<'_>,
    path: String,
    batch: Option<String>,
    id_column: Option<String>,
) -> PyResult<Table> {
    let table = py.detach(|| -> Result<Table, Failed> {
        let builder = open(&path)?;
        let schema = Arc::clone(builder.schema());
        let mut rows = read(&path, builder)?;
        if let Some(batch) = batch
            && let Some(ids) = read_ids(&batch, id_column.as_deref())?
        {
            rows = in_order_of(&ids, &rows)?;
        }
        Ok(Table::new(schema, rows))
    });
    Ok(table?)
}

fn open(path: &str) -> Result<ParquetRecordBatchReaderBuilder<File>, Failed> {
    let file = File::open(path).map_err(|error| Failed::io(path, &error))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| Failed::parquet(path, &error))
}

fn read(
    path: &str,
    builder: ParquetRecordBatchReaderBuilder<File>,
) -> Result<Vec<RecordBatch>, Failed> {
    let rows = builder.with_batch_size(ROW_GROUP_ROWS).build();
    let rows = rows.map_err(|error| Failed::parquet(path, &error))?;
    let batches: Result<Vec<RecordBatch>, ArrowError> = rows.collect();
    Ok(batches?)
}

/// The ids of the documents in a Parquet file, as texts; `None` if it has no column of ids.
fn read_ids(path: &str, id_column: Option<&str>) -> Result<Option<ArrayRef>, Failed> {
    let builder = open(path)?;
    let leaves = builder.parquet_schema().columns().iter();
    let leaves = leaves.map(|leaf| leaf.path().parts());
    let named = |name: &str| leaves.clone().position(|parts| parts == [name]);
    let at_path = |path: &str| {
        let is_at = |parts: &[String]| parts.iter().map(String::as_str).eq(path.split('.'));
        leaves.clone().position(is_at)
    };
    let found = match id_column {
        Some(name) => named(name).or_else(|| at_path(name)),
        None => ID_NAMES.iter().find_map(|name| named(name)),
    };
    let Some(leaf) = found else {
        return Ok(None);
    };
    let mask = ProjectionMask::leaves(builder.parquet_schema(), [leaf]);
    let rows = read(path, builder.with_projection(mask))?;
    ids_of(&rows).map(Some)
}

/// The first column, of ids, as texts in one piece; it may be in structures.
fn ids_of(rows: &[RecordBatch]) -> Result<ArrayRef, Failed> {
    let parts = rows.iter().map(|batch| {
        let mut ids = batch.column(0);
        while let Some(structures) = ids.as_struct_opt() {
            ids = structures.column(0);
        }
        arrow::compute::cast(ids, &DataType::LargeUtf8)
    });
    let parts: Result<Vec<ArrayRef>, ArrowError> = parts.collect();
    Ok(concat(&DataType::LargeUtf8, &parts?)?)
}

/// Rows, whose first column has the same ids as `ids`, in the order of `ids`. Of equal ids, the rows keep their order.
fn in_order_of(ids: &ArrayRef, rows: &[RecordBatch]) -> Result<Vec<RecordBatch>, Failed> {
    let found = ids_of(rows)?;
    let (order, found_order) = (in_order(ids), in_order(&found));
    let sorted = order.iter().map(|(id, _)| id);
    if !sorted.eq(found_order.iter().map(|(id, _)| id)) {
        return Err(Failed::data(
            "the result has other ids than the batch: are they numbers in the archive, and texts in the batch?",
        ));
    }
    let mut places = vec![(0, 0); ids.len()];
    let locations: Vec<(usize, usize)> = rows
        .iter()
        .enumerate()
        .flat_map(|(batch, rows)| (0..rows.num_rows()).map(move |row| (batch, row)))
        .collect();
    for ((_, row), (_, at)) in order.iter().zip(&found_order) {
        places[*row] = locations[*at];
    }
    let rows: Vec<&RecordBatch> = rows.iter().collect();
    let pieces = places.chunks(ROW_GROUP_ROWS);
    let pieces = pieces.map(|piece| interleave_record_batch(&rows, piece));
    let pieces: Result<Vec<RecordBatch>, ArrowError> = pieces.collect();
    Ok(pieces?)
}

/// Ids with their rows, in the order of the ids; of equal ids, in that of the rows.
fn in_order(ids: &ArrayRef) -> Vec<(Option<&str>, usize)> {
    let mut rows: Vec<_> = ids.as_string::<i64>().iter().zip(0..).collect();
    rows.sort_unstable();
    rows
}
