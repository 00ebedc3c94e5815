//! The templates of a batch, found in this process or in the parts of a job, and remembered with its day.

use std::sync::Arc;

use archive::{Archive, ArchiveError, CommittedMemory, DayBatch, Existing, IdType};
use chrono::{Datelike as _, NaiveDate};
use datafusion::prelude::SessionContext;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use template::{Memory, OF_MANY_SOURCES, Seen};

use super::find::find;
use super::pages::{pages_schema, with_pages};
use crate::error::{EngineError, Result};
use crate::job::{Job, Map};
use crate::progress::Stage;
use crate::recipe::Recipe;
use crate::resources::Resources;
use documents::{Documents, LeftOut, Rows};

/// The least bytes of what an archive may remember of templates.
const LEAST_MEMORY: u64 = 64 << 10;
const BYTES_OF_DOCUMENT: u64 = 2;

/// A batch whose templates are to be found.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub context: &'a SessionContext,
    pub documents: &'a Documents,
    pub recipe: &'a Recipe,
    pub id_type: IdType,
    /// The archive that remembers templates.
    pub archive: Option<&'a Archive>,
    /// The day, and the name, under which it is committed.
    pub day: Option<DayBatch>,
    /// Whether a day that the archive holds already may be replaced.
    pub existing: Existing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TemplateCounts {
    pub sources: u64,
    pub with_template: u64,
    pub passages: u64,
    /// Passages that many sources share.
    pub of_many_sources: u64,
}

/// What was found out about the templates of a batch.
#[derive(Debug)]
pub struct BatchTemplates {
    /// What is left out of the texts.
    pub left_out: Arc<LeftOut>,
    /// Digest of the batch's documents, whatever their templates.
    pub digest: String,
    /// What the batch adds to what is known of its sources, and of many sources.
    seen: Vec<(Box<str>, Seen)>,
    seen_of_many: Seen,
    sources: u64,
    /// The memory of the archive before it.
    before: Option<i64>,
    /// Whether the archive has these documents already, as a day that is replaced.
    is_known: bool,
}

impl Batch<'_> {
    /// Finds the templates, in the parts of a job if there is one, by its map of that name. `None` if none are left out: the spec
    /// keeps them, or the documents have no sources, or no texts.
    pub async fn find(self, job: Option<(&Job, &str)>) -> Result<Option<BatchTemplates>> {
        let (context, documents) = (self.context, self.documents);
        let Recipe::Texts(model) = self.recipe else {
            return Ok(None);
        };
        if model.spec().template.is_off() || !documents.have_sources(context).await? {
            return Ok(None);
        }
        let progress = &Resources::from_session(context)?.progress;
        progress.enter(Stage::Templates);
        let markup = model.spec().markup;
        let pages = match job {
            Some((job, name)) => {
                let plan = async || Map::plan_pages(job, documents, self.id_type, markup).await;
                let answers = job.answers(name, plan).await?;
                let answers = answers.ok_or(EngineError::Planned)?;
                answers.check_cuts()?;
                answers.table(context, &pages_schema())?
            }
            None => {
                let partitions = context.state().config().target_partitions();
                let rows = Rows::WithDecisionColumns;
                let table = documents.table(context, self.id_type, partitions, rows, None)?;
                with_pages(table, markup).map_err(EngineError::query(documents.given()))?
            }
        };
        let (mut before, mut is_known) = (None, false);
        let recall = async |digest: &str| match self.archive {
            Some(archive) => {
                (before, is_known) = self.memory_before(archive, digest).await?;
                read_memory(archive, before).await
            }
            None => Ok(Memory::default()),
        };
        let remembers = self.archive.is_some() && self.day.is_some();
        let found = find(context, pages, documents.given(), remembers, recall).await?;
        progress.reset_documents();
        let templates = found.templates;
        Ok(Some(BatchTemplates {
            left_out: Arc::new(LeftOut { templates, markup }),
            digest: found.digest,
            seen: found.seen,
            seen_of_many: found.seen_of_many,
            sources: found.sources,
            before,
            is_known,
        }))
    }

    /// The memory that the batch is fingerprinted with: that of its first run, if it is committed already; and whether it is.
    async fn memory_before(self, archive: &Archive, digest: &str) -> Result<(Option<i64>, bool)> {
        let committed = match self.day {
            Some(day) => match archive.committed(day).await {
                // The rows of others go, too.
                Err(ArchiveError::ForeignRows { .. }) if self.existing == Existing::Replace => None,
                committed => committed?,
            },
            None => {
                let found = archive.committed_as(digest).await?;
                found.map(|(_, committed)| committed)
            }
        };
        match committed {
            Some(committed) if self.existing == Existing::Keep || committed.digest == digest => {
                Ok((committed.templates, true))
            }
            _ => Ok((archive.template_memory().await?, false)),
        }
    }
}

