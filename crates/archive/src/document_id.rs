//! A document's id as a value, outside of Arrow arrays.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use serde::Serialize;

/// A document's id. Ordered as in files: integers by value, text by bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum DocumentId {
    Number(i64),
    Text(Box<str>),
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

impl DocumentId {
    /// The id at `row` of an array of either type.
    pub fn read(ids: &ArrayRef, row: usize) -> Self {
        match ids.as_string_opt::<i32>() {
            Some(text) => Self::Text(text.value(row).into()),
            None => Self::Number(ids.as_primitive::<Int64Type>().value(row)),
        }
    }

    /// Bytes that the id takes on the heap.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Number(_) => 0,
        }
    }

    /// An array of ids of one type: of text if `text`, else of integers. An id of the other type becomes null.
    pub fn array<'a>(ids: impl IntoIterator<Item = &'a Self>, text: bool) -> ArrayRef {
        let ids = ids.into_iter();
        let as_text = |id: &'a Self| match id {
            Self::Text(text) => Some(text),
            Self::Number(_) => None,
        };
        let as_number = |id: &'a Self| match id {
            Self::Text(_) => None,
            Self::Number(number) => Some(*number),
        };
        if text {
            Arc::new(ids.map(as_text).collect::<StringArray>())
        } else {
            Arc::new(ids.map(as_number).collect::<Int64Array>())
        }
    }
}
