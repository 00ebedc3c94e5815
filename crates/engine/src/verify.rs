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
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Date32Array, Float64Array, RecordBatch,
};
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::prelude::SessionContext;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Serialize;
use simhash::similarity::Prepared;
use simhash::{Measure, Model, Similarity};
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

/// Where the documents of a run are.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    /// The new day.
    pub(crate) new: &'a [String],
    pub(crate) columns: &'a Columns,
    pub(crate) id_type: IdType,
    /// The new day's date, in days since 1970.
    pub(crate) day: Option<i32>,
    pub(crate) scratch: &'a Path,
}

/// Verifies staged hits, in their order.
pub(crate) async fn verify(
    context: &SessionContext,
    hits: &StagedOutput,
    verify: &Verify,
    model: Model,
    sources: &Sources<'_>,
) -> Result<(SendableRecordBatchStream, Arc<Counts>)> {
    let columns = Columns {
        fingerprint: None,
        texts_only: true,
        ..sources.columns.clone()
    };
    let new = Documents::open(context, sources.new, &columns).await?;
    let base = match verify.base_text.is_empty() {
        true => None,
        false => Some(Documents::open(context, &verify.base_text, &columns).await?),
    };
    // Which documents are in a hit, and on which side they can be.
    let mut texts = Texts::create(sources.scratch, &context.runtime_env().memory_pool)?;
    for batch in read(hits.path())? {
        let batch = batch?;
        let days = days_of(&batch);
        for row in 0..batch.num_rows() {
            texts.want(Side::New, Id::of(batch.column(0), row))?;
            for side in sides(days, row, sources.day) {
                texts.want(*side, Id::of(batch.column(1), row))?;
            }
        }
    }
    texts
        .find(context, Side::New, &new, sources.id_type)
        .await?;
    if let Some(base) = &base {
        texts
            .find(context, Side::Base, base, sources.id_type)
            .await?;
    }

    let counts = Arc::new(Counts::default());
    let schema = verified_schema(sources.id_type);
    let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), 2);
    let sender = builder.tx();
    let work = Work {
        texts,
        min_similarity: verify.min_similarity,
        day: sources.day,
        schema,
        counts: Arc::clone(&counts),
    };
    let threads = context.state().config().target_partitions();
    let mut workers: Vec<_> = (0..threads)
        .map(|_| Worker::new(Similarity::new(verify.measure, model.clone())))
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

/// On which sides the base document of a hit can be: a day tells, but documents without a day can be on either.
fn sides(days: &Date32Array, row: usize, own: Option<i32>) -> &'static [Side] {
    match (days.is_valid(row).then(|| days.value(row)), own) {
        (Some(day), Some(own)) if day == own => &[Side::New],
        (Some(_), _) => &[Side::Base],
        (None, _) => &[Side::New, Side::Base],
    }
}

fn days_of(hits: &RecordBatch) -> &Date32Array {
    hits.column(3).as_primitive::<Date32Type>()
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
    day: Option<i32>,
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

    /// The similarity of a hit's texts, of several with the same id the greatest.
    fn similarity(
        &self,
        hits: &RecordBatch,
        row: usize,
        worker: &mut Worker,
    ) -> Result<Option<f64>> {
        let new = self.texts.places(Side::New, &Id::of(hits.column(0), row));
        let base = Id::of(hits.column(1), row);
        let mut greatest = None;
        for side in sides(days_of(hits), row, self.day) {
            for &other in self.texts.places(*side, &base) {
                for &own in new {
                    // An id that both sides have: not with itself.
                    if own == other {
                        continue;
                    }
                    let least = self.min_similarity.max(greatest.unwrap_or(0.0));
                    let (own, other) = (
                        worker.text(&self.texts, own)?,
                        worker.text(&self.texts, other)?,
                    );
                    let found = Similarity::of(&own, &other, least);
                    greatest = Some(greatest.map_or(found, |before: f64| before.max(found)));
                }
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
    ready: HashMap<Place, Arc<Prepared>>,
    bytes: usize,
}

impl Worker {
    fn new(similarity: Similarity) -> Self {
        Self {
            similarity,
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
}
