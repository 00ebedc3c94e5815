//! How fingerprints with ids are laid out in Parquet: row groups, pages, encodings.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use simhash::Spec;

use crate::schema::{FINGERPRINT, ID, IdType, SKETCH, SPEC_KEY};

/// Rows of a row group: enough to probe at once, few enough to spread a file over several threads.
pub const ROW_GROUP_ROWS: usize = 1 << 20;
/// Rows of a page of fingerprints.
pub(crate) const PAGE_ROWS: usize = 8192;
/// Minimum rows of a page of ids or sketches. Few, because a reader fetches a whole page to get one
/// row. A page of integer ids, which take few bytes, has many times as many rows.
const SMALL_PAGE_ROWS: usize = 256;
/// Limit of a page of ids, in bytes; the writer tests it every [`SMALL_PAGE_ROWS`] rows.
const ID_PAGE_BYTES: usize = 16 << 10;
/// Limit of a page of sketches, in bytes; tested as [`ID_PAGE_BYTES`] is.
const SKETCH_PAGE_BYTES: usize = 8 << 10;

/// How long a file of fingerprints stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// Until somebody deletes it: its bytes count.
    Kept,
    /// Until the run that writes it ends: the time to write and to read it counts.
    Scratch,
}

/// The properties of every Parquet file of fingerprints that this program writes.
pub(crate) fn writer_properties(
    spec: &Spec,
    id_type: IdType,
    lifetime: Lifetime,
) -> WriterProperties {
    let fingerprint = ColumnPath::from(FINGERPRINT);
    let id = ColumnPath::from(ID);
    let sketch = ColumnPath::from(SKETCH);
    let compression = match lifetime {
        Lifetime::Kept => ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD),
        // The time to compress would be longer than the time to write more bytes.
        Lifetime::Scratch => Compression::UNCOMPRESSED,
    };
    let id_encoding = match id_type {
        // Lengths apart from the texts: UUIDs then take 5 % fewer bytes, and are read in two thirds of the time.
        IdType::String => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        // Integers that were assigned in order compress to almost nothing.
        IdType::Bigint => Encoding::DELTA_BINARY_PACKED,
    };
    WriterProperties::builder()
        .set_column_encoding(fingerprint.clone(), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(fingerprint, false)
        .set_column_encoding(id.clone(), id_encoding)
        .set_column_dictionary_enabled(id.clone(), false)
        .set_column_compression(id.clone(), compression)
        .set_column_data_page_size_limit(id, ID_PAGE_BYTES)
        // All sketches have one length and they are not sorted, so there is nothing to compress.
        .set_column_encoding(sketch.clone(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_column_dictionary_enabled(sketch.clone(), false)
        .set_column_data_page_size_limit(sketch, SKETCH_PAGE_BYTES)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_write_batch_size(SMALL_PAGE_ROWS)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_sorting_columns(Some(vec![SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: false,
        }]))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            SPEC_KEY.to_owned(),
            spec.to_json(),
        )]))
        .set_created_by(concat!("dedup-job ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}
