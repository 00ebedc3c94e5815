//! Documents to pages, by which the templates of sources are found; and templates for the maps that read texts.

use std::sync::Arc;

use archive::IdType;
use datafusion::dataframe::DataFrame;
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use simhash::Markup;
use template::Templates;

use super::map_documents::{DocumentsMap, READ_BYTES_PER_SECOND, split_items};
use super::plan::Planning;
use super::{Job, Map, SharedFile};
use crate::documents::{Documents, LeftOut, SplitPlan};
use crate::error::{EngineError, Result};
use crate::template::with_pages;

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
        let files = splits.iter().map(|split| split.file);
        let documents = self.source.documents.open(context, files).await?;
        let id_type = self.source.id_type();
        let table = documents.table_with_sources(context, id_type, splits)?;
        with_pages(table, self.markup).map_err(EngineError::query(job.name()))
    }
}

/// What is left out of texts, for other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LeftOutPlan {
    templates: SharedFile,
    markup: Markup,
}

impl LeftOutPlan {
    /// What is left out of the texts of `documents`.
    pub(super) async fn of(job: &Job, documents: Option<&Documents>) -> Result<Option<Self>> {
        let Some(left_out) = documents.and_then(Documents::left_out) else {
            return Ok(None);
        };
        Ok(Some(Self {
            templates: job.share_bytes(&left_out.templates.to_bytes()).await?,
            markup: left_out.markup,
        }))
    }

    pub(super) async fn load(&self, job: &Job) -> Result<Arc<LeftOut>> {
        let path = job.fetch(&self.templates).await?;
        let bytes = std::fs::read(&path).map_err(|source| job.io(source))?;
        let templates = Templates::from_bytes(&bytes).map_err(|error| EngineError::BadData {
            object: job.name().to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Arc::new(LeftOut {
            templates,
            markup: self.markup,
        }))
    }
}
