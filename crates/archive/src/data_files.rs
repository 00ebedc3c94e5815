//! Data files of an archive: written, read back, and only then named by the log.

use std::collections::HashMap;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::Int64Type;
use chrono::NaiveDate;
use deltalake_core::kernel::Add;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;

use crate::error::{ArchiveError, Result};
use crate::fingerprints;
use crate::reader::{BaseColumns, FingerprintReader};
use crate::schema::{self, BASE_VERSION_TAG, DAY, DAY_DIGEST_TAG, FINGERPRINT, ID, SHA256_TAG};
use crate::table::Archive;
use crate::upload::Upload;

/// A data file that is complete, but not yet in the log.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// Path below the archive's directory.
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) rows: u64,
    sha256: String,
    bounds: Option<(i64, i64)>,
}

/// What the files of a day say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DayTags {
    pub(crate) digest: String,
    pub(crate) base_version: u64,
}

impl WrittenFile {
    /// The log's action for it.
    pub(crate) fn add(&self, day: NaiveDate, tags: &DayTags, now: i64, data_change: bool) -> Add {
        let tag = |name: &str, value: String| (name.to_owned(), Some(value));
        Add {
            path: self.path.clone(),
            partition_values: HashMap::from([(DAY.to_owned(), Some(day.to_string()))]),
            size: self.size.cast_signed(),
            modification_time: now,
            data_change,
            stats: Some(self.stats()),
            tags: Some(HashMap::from([
                tag(SHA256_TAG, self.sha256.clone()),
                tag(DAY_DIGEST_TAG, tags.digest.clone()),
                tag(BASE_VERSION_TAG, tags.base_version.to_string()),
            ])),
            ..Default::default()
        }
    }

    /// Delta's statistics: row count and the range of fingerprints.
    fn stats(&self) -> String {
        let mut stats = serde_json::json!({
            "numRecords": self.rows,
            "nullCount": { FINGERPRINT: 0, ID: 0 },
        });
        if let Some((least, most)) = self.bounds {
            stats["minValues"] = serde_json::json!({ FINGERPRINT: least });
            stats["maxValues"] = serde_json::json!({ FINGERPRINT: most });
        }
        stats.to_string()
    }
}

/// Rows sorted by fingerprint, those without one at the end and left out, to be taken so many at a time.
pub(crate) struct Rows<I> {
    batches: I,
    rest: Option<RecordBatch>,
}

impl<I: Iterator<Item = Result<RecordBatch>>> Rows<I> {
    pub(crate) fn new(batches: I) -> Self {
        Self {
            batches,
            rest: None,
        }
    }

    /// The next rows, `most` of them at most; `None` when there are no more.
    fn next(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => loop {
                let Some(batch) = self.batches.next().transpose()? else {
                    return Ok(None);
                };
                let present = batch.num_rows() - batch.column(0).null_count();
                if present > 0 {
                    break batch.slice(0, present);
                }
            },
        };
        let now = batch.num_rows().min(most);
        if now < batch.num_rows() {
            self.rest = Some(batch.slice(now, batch.num_rows() - now));
        }
        Ok(Some(batch.slice(0, now)))
    }
}

impl Archive {
    /// Writes the next `rest` rows as data files of `day`. On an error, those that were written are in `written`.
    pub(crate) async fn write_files<I>(
        &self,
        day: NaiveDate,
        mut rest: u64,
        rows: &mut Rows<I>,
        written: &mut Vec<WrittenFile>,
    ) -> Result<()>
    where
        I: Iterator<Item = Result<RecordBatch>>,
    {
        // A day without rows is a file without rows: it carries the day's digest.
        loop {
            let count = rest.min(self.file_rows());
            let number = written.len();
            let name = uuid::Uuid::new_v4();
            let path = format!("{DAY}={day}/part-{number:05}-{name}.parquet");
            let file = self.write_file(path, count, rows).await?;
            let checked = self.read_back(&file).await;
            written.push(file);
            checked?;
            rest -= count;
            if rest == 0 {
                return Ok(());
            }
        }
    }

