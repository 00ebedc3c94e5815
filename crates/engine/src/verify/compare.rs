//! Compares the texts of pairs, on several threads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use simhash::similarity::Prepared;
use simhash::{Fingerprinter, Measure, Model, Similarity};

use super::texts::{Place, Texts};
use super::{Counts, bad_pairs};
use crate::error::Result;
use crate::pairs::{self, SIMILARITY};
use crate::resources::Resources;

/// Compares the texts of pairs.
pub(super) struct Comparer {
    pub(super) texts: Texts,
    pub(super) min_similarity: f64,
    /// Whether the fingerprints of texts tell which texts are meant; see [`super::Verifier`].
    pub(super) by_model: bool,
    pub(super) counts: Arc<Counts>,
    pub(super) resources: Arc<Resources>,
}

/// The texts of the two documents of a pair. An id can have several.
pub(super) struct PairTexts<'a> {
    /// The texts of the document of the batch.
    pub(super) new: &'a [Place],
    /// The texts of the base document.
    pub(super) others: Vec<Place>,
    /// Whether the texts of the base document are of the archive: those at hand may be of another day.
    pub(super) is_archived: bool,
    /// Bits in which their fingerprints differ.
    pub(super) distance: i32,
}

impl Comparer {
    /// The pairs of a record batch that are similar enough, with their similarities, as rows of
    /// `schema`. `texts_of` gives the texts of the pair at a row. Each worker compares on a thread
    /// of its own.
    pub(super) fn verify<'a>(
        &'a self,
        batch: &RecordBatch,
        schema: &SchemaRef,
        texts_of: impl Fn(usize) -> PairTexts<'a> + Sync,
        workers: &mut [Worker],
    ) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let similarities = self.similarities(rows, texts_of, workers)?;
        let keep: BooleanArray = similarities
            .iter()
            .map(|similarity| Some(similarity.is_none_or(|found| found >= self.min_similarity)))
            .collect();
        let unknown = similarities.iter().filter(|found| found.is_none()).count();
        let dropped = rows - keep.true_count();
        self.counts
            .dropped
            .fetch_add(dropped as u64, Ordering::Relaxed);
        self.counts
            .without_text
            .fetch_add(unknown as u64, Ordering::Relaxed);
        let similarities: ArrayRef = Arc::new(Float64Array::from(similarities));
        pairs::record_batch(schema, &[(SIMILARITY, similarities)], Some(batch))
            .and_then(|batch| arrow::compute::filter_record_batch(&batch, &keep))
            .map_err(bad_pairs)
    }

    /// The similarities of pairs of texts; `texts_of` gives the texts of each. Each worker compares on a thread of its own.
    pub(super) fn similarities<'a>(
        &'a self,
        rows: usize,
        texts_of: impl Fn(usize) -> PairTexts<'a> + Sync,
        workers: &mut [Worker],
    ) -> Result<Vec<Option<f64>>> {
        let share = rows.div_ceil(workers.len()).max(1);
        let texts_of = &texts_of;
        let similarities: Result<Vec<Vec<Option<f64>>>> = std::thread::scope(|scope| {
            let shares: Vec<_> = workers
                .iter_mut()
                .enumerate()
                .map(|(at, worker)| {
                    let range = (at * share).min(rows)..((at + 1) * share).min(rows);
                    scope.spawn(move || {
                        range
                            .map(|row| self.similarity(&texts_of(row), worker))
                            .collect()
                    })
                })
                .collect();
            let done = shares.into_iter().map(|share| {
                share
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            done.collect()
        });
        let steps = &self.resources.progress.steps;
        steps.fetch_add(rows as u64, Ordering::Relaxed);
        Ok(similarities?.into_iter().flatten().collect())
    }

    /// The similarity of a pair's texts; `None` when a text was not found.
    ///
    /// If several documents share an id, the id can have several texts. The result is then the greatest similarity of the
    /// texts whose fingerprints are at the pair's distance. If there are none, the text in the archive was not found, because
    /// it is of another document with this id; or, inside the batch, all texts count.
    fn similarity(&self, pair: &PairTexts<'_>, worker: &mut Worker) -> Result<Option<f64>> {
        let PairTexts {
            new,
            others,
            is_archived,
            distance,
        } = pair;
        let is_archived = *is_archived && self.by_model;
        let mut fingerprints: HashMap<Place, Option<u64>> = HashMap::new();
        if is_archived || combinations(new, others).nth(1).is_some() {
            for place in new.iter().chain(others) {
                fingerprints.insert(*place, worker.fingerprint(&self.texts, *place)?);
            }
        }
        let is_at_distance = |(own, other): &(Place, Place)| {
            let fingerprint = |place: &Place| fingerprints.get(place).copied().flatten();
            let both = fingerprint(own).zip(fingerprint(other));
            both.is_some_and(|(a, b)| (a ^ b).count_ones().cast_signed() == *distance)
        };
        let is_any_at_distance = combinations(new, others).any(|pair| is_at_distance(&pair));
        if is_archived && !is_any_at_distance {
            return Ok(None);
        }
        let mut greatest = None;
        for (own, other) in
            combinations(new, others).filter(|pair| !is_any_at_distance || is_at_distance(pair))
        {
            let least = self.min_similarity.max(greatest.unwrap_or(0.0));
            if self.texts.are_equal(own, other)? {
                return Ok(Some(1.0));
            }
            let own = worker.prepared_text(&self.texts, own)?;
            let other = worker.prepared_text(&self.texts, other)?;
            let found = Similarity::between(&own, &other, least);
            greatest = Some(greatest.map_or(found, |before: f64| before.max(found)));
            if greatest >= Some(1.0) {
                break;
            }
        }
        Ok(greatest)
    }
}

/// Each text of `new` with each text of `others`. A text is combined with itself only if several documents have it. Lazy,
/// because ids with many texts have very many combinations.
fn combinations(new: &[Place], others: &[Place]) -> impl Iterator<Item = (Place, Place)> {
    let all = others
        .iter()
        .flat_map(move |other| new.iter().map(move |own| (*own, *other)));
    all.filter(|(own, other)| own != other || own.is_repeated)
}

/// The most bytes of prepared texts in a worker's cache, unless a single text has more.
pub(super) const CACHED_BYTES: usize = 64 << 20;
/// The most fingerprints in a worker's cache.
const CACHED_FINGERPRINTS: usize = 1 << 16;

/// The text of these bytes, as [`String::from_utf8_lossy`], which takes longer for what is UTF-8.
fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The similarity measure, the fingerprinter and the caches of one thread.
pub(super) struct Worker {
    similarity: Similarity,
    fingerprinter: Fingerprinter,
    prepared: HashMap<Place, Arc<Prepared>>,
    /// The most bytes of the prepared texts.
    cache_bytes: usize,
    /// Bytes of the prepared texts.
    bytes: usize,
    fingerprints: HashMap<Place, Option<u64>>,
}

impl Worker {
    /// A worker whose cache holds at most `cache_bytes` bytes.
    pub(super) fn new(measure: Measure, model: &Model, cache_bytes: usize) -> Self {
        Self {
            similarity: Similarity::new(measure, model.clone()),
            fingerprinter: Fingerprinter::new(model.clone()),
            prepared: HashMap::new(),
            cache_bytes,
            bytes: 0,
            fingerprints: HashMap::new(),
        }
    }

    /// The text at a place, prepared for comparisons.
    fn prepared_text(&mut self, texts: &Texts, place: Place) -> Result<Arc<Prepared>> {
        if let Some(ready) = self.prepared.get(&place) {
            return Ok(Arc::clone(ready));
        }
        let text = texts.read(place)?;
        let ready = Arc::new(self.similarity.prepare(&as_text(&text)));
        if self.bytes + ready.bytes() > self.cache_bytes {
            self.prepared.clear();
            self.bytes = 0;
        }
        self.bytes += ready.bytes();
        self.prepared.insert(place, Arc::clone(&ready));
        Ok(ready)
    }

    /// The fingerprint of the text at a place. Needed for texts of the archive, and for ids with several texts.
    fn fingerprint(&mut self, texts: &Texts, place: Place) -> Result<Option<u64>> {
        if let Some(fingerprint) = self.fingerprints.get(&place) {
            return Ok(*fingerprint);
        }
        let text = texts.read(place)?;
        let fingerprint = self.fingerprinter.fingerprint(&as_text(&text));
        if self.fingerprints.len() == CACHED_FINGERPRINTS {
            self.fingerprints.clear();
        }
        self.fingerprints.insert(place, fingerprint);
        Ok(fingerprint)
    }
}
