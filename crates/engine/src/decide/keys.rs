//! Stores, for each document of the batch, its preference, the bytes of its text and its position in the inputs.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, BooleanArray, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use crate::arrow_file::{self, ArrowWriter};
use crate::error::{EngineError, Result};
use documents::{NO_PREFERENCE, PREFERENCE, decision_fields, positions_and_bytes};

/// The schema: the columns that the documents' table adds for decisions.
fn schema() -> SchemaRef {
    Arc::new(Schema::new(decision_fields().to_vec()))
}

/// The keys of the rows of a batch, in a file of their own, in the order of the batch's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Keys {
    #[serde(skip)]
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
}

/// The preferences of the rows of a batch, as bytes whose order is that of the preferences.
pub(super) struct Preferences {
    bytes: Vec<u8>,
    /// Where the bytes of each row end.
    ends: Vec<u64>,
}

impl Keys {
    /// Begins a file of keys, which are written in the order of the batch's file.
    pub(crate) fn create(path: PathBuf) -> Result<ArrowWriter> {
        ArrowWriter::create(path, schema())
    }

    pub(crate) fn finish(writer: ArrowWriter) -> Result<Self> {
        let (path, rows) = writer.finish()?;
        Ok(Self { path, rows })
    }

    /// Refuses more rows than have numbers.
    pub(crate) fn check(writer: &ArrowWriter) -> Result<()> {
        if writer.rows <= u64::from(u32::MAX) {
            return Ok(());
        }
        Err(EngineError::Usage(
            "the batch has more than 2^32 - 1 documents: decide about fewer at once".into(),
        ))
    }

    /// The keys, in the order of the batch's file.
    pub(super) fn read(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
        arrow_file::read(&self.path)
    }

    /// The position in the inputs of each row of the batch's file.
    pub(crate) fn positions(&self) -> Result<Vec<i64>> {
        let mut all = Vec::with_capacity(self.rows as usize);
        for batch in self.read()? {
            let batch = batch?;
            let (positions, _) = positions_and_bytes(&batch)?;
            all.extend_from_slice(positions.values());
        }
        Ok(all)
    }

    /// The preferences of the rows of the batch's file; `grow` reserves memory before more bytes are held.
    pub(super) fn preferences(&self, grow: impl Fn(usize) -> Result<()>) -> Result<Preferences> {
        let mut all = Preferences {
            bytes: Vec::new(),
            ends: Vec::with_capacity(self.rows as usize),
        };
        for batch in self.read()? {
            let batch = batch?;
            let column = batch.column_by_name(PREFERENCE);
            let column = column.and_then(|column| column.as_binary_opt::<i32>());
            let column = column
                .ok_or_else(|| EngineError::Internal("documents have no preferences".into()))?;
            // A vector that grows may have twice the bytes that it holds.
            grow(2 * (column.values().len() + column.len()))?;
            for row in 0..column.len() {
                let bytes = if column.is_valid(row) {
                    column.value(row)
                } else {
                    &[NO_PREFERENCE]
                };
                all.bytes.extend_from_slice(bytes);
                all.ends.push(all.bytes.len() as u64);
            }
        }
        Ok(all)
    }

    /// Writes to a file at `path` the keys of the rows that `masks`, one after another, select.
    pub(crate) fn filtered(&self, path: PathBuf, masks: &[BooleanArray]) -> Result<Self> {
        let mut writer = Self::create(path)?;
        let masks: Vec<&dyn arrow::array::Array> = masks.iter().map(|mask| mask as _).collect();
        let all = arrow::compute::concat(&masks).map_err(|error| self.failed(error))?;
        let all = all.as_boolean();
        let mut first = 0;
        for batch in self.read()? {
            let batch = batch?;
            let mask = all.slice(first, batch.num_rows());
            first += batch.num_rows();
            let kept = arrow::compute::filter_record_batch(&batch, &mask);
            writer.write(&kept.map_err(|error| self.failed(error))?)?;
        }
        Self::finish(writer)
    }

    fn failed(&self, error: ArrowError) -> EngineError {
        EngineError::arrow(&self.path, error)
    }
}

impl Preferences {
    /// Whether there are rows, and none has a preference.
    pub(super) fn are_all_missing(&self) -> bool {
        !self.ends.is_empty() && self.bytes.iter().all(|byte| *byte == NO_PREFERENCE)
    }

    /// The bytes of a row of the batch's file.
    pub(super) fn bytes(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = match row {
            0 => 0,
            _ => self.ends[row - 1],
        };
        &self.bytes[start as usize..self.ends[row] as usize]
    }
}
