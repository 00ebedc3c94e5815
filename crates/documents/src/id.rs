//! A document's id as a value, outside of Arrow arrays.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Int64Array, StringArray};
use arrow::datatypes::Int64Type;

/// A document's id. Ordered as in files: text by bytes, integers by value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentId {
    Text(Box<str>),
    Number(i64),
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
    pub fn array(ids: &[Self], text: bool) -> ArrayRef {
        let as_text = |id: &Self| match id {
            Self::Text(text) => Some(text.to_string()),
            Self::Number(_) => None,
        };
        let as_number = |id: &Self| match id {
            Self::Text(_) => None,
            Self::Number(number) => Some(*number),
        };
        if text {
            Arc::new(ids.iter().map(as_text).collect::<StringArray>())
        } else {
            Arc::new(ids.iter().map(as_number).collect::<Int64Array>())
        }
    }
}
