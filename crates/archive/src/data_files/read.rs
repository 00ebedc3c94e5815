//! Reading the rows of a data file.

use std::sync::Arc;

use arrow::array::{Array as _, RecordBatch, RecordBatchReader as _};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use sha2::{Digest as _, Sha256};
use storage::hex;

use crate::checked_pages::{CheckedRowGroups, FileParts};
use crate::error::{ArchiveError, Result};
use crate::reader::to_id_type;
use crate::schema::{self, ID, IdType};
use crate::table::{Archive, DataFile};

/// Rows of a record batch.
const RECORD_BATCH_ROWS: usize = 8192;

/// The rows of a data file in memory, as record batches of fingerprints and ids.
pub(crate) struct StoredRows {
    name: String,
    batches: ParquetRecordBatchReader,
    /// Indices of the columns of fingerprints and ids.
    columns: [usize; 2],
    id_type: IdType,
    schema: SchemaRef,
}

impl StoredRows {
    /// Opens the bytes of a file, which errors call `name`.
    ///
    /// # Errors
    /// [`ArchiveError::BadData`] when a column is missing or has another type.
    pub(crate) fn open(name: &str, bytes: Bytes, id_type: IdType) -> Result<Self> {
        let failed = |error| ArchiveError::parquet(name)(error);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes);
        let metadata = Arc::new(metadata.map_err(failed)?);
        let groups = 0..metadata.num_row_groups();
        let groups = CheckedRowGroups::new(FileParts::whole(bytes), metadata, groups);
        // The Parquet library panics on some forged footers and pages.
        let read = || groups.read(ProjectionMask::all(), RECORD_BATCH_ROWS, None);
        let batches = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        let batches = batches.unwrap_or_else(|_| {
            let reason = "the footer is damaged";
            Err(ParquetError::General(reason.into()))
        });
        let batches = batches.map_err(failed)?;
        let found_schema = batches.schema();
        let schema = schema::fingerprints(id_type, true);
        let mut columns = [0; 2];
        for (column, field) in columns.iter_mut().zip(schema.fields()) {
            let found = found_schema.fields().find(field.name());
            let bad_data = |reason: String| ArchiveError::BadData {
                object: format!("{name}, column {:?}", field.name()),
                reason,
            };
            let Some((at, found)) = found else {
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
            *column = at;
        }
        Ok(Self {
            name: name.to_owned(),
            batches,
            columns,
            id_type,
            schema,
        })
    }

    /// The schema of its record batches.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
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
            let [fingerprints, ids] = self.columns.map(|column| batch.column(column).clone());
            let ids = to_id_type(&ids, self.id_type)?;
            RecordBatch::try_new(self.schema.clone(), vec![fingerprints, ids])
        });
        let batch = batch.map_err(|source| ArchiveError::Arrow {
            object: self.name.clone(),
            source,
        });
        // Other programs may write null ids, which no document has.
        Some(batch.and_then(|batch| match batch.column(1).null_count() {
            0 => Ok(batch),
            _ => Err(ArchiveError::BadData {
                object: self.name.clone(),
                reason: "null ids".into(),
            }),
        }))
    }
}

impl Archive {
    /// Reads a data file that the log names, and checks its digest.
    pub(crate) async fn stored_rows(&self, file: &DataFile) -> Result<StoredRows> {
        let location = self.location().child(&file.path)?;
        let bytes = location.read().await;
        let bytes = bytes.map_err(ArchiveError::data_file(location.given()))?;
        file.check_digest(location.given(), &hex(&Sha256::digest(&bytes)))?;
        StoredRows::open(location.given(), bytes, self.id_type())
    }
}
