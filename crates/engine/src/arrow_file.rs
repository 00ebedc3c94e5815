//! Files of record batches in the scratch directory, in Arrow's own format.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use storage::StorageError;

use crate::batch::select_columns;
use crate::error::{EngineError, Result};

/// Writes a file of record batches.
pub(crate) struct ArrowWriter {
    path: PathBuf,
    schema: SchemaRef,
    writer: FileWriter<BufWriter<File>>,
    pub(crate) rows: u64,
}

impl ArrowWriter {
    pub(crate) fn create(path: PathBuf, schema: SchemaRef) -> Result<Self> {
        let file = File::create(&path).map_err(StorageError::io(path.display()))?;
        let writer = FileWriter::try_new(BufWriter::new(file), &schema);
        Ok(Self {
            writer: writer.map_err(|error| EngineError::arrow(&path, error))?,
            schema,
            path,
            rows: 0,
        })
    }

    /// Adds the rows of `batch`; it has the columns of the file's schema, and may have others.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let written =
            select_columns(batch, &self.schema).and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| EngineError::arrow(&self.path, error))
    }

    /// Ends the file, and returns its path and the number of its rows.
    pub(crate) fn finish(mut self) -> Result<(PathBuf, u64)> {
        let finished = self.writer.finish();
        finished.map_err(|error| EngineError::arrow(&self.path, error))?;
        Ok((self.path, self.rows))
    }
}

/// The record batches of the file at `path`.
pub(crate) fn read(path: &Path) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let file = File::open(path).map_err(StorageError::io(path.display()))?;
    let reader = FileReader::try_new(BufReader::new(file), None);
    let reader = reader.map_err(|error| EngineError::arrow(path, error))?;
    let path = path.to_owned();
    Ok(reader.map(move |batch| batch.map_err(|error| EngineError::arrow(&path, error))))
}
