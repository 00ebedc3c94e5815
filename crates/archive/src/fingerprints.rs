//! A day's fingerprints as one Parquet file: what the map writes, and the probe and the archive read.
//!
//! Columns `fp` (BIGINT, null where a document has none) and `id`, sorted by `fp` ascending with nulls last, then
//! by `id`; the spec in the footer. The order makes equal days equal files, and is the archive's own.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use sha2::{Digest as _, Sha256};
use simhash::Spec;

use crate::error::{ArchiveError, Result};
use crate::schema::{self, FINGERPRINT, ID, IdType, SPEC_KEY};
use crate::upload::hex;

/// Rows of a row group: large enough to probe in one go, small enough to share out.
pub const ROW_GROUP_ROWS: usize = 1 << 20;
/// Rows of a page of fingerprints.
const PAGE_ROWS: usize = 8192;
/// Rows of a page of ids, when they are text: what has to be read to find one id. Numbers take a few times as many.
const ID_PAGE_ROWS: usize = 1024;
/// A page of ids ends as soon as it has this many bytes, looked at every [`ID_PAGE_ROWS`].
const ID_PAGE_BYTES: usize = 16 << 10;
/// Rows that are handed to the Parquet writer at once; with fixed pages this makes its bytes independent of
/// how the rows came in.
const WRITE_ROWS: usize = 4 * PAGE_ROWS;

/// How fingerprints with ids are laid out in Parquet.
pub(crate) fn properties(spec: &Spec, id_type: IdType) -> WriterProperties {
    let fingerprint = ColumnPath::from(FINGERPRINT);
    let id = ColumnPath::from(ID);
    let zstd = ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD);
    let builder = WriterProperties::builder();
    let builder = match id_type {
        IdType::String => builder,
        // Numbers that were given out in order take next to nothing.
        IdType::Bigint => builder.set_column_encoding(id.clone(), Encoding::DELTA_BINARY_PACKED),
    };
    builder
        .set_column_encoding(fingerprint.clone(), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(fingerprint, false)
        .set_column_dictionary_enabled(id.clone(), false)
        .set_column_compression(id.clone(), zstd)
        .set_column_data_page_size_limit(id, ID_PAGE_BYTES)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_write_batch_size(ID_PAGE_ROWS)
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

/// SHA-256 over a day's rows with fingerprints, in the file's order: the spec's digest, then for each row the
/// fingerprint and the id (text behind its length), little-endian. Independent of files and row groups.
#[derive(Debug, Clone)]
pub struct RowDigest(Sha256);

impl RowDigest {
    /// The digest of no rows under `spec`.
    #[must_use]
    pub fn new(spec: &Spec) -> Self {
        Self(Sha256::new_with_prefix(spec.digest()))
    }

    /// Adds the rows of a batch of [`schema::fingerprints`].
    pub fn update(&mut self, batch: &RecordBatch) {
        let fingerprints = batch.column(0).as_primitive::<Int64Type>();
        let text = batch.column(1).as_string_opt::<i32>();
        let numbers = batch.column(1).as_primitive_opt::<Int64Type>();
        for row in (0..batch.num_rows()).filter(|&row| fingerprints.is_valid(row)) {
            self.0.update(fingerprints.value(row).to_le_bytes());
            if let Some(text) = text {
                let id = text.value(row).as_bytes();
                self.0.update((id.len() as u64).to_le_bytes());
                self.0.update(id);
            } else if let Some(numbers) = numbers {
                self.0.update(numbers.value(row).to_le_bytes());
            }
        }
    }

    /// The digest in hexadecimal.
    #[must_use]
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// For each row group its rows and the sum of its fingerprints, modulo 2⁶⁴: a check that costs next to nothing while
/// they are decoded anyway. In delta-encoded values one flipped bit shifts all that follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowGroupSums {
    sums: Vec<u64>,
    rows: usize,
}

impl RowGroupSums {
    /// Adds the next fingerprints, all of them present.
    pub fn update(&mut self, fingerprints: &[i64]) {
        let mut rest = fingerprints;
        while !rest.is_empty() {
            let room = ROW_GROUP_ROWS - self.rows % ROW_GROUP_ROWS;
            if room == ROW_GROUP_ROWS {
                self.sums.push(0);
            }
            let (now, later) = rest.split_at(rest.len().min(room));
            if let Some(sum) = self.sums.last_mut() {
                *sum = sum.wrapping_add(Self::of(now));
            }
            self.rows += now.len();
            rest = later;
        }
    }

    /// The sum of some fingerprints.
    pub(crate) fn of(fingerprints: &[i64]) -> u64 {
        fingerprints
            .iter()
            .fold(0, |sum: u64, value| sum.wrapping_add(value.cast_unsigned()))
    }

    /// The footer's entry.
    pub(crate) fn to_metadata(&self) -> KeyValue {
        let left = |group: usize| self.rows - group * ROW_GROUP_ROWS;
        let entries: Vec<String> = self
            .sums
            .iter()
            .enumerate()
            .map(|(group, sum)| format!("{}:{sum:016x}", left(group).min(ROW_GROUP_ROWS)))
            .collect();
        KeyValue::new(schema::SUMS_KEY.to_owned(), entries.join(","))
    }

    /// The sums in a footer's entry; `None` when it is not about row groups of so many rows: other programs copy
    /// entries that they do not know into files that they write anew.
    pub(crate) fn parse(text: &str, row_groups: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
        let mut row_groups = row_groups;
        let sums: Option<Vec<u64>> = text
            .split(',')
            .map(|entry| {
                let (rows, sum) = entry.split_once(':')?;
                (rows.parse().ok() == row_groups.next())
                    .then(|| u64::from_str_radix(sum, 16).ok())?
            })
            .collect();
        sums.filter(|_| row_groups.next().is_none())
    }
}

/// A finished file of fingerprints on the local disk.
#[derive(Debug, Clone)]
pub struct FingerprintFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// Those of them that have no fingerprint.
    pub without_fingerprint: u64,
    /// Digest of the rows that have one.
    pub digest: String,
    /// The type of its ids.
    pub id_type: IdType,
    /// The spec of its fingerprints.
    pub spec: Spec,
}

