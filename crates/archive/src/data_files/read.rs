//! Reading the rows of a data file.

use std::sync::Arc;

use arrow::array::{Array as _, RecordBatch, RecordBatchReader as _, new_null_array};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use sha2::{Digest as _, Sha256};
use simhash::SketchBits;
use storage::{Location, hex};

use crate::error::{ArchiveError, Result};
use crate::reader::to_id_type;
use crate::schema::{self, FINGERPRINT, ID, IdType};
use crate::table::{Archive, DataFile};
use crate::validated_pages::{FileParts, ValidatedRowGroups};

const RECORD_BATCH_ROWS: u64 = 8192;
/// Bytes of a record batch, unless a row has more.
const RECORD_BATCH_BYTES: u64 = 16 << 20;
/// The most bytes of a record batch, if dictionaries have longer values.
const MOST_BATCH_BYTES: u64 = 256 << 20;

/// The rows of a data file in memory, as record batches of fingerprints and ids.
pub(crate) struct StoredRows {
    name: String,
    batches: ParquetRecordBatchReader,
    /// For each column of `schema`, its index in the file; `None` for sketches or decisions that
    /// the file lacks.
    columns: Vec<Option<usize>>,
    id_type: IdType,
    sketch: SketchBits,
    pub(crate) schema: SchemaRef,
}

impl Iterator for StoredRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        // The Parquet library panics on some forged pages.
        let next = std::panic::AssertUnwindSafe(|| self.batches.next());
        let batch = std::panic::catch_unwind(next).unwrap_or_else(|_| {
            let reason = "the pages are damaged".to_owned();
            Some(Err(ArrowError::ParquetError(reason)))
        })?;
        let batch = batch.and_then(|batch| {
            let fields = self.schema.fields().iter();
            let columns = self.columns.iter().zip(fields).map(|(column, field)| {
                let Some(column) = column.map(|column| batch.column(column)) else {
                    return Ok(new_null_array(field.data_type(), batch.num_rows()));
                };
                match field.name().as_str() {
                    ID => to_id_type(column, self.id_type),
                    _ => Ok(column.clone()),
                }
            });
            let columns: Result<_, ArrowError> = columns.collect();
            RecordBatch::try_new(self.schema.clone(), columns?)
        });
        let batch = batch.map_err(ArchiveError::arrow(&self.name));
        // Other programs may write null ids, which no document has.
        Some(batch.and_then(|batch| {
            let bad_data = |reason: String| Err(ArchiveError::bad_data(&self.name, reason));
            if batch.column(1).null_count() > 0 {
                return bad_data("null ids".into());
            }
            let sketches = schema::sketches(&batch);
            match sketches.map(|sketches| schema::check_sketches(sketches, self.sketch)) {
                Some(Err(reason)) => bad_data(reason),
                _ => Ok(batch),
            }
        }))
    }
}

/// The rows of a data file, in record batches.
pub type FileRows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

impl Archive {
    /// Schema of the record batches of [`Self::read_file`]: `fp`, `id` and, if the archive has them, `sketch` and `kept`.
    pub fn read_schema(&self) -> SchemaRef {
        self.rows_schema(true)
    }

    /// Reads a data file that the log names into memory, and checks its digest. Returns its rows in record batches of the
    /// schema [`Self::read_schema`].
    pub async fn read_file(&self, file: &DataFile) -> Result<FileRows> {
        Ok(Box::new(self.stored_rows(file).await?))
    }

    /// Reads a data file that the log names, and checks its digest.
    pub(crate) async fn stored_rows(&self, file: &DataFile) -> Result<StoredRows> {
        let location = self.location().child(&file.path)?;
        let bytes = location.read().await;
        let bytes = bytes.map_err(ArchiveError::data_file(location.given()))?;
        file.check_digest(location.given(), &hex(&Sha256::digest(&bytes)))?;
        self.stored_rows_at(&location, bytes)
    }

    /// The rows of a data file at `location` whose bytes were read.
    ///
    /// # Errors
    /// [`ArchiveError::BadData`] when a column is missing or has another type.
    pub(crate) fn stored_rows_at(&self, location: &Location, bytes: Bytes) -> Result<StoredRows> {
        let name = location.given();
        let (id_type, schema) = (self.id_type(), self.rows_schema(true));
        let failed = |error| ArchiveError::parquet(name)(error);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes);
        let metadata = Arc::new(metadata.map_err(failed)?);
        let groups = 0..metadata.num_row_groups();
        let groups = ValidatedRowGroups::new(FileParts::whole(bytes), metadata, groups);
        // The Parquet library panics on some forged footers and pages.
        let read = || {
            let file = RowGroups::metadata(&groups).file_metadata();
            let row_bytes = groups.row_bytes(0..file.schema_descr().num_columns())?;
            let rows =
                row_bytes.rows_within(RECORD_BATCH_BYTES, MOST_BATCH_BYTES, RECORD_BATCH_ROWS);
            groups.read(ProjectionMask::all(), rows, None)
        };
        let batches = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        let damaged = ParquetError::General("the footer is damaged".into());
        let batches = batches.unwrap_or(Err(damaged)).map_err(failed)?;
        let found_schema = batches.schema();
        let mut columns = Vec::new();
        for field in schema.fields() {
            let found = found_schema.fields().find(field.name());
            let bad_data = |reason: String| {
                ArchiveError::bad_data(format!("{name}, column {:?}", field.name()), reason)
            };
            let Some((at, found)) = found else {
                // Delta reads a nullable column that a file lacks as nulls.
                if ![FINGERPRINT, ID].contains(&field.name().as_str()) {
                    columns.push(None);
                    continue;
                }
                return Err(bad_data("the file has no such column".into()));
            };
            let fits = match field.name().as_str() {
                ID => IdType::for_arrow(found.data_type()) == Some(id_type),
                _ => found.data_type() == field.data_type(),
            };
            if !fits {
                return Err(bad_data(format!(
                    "it is {}, and should be {}",
                    found.data_type(),
                    field.data_type()
                )));
            }
            columns.push(Some(at));
        }
        Ok(StoredRows {
            name: name.to_owned(),
            batches,
            columns,
            id_type,
            sketch: self.spec().sketch,
            schema,
        })
    }
}
