//! Templates for people: the passages of documents that an archive's memory calls template, and texts cut by them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use archive::{Archive, IdType};
use arrow::array::{Array as _, AsArray as _};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use simhash::{Model, Spec};
use template::{Contents, Memory, each_passage};

use super::batch::read_memory;
use crate::error::{EngineError, Result};
use crate::explain::nearest;
use crate::profile::Profile;
use crate::recipe::SpecOptions;
use crate::run::{OpenedArchive, open_batch};
use documents::{
    Columns, DocumentId, Documents, LeftOut, MOST_OF_AN_ID, Rows, SOURCE, TextRows, visible,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPassage {
    /// The passage, as it stands in one of the documents.
    pub text: String,
    pub documents: u64,
    pub of_many_sources: bool,
}

/// What an archive remembers now.
pub async fn archive_memory(archive: &Archive) -> Result<Memory> {
    read_memory(archive, archive.template_memory().await?).await
}

/// What an archive leaves out of the texts of its documents now; `None` if its spec keeps templates.
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
    let opening = open_batch(context, paths, &columns, opened, &options, Profile::Sharp);
    let (documents, recipe, id_type) = opening.await?;
    let markup = recipe.spec().markup;
    let templates = memory.templates();
    let mut found: HashMap<u32, SharedPassage> = HashMap::new();
    let mut shown = String::new();
    let each = |_: DocumentId, of: Option<&str>, text: &[u8]| {
        if of != Some(source) {
            return;
        }
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
    };
    each_text(context, &documents, id_type, each).await?;
    let mut found: Vec<SharedPassage> = found.into_values().collect();
    found.sort_by(|a, b| (b.documents, &a.text).cmp(&(a.documents, &b.text)));
    Ok(found)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CutText {
    pub content: String,
    /// The template of its source.
    pub template: String,
}

/// About how many words the documents of a source have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceWords {
    /// Words of their whole texts.
    pub all: u64,
    /// Those that are left out as template.
    pub template: u64,
}

/// Texts as an archive compares them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CutTexts {
    /// By id, in the order of the input, at most [`MOST_OF_AN_ID`] of each.
    pub texts: HashMap<String, Vec<CutText>>,
    pub sources: HashMap<String, SourceWords>,
}

impl CutTexts {
    /// The texts of two documents, by their ids. Where several have an id, those whose fingerprints are nearest: pairs and decisions
    /// are about these.
    pub fn of_pair(&self, ids: [&str; 2]) -> [Option<&CutText>; 2] {
        let found = ids.map(|id| self.texts.get(id).map_or(&[][..], Vec::as_slice));
        let contents = found.map(|texts| texts.iter().map(|text| text.content.as_str()).collect());
        let model = Model::plain(Spec::default()).ok();
        let chosen = model
            .filter(|_| found.iter().any(|texts| texts.len() > 1))
            .map(|model| nearest(&model, &contents, ids[0] == ids[1]));
        let [new, base] = chosen.unwrap_or_default();
        [found[0].get(new), found[1].get(base)]
    }
}

/// Cuts the template off the text of each document with a `wanted` id, and counts the words of all documents of the `sources`.
pub async fn cut_texts(
    context: &SessionContext,
    documents: &Documents,
    left_out: &LeftOut,
    wanted: &HashSet<DocumentId>,
    sources: &HashSet<String>,
) -> Result<CutTexts> {
    let templates = &left_out.templates;
    let mut found = CutTexts::default();
    let (mut contents, mut shown) = (Contents::default(), String::new());
    let each = |id: DocumentId, source: Option<&str>, text: &[u8]| {
        let counted = source.and_then(|source| sources.get(source));
        let is_wanted = wanted.contains(&id);
        if counted.is_none() && !is_wanted {
            return;
        }
        let text = visible(left_out.markup, text, &mut shown);
        let mut template: Vec<u8> = Vec::new();
        let mut words = SourceWords::default();
        let content = contents.cut(templates, source, text, |passage| {
            template.extend_from_slice(passage.text);
            words.template += u64::from(passage.words);
        });
        if content.len() == text.len() {
            template.clear();
            words.template = 0;
        }
        if let Some(source) = counted {
            each_passage(text, |passage| words.all += u64::from(passage.words));
            let of_source = found.sources.entry(source.clone()).or_default();
            of_source.all += words.all;
            of_source.template += words.template;
        }
        if is_wanted {
            let [content, template] =
                [content, &template].map(|part| String::from_utf8_lossy(part).into_owned());
            let cut = CutText { content, template };
            let texts = found.texts.entry(id.to_string()).or_default();
            if texts.len() < MOST_OF_AN_ID {
                texts.push(cut);
            }
        }
    };
    // Pairs and decisions give ids as texts.
    each_text(context, documents, IdType::String, each).await?;
    Ok(found)
}

/// Calls `each` with the id, the source and the text of each document that has a text.
async fn each_text(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    mut each: impl FnMut(DocumentId, Option<&str>, &[u8]),
) -> Result<()> {
    let table = documents.table(context, id_type, 1, Rows::WithDecisionColumns, None)?;
    let failed = || EngineError::query(documents.given());
    let mut rows = table.execute_stream().await.map_err(failed())?;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let sources = batch.column_by_name(SOURCE);
        let sources = sources.and_then(|column| column.as_string_opt::<i32>());
        let read = TextRows::read(&batch)?;
        for row in (0..batch.num_rows()).filter(|&row| read.texts.is_valid(row)) {
            let source = sources.filter(|sources| sources.is_valid(row));
            let source = source.map(|sources| sources.value(row));
            each(
                DocumentId::read(read.ids, row),
                source,
                read.texts.value(row),
            );
        }
    }
    Ok(())
}
