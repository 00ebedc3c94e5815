//! What each largest distance would find among a sample of documents, and what it would cost.

mod alike;

use std::sync::atomic::Ordering;

use arrow::array::{Array as _, AsArray as _};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use hamming::{Limits, Plan};
use serde::Serialize;
use simhash::similarity::Prepared;
use simhash::{Fingerprinter, Measure, Model, Similarity};

use archive::IdType;

use crate::batch::Id;
use crate::documents::Documents;
use crate::error::{EngineError, Result};
use crate::progress::Progress;

/// Similarities by which pairs are sorted into kinds.
pub const LEVELS: [f64; 4] = [0.95, 0.9, 0.8, 0.5];

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tune {
    /// Documents of the sample, at most.
    pub sample: usize,
    /// Pairs at least so alike (Jaccard, shingles of three words) are those that should be found; from 0.5 on.
    pub min_similarity: f64,
    /// Fingerprints of a new day, for the costs.
    pub day: usize,
    /// Fingerprints of the history, for the costs.
    pub history: u64,
    /// Bytes that tables may take.
    pub memory: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuned {
    /// Documents read, of which the sample is taken.
    pub documents: u64,
    /// Documents of the sample.
    pub sampled: usize,
    /// Those without a fingerprint.
    pub without_fingerprint: usize,
    /// Pairs at least as alike as each of [`LEVELS`], whether found or not.
    pub alike: [usize; 4],
    /// Pairs that should be found.
    pub wanted: usize,
    /// For each largest distance from 0 on.
    pub distances: Vec<AtDistance>,
}

/// What pairs within a distance are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtDistance {
    /// The largest distance.
    pub max_distance: u32,
    /// Pairs found.
    pub pairs: usize,
    /// Of these, as alike as the first of [`LEVELS`], between that and the second, and so on; the last are below all.
    pub by_similarity: [usize; 5],
    /// Of the pairs that should be found, the share that is.
    pub recall: f64,
    /// Of the pairs that are found, the share that should be.
    pub precision: f64,
    /// The cheapest design.
    pub design: String,
    /// Bytes of its tables.
    pub table_bytes: usize,
    /// Predicted seconds of one core for the join.
    pub core_seconds: f64,
}

/// Draws a sample of documents and compares all pairs of it.
///
/// # Errors
/// [`EngineError`] naming the input file when a document cannot be read.
pub async fn tune(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    model: &Model,
    asked: &Tune,
    progress: &Progress,
) -> Result<Tuned> {
    if documents.has_fingerprints() {
        return Err(EngineError::Usage(format!(
            "{}: texts are needed, and these are ready fingerprints; name the texts by --text-column",
            documents.given()
        )));
    }
    let texts = sample(context, documents, id_type, asked.sample).await?;
    let read = progress.documents.load(Ordering::Relaxed);
    let (model, asked) = (model.clone(), *asked);
    let tuned = tokio::task::spawn_blocking(move || compare(&texts, &model, &asked)).await;
    let mut tuned = tuned.map_err(|error| EngineError::Internal(error.to_string()))??;
    tuned.documents = read;
    Ok(tuned)
}

/// The texts of the documents whose ids have the smallest hashes: a sample that does not depend on any order.
async fn sample(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    most: usize,
) -> Result<Vec<String>> {
    let failed = || EngineError::query(documents.given());
    let partitions = context.state().config().target_partitions();
    let mut rows = documents
        .table(context, id_type, partitions)?
        .execute_stream()
        .await
        .map_err(failed())?;
    let mut kept = std::collections::BinaryHeap::<(u64, Id, String)>::new();
    // Of a text there are shingles too, about as large each as the text.
    let memory = MemoryConsumer::new("sample").register(&context.runtime_env().memory_pool);
    let size = |text: &String| 4 * text.len() + 128;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let texts = batch.column(1).as_binary_view();
        for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
            let id = Id::of(batch.column(0), row);
            let hash = match &id {
                Id::Text(text) => simhash::hash::murmur3_low64(text.as_bytes(), 1),
                Id::Number(number) => simhash::hash::murmur3_low64(&number.to_le_bytes(), 1),
            };
            if kept.len() < most || kept.peek().is_some_and(|(worst, ..)| hash < *worst) {
                let text = String::from_utf8_lossy(texts.value(row)).into_owned();
                memory
                    .try_grow(size(&text))
                    .map_err(|_| EngineError::OutOfMemory {
                        what: format!("a sample of {most} documents; or lower --sample"),
                    })?;
                kept.push((hash, id, text));
            }
            if kept.len() > most
                && let Some((_, _, text)) = kept.pop()
            {
                memory.shrink(size(&text));
            }
        }
    }
    let sorted = kept.into_sorted_vec().into_iter();
    Ok(sorted.map(|(_, _, text)| text).collect())
}

