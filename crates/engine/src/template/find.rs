//! The templates of a batch: its pages by source, and what an archive remembers.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use datafusion::dataframe::DataFrame;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use simhash::hash::murmur3_low64;
use template::{
    Chosen, Learnt, MOST_PAGES, Memory, OF_MANY_SOURCES, OF_SOURCE, Page, Seen, Templates, choose,
};

use super::pages::{DocumentsDigest, PAGE, counted};
use crate::error::{EngineError, Result};
use crate::session::with_own_partitions;
use documents::SOURCE;
use streams::thread_pool;

/// A page of each of at most so many sources says what many sources share. The sources whose names have the least hashes are taken.
const MOST_SOURCES: usize = 4_096;
/// Passages of such a page.
const MOST_OF_MANY: usize = 128;
/// A source gets no more pages when its pages have so many passages together.
const MOST_PASSAGES: usize = 1 << 16;
/// The most bytes of pages that are held until the templates of their sources are chosen, on all threads.
const MOST_HELD: usize = 64 << 20;
/// Bytes that a passage takes while a template is chosen.
const BYTES_OF_PASSAGE: usize = 64;
/// Bytes of a page beside its passages, and of a source.
const BYTES_OF_PAGE: usize = 128;

/// What was found in a batch.
#[derive(Debug)]
pub(crate) struct Found {
    /// The templates of its sources.
    pub(crate) templates: Templates,
    /// What its pages add to what is known of its sources; nothing, if nothing remembers it.
    pub(crate) seen: Vec<(Box<str>, Seen)>,
    /// And to what is known of many sources.
    pub(crate) seen_of_many: Seen,
    pub(crate) sources: u64,
    /// Digest of its documents, their ids and texts, in any order.
    pub(crate) digest: String,
}

/// Finds the templates of the sources of `pages`, a table as [`with_pages`](super::with_pages) makes it, of the documents `given`.
/// Calls `recall` with the digest of the documents, and takes what it returns for what was learnt before them. Only if `remembers`,
/// [`Found::seen`] is filled.
pub(crate) async fn find(
    context: &SessionContext,
    pages: DataFrame,
    given: &str,
    remembers: bool,
    recall: impl AsyncFnOnce(&str) -> Result<Memory>,
) -> Result<Found> {
    let failed = || EngineError::query(given);
    let digest = Arc::new(DocumentsDigest::default());
    // Documents without a source come first.
    let by_source = vec![ident(SOURCE).sort(true, true), ident(PAGE).sort(true, true)];
    let sorted = counted(pages, &digest).and_then(|pages| pages.sort(by_source));
    let sorted = sorted.map_err(failed())?;
    let sorted = with_own_partitions(sorted);
    let mut rows = sorted.execute_stream().await.map_err(failed())?;
    // A sort has read all rows when it gives the first.
    let mut next = rows.next().await;
    let digest = digest.finish();
    let pool = &context.runtime_env().memory_pool;
    let mut choosing = Choosing {
        memory: recall(&digest).await?,
        remembers,
        templates: Templates::default(),
        seen: Vec::new(),
        sources: 0,
        held: Vec::new(),
        held_bytes: 0,
        most_held: MOST_HELD.min(streams::limit_bytes(pool) / 8),
        of_many: Vec::new(),
        pool: thread_pool(context)?,
        reserved: MemoryConsumer::new("templates").register(pool),
    };
    while let Some(batch) = next {
        choosing.add(&batch.map_err(failed())?)?;
        next = rows.next().await;
    }
    choosing.finish(digest)
}

/// Bytes that a page takes while templates are chosen.
fn bytes_of(page: &Page) -> usize {
    BYTES_OF_PAGE + page.passages.len() * BYTES_OF_PASSAGE
}

/// A source, with its first pages in the order of their identities.
struct Source {
    name: Box<str>,
    pages: Vec<Page>,
    /// Passages of these pages together.
    passages: usize,
}

