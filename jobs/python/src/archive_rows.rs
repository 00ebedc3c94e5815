//! [`ArchiveRows`]: the rows of an archive, as a stream of record batches.

use std::collections::HashMap;
use std::sync::Arc;

use archive::{Archive, DataFile, FileRows, schema};
use arrow::array::{ArrayRef, Date32Array, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::NaiveDate;
use engine::work_items::days_since_epoch;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Failed;
use crate::export::{schema_capsule, stream_capsule};
use crate::interrupt::{block_on, wait_for};
use crate::stores::stores;

/// The rows of some days and columns of an archive at one version. Each stream reads them from the start.
#[pyclass(frozen, module = "dedup_job._native")]
pub(crate) struct ArchiveRows {
    archive: Archive,
    files: Vec<DataFile>,
    schema: SchemaRef,
}

#[pymethods]
impl ArchiveRows {
    /// Open an archive. If columns or days are None, all are read. storage has the options of object stores, as text.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: String,
        columns: Option<Vec<String>>,
        days: Option<Vec<String>>,
        storage: HashMap<String, String>,
    ) -> PyResult<Self> {
        let stores = stores(&storage)?;
        let days = days.map(parse_days).transpose()?;
        let (archive, files) = wait_for(py, async || {
            let archive = Archive::open(&stores.locate(&path)?).await?;
            let mut files = archive.files()?;
            if let Some(days) = &days {
                files.retain(|file| file.day.is_some_and(|day| days.contains(&day)));
            }
            files.sort_by(|a, b| (a.day, &a.path).cmp(&(b.day, &b.path)));
            Ok((archive, files))
        })?;
        let schema = select(&archive.read_schema(), columns)?;
        Ok(Self {
            archive,
            files,
            schema,
        })
    }

    /// The number of rows, if the archive's log says it.
    #[getter]
    fn num_rows(&self) -> Option<u64> {
        self.files.iter().map(|file| file.rows).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to give another type than the requested one.
        drop(requested_schema);
        let reader = Reader {
            archive: self.archive.clone(),
            files: self.files.clone().into_iter(),
            current: None,
            schema: Arc::clone(&self.schema),
        };
        stream_capsule(py, reader)
    }
}

/// Parses dates of the form YYYY-MM-DD.
fn parse_days(days: Vec<String>) -> Result<Vec<NaiveDate>, Failed> {
    let parse = |day: String| {
        let parsed = day.parse();
        parsed.map_err(|_| Failed::usage(format!("{day:?} is not a date of the form YYYY-MM-DD")))
    };
    days.into_iter().map(parse).collect()
}

/// The schema of `rows` with the column `day`, or of the `columns` of these.
fn select(rows: &SchemaRef, columns: Option<Vec<String>>) -> Result<SchemaRef, Failed> {
    let mut fields: Vec<_> = rows.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(schema::DAY, DataType::Date32, true)));
    let all = Schema::new(fields);
    let Some(columns) = columns else {
        return Ok(Arc::new(all));
    };
    let fields = columns.iter().map(|name| {
        let found = all.field_with_name(name);
        found.cloned().map_err(|_| {
            let names: Vec<&str> = all
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            Failed::usage(format!(
                "no column {name:?}; the columns are {}",
                names.join(", ")
            ))
        })
    });
    Ok(Arc::new(Schema::new(
        fields.collect::<Result<Vec<Field>, _>>()?,
    )))
}

/// Reads one file after the other, each into memory.
struct Reader {
    archive: Archive,
    files: std::vec::IntoIter<DataFile>,
    /// The rows of the file that is read, and its day.
    current: Option<(Option<NaiveDate>, FileRows)>,
    schema: SchemaRef,
}

impl Reader {
    /// The next rows; `None` after the last.
    fn read(&mut self) -> Result<Option<RecordBatch>, Failed> {
        loop {
            if let Some((day, rows)) = &mut self.current
                && let Some(batch) = rows.next()
            {
                return with_day(&batch?, *day, &self.schema).map(Some);
            }
            let Some(file) = self.files.next() else {
                return Ok(None);
            };
            let rows = block_on(self.archive.read_file(&file))??;
            self.current = Some((file.day, rows));
        }
    }
}

/// The columns of `schema`, of rows of a day.
fn with_day(
    rows: &RecordBatch,
    day: Option<NaiveDate>,
    schema: &SchemaRef,
) -> Result<RecordBatch, Failed> {
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match rows.column_by_name(field.name()) {
            Some(column) => Arc::clone(column),
            None => {
                let days = std::iter::repeat_n(day.map(days_since_epoch), rows.num_rows());
                Arc::new(Date32Array::from_iter(days))
            }
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let columns = columns.collect();
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read().map_err(|failed| {
            // The C interface takes the message as a text that ends with a null byte.
            let message = failed.message().replace('\0', " ");
            ArrowError::ExternalError(message.into())
        });
        read.transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
