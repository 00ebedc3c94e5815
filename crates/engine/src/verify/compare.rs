//! Compares the texts of pairs, on several threads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, BooleanArray, Float64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::prelude::SessionContext;
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};
use simhash::similarity::Prepared;
use simhash::{Fingerprinter, Similarity};

use super::prepared::as_text;
use super::texts::{Place, Texts};
use super::{Counts, Verifier, bad_pairs};
use crate::error::Result;
use crate::pairs::{self, SIMILARITY};
use crate::progress::Stage;
use crate::resources::Resources;
use streams::{limit_bytes, locked, thread_pool};

/// Compares the texts of pairs.
pub(super) struct Comparer {
    pub(super) texts: Texts,
    pub(super) min_similarity: f64,
    /// Whether the fingerprints of texts tell which texts are meant; see [`super::Verifier`].
    pub(super) by_model: bool,
    pub(super) counts: Arc<Counts>,
    pub(super) resources: Arc<Resources>,
    threads: ThreadPool,
    workers: Vec<Mutex<Worker>>,
}

/// The texts of the two documents of a pair. An id can have several.
pub(super) struct PairTexts<'a> {
    /// The texts of the document of the batch.
    pub(super) new: &'a [Place],
    /// The texts of the base document.
    pub(super) others: Cow<'a, [Place]>,
    /// Whether the texts of the base document are of the archive: those at hand may be of another day.
    pub(super) is_archived: bool,
    /// Bits in which their fingerprints differ.
    pub(super) distance: i32,
}

impl Comparer {
    /// Compares `texts` as `verifier` says.
    pub(super) fn new(
        mut texts: Texts,
        verifier: &Verifier,
        context: &SessionContext,
    ) -> Result<Self> {
        let pool = &context.runtime_env().memory_pool;
        texts.prepared.make_room(texts.count, pool);
        let threads = thread_pool(context)?;
        // The caches of all workers take at most an eighth of the memory.
        let cache_bytes = CACHED_BYTES.min(limit_bytes(pool) / 8 / threads.current_num_threads());
        let worker = |_| {
            Mutex::new(Worker {
                similarity: Similarity::new(verifier.verify.measure, verifier.model.clone()),
                fingerprinter: Fingerprinter::new(verifier.model.clone()),
                prepared: HashMap::new(),
                cache_bytes,
                bytes: 0,
                fingerprints: HashMap::new(),
            })
        };
        Ok(Self {
            workers: (0..threads.current_num_threads()).map(worker).collect(),
            threads,
            texts,
            min_similarity: verifier.verify.min_similarity,
            by_model: verifier.by_model,
            counts: Arc::new(Counts::default()),
            resources: Resources::from_session(context)?,
        })
    }

