//! Measures settings on a sample of documents: recall, precision and cost of each spec and largest
//! distance, the unrelated documents that a new document would meet in a large archive, and how long
//! a text must be to be found again.

mod alike;
pub mod one_word;
mod sketched;
mod sources;
pub mod tail;
mod templates;
mod weighed;

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use arrow::array::{Array as _, AsArray as _};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use hamming::{Limits, Plan};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use simhash::reliable_length::LENGTHS;
use simhash::similarity::Prepared;
use simhash::{
    DocumentFrequencies, Fingerprinter, Idf, IdfPower, Measure, Model, Similarity, Spec,
};
use unicode_segmentation::UnicodeSegmentation as _;

use archive::IdType;

use crate::documents::{DocumentId, Documents, SOURCE, TextRows};
use crate::error::{EngineError, Result};
use crate::profile::{Profile, default_similarity};
use crate::progress::{Progress, Stage};
use crate::resources::Resources;
use crate::text_counts::ShorterTexts;
use one_word::{AtLength, ShortTexts};
pub use sketched::AtSketch;
use sketched::{Sketched, Sketches};
use sources::SourcesOfTexts;
pub use sources::{AlikeSource, FEW_WORDS};
use weighed::{ByK, Near, f1, weight, weights};

/// The least similarity of each level of pairs; a last level has the pairs below all of them.
pub const LEVELS: [f64; 4] = [0.95, 0.9, 0.8, 0.5];

/// What to measure, and for which sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tune {
    /// The most documents in the sample.
    pub sample: usize,
    /// Pairs of this similarity or more (Jaccard, shingles of three words) should be found; at least 0.5.
    pub min_similarity: f64,
    /// Fingerprints of a batch, for the costs.
    pub batch: usize,
    /// Fingerprints of the archive, for the costs.
    pub archive: u64,
    /// Bytes that tables may take.
    pub memory: usize,
}

/// A spec to measure.
#[derive(Debug, Clone)]
pub struct SpecToTune {
    /// A model of the spec, without document frequencies if these are to be learnt.
    pub model: Model,
    /// The power of the inverse document frequencies that are learnt from the sample; `None` to learn none.
    pub learn: Option<IdfPower>,
}

/// What was measured on the sample under one spec.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuned {
    /// The spec.
    pub spec: Spec,
    /// Whether the spec's document frequencies were learnt from the sample.
    pub learnt: bool,
    /// Documents read, of which the sample was drawn.
    pub documents: u64,
    /// Documents in the sample, but for those whose text an earlier one has.
    pub sampled: usize,
    /// Documents that were drawn, but whose text an earlier one has.
    pub copies: usize,
    /// Documents in the sample without a fingerprint.
    pub without_fingerprint: usize,
    /// Pairs whose similarity is at least each of [`LEVELS`], found or not.
    pub alike: [usize; 4],
    /// Pairs whose similarity is at least [`Tune::min_similarity`]: those that should be found.
    pub wanted: usize,
    /// Documents in these pairs.
    pub documents_wanted: usize,
    /// Groups of documents that such pairs connect: what is found of one says little of the others.
    pub groups_wanted: usize,
    /// Of up to 1,000 pairs that should be found and whose texts are not equal, those whose texts have the same words but
    /// for one or two names.
    pub differ_in_a_name: Share,
    /// Sources most of whose pages differ in few words.
    pub alike_sources: Vec<AlikeSource>,
    /// What the profile `sharp` finds with this spec; `None` if no pair should be found.
    pub sharp: Option<AtSketch>,
    /// What each largest distance finds, from distance 0 on.
    pub distances: Vec<AtDistance>,
    /// Which texts are found again after one word was replaced, by their length.
    pub lengths: Vec<AtLength>,
}

/// A part of a whole, as two counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The part.
    pub part: usize,
    /// The whole.
    pub whole: usize,
}

