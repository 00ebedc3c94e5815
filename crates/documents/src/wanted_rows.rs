//! Which rows of the documents a table has.

use std::collections::HashSet;
use std::sync::Arc;

use archive::IdType;
use arrow::array::{Array as _, ArrayRef, BooleanArray};
use arrow::error::ArrowError;

use super::DocumentId;
use super::row_set::RowSet;

/// The rows of a table of documents.
#[derive(Debug, Clone)]
pub enum Rows {
    All,
    /// All, with the columns of [`decision_fields`](super::decision_fields).
    WithDecisionColumns,
    /// Those with these ids. In Parquet files with an id column, the reader decodes no other text.
    Wanted(Arc<HashSet<DocumentId>>),
    /// Those at these positions, with the columns of [`decision_fields`](super::decision_fields). In Parquet files, the reader
    /// decodes no other text.
    At(Arc<RowSet>),
}

impl Rows {
    /// The rows that are fingerprinted: all, with the decision columns if `decision_columns`.
    pub fn to_fingerprint(decision_columns: bool) -> Self {
        if decision_columns {
            Self::WithDecisionColumns
        } else {
            Self::All
        }
    }
}

/// Which ids of a file are wanted. An id that cannot be converted to `id_type` is not.
pub(super) fn are_wanted(
    ids: &ArrayRef,
    id_type: IdType,
    wanted: &HashSet<DocumentId>,
) -> Result<BooleanArray, ArrowError> {
    let lossy = || arrow::compute::cast(ids, &id_type.data_type());
    let ids = archive::reader::to_id_type(ids, id_type).or_else(|_| lossy())?;
    let is_wanted = |row| ids.is_valid(row) && wanted.contains(&DocumentId::read(&ids, row));
    Ok((0..ids.len()).map(|row| Some(is_wanted(row))).collect())
}