    /// The `pairs` pairs in the record batches of `reader` that are similar enough, by [`Self::verify`], which `verify` calls. The
    /// counts are complete when the stream has ended.
    pub(super) fn verified(
        self,
        reader: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
        schema: SchemaRef,
        pairs: u64,
        verify: impl Fn(&Self, &RecordBatch, &SchemaRef) -> Result<RecordBatch> + Send + 'static,
    ) -> (SendableRecordBatchStream, Arc<Counts>) {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), 2);
        let (sender, counts) = (builder.tx(), Arc::clone(&self.counts));
        self.resources.progress.begin(Stage::Verify, pairs);
        builder.spawn_blocking(move || {
            for rows in reader {
                let verified = verify(&self, &rows?, &schema)?;
                if sender.blocking_send(Ok(verified)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        (builder.build(), counts)
    }

    /// The pairs of a record batch that are similar enough, with their similarities, as rows of
    /// `schema`. `texts_of` gives the texts of the pair at a row.
    pub(super) fn verify<'a>(
        &'a self,
        batch: &RecordBatch,
        schema: &SchemaRef,
        texts_of: impl Fn(usize) -> PairTexts<'a> + Sync,
    ) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let similarities = self.similarities(rows, texts_of)?;
        let keep: BooleanArray = similarities
            .iter()
            .map(|similarity| Some(similarity.is_none_or(|found| found >= self.min_similarity)))
            .collect();
        let unknown = similarities.iter().filter(|found| found.is_none()).count() as u64;
        let (counts, dropped) = (&self.counts, rows - keep.true_count());
        counts.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
        counts.without_text.fetch_add(unknown, Ordering::Relaxed);
        let similarities: ArrayRef = Arc::new(Float64Array::from(similarities));
        pairs::record_batch(schema, &[(SIMILARITY, similarities)], Some(batch))
            .and_then(|batch| arrow::compute::filter_record_batch(&batch, &keep))
            .map_err(bad_pairs)
    }

    /// The similarities of pairs of texts; `texts_of` gives the texts of each.
    pub(super) fn similarities<'a>(
        &'a self,
        rows: usize,
        texts_of: impl Fn(usize) -> PairTexts<'a> + Sync,
    ) -> Result<Vec<Option<f64>>> {
        let similarity = |row: usize| {
            let worker = &self.workers[rayon::current_thread_index().unwrap_or(0)];
            let mut worker = locked(worker);
            self.similarity(&texts_of(row), &mut worker)
        };
        let similarities = self.threads.install(|| {
            let pairs = (0..rows).into_par_iter().with_min_len(PAIRS_AT_ONCE);
            pairs.map(similarity).collect::<Result<Vec<_>>>()
        })?;
        let steps = &self.resources.progress.steps;
        steps.fetch_add(rows as u64, Ordering::Relaxed);
        Ok(similarities)
    }

    /// The similarity of a pair's texts; `None` when a text was not found.
    ///
    /// If several documents share an id, the id can have several texts. The result is then the greatest similarity of the
    /// texts whose fingerprints are at the pair's distance. If there are none, the text in the archive was not found, because
    /// it is of another document with this id; or, inside the batch, all texts count.
    fn similarity(&self, pair: &PairTexts<'_>, worker: &mut Worker) -> Result<Option<f64>> {
        let (new, others) = (pair.new, &*pair.others);
        if new.is_empty() || others.is_empty() {
            return Ok(None);
        }
        let is_archived = pair.is_archived && self.by_model;
        let mut fingerprints: HashMap<Place, Option<u64>> = HashMap::new();
        if is_archived || combinations(new, others).nth(1).is_some() {
            for place in new.iter().chain(others) {
                fingerprints.insert(*place, worker.fingerprint(&self.texts, *place)?);
            }
        }
        let is_at_distance = |(own, other): &(Place, Place)| {
            let fingerprint = |place: &Place| fingerprints.get(place).copied().flatten();
            let both = fingerprint(own).zip(fingerprint(other));
            both.is_some_and(|(a, b)| (a ^ b).count_ones().cast_signed() == pair.distance)
        };
        let is_any_at_distance = combinations(new, others).any(|pair| is_at_distance(&pair));
        if is_archived && !is_any_at_distance {
            return Ok(None);
        }
        let is_compared = |pair: &(Place, Place)| !is_any_at_distance || is_at_distance(pair);
        let mut greatest = None;
        for (own, other) in combinations(new, others).filter(is_compared) {
            let least = self.min_similarity.max(greatest.unwrap_or(0.0));
            if self.texts.are_equal(own, other)? {
                return Ok(Some(1.0));
            }
            let found = self.compare(own, other, least, worker)?;
            greatest = Some(greatest.map_or(found, |before: f64| before.max(found)));
            if greatest >= Some(1.0) {
                break;
            }
        }
        Ok(greatest)
    }

    /// The similarity of two texts; one below `least` may be returned as 0.
    fn compare(&self, own: Place, other: Place, least: f64, worker: &mut Worker) -> Result<f64> {
        let between = |a: &Prepared, b: &Prepared| {
            if own.may_equal(other) && a == b {
                1.0
            } else {
                Similarity::between(a, b, least)
            }
        };
        let kept = |place: Place| self.texts.prepared.get(place.number);
        if let (Some(a), Some(b)) = (kept(own), kept(other)) {
            return Ok(between(a, b));
        }
        let own = worker.prepared_text(self, own)?;
        let other = worker.prepared_text(self, other)?;
        Ok(between(&own, &other))
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

/// The most bytes of prepared texts in a worker's cache, where the others are that find no room, unless a single text has more.
const CACHED_BYTES: usize = 64 << 20;
/// The fewest pairs that a thread compares before another takes the next.
const PAIRS_AT_ONCE: usize = 32;
/// The most fingerprints in a worker's cache.
const CACHED_FINGERPRINTS: usize = 1 << 16;

/// The similarity measure, the fingerprinter and the caches of one thread.
struct Worker {
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
    fn prepared_text(&mut self, comparer: &Comparer, place: Place) -> Result<Arc<Prepared>> {
        let shared = comparer.texts.prepared.get(place.number);
        if let Some(ready) = shared.or_else(|| self.prepared.get(&place)) {
            return Ok(Arc::clone(ready));
        }
        let text = comparer.texts.read(place)?;
        let ready = Arc::new(self.similarity.prepare(&as_text(&text)));
        if comparer.texts.prepared.keep(place.number, &ready) {
            return Ok(ready);
        }
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