/// The pairs within one distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtDistance {
    /// The largest distance.
    pub max_distance: u32,
    /// Pairs found.
    pub pairs: usize,
    /// Pairs found, by level: one for each of [`LEVELS`], then the pairs below all.
    pub by_similarity: [usize; 5],
    /// Recall: the mean, over the documents with pairs that should be found, of the share that is found.
    pub recall: f64,
    /// Precision: the share of the pairs found that should be found, each document counted alike.
    pub precision: f64,
    /// Pairs below every one of [`LEVELS`] that a new document is expected to meet in an archive of [`Tune::archive`]
    /// documents like these.
    pub unrelated: f64,
    /// How [`Self::unrelated`] was estimated.
    pub estimate: Estimate,
    /// The cheapest design for this distance.
    pub design: String,
    /// Bytes of its tables.
    pub table_bytes: usize,
    /// Predicted seconds of the join on one core.
    pub core_seconds: f64,
    /// What a verification by sketches of each size would keep; empty if none of the pairs found
    /// should be found.
    pub sketches: Vec<AtSketch>,
}

/// How a number of pairs in an archive was estimated from those in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimate {
    /// In proportion to the pairs in the sample.
    Counted,
    /// From pairs at larger distances, because fewer than ten were seen.
    Extrapolated,
    /// Neither is possible: the number is an upper bound, with 95 % confidence.
    Bound,
}

/// Draws a sample of documents, and compares all its pairs under each of `candidates`.
///
/// # Errors
/// [`EngineError`] naming the input file when a document cannot be read.
pub async fn tune(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    candidates: &[SpecToTune],
    asked: &Tune,
) -> Result<Vec<Tuned>> {
    let resources = Resources::from_session(context)?;
    if documents.has_fingerprints() {
        return Err(EngineError::Usage(format!(
            "{}: texts are needed, and these are ready fingerprints; name the texts by --text-column",
            documents.given()
        )));
    }
    let Sample {
        texts,
        sources,
        shorter,
        memory,
    } = sample(context, documents, id_type, asked.sample).await?;
    let read = resources.progress.documents.load(Ordering::Relaxed);
    let (candidates, asked) = (candidates.to_vec(), *asked);
    let threads = context.state().config().target_partitions();
    let tuned = tokio::task::spawn_blocking(move || {
        let drawn = texts.len();
        let (texts, sources) = distinct(texts, &sources, &candidates);
        let progress = &resources.progress;
        let compared = compare(&texts, sources, &candidates, &asked, threads, progress);
        compared.map(|tuned| (tuned, drawn - texts.len()))
    });
    let tuned = tuned.await;
    drop(memory);
    let (mut tuned, copies) = tuned.map_err(|error| EngineError::Internal(error.to_string()))??;
    for tuned in &mut tuned {
        (tuned.documents, tuned.copies) = (read, copies);
        for at in &mut tuned.lengths {
            let shorter = shorter.than(at.words as u32);
            at.shorter_documents = shorter.unwrap_or_default();
        }
    }
    Ok(tuned)
}

/// Texts of some of the documents that were read.
struct Sample {
    texts: Vec<String>,
    /// Their sources.
    sources: Vec<Option<String>>,
    /// The texts of all documents, by their number of words.
    shorter: ShorterTexts,
    /// The memory reserved for `texts`.
    memory: MemoryReservation,
}

