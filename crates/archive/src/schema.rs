//! Names and types that the data carries: columns, metadata keys, id types.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// Column of fingerprints: BIGINT, the 64 bits in two's complement.
pub const FINGERPRINT: &str = "fp";
/// Column of ids.
pub const ID: &str = "id";
/// Partition column: the day a document came in.
pub const DAY: &str = "day";

/// Metadata key, in Parquet footers and the Delta table, of the fingerprint spec as canonical JSON.
pub const SPEC_KEY: &str = "dedup-job.spec";
/// Key of the footer's metadata that has the sum of each row group's fingerprints, see
/// [`crate::fingerprints::RowGroupSums`].
pub const SUMS_KEY: &str = "dedup-job.row-group-sums";
/// Tag of a data file: SHA-256 of its bytes, hexadecimal.
pub const SHA256_TAG: &str = "sha256";
/// Tag of a data file: digest of its day's rows, see [`crate::fingerprints::RowDigest`].
pub const DAY_DIGEST_TAG: &str = "dedup-job.day-digest";
/// Tag of a data file: the table's version that the day was compared with.
pub const BASE_VERSION_TAG: &str = "dedup-job.base-version";

/// The type of an archive's ids, fixed when it is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdType {
    /// UTF-8 text.
    String,
    /// 64-bit signed integers.
    Bigint,
}

impl IdType {
    /// The Arrow type.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Bigint => DataType::Int64,
        }
    }

    /// The id type that holds values of an Arrow type, if there is one.
    #[must_use]
    pub fn holding(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView => Some(Self::String),
            DataType::Dictionary(_, values) => Self::holding(values),
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

/// Schema of fingerprints with ids: `fp` BIGINT, null where a document has none, and `id`.
#[must_use]
pub fn fingerprints(id_type: IdType, nullable: bool) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(FINGERPRINT, DataType::Int64, nullable),
        Field::new(ID, id_type.data_type(), false),
    ]))
}
