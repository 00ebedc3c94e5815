//! Reads the texts of documents of the batch at given positions.

use std::sync::Arc;

use archive::IdType;
use arrow::array::{Array as _, RecordBatch};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use crate::error::{EngineError, Result};
use documents::{Documents, RowSet, TextRows, positions_and_bytes};

/// The texts at a set of positions, read batch by batch.
pub(super) struct TextsAt {
    rows: SendableRecordBatchStream,
    /// The name of the documents in errors.
    given: String,
}

/// Some of the texts.
#[derive(Clone)]
pub(super) struct Batch(RecordBatch);

impl TextsAt {
    /// Starts to read the texts of `documents` at `positions`.
    pub(super) async fn read(
        context: &SessionContext,
        documents: &Documents,
        id_type: IdType,
        positions: RowSet,
    ) -> Result<Self> {
        let partitions = context.state().config().target_partitions();
        let table = documents.table_at(context, id_type, partitions, Arc::new(positions))?;
        let rows = table.execute_stream().await;
        Ok(Self {
            rows: rows.map_err(EngineError::query(documents.given()))?,
            given: documents.given().to_owned(),
        })
    }

    /// The next texts; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Batch>> {
        let next = self.rows.next().await.transpose();
        let next = next.map_err(EngineError::query(&self.given))?;
        Ok(next.map(Batch))
    }
}

impl Batch {
    /// The positions and the texts of the documents that have a text.
    pub(super) fn iter(&self) -> Result<impl Iterator<Item = (i64, &[u8])>> {
        let (positions, _) = positions_and_bytes(&self.0)?;
        let texts = TextRows::read(&self.0)?.texts;
        let present = (0..self.0.num_rows()).filter(|&row| texts.is_valid(row));
        Ok(present.map(|row| (positions.value(row), texts.value(row))))
    }
}
