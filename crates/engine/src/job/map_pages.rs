//! Documents to pages, by which the templates of sources are found.

use archive::IdType;
use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use simhash::Markup;

use super::map_documents::{DocumentsMap, READ_BYTES_PER_SECOND, split_items};
use super::plan::Planning;
use super::{Job, Map};
use crate::error::{EngineError, Result};
use crate::template::with_pages;
use documents::{Documents, SplitPlan};

/// Documents to pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PagesMap {
    #[serde(flatten)]
    source: DocumentsMap,
    markup: Markup,
}

impl PagesMap {
    pub(crate) async fn plan(
        job: &Job,
        documents: &Documents,
        id_type: IdType,
        markup: Markup,
    ) -> Result<Planning> {
        let (items, bytes) = split_items(job, documents, READ_BYTES_PER_SECOND);
        let source = DocumentsMap::new(job, documents, id_type).await?;
        let map = Map::Pages(Box::new(Self { source, markup }));
        Ok(Planning { map, items, bytes })
    }

    /// The table of pages of some splits.
    pub(super) async fn pages(
        &self,
        job: &Job,
        context: &SessionContext,
        splits: &[SplitPlan],
    ) -> Result<DataFrame> {
        let documents = self.source.open(job, context, splits).await?;
        let id_type = self.source.id_type;
        let table = documents.table_with_sources(context, id_type, splits)?;
        with_pages(table, self.markup).map_err(EngineError::query(job.name()))
    }
}
