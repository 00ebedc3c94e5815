//! The columns of pairs, which the reduce, the output and its readers follow.
//!
//! The probe makes them (`probe::pair_builder`), the similarity only from sketches; that of texts is made by `verify::compare`.

use std::sync::Arc;

use archive::IdType;
use arrow::array::{Array as _, ArrayRef, AsArray as _, Date32Array, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Field, Int32Type, Schema, SchemaRef};
use arrow::error::ArrowError;

/// Id of the batch's document.
pub const NEW_ID: &str = "new_id";
/// Id of the other document, of the archive or of the batch.
pub const BASE_ID: &str = "base_id";
/// Bits in which the two fingerprints differ.
pub const DISTANCE: &str = "distance";
/// Day of the other document; null if it has none.
pub const BASE_DAY: &str = "base_day";
/// Similarity of the two texts, exact or estimated from their sketches; null if a text or a sketch
/// was not found.
pub const SIMILARITY: &str = "similarity";

/// The columns, in the order of the output. Without similarities, pairs lack the last one.
pub(crate) const COLUMNS: [&str; 5] = [NEW_ID, BASE_ID, DISTANCE, BASE_DAY, SIMILARITY];

/// The columns that the output is sorted by.
pub const ORDER: [&str; 4] = [NEW_ID, DISTANCE, BASE_ID, BASE_DAY];

/// Whether the pairs of a run have similarities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarities {
    /// No: there are no sketches, and texts are not compared.
    Unknown,
    Known,
}

pub fn schema(id_type: IdType, similarities: Similarities) -> SchemaRef {
    let mut fields = vec![
        Field::new(NEW_ID, id_type.data_type(), false),
        Field::new(BASE_ID, id_type.data_type(), false),
        Field::new(DISTANCE, DataType::Int32, false),
        Field::new(BASE_DAY, DataType::Date32, true),
    ];
    if similarities == Similarities::Known {
        fields.push(Field::new(SIMILARITY, DataType::Float64, true));
    }
    Arc::new(Schema::new(fields))
}

/// A record batch of `schema`. Looks its columns up by name: first in `made`, then in `from`.
pub(crate) fn record_batch(
    schema: &SchemaRef,
    made: &[(&str, ArrayRef)],
    from: Option<&RecordBatch>,
) -> Result<RecordBatch, ArrowError> {
    let column = |name: &String| {
        let made = made.iter().find(|(made, _)| made == name);
        made.map(|(_, column)| column)
            .or_else(|| from?.column_by_name(name))
            .cloned()
            .ok_or_else(|| missing(name))
    };
    let columns = schema.fields().iter().map(|field| column(field.name()));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("pairs have no column {name:?} of the right type"))
}

/// The columns of rows of pairs, found by name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs<'a> {
    /// Ids of the batch's documents.
    pub(crate) new_ids: &'a ArrayRef,
    /// Ids of the other documents of the pairs.
    pub(crate) base_ids: &'a ArrayRef,
    distances: &'a Int32Array,
    base_days: &'a Date32Array,
}

impl<'a> Pairs<'a> {
    /// The columns of `batch`.
    pub(crate) fn read(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| missing(name));
        let distances = column(DISTANCE)?.as_primitive_opt::<Int32Type>();
        let base_days = column(BASE_DAY)?.as_primitive_opt::<Date32Type>();
        Ok(Self {
            new_ids: column(NEW_ID)?,
            base_ids: column(BASE_ID)?,
            distances: distances.ok_or_else(|| missing(DISTANCE))?,
            base_days: base_days.ok_or_else(|| missing(BASE_DAY))?,
        })
    }

    /// Bits in which the fingerprints of the pair at `row` differ.
    pub(crate) fn distance(&self, row: usize) -> i32 {
        self.distances.value(row)
    }

    /// Day of the other document of the pair at `row`, in days since 1970.
    pub(crate) fn base_day(&self, row: usize) -> Option<i32> {
        let is_known = self.base_days.is_valid(row);
        is_known.then(|| self.base_days.value(row))
    }
}
