//! The texts of documents, by their ids.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::IdType;
use arrow::array::Array as _;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt as _;

use super::{DocumentId, Documents, Rows, TextRows};
use crate::error::{DocumentsError, Result};

/// The most texts of documents that share an id.
pub const MOST_OF_AN_ID: usize = 100;

impl Documents {
    /// The texts of the documents with the `wanted` ids, which are compared as text even if the files have integers: by id, in the
    /// order of the input, at most [`MOST_OF_AN_ID`] of each.
    pub async fn texts(
        &self,
        context: &SessionContext,
        wanted: Arc<HashSet<DocumentId>>,
    ) -> Result<HashMap<String, Vec<String>>> {
        let table = self.table(context, IdType::String, 1, Rows::Wanted(wanted), None)?;
        let mut found: HashMap<String, Vec<String>> = HashMap::new();
        self.each_text(table, usize::MAX, |id, text| {
            let texts = found.entry(id.to_owned()).or_default();
            if texts.len() < MOST_OF_AN_ID {
                texts.push(String::from_utf8_lossy(text).into_owned());
            }
        })
        .await?;
        Ok(found)
    }

    /// The texts of all documents, by id as text, of at most `max_bytes` bytes. If several documents have an id, the first that is read
    /// counts.
    ///
    /// # Errors
    /// [`DocumentsError`] when a file cannot be read; [`DocumentsError::OutOfMemory`] when the texts have more bytes.
    pub async fn all_texts(
        &self,
        context: &SessionContext,
        max_bytes: usize,
    ) -> Result<HashMap<String, String>> {
        let table = self.table(context, IdType::String, 1, Rows::All, None)?;
        let mut found = HashMap::new();
        self.each_text(table, max_bytes, |id, text| {
            let text = || String::from_utf8_lossy(text).into_owned();
            found.entry(id.to_owned()).or_insert_with(text);
        })
        .await?;
        Ok(found)
    }

    /// Calls `each` with the id and the text of each document in `table` that has a text.
    async fn each_text(
        &self,
        table: DataFrame,
        max_bytes: usize,
        mut each: impl FnMut(&str, &[u8]),
    ) -> Result<()> {
        let failed = || DocumentsError::query(self.given());
        let mut rows = table.execute_stream().await.map_err(failed())?;
        let mut bytes = 0;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            let columns = TextRows::read(&batch)?;
            let texts = columns.texts;
            for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
                if let DocumentId::Text(id) = DocumentId::read(columns.ids, row) {
                    bytes += id.len() + texts.value(row).len();
                    each(&id, texts.value(row));
                }
            }
            if bytes > max_bytes {
                return Err(DocumentsError::OutOfMemory {
                    what: format!("{}: the texts of all documents", self.given()),
                });
            }
        }
        Ok(())
    }
}
