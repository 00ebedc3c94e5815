//! The texts of documents, by their ids.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::IdType;
use arrow::array::Array as _;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt as _;

use super::{DocumentId, Documents, TextRows};
use crate::error::{EngineError, Result};

impl Documents {
    /// For each id, the text of the document that has it: of the first that is read if several have
    /// it, `None` if none does.
    ///
    /// # Errors
    /// [`EngineError`] when a file cannot be read.
    pub async fn texts_of<const N: usize>(
        &self,
        context: &SessionContext,
        ids: [&str; N],
    ) -> Result<[Option<String>; N]> {
        let wanted = ids
            .iter()
            .map(|id| DocumentId::Text((*id).into()))
            .collect();
        let mut found = self.texts(context, Arc::new(wanted)).await?;
        // Two ids may be the same.
        Ok(std::array::from_fn(|at| {
            match ids[at + 1..].contains(&ids[at]) {
                true => found.get(ids[at]).cloned(),
                false => found.remove(ids[at]),
            }
        }))
    }

    /// The texts of the documents with the `wanted` ids, which are compared as text even if the
    /// files have integers. If several documents have an id, the first that is read counts.
    ///
    /// # Errors
    /// [`EngineError`] when a file cannot be read.
    pub async fn texts(
        &self,
        context: &SessionContext,
        wanted: Arc<HashSet<DocumentId>>,
    ) -> Result<HashMap<String, String>> {
        let table = self.table_with_ids(context, IdType::String, 1, wanted)?;
        self.read_texts(table, usize::MAX).await
    }

    /// The texts of all documents, by id as text, of at most `max_bytes` bytes. If several documents have an id, the first that is read
    /// counts.
    ///
    /// # Errors
    /// [`EngineError`] when a file cannot be read; [`EngineError::OutOfMemory`] when the texts have more bytes.
    pub async fn all_texts(
        &self,
        context: &SessionContext,
        max_bytes: usize,
    ) -> Result<HashMap<String, String>> {
        let table = self.table(context, IdType::String, 1)?;
        self.read_texts(table, max_bytes).await
    }

    async fn read_texts(
        &self,
        table: DataFrame,
        max_bytes: usize,
    ) -> Result<HashMap<String, String>> {
        let failed = || EngineError::query(self.given());
        let mut rows = table.execute_stream().await.map_err(failed())?;
        let mut found = HashMap::new();
        let mut bytes = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            let columns = TextRows::read(&batch)?;
            let texts = columns.texts;
            for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
                if let DocumentId::Text(id) = DocumentId::read(columns.ids, row) {
                    bytes += id.len() + texts.value(row).len();
                    let text = || String::from_utf8_lossy(texts.value(row)).into_owned();
                    found.entry(id.into()).or_insert_with(text);
                }
            }
            if bytes > max_bytes {
                return Err(EngineError::OutOfMemory {
                    what: format!("{}: the texts of all documents", self.given()),
                });
            }
        }
        Ok(found)
    }
}
