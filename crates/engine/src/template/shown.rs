//! Templates for people: the passages of documents that an archive's memory calls template.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::Archive;
use arrow::array::AsArray as _;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use template::{Memory, each_passage};

use super::batch::read_memory;
use crate::error::{EngineError, Result};
use crate::profile::Profile;
use crate::recipe::SpecOptions;
use crate::run::{OpenedArchive, open_batch};
use documents::{Columns, LeftOut, SOURCE, TextRows, visible};

/// A passage of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPassage {
    /// The passage, as it stands in one of the documents.
    pub text: String,
    /// The documents that have it.
    pub documents: u64,
    /// Whether many sources have it.
    pub of_many_sources: bool,
}

/// What an archive remembers now.
///
/// # Errors
/// [`EngineError`] when it cannot be read.
pub async fn archive_memory(archive: &Archive) -> Result<Memory> {
    read_memory(archive, archive.template_memory().await?).await
}

/// What an archive leaves out of the texts of its documents now; `None` if its spec keeps templates.
///
/// # Errors
/// [`EngineError`] when what it remembers cannot be read.
pub async fn archive_templates(archive: &Archive) -> Result<Option<Arc<LeftOut>>> {
    let spec = archive.spec();
    if spec.template.is_off() {
        return Ok(None);
    }
    Ok(Some(Arc::new(LeftOut {
        templates: archive_memory(archive).await?.templates(),
        markup: spec.markup,
    })))
}

/// The passages of the documents of `source` at `paths` that `memory` calls template, those of most documents first.
///
/// # Errors
/// [`EngineError`] when the documents cannot be read.
pub async fn shared_passages(
    context: &SessionContext,
    paths: &[String],
    columns: &Columns,
    opened: &OpenedArchive,
    memory: &Memory,
    source: &str,
) -> Result<Vec<SharedPassage>> {
    let columns = Columns {
        with_sources: true,
        ..columns.clone()
    };
    let options = SpecOptions::default();
    let opening = open_batch(
        context,
        paths,
        &columns,
        Some(opened),
        &options,
        Profile::Sharp,
    );
    let (documents, recipe, id_type) = opening.await?;
    let markup = recipe.spec().markup;
    let templates = memory.templates();
    let mut found: HashMap<u32, SharedPassage> = HashMap::new();
    let mut shown = String::new();
    let table = documents.table_with_sources(context, id_type, 1)?;
    let failed = || EngineError::query(documents.given());
    let mut rows = table.execute_stream().await.map_err(failed())?;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let sources = batch.column_by_name(SOURCE);
        let sources = sources.and_then(|column| column.as_string_opt::<i32>());
        let sources = sources.into_iter().flatten();
        for (of, text) in sources.zip(TextRows::read(&batch)?.texts) {
            let Some(text) = text.filter(|_| of == Some(source)) else {
                continue;
            };
            let mut in_text: HashSet<u32> = HashSet::new();
            each_passage(visible(markup, text, &mut shown), |passage| {
                let Some(key) = passage.key.filter(|key| templates.has(source, *key)) else {
                    return;
                };
                if !in_text.insert(key) {
                    return;
                }
                let shared = found.entry(key).or_insert_with(|| SharedPassage {
                    text: String::from_utf8_lossy(passage.text).trim().to_owned(),
                    documents: 0,
                    of_many_sources: templates.many_sources.binary_search(&key).is_ok(),
                });
                shared.documents += 1;
            });
        }
    }
    let mut found: Vec<SharedPassage> = found.into_values().collect();
    found.sort_by(|a, b| (b.documents, &a.text).cmp(&(a.documents, &b.text)));
    Ok(found)
}
