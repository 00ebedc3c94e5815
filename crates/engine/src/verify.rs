//! Verification: hits whose texts are not alike enough are dropped.
//!
//! Fingerprints suggest pairs, the texts decide. Only documents that are in a hit are looked up: their ids are read first,
//! then the texts of those rows, which go to a file in the scratch directory; memory grows with the hits, not with the documents.

mod texts;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::IdType;
use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Field, Int32Type, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::prelude::SessionContext;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Serialize;
use simhash::similarity::Prepared;
use simhash::{Fingerprinter, Measure, Model, Similarity};
use texts::{Place, Side, Texts};

use crate::batch::Id;
use crate::documents::{Columns, Documents};
use crate::error::{EngineError, Result};
use crate::output::StagedOutput;
use crate::probe::hits_schema;

/// Column of the exact similarity.
pub const SIMILARITY: &str = "similarity";

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Verify {
    /// How texts are compared.
    pub measure: Measure,
    /// Hits less alike are dropped.
    pub min_similarity: f64,
    /// Files, directories or patterns of the history's documents; none are known without.
    pub base_text: Vec<String>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verified {
    /// How texts were compared.
    pub measure: Measure,
    /// The least similarity of what was kept.
    pub min_similarity: f64,
    /// Hits before.
    pub checked: u64,
    /// Hits that were dropped.
    pub dropped: u64,
    /// Hits that were kept without a similarity, because a text was not found.
    pub without_text: u64,
}

/// Counts, while hits are verified.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    dropped: AtomicU64,
    without_text: AtomicU64,
}

impl Counts {
    pub(crate) fn verified(&self, verify: &Verify, checked: u64) -> Verified {
        Verified {
            measure: verify.measure,
            min_similarity: verify.min_similarity,
            checked,
            dropped: self.dropped.load(Ordering::Relaxed),
            without_text: self.without_text.load(Ordering::Relaxed),
        }
    }
}

/// Schema of verified hits: those of the probe with their similarity, null where a text was not found.
#[must_use]
pub fn verified_schema(id_type: IdType) -> SchemaRef {
    let mut fields = hits_schema(id_type).fields().to_vec();
    fields.push(Arc::new(Field::new(SIMILARITY, DataType::Float64, true)));
    Arc::new(Schema::new(fields))
}

/// The documents of both sides, and the model that their texts are compared, and were fingerprinted, by.
#[derive(Debug)]
pub(crate) struct Verifier<'a> {
    verify: &'a Verify,
    model: Model,
    new: Documents,
    base: Option<Documents>,
}

impl<'a> Verifier<'a> {
    /// Opens the documents.
    pub(crate) async fn open(
        context: &SessionContext,
        verify: &'a Verify,
        model: Model,
        new: &[String],
        columns: &Columns,
    ) -> Result<Self> {
        let columns = Columns {
            fingerprint: None,
            texts_only: true,
            ..columns.clone()
        };
        let base = match verify.base_text.is_empty() {
            true => None,
            false => Some(Documents::open(context, &verify.base_text, &columns).await?),
        };
        Ok(Self {
            verify,
            model,
            new: Documents::open(context, new, &columns).await?,
            base,
        })
    }
}

/// What a run's hits can be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) id_type: IdType,
    /// The new day's date, in days since 1970.
    pub(crate) day: Option<i32>,
    /// Whether there are hits inside the new day.
    pub(crate) within: bool,
    /// Whether the history's documents have days, none of them the new one's.
    pub(crate) archive: bool,
}

impl Origin {
    /// On which sides the base document of a hit can be, by its day.
    fn sides(self, hits: &RecordBatch, row: usize) -> &'static [Side] {
        let days = hits.column(3).as_primitive::<Date32Type>();
        let day = days.is_valid(row).then(|| days.value(row));
        match day == self.day {
            true if self.within && self.archive => &[Side::New],
            true if self.within => &[Side::New, Side::Base],
            _ => &[Side::Base],
        }
    }
}

/// Verifies staged hits, in their order.
pub(crate) async fn verify(
    context: &SessionContext,
    hits: &StagedOutput,
    verifier: &Verifier<'_>,
    origin: Origin,
    scratch: &Path,
) -> Result<(SendableRecordBatchStream, Arc<Counts>)> {
    let Verifier {
        verify,
        model,
        new,
        base,
    } = verifier;
    // Which documents are in a hit, and on which side they can be.
    let mut texts = Texts::create(scratch, &context.runtime_env().memory_pool)?;
    for batch in read(hits.path())? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            texts.want(Side::New, Id::of(batch.column(0), row))?;
            for side in origin.sides(&batch, row) {
                texts.want(*side, Id::of(batch.column(1), row))?;
            }
        }
    }
    texts.find(context, Side::New, new, origin.id_type).await?;
    if let Some(base) = base {
        texts
            .find(context, Side::Base, base, origin.id_type)
            .await?;
    }

    let counts = Arc::new(Counts::default());
    let schema = verified_schema(origin.id_type);
    let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), 2);
    let sender = builder.tx();
    let work = Work {
        texts,
        min_similarity: verify.min_similarity,
        origin,
        schema,
        counts: Arc::clone(&counts),
    };
    let threads = context.state().config().target_partitions();
    let mut workers: Vec<_> = (0..threads)
        .map(|_| Worker::new(verify.measure, model))
        .collect();
    let reader = read(hits.path())?;
    builder.spawn_blocking(move || {
        for batch in reader {
            let verified = work.verify(&batch?, &mut workers)?;
            if sender.blocking_send(Ok(verified)).is_err() {
                break;
            }
        }
        Ok(())
    });
    Ok((builder.build(), counts))
}

