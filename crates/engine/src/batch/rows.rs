//! Rows of fingerprints, ids and sketches, whose columns are found by name.

use archive::schema::{FINGERPRINT, ID};
use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::error::ArrowError;

/// The columns of [`archive::schema::fingerprint_schema`] in a record batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FingerprintRows<'a> {
    /// Fingerprints; null for a document without one.
    pub(crate) fingerprints: &'a Int64Array,
    /// Ids of either type.
    pub(crate) ids: &'a ArrayRef,
    /// Sketches, if the spec has them.
    pub(crate) sketches: Option<&'a BinaryArray>,
}

impl<'a> FingerprintRows<'a> {
    pub(crate) fn read(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let fingerprints = column(batch, FINGERPRINT)?.as_primitive_opt::<Int64Type>();
        Ok(Self {
            fingerprints: fingerprints.ok_or_else(|| missing(FINGERPRINT))?,
            ids: column(batch, ID)?,
            sketches: archive::schema::sketches(batch),
        })
    }

    /// The numbers of the rows that have a fingerprint.
    pub(crate) fn present_rows(self) -> impl Iterator<Item = usize> + 'a {
        let fingerprints = self.fingerprints;
        (0..fingerprints.len()).filter(move |&row| fingerprints.is_valid(row))
    }
}

/// The columns of `schema` in `batch`, in the order of the schema.
pub(crate) fn select_columns(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let fields = schema.fields().iter();
    let columns = fields.map(|field| column(batch, field.name()).cloned());
    RecordBatch::try_new(SchemaRef::clone(schema), columns.collect::<Result<_, _>>()?)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ArrowError> {
    batch.column_by_name(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!(
        "fingerprints have no column {name:?} of the right type"
    ))
}
