//! The recall, precision and cost of each largest distance, measured on a sample of documents.

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

/// The least similarity of each class of pairs; a last class has the pairs below all of them.
pub const LEVELS: [f64; 4] = [0.95, 0.9, 0.8, 0.5];

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tune {
    /// The most documents in the sample.
    pub sample: usize,
    /// Pairs of this similarity or more (Jaccard, shingles of three words) should be found; at least 0.5.
    pub min_similarity: f64,
    /// Fingerprints of a batch, for the costs.
    pub day: usize,
    /// Fingerprints of the archive, for the costs.
    pub history: u64,
    /// Bytes that tables may take.
    pub memory: usize,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuned {
    /// Documents read, of which the sample was drawn.
    pub documents: u64,
    /// Documents in the sample.
    pub sampled: usize,
    /// Documents in the sample without a fingerprint.
    pub without_fingerprint: usize,
    /// Pairs whose similarity is at least each of [`LEVELS`], found or not.
    pub alike: [usize; 4],
    /// Pairs whose similarity is at least [`Tune::min_similarity`]: those that should be found.
    pub wanted: usize,
    /// What each largest distance finds, from distance 0 on.
    pub distances: Vec<AtDistance>,
}

/// The pairs within one distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtDistance {
    /// The largest distance.
    pub max_distance: u32,
    /// Pairs found.
    pub pairs: usize,
    /// Pairs found, by class: one class for each of [`LEVELS`], then the pairs below all.
    pub by_similarity: [usize; 5],
    /// Pairs found that should be, as a share of [`Tuned::wanted`].
    pub recall: f64,
    /// Pairs found that should be, as a share of all pairs found.
    pub precision: f64,
    /// The cheapest design for this distance.
    pub design: String,
    /// Bytes of its tables.
    pub table_bytes: usize,
    /// Predicted seconds of the join on one core.
    pub core_seconds: f64,
}

/// Draws a sample of documents and compares all its pairs.
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

/// The texts of the `most` documents whose ids have the smallest hashes: the same sample in any order of the documents.
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
    // The shingles of the sample, made later, take several times the bytes of its texts.
    let memory = MemoryConsumer::new("sample").register(&context.runtime_env().memory_pool);
    let size = |text: &String| 4 * text.len() + 128;
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let texts = batch.column(1).as_binary_view();
        for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
            let id = Id::read(batch.column(0), row);
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

/// Largest distances that are measured.
const DISTANCES: std::ops::RangeInclusive<u32> = 0..=16;

/// Compares all pairs of `texts`, and sums up what each largest distance finds.
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
            // A text without a fingerprint is similar to no other.
            (Some(_), Prepared::Shingles(shingles)) => shingles,
            _ => Vec::new(),
        })
        .collect();
    let least = LEVELS[LEVELS.len() - 1];
    let mut alike = [0; 4];
    let known: Vec<u64> = bits.iter().copied().flatten().collect();
    // Pairs at each distance, by class. All pairs start in the last class; similar ones then move to theirs.
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
        let class = LEVELS.iter().position(|level| similarity >= *level);
        at[distance][4] -= 1;
        at[distance][class.unwrap_or(4)] += 1;
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
    let (mut by_similarity, mut wanted_found) = ([0; 5], 0);
    for k in DISTANCES {
        for (sum, more) in by_similarity.iter_mut().zip(at[k as usize]) {
            *sum += more;
        }
        wanted_found += wanted_at[k as usize];
        let pairs = by_similarity.iter().sum();
        let plan = Plan::choose(asked.day, k, &limits)?;
        distances.push(AtDistance {
            max_distance: k,
            pairs,
            by_similarity,
            recall: share(wanted_found, wanted),
            precision: share(wanted_found, pairs),
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

/// `part / whole`; 1 when `whole` is 0.
fn share(part: usize, whole: usize) -> f64 {
    match whole {
        0 => 1.0,
        whole => part as f64 / whole as f64,
    }
}
