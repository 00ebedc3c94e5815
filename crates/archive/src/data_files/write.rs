//! Writing rows as data files.

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::Int64Type;
use chrono::NaiveDate;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::errors::ParquetError;
use storage::{StorageError, Upload};

use super::{NO_DAY, WrittenFile};
use crate::error::{ArchiveError, Result};
use crate::file_checksums::{SectorSummer, Tail};
use crate::parquet_properties::{Lifetime, ROW_GROUP_ROWS, writer_properties};
use crate::reader::{ColumnNames, FingerprintReader};
use crate::row_group_sums::RowGroupSummer;
use crate::row_groups::RowGroups;
use crate::schema::DAY;
use crate::table::Archive;

/// Rows of the record batches that the encoders get: a divisor of a row group, and a multiple of a segment.
const ENCODED_ROWS: usize = ROW_GROUP_ROWS / 32;
/// The same for rows that another program wrote: so few that ids of 1 MiB fit one array.
const FOREIGN_ROWS: usize = 1 << 10;

/// Hands out rows in any number, whatever the sizes of the record batches that hold them. The
/// record batches must be sorted by fingerprint, nulls last; rows without a fingerprint are
/// skipped.
pub(crate) struct RowsToWrite<I> {
    batches: I,
    rest: Option<RecordBatch>,
    at_once: usize,
}

impl<I: Iterator<Item = Result<RecordBatch>>> RowsToWrite<I> {
    pub(crate) fn new(batches: I) -> Self {
        Self {
            batches,
            rest: None,
            at_once: ENCODED_ROWS,
        }
    }

    /// Rows of a data file of another program, whose ids may be longer.
    pub(crate) fn foreign(batches: I) -> Self {
        Self {
            at_once: FOREIGN_ROWS,
            ..Self::new(batches)
        }
    }

