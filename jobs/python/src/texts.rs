//! Columns of texts from Python: Arrow arrays, or sequences of `str`.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryArray, LargeBinaryArray, LargeBinaryBuilder,
};
use arrow::datatypes::DataType;
use documents::TEXT_NAMES;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyString};

use crate::error::Failed;
use crate::export::Array;
use crate::import::Chunks;

/// A column of texts, in chunks.
pub(crate) struct Texts {
    chunks: Vec<ArrayRef>,
}

impl Texts {
    /// The texts of a Python object: a column, the column `column` of a table, or a sequence of `str`, `bytes` and `None`.
    /// Without `column`, a table must have one column, or one of a usual name.
    pub(crate) fn from_python(object: &Bound<'_, PyAny>, column: Option<&str>) -> PyResult<Self> {
        let Some(chunks) = Chunks::open(object)? else {
            let chunks = vec![collect_strings(object)?];
            return Ok(Self { chunks });
        };
        let at = match chunks.field.data_type() {
            DataType::Struct(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                Some(find_column(&names, column)?)
            }
            _ => None,
        };
        let chunks = object.py().detach(|| -> PyResult<Vec<ArrayRef>> {
            let chunks = chunks.collect()?.into_iter().map(|chunk| {
                let texts = match at {
                    Some(at) => Arc::clone(chunk.as_struct().column(at)),
                    None => chunk,
                };
                as_texts(&texts)
            });
            let chunks: Result<Vec<ArrayRef>, Failed> = chunks.collect();
            chunks.map_err(PyErr::from)
        })?;
        Ok(Self { chunks })
    }

    /// The number of texts.
    pub(crate) fn rows(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// The texts in pieces of at most `rows` texts each.
    pub(crate) fn pieces(&self, rows: usize) -> impl Iterator<Item = ArrayRef> {
        self.chunks.iter().flat_map(move |chunk| {
            let starts = (0..chunk.len()).step_by(rows);
            starts.map(move |start| chunk.slice(start, rows.min(chunk.len() - start)))
        })
    }
}

/// Copy a sequence of str, bytes and None into an Arrow array.
#[pyfunction]
pub(crate) fn text_array(texts: &Bound<'_, PyAny>) -> PyResult<Array> {
    Ok(Array::new(collect_strings(texts)?))
}

/// The index of the column of texts among `names`.
fn find_column(names: &[&str], column: Option<&str>) -> Result<usize, Failed> {
    let position = |name: &str| names.iter().position(|other| *other == name);
    let found = match (column, names) {
        (Some(column), _) => position(column),
        (None, [_]) => Some(0),
        (None, _) => TEXT_NAMES.iter().find_map(|name| position(name)),
    };
    found.ok_or_else(|| {
        let sought = column.map_or_else(|| TEXT_NAMES.join(" or "), str::to_owned);
        let names = names.join(", ");
        Failed::data(format!(
            "no text column ({sought}); name it by column=; the columns are {names}"
        ))
    })
}

/// An array of a type that [`for_each_text`] takes.
fn as_texts(array: &ArrayRef) -> Result<ArrayRef, Failed> {
    use DataType::{Binary, BinaryView, Dictionary, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    match array.data_type() {
        Binary | BinaryView | LargeBinary | LargeUtf8 | Utf8 | Utf8View => Ok(Arc::clone(array)),
        Dictionary(_, values) => {
            // Unpacked, texts may take more bytes than 32-bit offsets can address.
            let unpacked = match **values {
                Utf8 | LargeUtf8 => LargeUtf8,
                Binary | LargeBinary => LargeBinary,
                Utf8View => Utf8View,
                BinaryView => BinaryView,
                _ => return Err(Failed::data(format!("texts are strings, not {values}"))),
            };
            Ok(arrow::compute::cast(array, &unpacked)?)
        }
        Null => Ok(arrow::array::new_null_array(&Utf8, array.len())),
        other => Err(Failed::data(format!("texts are strings, not {other}"))),
    }
}

/// Collects the texts of a sequence of Python objects.
fn collect_strings(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(
            "a sequence of texts is needed, not one text",
        ));
    }
    let mut texts = LargeBinaryBuilder::new();
    for (row, item) in object.try_iter()?.enumerate() {
        let item = item?;
        if let Ok(text) = item.cast::<PyString>() {
            // Lone surrogates, which no UTF-8 has, become replacement characters.
            texts.append_value(text.to_string_lossy().as_bytes());
        } else if let Ok(text) = item.cast::<PyBytes>() {
            texts.append_value(text.as_bytes());
        } else if item.is_none() || is_missing(&item)? {
            texts.append_null();
        } else {
            let kind = item.get_type().name()?;
            let message = format!("text {row} is a {kind}, not str, bytes or None");
            return Err(PyTypeError::new_err(message));
        }
    }
    Ok(Arc::new(texts.finish()))
}

/// Whether an object stands for a missing text in a column of pandas: NaN or `pandas.NA`.
fn is_missing(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(number) = item.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    Ok(item.get_type().name()? == "NAType")
}

/// Calls `each` with every text, in order; `None` for a null. Bytes that are not UTF-8 become replacement characters:
/// producers of Arrow strings need not check them.
pub(crate) fn for_each_text(texts: &ArrayRef, mut each: impl FnMut(Option<&str>)) {
    let each = |bytes: Option<&[u8]>| match bytes.map(simdutf8::basic::from_utf8) {
        None => each(None),
        Some(Ok(text)) => each(Some(text)),
        Some(Err(_)) => each(bytes.map(String::from_utf8_lossy).as_deref()),
    };
    match texts.data_type() {
        DataType::Utf8 => {
            let bytes = BinaryArray::from(texts.as_string::<i32>().clone());
            bytes.iter().for_each(each);
        }
        DataType::LargeUtf8 => {
            let bytes = LargeBinaryArray::from(texts.as_string::<i64>().clone());
            bytes.iter().for_each(each);
        }
        DataType::Utf8View => {
            let bytes = texts.as_string_view().clone().to_binary_view();
            bytes.iter().for_each(each);
        }
        DataType::Binary => texts.as_binary::<i32>().iter().for_each(each),
        DataType::LargeBinary => texts.as_binary::<i64>().iter().for_each(each),
        DataType::BinaryView => texts.as_binary_view().iter().for_each(each),
        other => unreachable!("texts of {other}"),
    }
}