impl FingerprintFile {
    /// Its rows, in batches of [`schema::fingerprints`].
    ///
    /// # Errors
    /// [`ArchiveError`] when it cannot be opened.
    pub fn read(&self) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let name = self.path.display().to_string();
        let file = File::open(&self.path).map_err(|source| ArchiveError::Io {
            path: name.clone(),
            source,
        })?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(WRITE_ROWS).build())
            .map_err(ArchiveError::parquet(name.clone()))?;
        Ok(reader.map(move |batch| {
            batch.map_err(|source| ArchiveError::Arrow {
                object: name.clone(),
                source,
            })
        }))
    }
}

/// Writes a [`FingerprintFile`].
pub struct FingerprintWriter {
    path: PathBuf,
    writer: ArrowWriter<BufWriter<File>>,
    coalescer: BatchCoalescer,
    digest: RowDigest,
    rows: u64,
    without_fingerprint: u64,
    last: Option<i64>,
    id_type: IdType,
    spec: Spec,
}

impl FingerprintWriter {
    /// Begins the file at `path`.
    ///
    /// # Errors
    /// [`ArchiveError::Io`] when it cannot be created.
    pub fn create(path: &Path, id_type: IdType, spec: &Spec) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|source| ArchiveError::Io {
            path: name.clone(),
            source,
        })?;
        let schema = schema::fingerprints(id_type, true);
        let options = ArrowWriterOptions::new()
            .with_properties(properties(spec, id_type))
            .with_skip_arrow_metadata(true);
        let writer =
            ArrowWriter::try_new_with_options(BufWriter::new(file), schema.clone(), options)
                .map_err(ArchiveError::parquet(name))?;
        Ok(Self {
            path: path.to_owned(),
            writer,
            coalescer: BatchCoalescer::new(schema, WRITE_ROWS),
            digest: RowDigest::new(spec),
            rows: 0,
            without_fingerprint: 0,
            last: None,
            id_type,
            spec: spec.clone(),
        })
    }

    /// Appends rows, which must continue the order.
    ///
    /// # Errors
    /// [`ArchiveError`] when the rows are out of order or cannot be written.
    pub fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let fingerprints = batch.column(0).as_primitive::<Int64Type>();
        let present = fingerprints.len() - fingerprints.null_count();
        let sorted = fingerprints.iter().take(present).all(|value| {
            let ordered = value.is_some() && self.last <= value;
            self.last = value;
            ordered
        });
        if !sorted || (present > 0 && self.without_fingerprint > 0) {
            return Err(self.bad_data("the rows are not sorted by fingerprint"));
        }
        self.rows += batch.num_rows() as u64;
        self.without_fingerprint += fingerprints.null_count() as u64;
        self.digest.update(&batch);
        let object = self.path.display().to_string();
        self.coalescer
            .push_batch(batch)
            .map_err(|source| ArchiveError::Arrow { object, source })?;
        self.drain()
    }

    /// Completes the file.
    ///
    /// # Errors
    /// [`ArchiveError`] when the rest cannot be written.
    pub fn finish(mut self) -> Result<FingerprintFile> {
        let name = self.path.display().to_string();
        self.coalescer
            .finish_buffered_batch()
            .map_err(|source| ArchiveError::Arrow {
                object: name.clone(),
                source,
            })?;
        self.drain()?;
        let file = self
            .writer
            .into_inner()
            .map_err(ArchiveError::parquet(name.clone()))?;
        let size = file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(|file| Ok(file.metadata()?.len()));
        Ok(FingerprintFile {
            bytes: size.map_err(|source| ArchiveError::Io { path: name, source })?,
            path: self.path,
            rows: self.rows,
            without_fingerprint: self.without_fingerprint,
            digest: self.digest.finish(),
            id_type: self.id_type,
            spec: self.spec,
        })
    }

    fn drain(&mut self) -> Result<()> {
        while let Some(batch) = self.coalescer.next_completed_batch() {
            let name = self.path.display().to_string();
            self.writer
                .write(&batch)
                .map_err(ArchiveError::parquet(name))?;
        }
        Ok(())
    }

    fn bad_data(&self, reason: &str) -> ArchiveError {
        ArchiveError::BadData {
            object: self.path.display().to_string(),
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_belong_to_row_groups_of_their_own_size() {
        let mut sums = RowGroupSums::default();
        sums.update(&vec![3; ROW_GROUP_ROWS - 1]);
        sums.update(&[-1, 5, 6]);
        let text = sums.to_metadata().value.unwrap();
        let parse = |rows: &[u64]| RowGroupSums::parse(&text, rows.iter().copied());
        let full = ROW_GROUP_ROWS as u64;
        assert_eq!(parse(&[full, 2]), Some(vec![3 * (full - 1) - 1, 11]));
        for other in [&[full][..], &[full, 1], &[full, 2, 1], &[full + 2], &[]] {
            assert_eq!(parse(other), None, "{other:?}");
        }
        assert_eq!(RowGroupSums::parse("0003,x", [1, 1].into_iter()), None);
    }
}
