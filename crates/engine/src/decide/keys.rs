//! Stores, for each document of the batch, its preference, its id, the bytes of its text and its position in the inputs.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::IdType;
use archive::schema::ID;
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use datafusion::dataframe::DataFrame;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionContext, ident};
use futures::TryStreamExt as _;

use crate::documents::{KEY_COLUMNS, POSITION, PREFERENCE, positions_and_bytes};
use crate::error::{EngineError, Result};
use crate::stream;

/// Number of the row in the batch's file.
pub(crate) const ROW: &str = "row";

/// The schema: the id, the row, and the columns that the documents' table adds for decisions.
fn schema(id_type: IdType) -> SchemaRef {
    let mut fields = vec![
        Field::new(ID, id_type.data_type(), false),
        Field::new(ROW, DataType::UInt32, false),
    ];
    fields.extend(KEY_COLUMNS.map(|column| column.field()));
    Arc::new(Schema::new(fields))
}

/// The keys of the rows of a batch's file, in a file beside it.
#[derive(Debug, Clone)]
pub struct Keys {
    path: PathBuf,
    id_type: IdType,
    rows: u64,
}

/// Writes keys in the order of the batch's file.
pub(crate) struct KeysWriter {
    keys: Keys,
    schema: SchemaRef,
    writer: FileWriter<BufWriter<File>>,
}

impl KeysWriter {
    /// Creates the file at `path`.
    pub(crate) fn create(path: &Path, id_type: IdType) -> Result<Self> {
        let file = File::create(path).map_err(|source| EngineError::Io {
            path: path.display().to_string(),
            source,
        })?;
        let schema = schema(id_type);
        let keys = Keys {
            path: path.to_owned(),
            id_type,
            rows: 0,
        };
        let writer = FileWriter::try_new(BufWriter::new(file), &schema);
        Ok(Self {
            writer: writer.map_err(|error| keys.failed(error))?,
            keys,
            schema,
        })
    }

    /// Adds the next rows; `batch` has the columns of the schema but `row`.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let first = self.keys.rows;
        self.keys.rows += batch.num_rows() as u64;
        let Ok(end) = u32::try_from(self.keys.rows) else {
            return Err(EngineError::Usage(
                "the batch has more than 2^32 - 1 documents: decide about fewer at once".into(),
            ));
        };
        let rows: ArrayRef = Arc::new(UInt32Array::from_iter_values(first as u32..end));
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.name() == ROW {
                true => Ok(Arc::clone(&rows)),
                false => batch.column_by_name(field.name()).cloned().ok_or_else(|| {
                    EngineError::Internal(format!("documents have no column {:?}", field.name()))
                }),
            });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let written = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| self.keys.failed(error))
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> Result<Keys> {
        let finished = self.writer.finish();
        finished.map_err(|error| self.keys.failed(error))?;
        Ok(self.keys)
    }
}

impl Keys {
    /// The keys as a table.
    pub(super) fn table(&self, context: &SessionContext) -> Result<DataFrame> {
        let schema = schema(self.id_type);
        let rows = futures::stream::iter(self.read()?).err_into();
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
        let table = stream::table(context, schema, vec![Box::pin(rows)]);
        table.map_err(EngineError::query("ordering the documents"))
    }

    /// The documents in the order of preference.
    pub(super) fn by_preference(&self, context: &SessionContext) -> Result<DataFrame> {
        let order = vec![
            ident(PREFERENCE).sort(true, false),
            ident(ID).sort(true, false),
            ident(POSITION).sort(true, false),
        ];
        let sorted = self.table(context)?.sort(order);
        sorted.map_err(EngineError::query("ordering the documents"))
    }

    /// The documents in the order of their ids.
    pub(super) fn by_id(&self, context: &SessionContext) -> Result<DataFrame> {
        let order = vec![
            ident(ID).sort(true, false),
            ident(POSITION).sort(true, false),
        ];
        let sorted = self.table(context)?.sort(order);
        sorted.map_err(EngineError::query("ordering the documents"))
    }

    /// Writes the keys of those rows for which `masks` has true, in turn, to a file at `path`.
    pub(crate) fn filtered(&self, path: &Path, masks: &[BooleanArray]) -> Result<Self> {
        let mut writer = KeysWriter::create(path, self.id_type)?;
        let masks: Vec<&dyn arrow::array::Array> = masks.iter().map(|mask| mask as _).collect();
        let all = arrow::compute::concat(&masks).map_err(|error| self.failed(error))?;
        let all = arrow::array::AsArray::as_boolean(&all);
        let mut first = 0;
        for batch in self.read()? {
            let batch = batch.map_err(|error| self.failed(error))?;
            let mask = all.slice(first, batch.num_rows());
            first += batch.num_rows();
            let kept = arrow::compute::filter_record_batch(&batch, &mask);
            writer.write(&kept.map_err(|error| self.failed(error))?)?;
        }
        writer.finish()
    }

    /// The number of documents.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The position in the inputs of each row of the batch's file.
    pub(crate) fn positions(&self) -> Result<Vec<i64>> {
        let mut all = Vec::with_capacity(usize::try_from(self.rows).unwrap_or(0));
        for batch in self.read()? {
            let batch = batch.map_err(|error| self.failed(error))?;
            let (positions, _) = positions_and_bytes(&batch)?;
            all.extend_from_slice(positions.values());
        }
        Ok(all)
    }

    fn read(&self) -> Result<FileReader<BufReader<File>>> {
        let file = File::open(&self.path).map_err(|source| EngineError::Io {
            path: self.path.display().to_string(),
            source,
        })?;
        FileReader::try_new(BufReader::new(file), None).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ArrowError) -> EngineError {
        EngineError::arrow(&self.path, error)
    }
}