/// A sample of the `most` documents whose ids have the smallest hashes, the same in any order of the documents.
async fn sample(
    context: &SessionContext,
    documents: &Documents,
    id_type: IdType,
    most: usize,
) -> Result<Sample> {
    let failed = || EngineError::query(documents.given());
    let partitions = context.state().config().target_partitions();
    let mut rows = documents
        .table_to_fingerprint(context, id_type, partitions, true, &Arc::default())?
        .execute_stream()
        .await
        .map_err(failed())?;
    let mut kept = std::collections::BinaryHeap::<(u64, DocumentId, String, Option<String>)>::new();
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
                DocumentId::Text(text) => simhash::hash::murmur3_low64(text.as_bytes(), 1),
                DocumentId::Number(number) => {
                    simhash::hash::murmur3_low64(&number.to_le_bytes(), 1)
                }
            };
            if kept.len() < most || kept.peek().is_some_and(|(worst, ..)| hash < *worst) {
                let text = text.into_owned();
                memory
                    .try_grow(size(&text))
                    .map_err(|_| EngineError::OutOfMemory {
                        what: format!(
                            "the sample of {most} documents does not fit; lower --sample"
                        ),
                    })?;
                let source = sources.filter(|sources| sources.is_valid(row));
                kept.push((
                    hash,
                    id,
                    text,
                    source.map(|sources| sources.value(row).to_owned()),
                ));
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

/// Largest distances that are measured.
const DISTANCES: std::ops::RangeInclusive<u32> = 0..=16;

/// Texts of each length in which one word is replaced.
const SHORT_TEXTS: usize = 2000;

/// Pairs from which [`Tuned::differ_in_a_name`] is taken.
const TEMPLATE_PAIRS: usize = 1000;

/// The texts that are compared as no earlier one is, with their sources.
fn distinct(
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

/// Compares all pairs of `texts` under each of `candidates`, and sums up what each largest distance finds.
fn compare(
    texts: &[String],
    mut sources: SourcesOfTexts,
    candidates: &[SpecToTune],
    asked: &Tune,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<Tuned>> {
    progress.begin(Stage::Tune, candidates.len() as u64);
    let Some(first) = candidates.first() else {
        return Ok(Vec::new());
    };
    // Candidates that extract the same features share their document frequencies.
    let mut learnt: Vec<(&Spec, DocumentFrequencies)> = Vec::new();
    for candidate in candidates
        .iter()
        .filter(|candidate| candidate.learn.is_some())
    {
        let spec = candidate.model.spec();
        if with_same_features(&learnt, spec).is_none() {
            learnt.push((spec, frequencies(texts, &candidate.model)));
        }
    }
    // Candidates that extract the same features share their sketches, too.
    let mut sketches: Vec<(&Spec, Arc<Sketches>)> = Vec::new();
    for candidate in candidates {
        let spec = candidate.model.spec();
        let made = with_same_features(&sketches, spec).map(Arc::clone);
        let made = made.unwrap_or_else(|| Arc::new(Sketches::new(texts, &candidate.model)));
        sketches.push((spec, made));
    }
    let short = &ShortTexts::cut(texts, &LENGTHS.map(|words| words as usize), SHORT_TEXTS);
    let candidates: Vec<_> = candidates.iter().zip(sketches).collect();
    let mut counts = Vec::new();
    for some in candidates.chunks(threads.max(1)) {
        let counted: Vec<_> = std::thread::scope(|scope| {
            let count = |(candidate, (spec, sketches)): &(&SpecToTune, (&Spec, Arc<Sketches>))| {
                let frequencies = with_same_features(&learnt, spec);
                let sketches = Arc::clone(sketches);
                let model = candidate.model_with(frequencies);
                let learnt = candidate.learn.is_some();
                scope.spawn(move || {
                    let counts =
                        model.map(|model| Counts::new(texts, short, &model, learnt, sketches));
                    progress.steps.fetch_add(1, Ordering::Relaxed);
                    counts
                })
            };
            let threads: Vec<_> = some.iter().map(count).collect();
            let join = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        for counted in counted {
            counts.push(counted?);
        }
    }
    let mut similarity = Similarity::new(Measure::Jaccard, first.model.clone());
    let shingles: Vec<Vec<u64>> = texts
        .iter()
        .map(|text| match similarity.prepare(text) {
            Prepared::Shingles(shingles) => shingles,
            _ => Vec::new(),
        })
        .collect();
    let least = LEVELS[LEVELS.len() - 1];
    let mut wanted = vec![0; texts.len()];
    let mut groups: Vec<u32> = (0..texts.len() as u32).collect();
    alike::pairs(&shingles, asked.min_similarity, |a, b, _| {
        wanted[a as usize] += 1;
        wanted[b as usize] += 1;
        let (a, b) = (
            first_of_group(&mut groups, a),
            first_of_group(&mut groups, b),
        );
        groups[a.max(b) as usize] = a.min(b);
    });
    let first = |(at, pairs): (u32, &u32)| *pairs > 0 && groups[at as usize] == at;
    let groups_wanted = (0..).zip(&wanted).filter(|one| first(*one)).count();
    let mut differ_in_a_name = Share::default();
    alike::pairs(&shingles, least, |a, b, similarity| {
        let (a, b) = (a as usize, b as usize);
        let weight = match similarity >= asked.min_similarity {
            true => Some(weight(wanted[a], wanted[b])),
            false => None,
        };
        for counts in &mut counts {
            counts.add_alike(a, b, similarity, weight);
        }
        sources.add(texts, a, b);
        let [a, b] = [a, b].map(|at| &texts[at]);
        if similarity >= asked.min_similarity && differ_in_a_name.whole < TEMPLATE_PAIRS && a != b {
            differ_in_a_name.whole += 1;
            differ_in_a_name.part += usize::from(templates::differ_in_a_name(a, b));
        }
    });
    let documents_wanted = wanted.iter().filter(|pairs| **pairs > 0).count();
    let alike_sources = sources.alike();
    let tuned = counts.into_iter().map(|counts| {
        let tuned = counts.sum_up(asked, documents_wanted)?;
        Ok(Tuned {
            differ_in_a_name,
            groups_wanted,
            alike_sources: alike_sources.clone(),
            ..tuned
        })
    });
    tuned.collect()
}

/// The first text of the group of the text `at`; each text has an earlier one of its group, or itself.
fn first_of_group(groups: &mut [u32], mut at: u32) -> u32 {
    while groups[at as usize] != at {
        // Halves the way for the next call.
        groups[at as usize] = groups[groups[at as usize] as usize];
        at = groups[at as usize];
    }
    at
}

/// What was made for a spec that extracts the same features as `spec`.
fn with_same_features<'a, T>(made: &'a [(&Spec, T)], spec: &Spec) -> Option<&'a T> {
    let mut same = made
        .iter()
        .filter(|(other, _)| spec.has_same_features(other));
    same.next().map(|(_, made)| made)
}

/// Counts of the sample's pairs under one spec.
struct Counts {
    spec: Spec,
    learnt: bool,
    /// The fingerprint of each text.
    bits: Vec<Option<u64>>,
    /// Pairs at each distance, by level: one for each of [`LEVELS`], then the pairs below all.
    pairs_at: [[usize; 5]; 65],
    /// Pairs that should be found.
    wanted: usize,
    /// Pairs of each text within each k.
    near: Near,
    /// Sums over the pairs within each k.
    sums_at: ByK,
    alike: [usize; 4],
    sketched: Sketched,
    lengths: Vec<AtLength>,
}

impl Counts {
    /// Fingerprints `texts`, and counts all pairs as if they were below all levels. Counts which of the `short` texts are
    /// found again.
    fn new(
        texts: &[String],
        short: &[ShortTexts],
        model: &Model,
        learnt: bool,
        sketches: Arc<Sketches>,
    ) -> Self {
        let mut fingerprinter = Fingerprinter::new(model.clone());
        let bits: Vec<Option<u64>> = texts
            .iter()
            .map(|text| fingerprinter.fingerprint(text))
            .collect();
        let mut pairs_at = [[0; 5]; 65];
        let mut sketched = Sketched::new(sketches);
        let known = bits.iter().enumerate();
        let known: Vec<(usize, u64)> = known
            .filter_map(|(at, bits)| Some((at, (*bits)?)))
            .collect();
        let mut near: Near = vec![Default::default(); texts.len()];
        for (i, (a, x)) in known.iter().enumerate() {
            for (b, y) in &known[i + 1..] {
                let distance = (x ^ y).count_ones() as usize;
                pairs_at[distance][4] += 1;
                if distance <= sketched::MAX_DISTANCE {
                    for at in [*a, *b] {
                        near[at][distance..]
                            .iter_mut()
                            .for_each(|pairs| *pairs += 1);
                    }
                }
            }
        }
        let mut sums_at = ByK::default();
        let has_near = |at: usize| near[at][sketched::MAX_DISTANCE] > 0;
        for (i, (a, x)) in known.iter().enumerate().filter(|(_, (a, _))| has_near(*a)) {
            for (b, y) in &known[i + 1..] {
                let distance = (x ^ y).count_ones() as usize;
                if distance <= sketched::MAX_DISTANCE {
                    let pair = (*a, *b);
                    weights(&near, pair, distance, 0.0)
                        .for_each(|(k, weight)| sums_at[k].add(weight));
                    sketched.add(&near, pair, distance);
                }
            }
        }
        Self {
            spec: model.spec().clone(),
            learnt,
            bits,
            pairs_at,
            wanted: 0,
            near,
            sums_at,
            alike: [0; 4],
            sketched,
            lengths: short
                .iter()
                .filter(|short| short.size() > 0)
                .map(|short| AtLength::new(short, &mut fingerprinter))
                .collect(),
        }
    }

    /// Moves the pair of the texts `a` and `b` to the level of its similarity. A text without a
    /// fingerprint is in no pair. `wanted` is what the pair counts for in recall, if it should be found.
    fn add_alike(&mut self, a: usize, b: usize, similarity: f64, wanted: Option<f64>) {
        let (Some(x), Some(y)) = (self.bits[a], self.bits[b]) else {
            return;
        };
        let distance = (x ^ y).count_ones() as usize;
        let class = LEVELS.iter().position(|level| similarity >= *level);
        self.pairs_at[distance][4] -= 1;
        self.pairs_at[distance][class.unwrap_or(4)] += 1;
        self.wanted += usize::from(wanted.is_some());
        if let Some(wanted) = wanted.filter(|_| distance <= sketched::MAX_DISTANCE) {
            weights(&self.near, (a, b), distance, wanted)
                .for_each(|(k, weight)| self.sums_at[k].add_wanted(weight));
            self.sketched
                .add_wanted(&self.near, (a, b), distance, wanted);
        }
        for (count, level) in self.alike.iter_mut().zip(LEVELS) {
            *count += usize::from(similarity >= level);
        }
    }

    /// What each largest distance finds; `documents` are in pairs that should be found.
    fn sum_up(&self, asked: &Tune, documents: usize) -> Result<Tuned> {
        let limits = Limits {
            memory: asked.memory,
            queries: asked.archive,
        };
        let known = self.bits.iter().flatten().count() as f64;
        let all_pairs = (known * (known - 1.0) / 2.0).max(1.0);
        let mut unrelated = [0u64; 65];
        let mut sum = 0;
        for (cumulative, pairs) in unrelated.iter_mut().zip(&self.pairs_at) {
            sum += pairs[4] as u64;
            *cumulative = sum;
        }
        let mut distances = Vec::new();
        let mut by_similarity = [0; 5];
        for k in DISTANCES {
            for (sum, more) in by_similarity.iter_mut().zip(self.pairs_at[k as usize]) {
                *sum += more;
            }
            let sums = &self.sums_at[k as usize];
            let pairs = by_similarity.iter().sum();
            let plan = Plan::choose(asked.batch, k, &limits)?;
            let (events, estimate) = estimate(&unrelated, k);
            distances.push(AtDistance {
                max_distance: k,
                pairs,
                by_similarity,
                recall: sums.recall(documents),
                precision: sums.precision(),
                unrelated: events / all_pairs * asked.archive as f64,
                estimate,
                design: plan.design.name(),
                table_bytes: plan.bytes,
                core_seconds: plan.seconds(asked.archive),
                sketches: self.sketched.at_distance(k, documents),
            });
        }
        Ok(Tuned {
            spec: self.spec.clone(),
            learnt: self.learnt,
            documents: 0,
            sampled: self.bits.len(),
            without_fingerprint: self.bits.iter().filter(|bits| bits.is_none()).count(),
            alike: self.alike,
            copies: 0,
            wanted: self.wanted,
            documents_wanted: documents,
            groups_wanted: 0,
            differ_in_a_name: Share::default(),
            alike_sources: Vec::new(),
            sharp: match documents {
                0 => None,
                _ => self.sketched.at(
                    Profile::Sharp.sketch(),
                    default_similarity(Measure::Sketch),
                    Profile::Sharp.max_distance(),
                    documents,
                ),
            },
            distances,
            lengths: self.lengths.clone(),
        })
    }
}

impl AtDistance {
    /// The harmonic mean of recall and precision if the pairs are verified by `sketch`, or else by their texts.
    #[must_use]
    pub fn f1(&self, sketch: Option<&AtSketch>) -> f64 {
        sketch.map_or_else(|| f1(self.recall, 1.0), |sketch| sketch.f1)
    }
}

impl SpecToTune {
    /// The model, with the document frequencies if they are to be learnt.
    fn model_with(&self, frequencies: Option<&DocumentFrequencies>) -> Result<Model> {
        let (Some(idf_power), Some(frequencies)) = (self.learn, frequencies) else {
            return Ok(self.model.clone());
        };
        let contradiction =
            |error: &dyn std::fmt::Display| EngineError::Internal(error.to_string());
        let mut spec = Spec {
            idf_power,
            ..self.model.spec().clone()
        };
        let idf = Idf::new(&spec, frequencies).map_err(|error| contradiction(&error))?;
        spec.idf = Some(idf.digest().to_owned());
        let stop_words = self.model.stop_words().cloned();
        Model::new(spec, Some(Arc::new(idf)), stop_words).map_err(|error| contradiction(&error))
    }
}

/// For each feature that two or more of `texts` contain, the number of texts that contain it.
fn frequencies(texts: &[String], model: &Model) -> DocumentFrequencies {
    let mut fingerprinter = Fingerprinter::new(model.clone());
    let mut counts = HashMap::<u64, u32>::new();
    for text in texts {
        for &hash in fingerprinter.distinct_hashes(text) {
            *counts.entry(hash).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 1);
    let mut features = Vec::new();
    for text in texts {
        fingerprinter.for_each_feature(text, |hash, feature| {
            if let Some(count) = counts.remove(&hash) {
                features.push((feature.to_owned(), u64::from(count)));
            }
        });
    }
    features.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    DocumentFrequencies::of_sample(texts.len() as u64, 1, features)
}

/// For 0, 1, … pairs seen, the least and the greatest expected number of pairs: two-sided 95 %
/// limits by Garwood (1936). Ten or more pairs seen are an estimate by themselves.
const LIMITS: [(f64, f64); 10] = [
    (0.0, 3.69),
    (0.03, 5.57),
    (0.24, 7.22),
    (0.62, 8.77),
    (1.09, 10.24),
    (1.62, 11.67),
    (2.20, 13.06),
    (2.81, 14.42),
    (3.45, 15.76),
    (4.12, 17.08),
];

/// The number of unrelated pairs of the sample to expect within `k` bits, given the number within each distance.
fn estimate(unrelated: &[u64; 65], k: u32) -> (f64, Estimate) {
    let seen = unrelated[k as usize];
    let Some(&(least, most)) = LIMITS.get(seen as usize) else {
        return (seen as f64, Estimate::Counted);
    };
    match tail::extrapolate(unrelated, k) {
        Some(pairs) if (least..=most).contains(&pairs) => (pairs, Estimate::Extrapolated),
        // What was seen contradicts the fit.
        Some(_) if seen > 0 => (seen as f64, Estimate::Counted),
        _ => (most, Estimate::Bound),
    }
}
