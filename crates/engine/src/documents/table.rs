//! The table of documents: its schema, and its columns found by name.

use std::sync::Arc;

use archive::IdType;
use archive::schema::{FINGERPRINT, ID};
use arrow::array::{ArrayRef, AsArray as _, BinaryViewArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::columns::Content;
use crate::error::{EngineError, Result};

/// Name of the column of texts.
pub(crate) const TEXT: &str = "text";

/// The schema: an id, and a fingerprint or a text.
pub(super) fn schema(id_type: IdType, content: Option<&Content>) -> SchemaRef {
    let content = match content {
        Some(Content::Fingerprint(_)) => Field::new(FINGERPRINT, DataType::Int64, true),
        // Views of the decoded pages, so that texts are not copied.
        _ => Field::new(TEXT, DataType::BinaryView, true),
    };
    Arc::new(Schema::new(vec![
        Field::new(ID, id_type.data_type(), false),
        content,
    ]))
}

/// The columns of a table of texts in a record batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextRows<'a> {
    /// Ids of either type.
    pub(crate) ids: &'a ArrayRef,
    /// Texts, which need not be UTF-8; null for a document without one.
    pub(crate) texts: &'a BinaryViewArray,
}

impl<'a> TextRows<'a> {
    /// The columns of `batch`.
    ///
    /// # Errors
    /// [`EngineError::Internal`] when one is missing, or texts are not views of bytes.
    pub(crate) fn read(batch: &'a RecordBatch) -> Result<Self> {
        let missing = |name: &str| {
            EngineError::Internal(format!(
                "documents have no column {name:?} of the right type"
            ))
        };
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| missing(name));
        let texts = column(TEXT)?.as_binary_view_opt();
        Ok(Self {
            ids: column(ID)?,
            texts: texts.ok_or_else(|| missing(TEXT))?,
        })
    }
}
