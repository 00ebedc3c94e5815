//! Arrow data from Python, by the PyCapsule interface.

use std::ffi::CStr;
use std::sync::Mutex;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, RecordBatch, RecordBatchOptions, make_array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Failed;
use crate::interrupt::check_signals;
use crate::lock::lock;

/// Names of capsules, as the interface fixes them.
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A column, or a table as a column of structures, in chunks.
pub(crate) struct Chunks {
    /// The type and the name.
    pub(crate) field: Field,
    source: Source,
}

enum Source {
    Stream(FFI_ArrowArrayStream),
    Once(Option<FFI_ArrowArray>),
}

/// Arrow data that was opened but not read: its type is known. It can be read once.
#[pyclass(frozen, module = "dedup_job._native")]
pub(crate) struct ArrowData {
    field: Field,
    chunks: Mutex<Option<Chunks>>,
}

#[pymethods]
impl ArrowData {
    /// Open an object with an Arrow interface; None if it has none.
    #[staticmethod]
    fn open(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let chunks = Chunks::open(object)?;
        Ok(chunks.map(|chunks| Self {
            field: chunks.field.clone(),
            chunks: Mutex::new(Some(chunks)),
        }))
    }

    /// What it is: table, texts, fingerprints (64-bit integers), or else the name of the type.
    #[getter]
    fn kind(&self) -> String {
        use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Utf8, Utf8View};
        match self.field.data_type() {
            DataType::Struct(_) => "table".to_owned(),
            DataType::Int64 | DataType::UInt64 => "fingerprints".to_owned(),
            Binary | BinaryView | Dictionary(..) | LargeBinary | LargeUtf8 | Utf8 | Utf8View => {
                "texts".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// The names of a table's columns; empty for a single column.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        match self.field.data_type() {
            DataType::Struct(fields) => fields.iter().map(|field| field.name().clone()).collect(),
            _ => Vec::new(),
        }
    }
}

impl Chunks {
    /// The data of a Python object; `None` if it has no Arrow interface.
    pub(crate) fn open(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(opened) = object.cast::<ArrowData>() {
            let chunks = lock(&opened.get().chunks).take();
            let consumed = || Failed::usage("the Arrow data was consumed before");
            return Ok(Some(chunks.ok_or_else(consumed)?));
        }
        // A table is a stream of structures; of objects with both methods, the stream keeps the chunks apart.
        if object.hasattr("__arrow_c_stream__")? {
            let capsule = object.call_method0("__arrow_c_stream__")?;
            return Self::open_stream(capsule.cast::<PyCapsule>()?).map(Some);
        }
        if object.hasattr("__arrow_c_array__")? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                object.call_method0("__arrow_c_array__")?.extract()?;
            return Self::open_array(schema.cast()?, array.cast()?).map(Some);
        }
        Ok(None)
    }

    fn open_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let pointer = capsule.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name points to a valid stream, and only threads with the GIL touch it. The stream is
        // moved out of the capsule, which then has nothing to release.
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
        // A producer may run Python code on other threads, so it must not wait for this one.
        capsule
            .py()
            .detach(move || {
                let field = stream_field(&mut stream)?;
                let source = Source::Stream(stream);
                Ok::<_, Failed>(Self { field, source })
            })
            .map_err(PyErr::from)
    }

    fn open_array(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let schema = schema.pointer_checked(Some(SCHEMA))?.cast();
        let array = array.pointer_checked(Some(ARRAY))?.cast();
        // SAFETY: a capsule of this name points to a valid schema, and the capsule lives longer than this borrow.
        let schema: &FFI_ArrowSchema = unsafe { schema.as_ref() };
        let field = Field::try_from(schema).map_err(Failed::from)?;
        // SAFETY: as for a stream: the array is moved out of its capsule.
        let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
        if array.is_released() {
            return Err(Failed::usage("the Arrow array was consumed before").into());
        }
        let source = Source::Once(Some(array));
        Ok(Self { field, source })
    }

    /// The next chunk, of the type of [`Self::field`]; `None` after the last. Call it without the GIL.
    fn next_chunk(&mut self) -> Result<Option<ArrayRef>, Failed> {
        let array = match &mut self.source {
            Source::Stream(stream) => next_array(stream)?,
            Source::Once(array) => array.take(),
        };
        let Some(array) = array.filter(|array| !array.is_released()) else {
            return Ok(None);
        };
        let data_type = self.field.data_type().clone();
        // SAFETY: the producer gives arrays of the type of its schema. Texts are treated as bytes until they are checked:
        // see `texts`.
        let data = unsafe { from_ffi_and_data_type(array, data_type) }?;
        Ok(Some(make_array(data)))
    }

    /// All chunks. Call it without the GIL.
    pub(crate) fn collect(mut self) -> PyResult<Vec<ArrayRef>> {
        let mut chunks = Vec::new();
        while let Some(chunk) = self.next_chunk()? {
            check_signals()?;
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    /// Whether it is a table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.field.data_type(), DataType::Struct(_))
    }

    /// The schema of a table; of a single column, that of a table with this column alone, called `name`.
    pub(crate) fn schema(&self, name: &str) -> SchemaRef {
        let schema = match self.field.data_type() {
            DataType::Struct(fields) => Schema::new(fields.clone()),
            other => Schema::new(vec![Field::new(name, other.clone(), true)]),
        };
        schema.into()
    }

    /// The next rows, with a schema that [`Self::schema`] returned. Call it without the GIL.
    pub(crate) fn next_batch(&mut self, schema: &SchemaRef) -> PyResult<Option<RecordBatch>> {
        check_signals()?;
        let Some(chunk) = self.next_chunk()? else {
            return Ok(None);
        };
        let rows = RecordBatchOptions::new().with_row_count(Some(chunk.len()));
        let columns = match chunk.as_struct_opt() {
            Some(rows) => rows.columns().to_vec(),
            None => vec![chunk],
        };
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &rows);
        Ok(Some(batch.map_err(Failed::from)?))
    }
}

/// The type of a stream's arrays.
fn stream_field(stream: &mut FFI_ArrowArrayStream) -> Result<Field, Failed> {
    let (Some(get_schema), Some(_)) = (stream.get_schema, stream.release) else {
        return Err(Failed::usage("the Arrow stream was consumed before"));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is not released, and both pointers are valid for the call.
    let code = unsafe { get_schema(stream, &mut schema) };
    match code {
        0 => Ok(Field::try_from(&schema)?),
        code => Err(last_error(stream, code)),
    }
}

/// The next array of a stream; a released one after the last.
fn next_array(stream: &mut FFI_ArrowArrayStream) -> Result<Option<FFI_ArrowArray>, Failed> {
    let Some(get_next) = stream.get_next else {
        return Ok(None);
    };
    let mut array = FFI_ArrowArray::empty();
    // SAFETY: the stream is not released, and both pointers are valid for the call.
    let code = unsafe { get_next(stream, &mut array) };
    match code {
        0 => Ok(Some(array)),
        code => Err(last_error(stream, code)),
    }
}

/// The error of a stream whose function returned `code`.
fn last_error(stream: &mut FFI_ArrowArrayStream, code: i32) -> Failed {
    let message = stream.get_last_error.and_then(|get_last_error| {
        // SAFETY: the stream is not released, and its last call failed, which is when it may be asked.
        let text = unsafe { get_last_error(stream) };
        if text.is_null() {
            return None;
        }
        // SAFETY: the text ends with a null byte, and is valid until the next call.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    });
    Failed::data(message.unwrap_or_else(|| format!("the Arrow stream failed with {code}")))
}
