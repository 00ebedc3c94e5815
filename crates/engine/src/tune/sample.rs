//! Draws a sample of documents.

use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use archive::IdType;
use arrow::array::{Array as _, AsArray as _};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use simhash::hash::murmur3_low64;
use simhash::reliable_length::LENGTHS;
use simhash::{Measure, Similarity};
use unicode_segmentation::UnicodeSegmentation as _;

use super::SpecToTune;
use super::sources::SourcesOfTexts;
use crate::error::{EngineError, Result};
use crate::memory::reserve;
use crate::text_counts::ShorterTexts;
use documents::{DocumentId, Documents, Rows, SOURCE, TextRows};

/// Texts of some of the documents that were read.
pub(super) struct Sample {
    pub(super) texts: Vec<String>,
    pub(super) sources: Vec<Option<String>>,
    /// The texts of all documents, by their number of words.
    pub(super) shorter: ShorterTexts,
    /// The memory reserved for `texts`.
    pub(super) memory: MemoryReservation,
}

/// A sample of the `most` documents whose ids have the smallest hashes, the same in any order of the documents.
pub(super) async fn sample(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    most: usize,
) -> Result<Sample> {
    let failed = || EngineError::query(documents.given());
    let partitions = context.state().config().target_partitions();
    let counters = Arc::default();
    let rows = Rows::WithDecisionColumns;
    let table = documents.table(context, id_type, partitions, rows, Some(&counters))?;
    let mut rows = table.execute_stream().await.map_err(failed())?;
    let mut kept = BinaryHeap::<(u64, DocumentId, String, Option<String>)>::new();
    // The shingles of the sample, made later, take several times the bytes of its texts.
    let memory = MemoryConsumer::new("sample").register(&context.runtime_env().memory_pool);
    let size = |text: &String| 4 * text.len() + 128;
    let mut shorter = ShorterTexts::default();
    let longest = LENGTHS[LENGTHS.len() - 1] as usize;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let TextRows { ids, texts } = TextRows::read(&batch)?;
        let sources = batch.column_by_name(SOURCE);
        let sources = sources.and_then(|sources| sources.as_string_opt::<i32>());
        for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
            let id = DocumentId::read(ids, row);
            let text = String::from_utf8_lossy(texts.value(row));
            shorter.add(text.unicode_words().take(longest).count());
            let hash = match &id {
                DocumentId::Text(text) => murmur3_low64(text.as_bytes(), 1),
                DocumentId::Number(number) => murmur3_low64(&number.to_le_bytes(), 1),
            };
            if kept.len() < most || kept.peek().is_some_and(|(worst, ..)| hash < *worst) {
                let text = text.into_owned();
                reserve(&memory, size(&text), || {
                    format!("the sample of {most} documents does not fit; lower --sample")
                })?;
                let source = sources.filter(|sources| sources.is_valid(row));
                let source = source.map(|sources| sources.value(row).to_owned());
                kept.push((hash, id, text, source));
            }
            if kept.len() > most
                && let Some((_, _, text, _)) = kept.pop()
            {
                memory.shrink(size(&text));
            }
        }
    }
    let sorted = kept.into_sorted_vec().into_iter();
    let (texts, sources) = sorted.map(|(_, _, text, source)| (text, source)).unzip();
    Ok(Sample {
        texts,
        sources,
        shorter,
        memory,
    })
}

/// The texts that are compared as no earlier one is, with their sources.
pub(super) fn distinct(
    texts: Vec<String>,
    sources: &[Option<String>],
    candidates: &[SpecToTune],
) -> (Vec<String>, SourcesOfTexts) {
    let Some(first) = candidates.first() else {
        return (Vec::new(), SourcesOfTexts::new(&[]));
    };
    let mut similarity = Similarity::new(Measure::Jaccard, first.model.clone());
    let mut known = HashSet::new();
    let (mut kept, mut of_kept) = (Vec::new(), Vec::new());
    for (text, source) in texts.into_iter().zip(sources) {
        if known.insert(<[u8; 32]>::from(Sha256::digest(similarity.compared(&text)))) {
            kept.push(text);
            of_kept.push(source.clone());
        }
    }
    (kept, SourcesOfTexts::new(&of_kept))
}
