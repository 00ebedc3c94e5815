//! [`Array`]: a column for Python, by Arrow's PyCapsule interface and by NumPy's array interface; and the capsules.

use std::sync::{Arc, OnceLock};

use arrow::array::{
    Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, BooleanArray, Float64Array, Int64Array,
    RecordBatchReader, StringArray,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Field, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::error::Failed;

/// A column in one piece.
#[pyclass(frozen, module = "dedup_job._native")]
pub(crate) struct Array {
    pub(crate) array: ArrayRef,
    /// Truth values as bytes, as NumPy has them, once they are asked for.
    bytes: OnceLock<Buffer>,
}

impl Array {
    pub(crate) fn new(array: ArrayRef) -> Self {
        let bytes = OnceLock::new();
        Self { array, bytes }
    }

    /// NumPy's name of the type, and the bytes of the values, which live as long as this array.
    fn numbers(&self) -> Option<(&'static str, &Buffer)> {
        let array = &self.array;
        Some(match array.data_type() {
            DataType::Boolean => (
                "|b1",
                self.bytes.get_or_init(|| bytes_of(array.as_boolean())),
            ),
            DataType::FixedSizeBinary(_) => ("|u1", array.as_fixed_size_binary().values()),
            DataType::Int8 => ("|i1", values::<Int8Type>(array)),
            DataType::Int16 => ("<i2", values::<Int16Type>(array)),
            DataType::Int32 => ("<i4", values::<Int32Type>(array)),
            DataType::Int64 => ("<i8", values::<Int64Type>(array)),
            DataType::UInt8 => ("|u1", values::<UInt8Type>(array)),
            DataType::UInt16 => ("<u2", values::<UInt16Type>(array)),
            DataType::UInt32 => ("<u4", values::<UInt32Type>(array)),
            DataType::UInt64 => ("<u8", values::<UInt64Type>(array)),
            DataType::Float16 => ("<f2", values::<Float16Type>(array)),
            DataType::Float32 => ("<f4", values::<Float32Type>(array)),
            DataType::Float64 => ("<f8", values::<Float64Type>(array)),
            DataType::Date32 => ("<i4", values::<Date32Type>(array)),
            DataType::Date64 => ("<M8[ms]", values::<Date64Type>(array)),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => ("<M8[s]", values::<TimestampSecondType>(array)),
                TimeUnit::Millisecond => ("<M8[ms]", values::<TimestampMillisecondType>(array)),
                TimeUnit::Microsecond => ("<M8[us]", values::<TimestampMicrosecondType>(array)),
                TimeUnit::Nanosecond => ("<M8[ns]", values::<TimestampNanosecondType>(array)),
            },
            DataType::Duration(unit) => match unit {
                TimeUnit::Second => ("<m8[s]", values::<DurationSecondType>(array)),
                TimeUnit::Millisecond => ("<m8[ms]", values::<DurationMillisecondType>(array)),
                TimeUnit::Microsecond => ("<m8[us]", values::<DurationMicrosecondType>(array)),
                TimeUnit::Nanosecond => ("<m8[ns]", values::<DurationNanosecondType>(array)),
            },
            _ => return None,
        })
    }
}

/// The bytes of an array's values.
fn values<T: ArrowPrimitiveType>(array: &ArrayRef) -> &Buffer {
    array.as_primitive::<T>().values().inner()
}

/// The type in which an array's values become Python objects: integers and floats of the longest kind, times in microseconds,
/// decimals as text.
fn python_type(found: &DataType) -> DataType {
    match found {
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => DataType::Int64,
        DataType::Float16 | DataType::Float32 => DataType::Float64,
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::Utf8View
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// Truth values as bytes; of a null, 0.
fn bytes_of(values: &BooleanArray) -> Buffer {
    values
        .iter()
        .map(|value| u8::from(value.unwrap_or(false)))
        .collect()
}

#[pymethods]
impl Array {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// How many values are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    /// The Arrow type, as Arrow's Rust library writes it.
    #[getter]
    fn data_type(&self) -> String {
        self.array.data_type().to_string()
    }

    /// For each value, whether it is null.
    fn mask(&self) -> Self {
        let nulls: BooleanArray = (0..self.array.len())
            .map(|row| Some(self.array.is_null(row)))
            .collect();
        Self::new(Arc::new(nulls))
    }

    /// The values as Python objects: of a date the number of its days since 1970, of a time or a time span its microseconds,
    /// and of a decimal its text.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let wanted = python_type(self.array.data_type());
        let array = arrow::compute::cast(&self.array, &wanted).map_err(Failed::from)?;
        let bytes = |value: Option<&[u8]>| value.map(|value| PyBytes::new(py, value));
        match wanted {
            DataType::Boolean => PyList::new(py, array.as_boolean().iter()),
            DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Duration(_) => {
                let integers = arrow::compute::cast(&array, &DataType::Int64);
                let integers = integers.map_err(Failed::from)?;
                PyList::new(py, integers.as_primitive::<Int64Type>().iter())
            }
            DataType::UInt64 => PyList::new(py, array.as_primitive::<UInt64Type>().iter()),
            DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter()),
            DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
            DataType::LargeUtf8 => PyList::new(py, array.as_string::<i64>().iter()),
            DataType::LargeBinary => PyList::new(py, array.as_binary::<i64>().iter().map(bytes)),
            DataType::FixedSizeBinary(_) => {
                PyList::new(py, array.as_fixed_size_binary().iter().map(bytes))
            }
            other => Err(PyTypeError::new_err(format!(
                "no Python objects for values of {other}; to_pyarrow() and to_polars() have them"
            ))),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let field = Field::new("", self.array.data_type().clone(), true);
        let schema = FFI_ArrowSchema::try_from(&field).map_err(Failed::from)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows to give another type than the requested one.
        drop(requested_schema);
        let schema = self.__arrow_c_schema__(py)?;
        let array = FFI_ArrowArray::new(&self.array.to_data());
        Ok((
            schema,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    /// NumPy's view of the values; of a null it sees 0. The memory is read-only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (kind, values) = self.numbers().ok_or_else(|| {
            PyAttributeError::new_err(format!("no NumPy array of {}", self.array.data_type()))
        })?;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", kind)?;
        interface.set_item("data", (values.as_ptr().expose_provenance(), true))?;
        match self.array.data_type() {
            DataType::FixedSizeBinary(bytes) => {
                interface.set_item("shape", (self.array.len(), *bytes))?
            }
            _ => interface.set_item("shape", (self.array.len(),))?,
        }
        Ok(interface)
    }
}

/// Copy a list of Python objects, in which None is null, into an array of a kind: bool, float, int or str.
#[pyfunction]
pub(crate) fn array_of(kind: String, values: &Bound<'_, PyAny>) -> PyResult<Array> {
    let array: ArrayRef = match kind.as_str() {
        "bool" => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
        "float" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
        "int" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
        "str" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        other => return Err(PyValueError::new_err(format!("no array of {other}"))),
    };
    Ok(Array::new(array))
}

/// A capsule with a schema.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(Failed::from)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A capsule with a stream of record batches.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}
