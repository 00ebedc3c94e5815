//! The columns of the table of documents: its schema, and the columns found by name.

use std::sync::Arc;

use archive::IdType;
use archive::schema::{FINGERPRINT, ID, SKETCH};
use arrow::array::{ArrayRef, AsArray as _, BinaryViewArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};

use super::columns::Content;
use super::preference::Prefer;
use crate::error::{DocumentsError, Result};

/// Column of the keys that order documents by preference; null for a document without a value.
pub const PREFERENCE: &str = "preference";
/// Column of the keys by the rules behind the length of texts, if there are rules before it, too.
pub const PREFERENCE_BEHIND: &str = "preference behind the length";
/// Column of the documents' positions in the inputs.
pub const POSITION: &str = "position";
/// Column of the sources of documents; null for a document without one.
pub const SOURCE: &str = "source";
/// Column of the lengths of texts, in bytes; null without a text.
pub(super) const BYTES: &str = "bytes";

/// The columns that a table of documents has for decisions. If the longest texts are preferred, it has no [`PREFERENCE`]: that
/// is made with the fingerprints.
pub fn decision_fields() -> [Field; 4] {
    [
        Field::new(PREFERENCE, DataType::Binary, true),
        Field::new(BYTES, DataType::Int64, true),
        Field::new(SOURCE, DataType::Utf8, true),
        Field::new(POSITION, DataType::Int64, false),
    ]
}

/// The positions of the documents in a record batch, and the lengths of their texts in bytes.
pub fn positions_and_bytes(batch: &RecordBatch) -> Result<(&Int64Array, &Int64Array)> {
    let column = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let columns = column(POSITION).zip(column(BYTES));
    columns.ok_or_else(|| DocumentsError::Internal("documents have no positions".into()))
}

pub const TEXT: &str = "text";

/// The schema: an id; a text or a fingerprint; a sketch if the files have `sketches`; those columns of [`decision_fields`] that
/// decisions by `decide_by` need, if it is given; and the `carried` columns.
pub(super) fn schema(
    id_type: IdType,
    content: Option<&Content>,
    sketches: bool,
    decide_by: Option<&Prefer>,
    carried: Vec<Field>,
) -> SchemaRef {
    let content = match content {
        Some(Content::Fingerprint(_)) => Field::new(FINGERPRINT, DataType::Int64, true),
        // Views of the decoded pages, so that texts are not copied.
        _ => Field::new(TEXT, DataType::BinaryView, true),
    };
    let mut fields = vec![Field::new(ID, id_type.data_type(), false), content];
    if sketches {
        fields.push(Field::new(SKETCH, DataType::Binary, true));
    }
    if let Some(prefer) = decide_by {
        let [preference, others @ ..] = decision_fields();
        fields.extend(prefer.has_keys().then_some(preference));
        let behind = Field::new(PREFERENCE_BEHIND, DataType::Binary, true);
        fields.extend(prefer.are_keys_cut().then_some(behind));
        fields.extend(others);
    }
    fields.extend(carried);
    Arc::new(Schema::new(fields))
}

/// The schema of positions with carried columns: the positions come first. The names of the columns have a prefix, so that
/// none is the name of another column beside them.
pub(super) fn carried_schema(carried: Vec<Field>) -> SchemaRef {
    let prefixed = |field: Field| {
        let name = format!("carried {}", field.name());
        field.with_name(name)
    };
    let position = Field::new(POSITION, DataType::Int64, false);
    let carried = carried.into_iter().map(prefixed);
    let fields: Vec<Field> = std::iter::once(position).chain(carried).collect();
    Arc::new(Schema::new(fields))
}

/// The columns of a table of texts in a record batch.
#[derive(Debug, Clone, Copy)]
pub struct TextRows<'a> {
    /// Ids of either type.
    pub ids: &'a ArrayRef,
    /// Texts, which need not be UTF-8; null for a document without one.
    pub texts: &'a BinaryViewArray,
}

impl<'a> TextRows<'a> {
    /// The columns of `batch`.
    ///
    /// # Errors
    /// [`DocumentsError::Internal`] when one is missing, or texts are not views of bytes.
    pub fn read(batch: &'a RecordBatch) -> Result<Self> {
        let missing = |name: &str| {
            DocumentsError::Internal(format!(
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