/// Chooses the templates of sources, one after the other.
struct Choosing {
    memory: Memory,
    remembers: bool,
    templates: Templates,
    seen: Vec<(Box<str>, Seen)>,
    sources: u64,
    /// Sources whose templates are not chosen yet; the last one is not complete.
    held: Vec<Source>,
    /// Bytes that they take until then.
    held_bytes: usize,
    /// The bytes at which they are chosen.
    most_held: usize,
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
                if self.held_bytes >= self.most_held {
                    self.choose_held()?;
                }
                self.hold(BYTES_OF_PAGE + name.len())?;
                self.held.push(Source {
                    name: name.into(),
                    pages: Vec::new(),
                    passages: 0,
                });
            }
            let Some(source) = self.held.last_mut() else {
                continue;
            };
            if source.pages.len() == MOST_PAGES || source.passages >= MOST_PASSAGES {
                continue;
            }
            let page = Page::from_bytes(pages.value(row));
            let page = page.ok_or_else(|| EngineError::Internal("a damaged page".into()))?;
            let last = source.pages.last();
            if last.is_none_or(|last| last.identity != page.identity) {
                let bytes = bytes_of(&page);
                source.passages += page.passages.len();
                source.pages.push(page);
                self.hold(bytes)?;
            }
        }
        Ok(())
    }

    /// Takes memory for what is held.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.held_bytes += bytes;
        self.reserve(bytes)
    }

    fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.reserved
            .try_grow(bytes)
            .map_err(|_| EngineError::OutOfMemory {
                what: format!("the templates of {} sources", self.sources),
            })
    }

    fn choose_held(&mut self) -> Result<()> {
        let sources = std::mem::take(&mut self.held);
        let memory = &self.memory;
        let choose_one = |source: Source| {
            let known = memory.sources.get(&source.name);
            let nothing = Learnt::default();
            let learnt = known.map_or(&nothing, |known| &known.learnt);
            let chosen = choose(&source.pages, learnt, OF_SOURCE);
            let first = source.pages.first();
            let page =
                first.map(|page| page.without(|key| chosen.template.is_frame(key), MOST_OF_MANY));
            (source.name, chosen, page)
        };
        let chosen: Vec<(Box<str>, Chosen, Option<Page>)> = self
            .pool
            .install(|| sources.into_par_iter().map(choose_one).collect());
        self.reserved.shrink(std::mem::take(&mut self.held_bytes));
        self.sources += chosen.len() as u64;
        let mut bytes = 0;
        for (name, Chosen { template, seen }, page) in chosen {
            if let Some(page) = page {
                bytes += bytes_of(&page);
                self.of_many.push((murmur3_low64(name.as_bytes(), 0), page));
            }
            if self.remembers {
                bytes += BYTES_OF_PAGE + name.len() + size_of_val(&*seen.passages);
                self.seen.push((name.clone(), seen));
            }
            if !template.is_empty() {
                bytes += BYTES_OF_PAGE + name.len() + template.len() * size_of::<u32>();
                self.templates.sources.insert(name, template);
            }
        }
        self.of_many.sort_unstable_by_key(|(hash, _)| *hash);
        for (_, page) in self.of_many.drain(self.of_many.len().min(MOST_SOURCES)..) {
            bytes = bytes.saturating_sub(bytes_of(&page));
        }
        self.reserve(bytes)
    }

    fn finish(mut self, digest: String) -> Result<Found> {
        self.choose_held()?;
        let mut pages: Vec<Page> = self.of_many.into_iter().map(|(_, page)| page).collect();
        pages.sort_unstable_by_key(|page| page.identity);
        pages.dedup_by_key(|page| page.identity);
        let many = || choose(&pages, &self.memory.many_sources, OF_MANY_SOURCES);
        let Chosen { template, seen } = self.pool.install(many);
        self.templates.many_sources = template.frame;
        Ok(Found {
            templates: self.templates,
            seen: self.seen,
            seen_of_many: seen,
            sources: self.sources,
            digest,
        })
    }
}