    /// The next rows, `most` at most; `None` after the last.
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
    /// Writes the next `count` rows as data files of `day`. Adds each complete file to `written`,
    /// even if an error follows.
    pub(crate) async fn write_files(
        &self,
        day: Option<NaiveDate>,
        mut count: u64,
        rows: &mut RowsToWrite<impl Iterator<Item = Result<RecordBatch>>>,
        written: &mut Vec<WrittenFile>,
    ) -> Result<()> {
        // A day without rows gets a file without rows, because the file's tags hold the day's digest.
        loop {
            let file_rows = count.min(self.file_rows);
            let number = written.len();
            let name = uuid::Uuid::new_v4();
            let path = match day {
                Some(day) => format!("{DAY}={day}/part-{number:05}-{name}.parquet"),
                None => format!("{DAY}={NO_DAY}/part-{number:05}-{name}.parquet"),
            };
            let file = self.write_file(path, file_rows, rows).await?;
            let checked = self.check_written(&file).await;
            written.push(file);
            checked?;
            count -= file_rows;
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Writes the next `count` rows as one data file.
    async fn write_file(
        &self,
        path: String,
        count: u64,
        rows: &mut RowsToWrite<impl Iterator<Item = Result<RecordBatch>>>,
    ) -> Result<WrittenFile> {
        let object = self.location().child_name(&path);
        let failed = |error| ArchiveError::parquet(object.clone())(error);
        let arrow_error = ArchiveError::arrow(&object);
        let schema = self.rows_schema(false);
        let options = ArrowWriterOptions::new()
            .with_properties(writer_properties(
                self.spec(),
                self.id_type(),
                Lifetime::Kept,
            ))
            .with_skip_arrow_metadata(true);
        let mut upload = Upload::new(self.object_store(), Path::from(path.as_str()));
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options)
            .map_err(failed)?;
        let (mut writer, factory) = writer.into_serialized_writer().map_err(failed)?;
        let mut row_groups = RowGroups::new(schema.clone(), factory, ROW_GROUP_ROWS);
        let mut bounds: Option<(i64, i64)> = None;
        let mut sums = RowGroupSummer::default();
        let mut sectors = SectorSummer::default();
        let mut rest = count as usize;
        let mut coalescer = BatchCoalescer::new(schema.clone(), rows.at_once);
        while rest > 0 {
            let Some(batch) = rows.next(rest)? else {
                return Err(ArchiveError::bad_data(
                    object,
                    format!("{rest} rows are missing"),
                ));
            };
            rest -= batch.num_rows();
            let columns = batch.columns().to_vec();
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(&arrow_error)?;
            bounds = extend_bounds(bounds, &batch);
            coalescer.push_batch(batch).map_err(&arrow_error)?;
            if rest == 0 {
                coalescer.finish_buffered_batch().map_err(&arrow_error)?;
            }
            while let Some(batch) = coalescer.next_completed_batch() {
                sums.update(batch.column(0).as_primitive::<Int64Type>().values());
                if let Some(encoded) = row_groups.add(batch).await.map_err(failed)? {
                    encoded.append_to(&mut writer).map_err(failed)?;
                    let bytes = std::mem::take(writer.inner_mut());
                    sectors.update(&bytes);
                    let sent = upload.write(bytes.into()).await;
                    sent.map_err(|error| failed(error.into()))?;
                }
            }
        }
        row_groups.close();
        while let Some(encoded) = row_groups.next().await.map_err(failed)? {
            encoded.append_to(&mut writer).map_err(failed)?;
        }
        writer.flush().map_err(|error| failed(error.into()))?;
        sectors.update(writer.inner());
        let start = writer.bytes_written() as u64;
        let row_groups = writer.inner().len();
        writer
            .write_all(&sectors.finish())
            .map_err(|error| failed(error.into()))?;
        writer.append_key_value_metadata(sums.to_metadata());
        writer.finish().map_err(failed)?;
        let bytes = std::mem::take(writer.inner_mut());
        let tail = Tail::from_bytes(start, &bytes[row_groups..]);
        let closed = async {
            upload.write(bytes.into()).await?;
            Ok::<_, ParquetError>(upload.complete().await?)
        };
        let closed = closed.await;
        let sent = upload.digest();
        if let Err(error) = closed {
            // The store may have completed the file though its answer was lost, so compare the
            // digests.
            let error = failed(error);
            let stored = self.location().child(&path)?.digest().await;
            if !stored.is_ok_and(|found| found == sent) {
                return Err(error);
            }
            tracing::info!("{object} is complete, though the store answered: {error}");
        }
        let (size, sha256) = sent;
        Ok(WrittenFile {
            path,
            size,
            sha256,
            rows: count,
            tail,
            bounds,
        })
    }

    /// Reads a file back, and refuses one that differs from what was written in size, digest or number of rows.
    async fn check_written(&self, file: &WrittenFile) -> Result<()> {
        let object = self.location().child(&file.path)?;
        // Another process can remove it, because the log does not name it yet.
        let failed = |error: ArchiveError| {
            if error.is_not_found() {
                ArchiveError::StagedFileMissing {
                    object: object.to_string(),
                }
            } else {
                error
            }
        };
        let digest = object.digest().await;
        let (size, found) = digest.map_err(|error| failed(error.into()))?;
        if (size, &found) != (file.size, &file.sha256) {
            return Err(ArchiveError::Digest {
                object: object.to_string(),
                expected: file.sha256.clone(),
                found,
            });
        }
        let columns = ColumnNames::given_or_standard(None, None);
        let reader =
            FingerprintReader::open(object.given(), &object, size, &columns, file.tail).await;
        let reader = reader.map_err(failed)?;
        let rows: u64 = reader.row_groups().sum();
        if rows != file.rows {
            return Err(ArchiveError::bad_data(
                &object,
                format!("it has {rows} rows, but {} were written", file.rows),
            ));
        }
        Ok(())
    }

    /// Passes on what was `made`; after an error, removes the files that were written for it, which no log entry names.
    pub(crate) async fn made_or_removed<T>(
        &self,
        made: Result<T>,
        written: &[WrittenFile],
    ) -> Result<T> {
        if made.is_err() {
            self.remove_written(written).await;
        }
        made
    }

    /// Removes data files that no log entry names. Only warns if that fails: a leftover file harms
    /// no reader.
    pub(crate) async fn remove_written(&self, written: impl IntoIterator<Item = &WrittenFile>) {
        let store = self.object_store();
        for data in written {
            if let Err(error) = store.delete(&Path::from(data.path.as_str())).await {
                let error = StorageError::store(self.location().child_name(&data.path))(error);
                tracing::warn!("an unreferenced data file stays: {error}");
            }
        }
    }
}

/// The least and the greatest fingerprint, extended by the next record batch in the sort order.
fn extend_bounds(bounds: Option<(i64, i64)>, batch: &RecordBatch) -> Option<(i64, i64)> {
    let values = batch.column(0).as_primitive::<Int64Type>().values();
    match (bounds, values.first(), values.last()) {
        (Some((least, _)), _, Some(&last)) => Some((least, last)),
        (None, Some(&first), Some(&last)) => Some((first, last)),
        (bounds, ..) => bounds,
    }
}
