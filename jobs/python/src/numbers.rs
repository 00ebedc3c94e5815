//! Columns of fingerprints from Python: Arrow arrays, NumPy arrays, or sequences of `int`.

use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, UInt64Array, UInt64Builder};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Failed;
use crate::export::Array;
use crate::import::Chunks;
use crate::table::concat;

/// Keeps the memory of a Python object alive for an Arrow buffer.
struct Owner {
    _object: Py<PyAny>,
}

// Nothing is called on the object but its release.
impl RefUnwindSafe for Owner {}

/// Read 64-bit fingerprints from an Arrow column, a NumPy array of uint64, or a sequence of int and None. Signed integers
/// count as the same 64 bits. mask is a NumPy array of bool, true for each value to leave out.
#[pyfunction]
#[pyo3(signature = (object, mask = None))]
pub(crate) fn fingerprint_array(
    object: &Bound<'_, PyAny>,
    mask: Option<Bound<'_, PyAny>>,
) -> PyResult<Array> {
    // Arrow first: an array that has both interfaces has its nulls in this one only.
    let values = match Chunks::open(object)? {
        Some(chunks) => from_arrow(object.py(), chunks)?,
        None => match NumpyArray::of(object)? {
            Some(values) => from_numpy(object, &values)?,
            None => from_integers(object)?,
        },
    };
    let Some(mask) = mask else {
        return Ok(Array::new(Arc::new(values)));
    };
    let valid = NullBuffer::from(valid_values(&mask)?);
    let nulls = NullBuffer::union(values.nulls(), Some(&valid));
    let values = UInt64Array::try_new(values.values().clone(), nulls).map_err(Failed::from)?;
    Ok(Array::new(Arc::new(values)))
}

/// A contiguous NumPy array of one dimension, as its array interface describes it.
struct NumpyArray {
    /// The type, such as `<u8`.
    kind: String,
    rows: usize,
    address: usize,
}

impl NumpyArray {
    /// Describes an object; `None` if it has no array interface.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Some(interface) = object.getattr_opt("__array_interface__")? else {
            return Ok(None);
        };
        let interface = interface.cast::<PyDict>()?;
        let get = |key: &str| {
            let value = interface.get_item(key)?;
            value.ok_or_else(|| PyTypeError::new_err(format!("the array interface has no {key}")))
        };
        let shape: Vec<usize> = get("shape")?.extract()?;
        let strides = interface.get_item("strides")?;
        let is_contiguous = strides.is_none_or(|strides| strides.is_none());
        let ([rows], true) = (shape.as_slice(), is_contiguous) else {
            return Err(PyTypeError::new_err(
                "a contiguous array of one dimension is needed",
            ));
        };
        let (address, _): (usize, bool) = get("data")?.extract()?;
        Ok(Some(Self {
            kind: get("typestr")?.extract()?,
            rows: *rows,
            address,
        }))
    }
}

/// The values of a NumPy array, without a copy. As in all functions on NumPy arrays, nobody may write to it meanwhile.
fn from_numpy(object: &Bound<'_, PyAny>, values: &NumpyArray) -> PyResult<UInt64Array> {
    if !["<u8", "<i8"].contains(&values.kind.as_str()) {
        return Err(PyTypeError::new_err(format!(
            "fingerprints are uint64, not {}",
            values.kind
        )));
    }
    if values.rows == 0 {
        return Ok(UInt64Array::from(Vec::<u64>::new()));
    }
    let pointer = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(values.address));
    let pointer = pointer.filter(|pointer| pointer.cast::<u64>().is_aligned());
    let Some(pointer) = pointer else {
        return Err(PyValueError::new_err("the array is not aligned"));
    };
    let owner = Arc::new(Owner {
        _object: object.clone().unbind(),
    });
    // SAFETY: the array has this many values at this address as long as the object lives, which the owner keeps alive.
    let bytes = unsafe { Buffer::from_custom_allocation(pointer, 8 * values.rows, owner) };
    let numbers = ScalarBuffer::new(bytes, 0, values.rows);
    Ok(UInt64Array::new(numbers, None))
}

/// For each value of a mask, a NumPy array of bool, whether it is false.
fn valid_values(mask: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let array = NumpyArray::of(mask)?.filter(|array| array.kind == "|b1");
    let Some(NumpyArray { rows, address, .. }) = array else {
        return Err(PyTypeError::new_err("a mask is an array of bool"));
    };
    if rows == 0 {
        return Ok(Vec::new());
    }
    let pointer = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: the array has this many bytes at this address, and lives as long as this borrow.
    let masked = unsafe { std::slice::from_raw_parts(pointer, rows) };
    Ok(masked.iter().map(|masked| *masked == 0).collect())
}

/// The values of an Arrow column.
fn from_arrow(py: Python<'_>, chunks: Chunks) -> PyResult<UInt64Array> {
    if chunks.is_table() {
        return Err(PyTypeError::new_err(
            "a column of fingerprints is needed, not a table",
        ));
    }
    let data_type = chunks.field.data_type().clone();
    let parts = py.detach(|| chunks.collect())?;
    as_unsigned(&concat(&data_type, &parts).map_err(Failed::from)?)
}

/// 64-bit integers as unsigned ones with the same bits.
fn as_unsigned(values: &ArrayRef) -> PyResult<UInt64Array> {
    match values.data_type() {
        DataType::UInt64 => Ok(values.as_primitive::<UInt64Type>().clone()),
        DataType::Int64 => {
            let values = values.as_primitive::<Int64Type>();
            Ok(UInt64Array::new(
                ScalarBuffer::from(values.values().inner().clone()),
                values.nulls().cloned(),
            ))
        }
        other => Err(PyTypeError::new_err(format!(
            "fingerprints are 64-bit integers, not {other}"
        ))),
    }
}

/// The values of a sequence of Python integers.
fn from_integers(object: &Bound<'_, PyAny>) -> PyResult<UInt64Array> {
    let mut values = UInt64Builder::new();
    for (row, item) in object.try_iter()?.enumerate() {
        let item = item?;
        if item.is_none() {
            values.append_null();
        } else if let Ok(value) = item.extract::<u64>() {
            values.append_value(value);
        } else {
            let value = item.extract::<i64>();
            let value = value.map_err(|error| no_fingerprint(row, &item, error))?;
            values.append_value(value.cast_unsigned());
        }
    }
    Ok(values.finish())
}

/// The error for an item of a sequence that is no fingerprint.
fn no_fingerprint(row: usize, item: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(item.py()) {
        return Failed::usage(format!(
            "fingerprint {row} is {item}, which has more than 64 bits"
        ))
        .into();
    }
    match item.get_type().name() {
        Ok(kind) => PyTypeError::new_err(format!("fingerprint {row} is a {kind}, not int or None")),
        Err(error) => error,
    }
}
