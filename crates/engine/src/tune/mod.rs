//! Measures settings on a sample of documents: recall, precision and cost of each spec and largest
//! distance, the unrelated documents that a new document would meet in a large archive, and how long
//! a text must be to be found again.

mod alike;
mod counts;
pub mod one_word;
mod sample;
mod sketched;
mod sources;
pub mod tail;
mod templates;
mod weighed;

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use archive::IdType;
use datafusion::prelude::SessionContext;
use serde::Serialize;
use simhash::reliable_length::LENGTHS;
use simhash::similarity::Prepared;
use simhash::{
    DocumentFrequencies, Fingerprinter, Idf, IdfPower, Measure, Model, Similarity, Spec,
};

use crate::error::{EngineError, Result};
use crate::progress::{Progress, Stage};
use crate::resources::Resources;
use counts::Counts;
use documents::Documents;
use one_word::{AtLength, ShortTexts};
use sample::{distinct, sample};
pub use sketched::AtSketch;
use sketched::Sketches;
use sources::SourcesOfTexts;
pub use sources::{AlikeSource, FEW_WORDS};
use weighed::{f1, weight};

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
    pub part: usize,
    pub whole: usize,
}

/// The pairs within one distance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtDistance {
    pub max_distance: u32,
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
    let sampled = sample(context, documents, id_type, asked.sample).await?;
    let (texts, sources) = (sampled.texts, sampled.sources);
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
    drop(sampled.memory);
    let (mut tuned, copies) = tuned.map_err(EngineError::internal)??;
    for tuned in &mut tuned {
        (tuned.documents, tuned.copies) = (read, copies);
        for at in &mut tuned.lengths {
            let shorter = sampled.shorter.than(at.words as u32);
            at.shorter_documents = shorter.unwrap_or_default();
        }
    }
    Ok(tuned)
}

/// Largest distances that are measured.
const DISTANCES: std::ops::RangeInclusive<u32> = 0..=16;

/// Texts of each length in which one word is replaced.
const SHORT_TEXTS: usize = 2000;

/// Pairs from which [`Tuned::differ_in_a_name`] is taken.
const TEMPLATE_PAIRS: usize = 1000;

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
    for candidate in candidates {
        let spec = candidate.model.spec();
        if candidate.learn.is_some() && with_same_features(&learnt, spec).is_none() {
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
        counts.extend(counted.into_iter().collect::<Result<Vec<_>>>()?);
    }
    let mut similarity = Similarity::new(Measure::Jaccard, first.model.clone());
    let shingles = texts.iter().map(|text| match similarity.prepare(text) {
        Prepared::Shingles(shingles) => shingles,
        _ => Vec::new(),
    });
    let shingles: Vec<Vec<u64>> = shingles.collect();
    let least = LEVELS[LEVELS.len() - 1];
    let mut wanted = vec![0; texts.len()];
    let mut groups: Vec<u32> = (0..texts.len() as u32).collect();
    alike::pairs(&shingles, asked.min_similarity, |a, b, _| {
        wanted[a as usize] += 1;
        wanted[b as usize] += 1;
        let [a, b] = [a, b].map(|at| first_of_group(&mut groups, at));
        groups[a.max(b) as usize] = a.min(b);
    });
    let first = |(at, pairs): (u32, &u32)| *pairs > 0 && groups[at as usize] == at;
    let groups_wanted = (0..).zip(&wanted).filter(|one| first(*one)).count();
    let mut differ_in_a_name = Share::default();
    alike::pairs(&shingles, least, |a, b, similarity| {
        let (a, b) = (a as usize, b as usize);
        let is_wanted = similarity >= asked.min_similarity;
        let weight = is_wanted.then(|| weight(wanted[a], wanted[b]));
        for counts in &mut counts {
            counts.add_alike(a, b, similarity, weight);
        }
        sources.add(texts, a, b);
        let [a, b] = [a, b].map(|at| &texts[at]);
        if is_wanted && differ_in_a_name.whole < TEMPLATE_PAIRS && a != b {
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

impl AtDistance {
    /// The harmonic mean of recall and precision if the pairs are verified by `sketch`, or else by their texts.
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
        let mut spec = Spec {
            idf_power,
            ..self.model.spec().clone()
        };
        let idf = Idf::new(&spec, frequencies).map_err(EngineError::internal)?;
        spec.idf = Some(idf.digest().to_owned());
        let stop_words = self.model.stop_words().cloned();
        Model::new(spec, Some(Arc::new(idf)), stop_words).map_err(EngineError::internal)
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
