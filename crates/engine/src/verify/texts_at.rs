//! Reads the texts of documents of the batch at given positions.

use std::sync::Arc;

use archive::IdType;
use arrow::array::{Array as _, RecordBatch};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::error::{EngineError, Result};
use documents::{Documents, RowSet, Rows, TextRows, positions_and_bytes};

pub(super) struct Batch(RecordBatch);

/// Reads the texts of `documents` at `positions`, batch by batch.
pub(super) async fn texts_at(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    positions: RowSet,
) -> Result<BoxStream<'static, Result<Batch>>> {
    let partitions = context.state().config().target_partitions();
    let rows = Rows::At(Arc::new(positions));
    let table = documents.table(context, id_type, partitions, rows, None)?;
    let given = documents.given().to_owned();
    let rows = table.execute_stream().await;
    let rows = rows.map_err(EngineError::query(&given))?;
    let batches = rows.map(move |rows| rows.map(Batch).map_err(EngineError::query(&given)));
    Ok(batches.boxed())
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
