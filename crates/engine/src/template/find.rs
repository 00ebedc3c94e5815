//! The templates of a batch: its pages by source, and what an archive remembers.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use chrono::{Datelike as _, NaiveDate};
use datafusion::dataframe::DataFrame;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use simhash::hash::murmur3_low64;
use template::{
    Chosen, Learnt, MOST_PAGES, Memory, OF_MANY_SOURCES, OF_SOURCE, Page, Remembered, Templates,
    choose,
};

use super::pages::{DocumentsDigest, PAGE, counted};
use crate::documents::SOURCE;
use crate::error::{EngineError, Result};
use crate::threads::thread_pool;

/// The sources of which a page counts for what many sources share: those whose names have the least hashes.
const MOST_SOURCES: usize = 4_096;
/// Pages that are held until the templates of their sources are chosen, on all threads.
const HELD_PAGES: usize = 1 << 14;

/// What was found in a batch.
#[derive(Debug)]
pub(crate) struct Found {
    /// The templates of its sources.
    pub(crate) templates: Templates,
    /// What is known of all sources after it.
    pub(crate) memory: Memory,
    /// The sources of its documents.
    pub(crate) sources: Vec<Box<str>>,
    /// Digest of its documents, their ids and texts, in any order.
    pub(crate) digest: String,
}

/// Finds the templates of the sources of `pages`, a table as [`with_pages`](super::with_pages) makes it, of the documents `given`.
/// `recall` gives what is known of sources before these documents, which have the digest that it is called with.
///
/// # Errors
/// [`EngineError`] when the documents cannot be read, or their templates do not fit into the memory.
pub(crate) async fn find(
    context: &SessionContext,
    pages: DataFrame,
    given: &str,
    day: Option<NaiveDate>,
    recall: impl AsyncFnOnce(&str) -> Result<Memory>,
) -> Result<Found> {
    let failed = || EngineError::query(given);
    let digest = Arc::new(DocumentsDigest::default());
    // Documents without a source come first.
    let by_source = vec![ident(SOURCE).sort(true, true), ident(PAGE).sort(true, true)];
    let sorted = counted(pages, &digest).and_then(|pages| pages.sort(by_source));
    let sorted = sorted.map_err(failed())?;
    let mut rows = sorted.execute_stream().await.map_err(failed())?;
    // A sort has read all rows when it gives the first.
    let mut next = rows.next().await;
    let digest = digest.finish();
    let mut choosing = Choosing {
        memory: recall(&digest).await?,
        day: day.map_or(0, |day| day.num_days_from_ce().max(0) as u32),
        templates: Templates::default(),
        sources: Vec::new(),
        held: Vec::new(),
        pages: 0,
        of_many: Vec::new(),
        pool: thread_pool(context)?,
        reserved: MemoryConsumer::new("templates").register(&context.runtime_env().memory_pool),
    };
    while let Some(batch) = next {
        choosing.add(&batch.map_err(failed())?)?;
        next = rows.next().await;
    }
    choosing.finish(digest)
}

/// A source, with its first pages in the order of their identities.
struct Source {
    name: Box<str>,
    pages: Vec<Page>,
}

/// Chooses the templates of sources, one after the other.
struct Choosing {
    memory: Memory,
    day: u32,
    templates: Templates,
    /// The sources whose templates are chosen.
    sources: Vec<Box<str>>,
    /// Sources whose templates are not chosen yet; the last one is not complete.
    held: Vec<Source>,
    /// Their pages.
    pages: usize,
    /// A page of each source without the source's template, by the hash of the source's name.
    of_many: Vec<(u64, Page)>,
    pool: ThreadPool,
    reserved: MemoryReservation,
}

impl Choosing {
    /// Adds sorted rows.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |name: &str| {
            let column = batch.column_by_name(name);
            column.ok_or_else(|| EngineError::Internal(format!("pages have no column {name}")))
        };
        let sources = column(SOURCE)?.as_string::<i32>();
        let pages = column(PAGE)?.as_binary::<i32>();
        for row in (0..batch.num_rows()).filter(|&row| pages.is_valid(row)) {
            let name = sources.value(row);
            if self.held.last().is_none_or(|source| *source.name != *name) {
                if self.pages >= HELD_PAGES {
                    self.choose_held()?;
                }
                self.held.push(Source {
                    name: name.into(),
                    pages: Vec::new(),
                });
            }
            let Some(Source { pages: found, .. }) = self.held.last_mut() else {
                continue;
            };
            if found.len() == MOST_PAGES {
                continue;
            }
            let page = Page::from_bytes(pages.value(row));
            let page = page.ok_or_else(|| EngineError::Internal("a damaged page".into()))?;
            if found
                .last()
                .is_none_or(|last| last.identity != page.identity)
            {
                found.push(page);
                self.pages += 1;
            }
        }
        Ok(())
    }

    fn choose_held(&mut self) -> Result<()> {
        self.pages = 0;
        let sources = std::mem::take(&mut self.held);
        let memory = &self.memory;
        let choose_one = |source: Source| {
            let known = memory.sources.get(&source.name);
            let nothing = Learnt::default();
            let learnt = known.map_or(&nothing, |known| &known.learnt);
            let chosen = choose(&source.pages, learnt, OF_SOURCE);
            let page = source
                .pages
                .first()
                .map(|page| page.without(&chosen.template));
            (source.name, chosen, page)
        };
        let chosen: Vec<(Box<str>, Chosen, Option<Page>)> = self
            .pool
            .install(|| sources.into_par_iter().map(choose_one).collect());
        for (name, Chosen { template, learnt }, page) in chosen {
            if let Some(page) = page {
                self.of_many.push((murmur3_low64(name.as_bytes(), 0), page));
            }
            if !template.is_empty() {
                self.templates.sources.insert(name.clone(), template);
            }
            self.sources.push(name.clone());
            let remembered = Remembered {
                day: self.day,
                learnt,
            };
            self.memory.sources.insert(name, remembered);
        }
        self.of_many.sort_unstable_by_key(|(hash, _)| *hash);
        self.of_many.truncate(MOST_SOURCES);
        let bytes = self.templates.memory_bytes() + self.memory.bytes();
        self.reserved
            .try_resize(bytes)
            .map_err(|_| EngineError::OutOfMemory {
                what: format!("the templates of {} sources", self.memory.sources.len()),
            })
    }

    fn finish(mut self, digest: String) -> Result<Found> {
        self.choose_held()?;
        let mut pages: Vec<Page> = self.of_many.into_iter().map(|(_, page)| page).collect();
        pages.sort_unstable_by_key(|page| page.identity);
        pages.dedup_by_key(|page| page.identity);
        let Chosen { template, learnt } =
            choose(&pages, &self.memory.many_sources, OF_MANY_SOURCES);
        self.templates.many_sources = template;
        self.memory.many_sources = learnt;
        Ok(Found {
            templates: self.templates,
            memory: self.memory,
            sources: self.sources,
            digest,
        })
    }
}