/// Largest distances that are looked at.
const DISTANCES: std::ops::RangeInclusive<u32> = 0..=16;

fn compare(texts: &[String], model: &Model, asked: &Tune) -> Result<Tuned> {
    let mut fingerprinter = Fingerprinter::new(model.clone());
    let bits: Vec<Option<u64>> = texts
        .iter()
        .map(|text| fingerprinter.fingerprint(text))
        .collect();
    let mut similarity = Similarity::new(Measure::Jaccard, model.clone());
    let shingles: Vec<Vec<u64>> = texts
        .iter()
        .zip(&bits)
        .map(|(text, bits)| match (bits, similarity.prepare(text)) {
            // Texts that have no fingerprint are alike in saying nothing.
            (Some(_), Prepared::Shingles(shingles)) => shingles,
            _ => Vec::new(),
        })
        .collect();
    let least = LEVELS[LEVELS.len() - 1];
    let mut alike = [0; 4];
    let known: Vec<u64> = bits.iter().copied().flatten().collect();
    // How many pairs are at each distance, by kind; those not among the alike are of the last.
    let mut at = vec![[0usize; 5]; 65];
    let mut wanted_at = vec![0usize; 65];
    for (i, a) in known.iter().enumerate() {
        for b in &known[i + 1..] {
            at[(a ^ b).count_ones() as usize][4] += 1;
        }
    }
    alike::pairs(&shingles, least, |a, b, similarity| {
        let (Some(x), Some(y)) = (bits[a as usize], bits[b as usize]) else {
            return;
        };
        let distance = (x ^ y).count_ones() as usize;
        let kind = LEVELS.iter().position(|level| similarity >= *level);
        at[distance][4] -= 1;
        at[distance][kind.unwrap_or(4)] += 1;
        wanted_at[distance] += usize::from(similarity >= asked.min_similarity);
        for (count, level) in alike.iter_mut().zip(LEVELS) {
            *count += usize::from(similarity >= level);
        }
    });
    let wanted: usize = wanted_at.iter().sum();
    let limits = Limits {
        memory: asked.memory,
        queries: asked.history,
    };
    let mut distances = Vec::new();
    let (mut by_similarity, mut right) = ([0; 5], 0);
    for k in DISTANCES {
        for (sum, more) in by_similarity.iter_mut().zip(at[k as usize]) {
            *sum += more;
        }
        right += wanted_at[k as usize];
        let pairs = by_similarity.iter().sum();
        let plan = Plan::choose(asked.day, k, &limits)?;
        distances.push(AtDistance {
            max_distance: k,
            pairs,
            by_similarity,
            recall: share(right, wanted),
            precision: share(right, pairs),
            design: plan.design.name(),
            table_bytes: plan.bytes,
            core_seconds: plan.seconds(asked.history),
        });
    }
    Ok(Tuned {
        documents: 0,
        sampled: texts.len(),
        without_fingerprint: texts.len() - known.len(),
        alike,
        wanted,
        distances,
    })
}

fn share(part: usize, whole: usize) -> f64 {
    match whole {
        0 => 1.0,
        whole => part as f64 / whole as f64,
    }
}
