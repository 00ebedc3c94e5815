//! Parquet files of document frequencies: columns `feature` and `document_frequency`, the most frequent feature first.
//!
//! The footer has the number of documents, the frequency to assume for features that are not listed, and the spec by
//! which texts were split into features.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use simhash::{DocumentFrequencies, Idf, Spec};

use crate::error::{ArchiveError, Result};
use crate::schema::SPEC_KEY;
use crate::validated_pages::{FileParts, ValidatedRowGroups};

/// Column of features.
pub const FEATURE: &str = "feature";
/// Column of the number of documents with each feature.
pub const DOCUMENT_FREQUENCY: &str = "document_frequency";
const DOCUMENTS_KEY: &str = "dedup-job.documents";
const REST_KEY: &str = "dedup-job.rest";
const RECORD_BATCH_ROWS: usize = 8192;

/// Encodes the frequencies of the features that `spec` makes. Errors call the file `name`.
///
/// # Errors
/// [`ArchiveError::Parquet`] when it cannot be encoded.
pub fn encode(name: &str, spec: &Spec, frequencies: &DocumentFrequencies) -> Result<Vec<u8>> {
    let schema = Arc::new(Schema::new(vec![
        Field::new(FEATURE, DataType::Utf8, false),
        Field::new(DOCUMENT_FREQUENCY, DataType::Int64, false),
    ]));
    let metadata = [
        (SPEC_KEY, spec.to_json()),
        (DOCUMENTS_KEY, frequencies.documents.to_string()),
        (REST_KEY, frequencies.rest.to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    let zstd = ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD);
    let frequency = ColumnPath::from(DOCUMENT_FREQUENCY);
    let properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_dictionary_enabled(false)
        .set_column_encoding(frequency, Encoding::DELTA_BINARY_PACKED)
        .set_key_value_metadata(Some(metadata.into()))
        .set_created_by(concat!("dedup-job ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let failed = |error| ArchiveError::parquet(name)(error);
    let mut writer =
        ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).map_err(failed)?;
    for rows in frequencies.features.chunks(1 << 16) {
        let features: StringArray = rows.iter().map(|(feature, _)| Some(feature)).collect();
        let counts = rows.iter().map(|(_, count)| i64::try_from(*count));
        let counts: Int64Array = counts.map(|count| count.unwrap_or(i64::MAX)).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(features), Arc::new(counts)];
        let batch = RecordBatch::try_new(schema.clone(), columns);
        let batch = batch.map_err(ArchiveError::arrow(name))?;
        writer.write(&batch).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}

/// Decodes a file of document frequencies, and returns the spec of the features with it. Errors call the file `name`.
///
/// # Errors
/// [`ArchiveError`] when this program did not make it, or it is damaged.
pub fn decode(name: &str, bytes: Bytes) -> Result<(Spec, DocumentFrequencies)> {
    let bad = |reason: &str| {
        ArchiveError::bad_data(
            name,
            format!("not a table of document frequencies made by `dedup-job idf`: {reason}"),
        )
    };
    let failed = |error: ParquetError| ArchiveError::parquet(name)(error);
    // The Parquet library panics on some forged pages.
    let decoded = std::panic::catch_unwind(|| {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes);
        let metadata = Arc::new(metadata.map_err(failed)?);
        let entries = metadata.file_metadata().key_value_metadata();
        let value = |key: &str| {
            let entry = entries?.iter().find(|entry| entry.key == key)?;
            entry.value.clone()
        };
        let number = |key: &str| {
            let number = value(key).and_then(|value| value.parse::<u64>().ok());
            number.ok_or_else(|| bad(&format!("its footer has no {key}")))
        };
        let (documents, rest) = (number(DOCUMENTS_KEY)?, number(REST_KEY)?);
        let spec = value(SPEC_KEY).ok_or_else(|| bad("its footer has no spec"))?;
        let spec = Spec::from_json(&spec).map_err(|source| ArchiveError::Spec {
            path: name.to_owned(),
            source,
        })?;
        let mut features = Vec::new();
        let groups = 0..metadata.num_row_groups();
        let groups =
            ValidatedRowGroups::new(FileParts::whole(bytes), Arc::clone(&metadata), groups);
        let batches = groups.read(ProjectionMask::all(), RECORD_BATCH_ROWS, None);
        for batch in batches.map_err(failed)? {
            let batch = batch.map_err(ArchiveError::arrow(name))?;
            let column = |name: &str| {
                let column = batch.column_by_name(name);
                column
                    .filter(|column| column.null_count() == 0)
                    .ok_or_else(|| bad(&format!("it has no column {name}, or one with nulls")))
            };
            let names = column(FEATURE)?
                .as_string_opt::<i32>()
                .ok_or_else(|| bad("its features are not text"))?;
            let counts = column(DOCUMENT_FREQUENCY)?
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| bad("its frequencies are not 64-bit integers"))?;
            for (feature, count) in names.iter().flatten().zip(counts.values()) {
                let count = u64::try_from(*count).map_err(|_| bad("a negative frequency"))?;
                features.push((feature.to_owned(), count));
            }
        }
        let frequencies = DocumentFrequencies {
            documents,
            rest,
            features,
        };
        Ok((spec, frequencies))
    });
    decoded.unwrap_or_else(|_| Err(bad("the pages are damaged")))
}

/// The idf weights for fingerprints of `spec`, with the seed and idf power of `spec`. `features` is
/// the spec that split texts into the features of `frequencies`. Errors call the file of
/// frequencies `name`.
///
/// # Errors
/// [`ArchiveError::BadData`] when the frequencies contradict each other.
pub fn weights(
    name: &str,
    features: &Spec,
    spec: &Spec,
    frequencies: &DocumentFrequencies,
) -> Result<Idf> {
    let spec = Spec {
        seed: spec.seed,
        idf_power: spec.idf_power,
        ..features.clone()
    };
    Idf::new(&spec, frequencies).map_err(|error| ArchiveError::bad_data(name, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frequencies() -> DocumentFrequencies {
        DocumentFrequencies {
            documents: 9,
            rest: 1,
            features: vec![("the".into(), 9), ("近似".into(), 2)],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let spec = Spec::default();
        let bytes = encode("x", &spec, &frequencies()).unwrap();
        assert_eq!(decode("x", bytes.into()).unwrap(), (spec, frequencies()));
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let bytes = encode("x", &Spec::default(), &frequencies()).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            // Some bytes do not matter: the result is then the same, or an error, but never a panic.
            let _ = decode("x", damaged.into());
            let _ = decode("x", bytes[..at].to_vec().into()).unwrap_err();
        }
    }
}