impl BatchTemplates {
    pub fn counts(&self) -> TemplateCounts {
        let templates = &self.left_out.templates;
        let sources = templates.sources.values();
        let passages: usize = sources.map(template::Template::len).sum();
        TemplateCounts {
            sources: self.sources,
            with_template: templates.sources.len() as u64,
            passages: passages as u64,
            of_many_sources: templates.many_sources.len() as u64,
        }
    }

    /// SHA-256 of the templates.
    pub(crate) fn left_out_digest(&self) -> String {
        storage::hex(&Sha256::digest(self.left_out.templates.to_bytes()))
    }

    /// Leaves the templates out of the texts of `documents`, whose fingerprints `recipe` makes.
    pub fn leave_out(&self, documents: &mut Documents, recipe: &mut Recipe) {
        documents.leave_out(Some(&self.left_out));
        if let Recipe::Texts(model) = recipe {
            *model = model.without_markup();
        }
    }

    /// What is left out of the texts of the archive's documents: the templates that it remembers, and those of the batch.
    pub(crate) async fn of_archive(&self, archive: &Archive) -> Result<Arc<LeftOut>> {
        let mut templates = read_memory(archive, self.before).await?.templates();
        let own = &self.left_out.templates;
        let of_batch = own.sources.iter();
        templates
            .sources
            .extend(of_batch.map(|(name, keys)| (name.clone(), keys.clone())));
        templates.many_sources.clone_from(&own.many_sources);
        Ok(Arc::new(LeftOut {
            templates,
            markup: self.left_out.markup,
        }))
    }

    /// Adds what the batch says of its sources to what `archive` remembers, and writes the sum to a file, which counts when a commit
    /// names it. The archive must be open at its latest version; the batch is to be committed as `day`, with so many `documents`.
    pub async fn remember(
        &self,
        archive: &Archive,
        day: NaiveDate,
        documents: u64,
    ) -> Result<CommittedMemory> {
        let current = archive.template_memory().await?;
        if let (true, Some(after)) = (self.is_known, current) {
            // Its pages are counted already.
            return Ok(CommittedMemory {
                before: self.before,
                after,
            });
        }
        let archived: u64 = archive.files()?.iter().filter_map(|file| file.rows).sum();
        let most = archived.saturating_add(documents);
        let most = most.saturating_mul(BYTES_OF_DOCUMENT).max(LEAST_MEMORY);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut memory = read_memory(archive, current).await?;
        let number = day.num_days_from_ce().max(0) as u32;
        for (name, seen) in &self.seen {
            memory.learn(name, number, seen);
        }
        memory
            .many_sources
            .learn(&self.seen_of_many, OF_MANY_SOURCES);
        Ok(CommittedMemory {
            before: self.before,
            after: archive.write_template_memory(memory.to_bytes(most)).await?,
        })
    }
}

/// Reads a memory of an archive.
pub(super) async fn read_memory(archive: &Archive, version: Option<i64>) -> Result<Memory> {
    let Some(version) = version else {
        return Ok(Memory::default());
    };
    let bytes = archive::template_memory::read(archive.location(), version).await?;
    Memory::from_bytes(&bytes)
        .map_err(|error| EngineError::bad_data(archive.location().to_string(), error.to_string()))
}
