//! Names and types in the data: columns, metadata keys, tags, id types.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, BinaryArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use simhash::SketchBits;

/// Column of fingerprints: BIGINT, the 64 bits in two's complement.
pub const FINGERPRINT: &str = "fp";
/// Column of ids.
pub const ID: &str = "id";
/// Column of sketches, in archives and files whose spec has them: BINARY, all of the spec's length.
pub const SKETCH: &str = "sketch";
/// Column of decisions, in archives that were created with it: BOOLEAN, whether the run that added a document kept it. Null
/// where nothing was decided; such a document counts as kept.
pub const KEPT: &str = "kept";
/// Partition column: the day on which a document was added.
pub const DAY: &str = "day";

/// Metadata key of the fingerprint spec, as canonical JSON, in Parquet footers and in the Delta table.
pub const SPEC_KEY: &str = "dedup-job.spec";
/// Metadata key of the settings of runs, in the Delta table; see [`RunDefaults`](crate::RunDefaults).
pub const RUN_DEFAULTS_KEY: &str = "dedup-job.run-defaults";
/// Metadata key of the archive's format, in the Delta table.
pub const FORMAT_KEY: &str = "dedup-job.format";
/// The format of archives that this program creates, the only one that it reads.
pub const FORMAT: &str = "2";
/// Metadata key, in Parquet footers, of the checksums of each row group's fingerprints; see `row_group_sums`.
pub const CHECKSUMS_KEY: &str = "dedup-job.row-group-checksums";
/// Tag of a data file: SHA-256 of its bytes, hexadecimal.
pub const SHA256_TAG: &str = "sha256";
/// Tag of a data file: offsets and checksums of its sector sums and its footer; see `file_checksums`.
pub const TAIL_TAG: &str = "dedup-job.tail";
/// Tag of a data file: digest of its day's rows, as in [`FingerprintFile::digest`](crate::FingerprintFile::digest).
pub const DAY_DIGEST_TAG: &str = "dedup-job.day-digest";
/// Tag of a data file: what names its commit in rulings.
pub const COMMIT_TAG: &str = "dedup-job.commit";
/// Tag of a data file: the name of the batch of its day, if it has one.
pub const BATCH_TAG: &str = "dedup-job.batch";
/// Tag of a data file: the table version that its day was compared with.
pub const BASE_VERSION_TAG: &str = "dedup-job.base-version";
/// Tag of a data file: whether its day's commit appended all documents or only the kept ones, and
/// by which settings they were decided; a [`DecisionSettings`](crate::DecisionSettings).
pub const DECISIONS_TAG: &str = "dedup-job.decisions";

/// The most bytes of an id: rows are held in memory by the thousand.
pub const MAX_ID_BYTES: usize = 8 << 10;

/// The type of an archive's ids, fixed when it is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IdType {
    /// UTF-8 text.
    String,
    /// 64-bit signed integers.
    Bigint,
}

impl IdType {
    pub fn data_type(self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Bigint => DataType::Int64,
        }
    }

    /// The id type for columns of an Arrow type, if there is one.
    pub fn for_arrow(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView => Some(Self::String),
            DataType::Dictionary(_, values) => Self::for_arrow(values),
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32 => Some(Self::Bigint),
            _ => None,
        }
    }
}

impl fmt::Display for IdType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "string",
            Self::Bigint => "bigint",
        })
    }
}

impl FromStr for IdType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "string" => Ok(Self::String),
            "bigint" => Ok(Self::Bigint),
            other => Err(format!("{other:?} is neither string nor bigint")),
        }
    }
}

/// Arrow schema of fingerprints with ids: `fp`, null if the document has no fingerprint, `id` and, if the spec has
/// sketches, `sketch`. A sketch is null if there is no fingerprint, or if another program wrote the row.
pub fn fingerprint_schema(id_type: IdType, sketch: SketchBits, nullable: bool) -> SchemaRef {
    let mut fields = vec![
        Field::new(FINGERPRINT, DataType::Int64, nullable),
        Field::new(ID, id_type.data_type(), false),
    ];
    if !sketch.is_none() {
        fields.push(Field::new(SKETCH, DataType::Binary, true));
    }
    Arc::new(Schema::new(fields))
}

pub(crate) fn with_kept(schema: &Schema) -> SchemaRef {
    let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(KEPT, DataType::Boolean, true)));
    Arc::new(Schema::new(fields))
}

/// The column `kept` of rows; `None` if they have none.
pub(crate) fn kept(rows: &RecordBatch) -> Option<&BooleanArray> {
    rows.column_by_name(KEPT)?.as_boolean_opt()
}

/// Whether a row is kept; `None` if nothing was decided about it.
pub(crate) fn kept_at(rows: &RecordBatch, row: usize) -> Option<bool> {
    let kept = kept(rows).filter(|kept| kept.is_valid(row))?;
    Some(kept.value(row))
}

/// Checks that all sketches have this size; nulls pass.
///
/// # Errors
/// A message about the first sketch of another size.
pub(crate) fn check_sketches(sketches: &BinaryArray, size: SketchBits) -> Result<(), String> {
    let mut lengths = sketches.iter().flatten().map(<[u8]>::len);
    match lengths.find(|length| *length != size.bytes()) {
        None => Ok(()),
        Some(bytes) => Err(format!(
            "a sketch of {} bits, where the spec asks for {size}",
            8 * bytes
        )),
    }
}

/// The sketches of rows with a schema of [`fingerprint_schema`]; `None` if it has none.
pub fn sketches(rows: &RecordBatch) -> Option<&BinaryArray> {
    rows.column_by_name(SKETCH)?.as_binary_opt::<i32>()
}

/// The sketch of a row, if it has one.
pub(crate) fn sketch_at(rows: &RecordBatch, row: usize) -> Option<&[u8]> {
    let sketches = sketches(rows).filter(|sketches| sketches.is_valid(row))?;
    Some(sketches.value(row))
}
