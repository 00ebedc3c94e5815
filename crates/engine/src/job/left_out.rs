//! What is left out of texts, for other processes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use simhash::Markup;
use template::Templates;

use super::{Job, SharedFile};
use crate::error::{EngineError, Result};
use documents::{Documents, LeftOut};

/// The templates that are left out, as a file of the job, and the markup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LeftOutPlan {
    templates: SharedFile,
    markup: Markup,
}

impl LeftOutPlan {
    /// What is left out of the texts of `documents`.
    pub(super) async fn of(job: &Job, documents: &Documents) -> Result<Option<Self>> {
        let Some(left_out) = documents.left_out() else {
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
        let templates = Templates::from_bytes(&bytes)
            .map_err(|error| EngineError::bad_data(job.name(), error.to_string()))?;
        Ok(Arc::new(LeftOut {
            templates,
            markup: self.markup,
        }))
    }
}
