//! [`Table`]: rows for Python, by Arrow's PyCapsule interface and as bytes of Arrow IPC.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::error::Failed;
use crate::export::{Array, schema_capsule, stream_capsule};

/// Rows in record batches.
#[pyclass(frozen, module = "dedup_job._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// A table of columns of equal lengths.
    #[staticmethod]
    fn from_columns(names: Vec<String>, columns: Vec<Bound<'_, Array>>) -> PyResult<Self> {
        let columns: Vec<ArrayRef> = columns
            .iter()
            .map(|column| Arc::clone(&column.get().array))
            .collect();
        let fields: Vec<Field> = names
            .into_iter()
            .zip(&columns)
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(Failed::from)?;
        Ok(Self::new(schema, vec![batch]))
    }

    /// Read a table from an Arrow IPC stream, as to_ipc makes it.
    #[staticmethod]
    fn from_ipc(stream: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let bytes = stream.as_bytes();
        let read = stream.py().detach(|| -> Result<Self, ArrowError> {
            let reader = StreamReader::try_new(bytes, None)?;
            let schema = reader.schema();
            let batches = reader.collect::<Result<Vec<RecordBatch>, ArrowError>>()?;
            Ok(Self::new(schema, batches))
        });
        Ok(read.map_err(Failed::from)?)
    }

    /// The rows as an Arrow IPC stream.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| -> Result<Vec<u8>, ArrowError> {
            let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
            for batch in &self.batches {
                writer.write(batch)?;
            }
            writer.into_inner()
        });
        Ok(PyBytes::new(py, &written.map_err(Failed::from)?))
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    /// The column of this name.
    fn column(&self, py: Python<'_>, name: String) -> PyResult<Array> {
        let Ok(at) = self.schema.index_of(&name) else {
            return Err(PyKeyError::new_err(name));
        };
        let parts: Vec<ArrayRef> = self
            .batches
            .iter()
            .map(|batch| Arc::clone(batch.column(at)))
            .collect();
        let data_type = self.schema.field(at).data_type();
        let array = py.detach(|| concat(data_type, &parts));
        Ok(Array::new(array.map_err(Failed::from)?))
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
        let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
        stream_capsule(py, RecordBatchIterator::new(batches, self.schema.clone()))
    }
}

/// The parts of a column of this type in one piece. Strings of more than 2 GiB, which 32-bit offsets cannot address, get offsets of
/// 64 bits.
pub(crate) fn concat(data_type: &DataType, parts: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    if parts.is_empty() {
        return Ok(arrow::array::new_empty_array(data_type));
    }
    let joined = |parts: &[ArrayRef]| {
        let parts: Vec<&dyn arrow::array::Array> = parts.iter().map(AsRef::as_ref).collect();
        arrow::compute::concat(&parts)
    };
    match joined(parts) {
        Err(ArrowError::OffsetOverflowError(_)) => {
            let wide = |part: &ArrayRef| arrow::compute::cast(part, &DataType::LargeUtf8);
            let parts: Result<Vec<ArrayRef>, ArrowError> = parts.iter().map(wide).collect();
            joined(&parts?)
        }
        whole => whole,
    }
}
