//! Refusing Delta tables that this program would misread.
//!
//! Other programs may use features that change which rows count, or what their columns mean. This
//! module refuses such a table, and names the feature: without that, a run would find deleted
//! documents, and `compact` would bring them back.

use deltalake_core::DeltaTable;
use deltalake_core::kernel::{DataType, StructField};
use simhash::Spec;

use crate::delta::catch_panic;
use crate::error::{ArchiveError, Result};
use crate::schema::{DAY, FINGERPRINT, ID, IdType, KEPT, SKETCH};

/// Delta's reader features that change neither rows nor columns.
const HARMLESS: [&str; 4] = [
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    // `refuse_unreadable` checks each file for a deletion vector instead.
    "deletionVectors",
];

/// Refuses a table with a feature that makes its rows differ from those in its data files.
///
/// # Errors
/// [`ArchiveError::Unreadable`] naming the feature, [`ArchiveError::BadData`] for a data file outside the table.
pub(crate) fn refuse_unreadable(table: &DeltaTable, given: &str) -> Result<()> {
    let state = table.snapshot().map_err(ArchiveError::delta(given))?;
    let unreadable = |feature: String| ArchiveError::Unreadable {
        path: given.to_owned(),
        feature,
    };
    let features = state.protocol().reader_features().unwrap_or_default();
    let mut features: Vec<String> = features.iter().map(ToString::to_string).collect();
    features.retain(|feature| !HARMLESS.contains(&feature.as_str()));
    features.sort();
    if !features.is_empty() {
        return Err(unreadable(features.join(", ")));
    }
    let configuration = state.metadata().configuration();
    if configuration
        .get("delta.columnMapping.mode")
        .is_some_and(|mode| mode != "none")
    {
        return Err(unreadable("columnMapping".into()));
    }
    let log = state.log_data();
    let files = catch_panic(|| {
        let files = log.iter().map(|file| {
            let has_vector = file.deletion_vector_descriptor().is_some();
            (file.path().into_owned(), has_vector)
        });
        files.collect::<Vec<_>>()
    });
    for (path, has_vector) in files.map_err(ArchiveError::delta(given))? {
        if has_vector {
            return Err(unreadable(format!(
                "deletionVectors (of {path}); rewrite its files, as by REORG TABLE … APPLY (PURGE)"
            )));
        }
        check_path(given, &path)?;
    }
    Ok(())
}

/// Refuses a data file whose path leads outside its table.
pub(crate) fn check_path(given: &str, path: &str) -> Result<()> {
    // The scheme of a URL ends in a colon, with or without slashes after it.
    let first = path.split('/').next().unwrap_or_default();
    let is_absolute = first.is_empty() || first.contains(':');
    if is_absolute || path.split('/').any(|part| part == "..") {
        Err(ArchiveError::bad_data(
            given,
            format!(
                "its log names a data file outside the table: {path}; tables that share files with others (shallow clones) cannot be read"
            ),
        ))
    } else {
        Ok(())
    }
}

/// Refuses a table that does not have exactly the columns of an archive with this spec, partitioned by day. Returns its id type,
/// and whether it has the column `kept`.
///
/// # Errors
/// [`ArchiveError::ForeignTable`] with the difference.
pub(crate) fn require_archive_schema(
    table: &DeltaTable,
    spec: &Spec,
    given: &str,
) -> Result<(IdType, bool)> {
    let state = table.snapshot().map_err(ArchiveError::delta(given))?;
    let foreign = |reason: String| {
        Err(ArchiveError::ForeignTable {
            path: given.to_owned(),
            reason,
        })
    };
    let partitions = state.metadata().partition_columns();
    if *partitions != [DAY] {
        return foreign(format!(
            "it is partitioned by {}, not by {DAY}",
            if partitions.is_empty() {
                "nothing".to_owned()
            } else {
                partitions.to_vec().join(", ")
            }
        ));
    }
    let schema = state.schema();
    let type_of = |name: &str| schema.field(name).map(StructField::data_type);
    let mut expected = vec![(FINGERPRINT, DataType::LONG), (DAY, DataType::DATE)];
    if !spec.sketch.is_none() {
        expected.push((SKETCH, DataType::BINARY));
    }
    let has_kept = type_of(KEPT).is_some();
    if has_kept {
        expected.push((KEPT, DataType::BOOLEAN));
    }
    for (name, expected) in &expected {
        let name = *name;
        if type_of(name) != Some(expected) {
            return foreign(match type_of(name) {
                Some(found) => format!("its column {name} is {found}, not {expected}"),
                None => format!("it has no column {name}"),
            });
        }
    }
    if let Some(other) = schema.fields().find(|field| {
        let name = field.name().as_str();
        name != ID && !expected.iter().any(|(known, _)| *known == name)
    }) {
        return foreign(format!("it has another column, {}", other.name()));
    }
    match type_of(ID) {
        Some(&DataType::STRING) => Ok((IdType::String, has_kept)),
        Some(&DataType::LONG) => Ok((IdType::Bigint, has_kept)),
        Some(other) => foreign(format!("its column {ID} is {other}, not string or long")),
        None => foreign(format!("it has no column {ID}")),
    }
}
