//! The columns of pairs: the one table that schemas, the reduce, the output and its readers follow.
//!
//! To add a column, add its name, an entry of [`COLUMNS`], and its value in the stage that makes
//! it: `probe::pair_builder` or `verify::compare`. Either stage can make the similarity; a run uses
//! one of them for it, or none.

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

#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    /// Its Arrow type, given the type of the ids.
    data_type: fn(IdType) -> DataType,
    nullable: bool,
    maker: Maker,
}

impl Column {
    const fn new(name: &'static str, data_type: fn(IdType) -> DataType, maker: Maker) -> Self {
        Self {
            name,
            data_type,
            nullable: false,
            maker,
        }
    }

    const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }
}

/// The stage that makes a column, and what the reduce does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// The probe; the reduce keeps one row for each value of all key columns.
    Key,
    /// The probe; of rows with equal key columns, the reduce keeps the least value.
    Least,
    /// The probe makes it from sketches, or the verification from texts; if a run has neither,
    /// pairs lack the column. Of rows with equal key columns, the reduce keeps the greatest value.
    Greatest,
}

/// The columns, in the order of the output.
pub static COLUMNS: [Column; 5] = [
    Column::new(NEW_ID, IdType::data_type, Maker::Key),
    Column::new(BASE_ID, IdType::data_type, Maker::Key),
    Column::new(DISTANCE, |_| DataType::Int32, Maker::Least),
    Column::new(BASE_DAY, |_| DataType::Date32, Maker::Key).nullable(),
    Column::new(SIMILARITY, |_| DataType::Float64, Maker::Greatest).nullable(),
];

/// The columns that the output is sorted by.
pub const ORDER: [&str; 4] = [NEW_ID, DISTANCE, BASE_ID, BASE_DAY];

/// The columns of pairs with or without similarities.
fn columns(similarities: Similarities) -> impl Iterator<Item = &'static Column> {
    let is_present = move |column: &&Column| match column.maker {
        Maker::Key | Maker::Least => true,
        Maker::Greatest => similarities == Similarities::Known,
    };
    COLUMNS.iter().filter(is_present)
}

/// The columns that `maker` makes.
pub(crate) fn columns_of(maker: Maker) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(move |column| column.maker == maker)
}

/// Whether the pairs of a run have similarities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarities {
    /// No: there are no sketches, and texts are not compared.
    Unknown,
    Known,
}

pub fn schema(id_type: IdType, similarities: Similarities) -> SchemaRef {
    let field =
        |column: &Column| Field::new(column.name, (column.data_type)(id_type), column.nullable);
    let fields: Vec<Field> = columns(similarities).map(field).collect();
    Arc::new(Schema::new(fields))
}

/// The column names of pairs without similarities, then those of pairs with them.
pub(crate) fn layouts() -> [Vec<&'static str>; 2] {
    [Similarities::Unknown, Similarities::Known]
        .map(|similarities| columns(similarities).map(|column| column.name).collect())
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