/// The staged hits.
fn read(path: &Path) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let object = path.display().to_string();
    let failed = |source| EngineError::Io {
        path: object.clone(),
        source,
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let parquet = |source| {
        EngineError::from(archive::ArchiveError::Parquet {
            object: object.clone(),
            source,
        })
    };
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH).build())
        .map_err(parquet)?;
    Ok(reader.map(move |batch| {
        batch.map_err(|source| {
            archive::ArchiveError::Arrow {
                object: object.clone(),
                source,
            }
            .into()
        })
    }))
}

/// Hits that are verified together.
const BATCH: usize = 1024;

struct Work {
    texts: Texts,
    min_similarity: f64,
    origin: Origin,
    schema: SchemaRef,
    counts: Arc<Counts>,
}

impl Work {
    /// The hits that are kept, with their similarities.
    fn verify(&self, hits: &RecordBatch, workers: &mut [Worker]) -> Result<RecordBatch> {
        let rows = hits.num_rows();
        let share = rows.div_ceil(workers.len()).max(1);
        let similarities: Result<Vec<Vec<Option<f64>>>> = std::thread::scope(|scope| {
            let shares: Vec<_> = workers
                .iter_mut()
                .enumerate()
                .map(|(at, worker)| {
                    let range = (at * share).min(rows)..((at + 1) * share).min(rows);
                    scope.spawn(move || {
                        range
                            .map(|row| self.similarity(hits, row, worker))
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
        let similarities: Vec<Option<f64>> = similarities?.into_iter().flatten().collect();
        let keep: BooleanArray = similarities
            .iter()
            .map(|similarity| Some(similarity.is_none_or(|of| of >= self.min_similarity)))
            .collect();
        let unknown = similarities.iter().filter(|of| of.is_none()).count();
        let dropped = rows - keep.true_count();
        self.counts
            .dropped
            .fetch_add(dropped as u64, Ordering::Relaxed);
        self.counts
            .without_text
            .fetch_add(unknown as u64, Ordering::Relaxed);
        let mut columns = hits.columns().to_vec();
        columns.push(Arc::new(Float64Array::from(similarities)) as ArrayRef);
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .and_then(|batch| arrow::compute::filter_record_batch(&batch, &keep))
            .map_err(|source| {
                archive::ArchiveError::Arrow {
                    object: "hits".into(),
                    source,
                }
                .into()
            })
    }

    /// The similarity of a hit's texts. Of several with the same ids, those count whose fingerprints are as far apart as the
    /// hit's, if there are any; and of them the most alike.
    fn similarity(
        &self,
        hits: &RecordBatch,
        row: usize,
        worker: &mut Worker,
    ) -> Result<Option<f64>> {
        let new = self.texts.places(Side::New, &Id::of(hits.column(0), row));
        let base = Id::of(hits.column(1), row);
        let sides = self.origin.sides(hits, row).iter();
        let others = sides.flat_map(|side| self.texts.places(*side, &base));
        let pairs = others.flat_map(|other| new.iter().map(move |own| (*own, *other)));
        // An id that both sides have: not with itself.
        let mut pairs: Vec<(Place, Place)> = pairs.filter(|(own, other)| own != other).collect();
        if pairs.len() > 1 {
            let distance = hits.column(2).as_primitive::<Int32Type>().value(row);
            let mut same = Vec::new();
            for &(own_place, other_place) in &pairs {
                let own = worker.fingerprint(&self.texts, own_place)?;
                let other = worker.fingerprint(&self.texts, other_place)?;
                if own
                    .zip(other)
                    .map(|(a, b)| (a ^ b).count_ones().cast_signed())
                    == Some(distance)
                {
                    same.push((own_place, other_place));
                }
            }
            if !same.is_empty() {
                pairs = same;
            }
        }
        let mut greatest = None;
        for (own, other) in pairs {
            let least = self.min_similarity.max(greatest.unwrap_or(0.0));
            let own = worker.text(&self.texts, own)?;
            let other = worker.text(&self.texts, other)?;
            let found = Similarity::of(&own, &other, least);
            greatest = Some(greatest.map_or(found, |before: f64| before.max(found)));
            if greatest >= Some(1.0) {
                break;
            }
        }
        Ok(greatest)
    }
}

/// Bytes of texts made ready that a thread keeps.
const KEPT: usize = 64 << 20;

/// What a thread compares with.
struct Worker {
    similarity: Similarity,
    fingerprinter: Fingerprinter,
    ready: HashMap<Place, Arc<Prepared>>,
    bytes: usize,
}

impl Worker {
    fn new(measure: Measure, model: &Model) -> Self {
        Self {
            similarity: Similarity::new(measure, model.clone()),
            fingerprinter: Fingerprinter::new(model.clone()),
            ready: HashMap::new(),
            bytes: 0,
        }
    }

    /// The text at a place, ready to be compared.
    fn text(&mut self, texts: &Texts, place: Place) -> Result<Arc<Prepared>> {
        if let Some(ready) = self.ready.get(&place) {
            return Ok(Arc::clone(ready));
        }
        let text = texts.read(place)?;
        let ready = Arc::new(self.similarity.prepare(&String::from_utf8_lossy(&text)));
        if self.bytes + ready.bytes() > KEPT {
            self.ready.clear();
            self.bytes = 0;
        }
        self.bytes += ready.bytes();
        self.ready.insert(place, Arc::clone(&ready));
        Ok(ready)
    }

    /// The fingerprint of the text at a place; seldom needed.
    fn fingerprint(&mut self, texts: &Texts, place: Place) -> Result<Option<u64>> {
        let text = texts.read(place)?;
        Ok(self
            .fingerprinter
            .fingerprint(&String::from_utf8_lossy(&text)))
    }
}