    /// Writes the next `count` rows as one data file.
    async fn write_file<I>(
        &self,
        path: String,
        count: u64,
        rows: &mut Rows<I>,
    ) -> Result<WrittenFile>
    where
        I: Iterator<Item = Result<RecordBatch>>,
    {
        let object = self.location().child_name(&path);
        let failed = |error| ArchiveError::parquet(object.clone())(error);
        let arrow_error = |source| ArchiveError::Arrow {
            object: object.clone(),
            source,
        };
        let schema = schema::fingerprints(self.id_type(), false);
        let options = ArrowWriterOptions::new()
            .with_properties(fingerprints::properties(self.spec(), self.id_type()))
            .with_skip_arrow_metadata(true);
        let (upload, uploaded) = Upload::new(self.object_store(), Path::from(path.as_str()));
        let mut writer = AsyncArrowWriter::try_new_with_options(upload, schema.clone(), options)
            .map_err(failed)?;
        let mut bounds: Option<(i64, i64)> = None;
        let mut sums = fingerprints::RowGroupSums::default();
        let mut rest = count as usize;
        let mut coalescer = BatchCoalescer::new(schema.clone(), fingerprints::ROW_GROUP_ROWS / 32);
        while rest > 0 {
            let Some(batch) = rows.next(rest)? else {
                return Err(ArchiveError::BadData {
                    object,
                    reason: format!("{rest} rows are missing"),
                });
            };
            rest -= batch.num_rows();
            let columns = batch.columns().to_vec();
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(arrow_error)?;
            bounds = widen(bounds, &batch);
            sums.update(batch.column(0).as_primitive::<Int64Type>().values());
            coalescer.push_batch(batch).map_err(arrow_error)?;
            if rest == 0 {
                coalescer.finish_buffered_batch().map_err(arrow_error)?;
            }
            while let Some(batch) = coalescer.next_completed_batch() {
                writer.write(&batch).await.map_err(failed)?;
            }
        }
        writer.append_key_value_metadata(sums.to_metadata());
        let closed = writer.close().await;
        let uploaded = uploaded.lock().await;
        if let Err(error) = closed {
            // The answer may be lost, and the file be there.
            let error = failed(error);
            let stored = self.location().child(&path)?.digest().await;
            if !stored.is_ok_and(|found| found == (uploaded.size, uploaded.sha256())) {
                return Err(error);
            }
            tracing::info!("{object} is stored, though the store answered otherwise: {error}");
        }
        Ok(WrittenFile {
            path,
            size: uploaded.size,
            sha256: uploaded.sha256(),
            rows: count,
            bounds,
        })
    }

    /// Whether the store has what was written: size, digest and rows.
    async fn read_back(&self, file: &WrittenFile) -> Result<()> {
        let object = self.location().child(&file.path)?;
        let (size, found) = object.digest().await?;
        if (size, &found) != (file.size, &file.sha256) {
            return Err(ArchiveError::Digest {
                object: object.to_string(),
                expected: file.sha256.clone(),
                found,
            });
        }
        let columns = BaseColumns::standard_or(None, None);
        let reader = FingerprintReader::open(object.given(), &object, size, &columns).await?;
        let rows: u64 = reader.row_groups().sum();
        if rows != file.rows {
            return Err(ArchiveError::BadData {
                object: object.to_string(),
                reason: format!("{} rows were written, it has {rows}", file.rows),
            });
        }
        Ok(())
    }

    /// Removes data files that no log entry names, as far as possible: one that stays harms no reader.
    pub(crate) async fn remove(&self, written: &[WrittenFile]) {
        let store = self.object_store();
        for data in written {
            if let Err(error) = store.delete(&Path::from(data.path.as_str())).await {
                let error = ArchiveError::store(self.location().child_name(&data.path))(error);
                tracing::warn!("an unreferenced data file stays: {error}");
            }
        }
    }
}

/// The range of fingerprints, with those of a sorted batch added.
fn widen(bounds: Option<(i64, i64)>, batch: &RecordBatch) -> Option<(i64, i64)> {
    let values = batch.column(0).as_primitive::<Int64Type>().values();
    match (bounds, values.first(), values.last()) {
        (Some((least, _)), _, Some(&last)) => Some((least, last)),
        (None, Some(&first), Some(&last)) => Some((first, last)),
        (bounds, ..) => bounds,
    }
}
