//! The columns of fingerprints and ids in a Parquet file.

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use serde::{Deserialize, Serialize};

use crate::error::{ArchiveError, Result};
use crate::schema::{FINGERPRINT, ID, IdType, KEPT, SKETCH};

/// Names of the columns to read. Of several names, the first that a file has is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ColumnNames {
    pub fingerprint: Vec<String>,
    /// Names of the column of ids.
    pub id: Vec<String>,
}

impl ColumnNames {
    /// For each column the given name, if any, then the standard name.
    pub fn given_or_standard(fingerprint: Option<&str>, id: Option<&str>) -> Self {
        let names = |given: Option<&str>, standard: &str| {
            let all = given.into_iter().chain([standard]);
            all.map(str::to_owned).collect()
        };
        Self {
            fingerprint: names(fingerprint, FINGERPRINT),
            id: names(id, ID),
        }
    }
}

/// Index of the leaf column with the first of `names` that the file has. Refuses a repeated column.
fn leaf(name: &str, schema: &SchemaDescriptor, names: &[String]) -> Result<usize> {
    let position = |column: &String| {
        let mut all = schema.columns().iter();
        all.position(|c| c.path().parts() == [column.as_str()])
    };
    let found = names.iter().find_map(position);
    found
        .filter(|&leaf| schema.column(leaf).max_rep_level() == 0)
        .ok_or_else(|| {
            let fields = schema.root_schema().get_fields().iter();
            let columns: Vec<&str> = fields.map(|field| field.name()).collect();
            ArchiveError::bad_data(
                name,
                format!(
                    "no column {} with one value in each row; its columns are {}",
                    names.join(" or "),
                    columns.join(", ")
                ),
            )
        })
}

/// Index of the leaf column of fingerprints, which must hold 64-bit integers.
pub(super) fn fingerprint_leaf(
    name: &str,
    schema: &SchemaDescriptor,
    columns: &[String],
) -> Result<usize> {
    let leaf = leaf(name, schema, columns)?;
    let descriptor = schema.column(leaf);
    let integer = matches!(
        (descriptor.logical_type_ref(), descriptor.converted_type()),
        (Some(LogicalType::Integer(_)), _)
            | (
                None,
                ConvertedType::NONE | ConvertedType::INT_64 | ConvertedType::UINT_64
            )
    );
    if descriptor.physical_type() == PhysicalType::INT64 && integer {
        return Ok(leaf);
    }
    let expected = "fingerprints are 64-bit integers";
    Err(wrong_type(name, &descriptor, expected))
}

/// Index of the leaf column of ids, and their type.
pub(super) fn id_leaf(
    name: &str,
    schema: &SchemaDescriptor,
    columns: &[String],
) -> Result<(usize, IdType)> {
    let leaf = leaf(name, schema, columns)?;
    let descriptor = schema.column(leaf);
    match descriptor.physical_type() {
        PhysicalType::BYTE_ARRAY => Ok((leaf, IdType::String)),
        PhysicalType::INT32 | PhysicalType::INT64
            if matches!(
                descriptor.logical_type_ref(),
                None | Some(LogicalType::Integer(_))
            ) =>
        {
            Ok((leaf, IdType::Bigint))
        }
        _ => Err(wrong_type(name, &descriptor, "ids are text or integers")),
    }
}

/// Index of the leaf column of sketches; `None` if the file has no such column. Refuses one of another type.
pub(super) fn sketch_leaf(name: &str, schema: &SchemaDescriptor) -> Result<Option<usize>> {
    let columns = schema.columns().iter();
    let Some(leaf) = columns.clone().position(|c| c.path().parts() == [SKETCH]) else {
        return Ok(None);
    };
    let descriptor = schema.column(leaf);
    match descriptor.physical_type() {
        PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY
            if descriptor.max_rep_level() == 0 =>
        {
            Ok(Some(leaf))
        }
        _ => Err(wrong_type(name, &descriptor, "sketches are bytes")),
    }
}

/// Index of the leaf column of decisions; `None` if the file has no such column, or a repeated one.
/// `FingerprintReader::rows` checks its type: a plain file may have a column of the same name that
/// means something else.
pub(super) fn kept_leaf(schema: &SchemaDescriptor) -> Option<usize> {
    let mut columns = schema.columns().iter();
    columns.position(|column| column.path().parts() == [KEPT] && column.max_rep_level() == 0)
}

/// The error for a column of another type than `expected` says.
fn wrong_type(name: &str, column: &ColumnDescriptor, expected: &str) -> ArchiveError {
    let found = match column.logical_type_ref() {
        Some(logical) => format!("{logical:?}"),
        None => column.physical_type().to_string(),
    };
    ArchiveError::bad_data(
        format!("{name}, column {:?}", column.name()),
        format!("{expected}, this is {found}"),
    )
}
