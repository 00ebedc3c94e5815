//! The columns of class pairs, which a probe returns when the run decides which documents to keep.

use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrowPrimitiveType, AsArray as _, PrimitiveArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::{EngineError, Result};
use crate::pairs::{BASE_DAY, BASE_ID, DISTANCE, SIMILARITY};

/// Column: the number of a class of the batch.
pub(crate) const CLASS: &str = "class";
/// Column: the number of the other class; null if the other side is a document of the archive.
pub(crate) const OTHER_CLASS: &str = "other_class";

pub(crate) fn schema(id_type: IdType) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(CLASS, DataType::UInt32, false),
        Field::new(OTHER_CLASS, DataType::UInt32, true),
        Field::new(BASE_ID, id_type.data_type(), true),
        Field::new(BASE_DAY, DataType::Date32, true),
        Field::new(DISTANCE, DataType::Int32, false),
        Field::new(SIMILARITY, DataType::Float64, true),
    ]))
}

pub(crate) fn column<'a, T: ArrowPrimitiveType>(
    pairs: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<T>> {
    let column = pairs.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt());
    column.ok_or_else(missing)
}

pub(crate) fn missing() -> EngineError {
    EngineError::Internal("pairs of classes lack a column of the right type".into())
}
