//! Pairs of classes of the batch, for decisions: of a class with classes of the batch, and with its nearest document of the
//! archive.
//!
//! A page that is in the batch a million times is one class, and makes no pairs with itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrayRef, Date32Array, Float64Array, Int32Array, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hamming::Match;

use super::ids::ArchiveMatches;
use super::pair_builder::Sent;
use super::request::{CompareSketches, Compared};
use crate::batch::{Batch, Classes, Id};
use crate::class_pairs;
use crate::error::EngineError;
use crate::stream::BATCH_ROWS;

/// A document of the archive near a class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Neighbour {
    /// Bits in which the fingerprints differ.
    pub(crate) distance: u32,
    /// What the sketches estimate.
    pub(crate) similarity: Option<f64>,
    /// Its day, in days since 1970.
    pub(crate) day: Option<i32>,
    /// Its id.
    pub(crate) id: Id,
}

impl Neighbour {
    /// The nearest first, then the most similar, the earliest, and the one with the smallest id.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let similarity = |neighbour: &Self| neighbour.similarity.unwrap_or(f64::NEG_INFINITY);
        self.distance
            .cmp(&other.distance)
            .then_with(|| similarity(other).total_cmp(&similarity(self)))
            .then_with(|| self.day.cmp(&other.day))
            .then_with(|| self.id.cmp(&other.id))
    }
}

/// Makes the pairs of classes that one partition finds.
pub(super) struct ClassPairs {
    classes: Arc<Classes>,
    sketches: Option<CompareSketches>,
    schema: SchemaRef,
    text_ids: bool,
    /// The nearest document of the archive of each class so far.
    nearest: BTreeMap<u32, Neighbour>,
    memory: MemoryReservation,
}

impl ClassPairs {
    pub(super) fn new(
        batch: &Batch,
        id_type: IdType,
        sketches: Option<CompareSketches>,
        pool: &Arc<dyn MemoryPool>,
    ) -> std::result::Result<Self, EngineError> {
        Ok(Self {
            classes: batch.classes(sketches.is_some())?,
            sketches,
            schema: class_pairs::schema(id_type),
            text_ids: id_type == IdType::String,
            nearest: BTreeMap::new(),
            memory: MemoryConsumer::new("nearest documents").register(pool),
        })
    }

    /// Keeps the nearest documents of the archive for [`Self::take_nearest`].
    pub(super) fn add_archive_matches(
        &mut self,
        found: &ArchiveMatches,
        batch: &Batch,
    ) -> Result<Sent> {
        let mut counts = Sent::default();
        let classes = Arc::clone(&self.classes);
        for matched in &found.matches {
            let sketch = found.rows.sketch(matched.row);
            for class in classes.of_fingerprint(matched.entry) {
                let compared = self.compare(batch.sketch(classes.row(class)), sketch);
                let Some(similarity) = counts.add(compared) else {
                    continue;
                };
                let (id, day) = found.rows.document(matched.row);
                let neighbour = Neighbour {
                    distance: matched.values.distance,
                    similarity,
                    day,
                    id,
                };
                match self.nearest.get(&class) {
                    Some(nearest) if nearest.order(&neighbour).is_le() => continue,
                    Some(nearest) => self.memory.shrink(bytes_of(nearest)),
                    None => {}
                }
                let grown = self.memory.try_grow(bytes_of(&neighbour));
                grown.map_err(|_| EngineError::OutOfMemory {
                    what: "the nearest documents of the archive".into(),
                })?;
                self.nearest.insert(class, neighbour);
            }
        }
        Ok(counts)
    }

    /// Sends the pairs inside the batch. `matches` are of distinct fingerprints, each with itself too.
    pub(super) async fn send_within<F>(
        &self,
        matches: &[Match],
        batch: &Batch,
        mut send: impl FnMut(RecordBatch) -> F,
    ) -> Result<Sent>
    where
        F: Future<Output = bool>,
    {
        let mut counts = Sent::default();
        let mut rows = Rows::default();
        for found in matches {
            // A pair of distinct fingerprints is found twice, once from each of them.
            if found.entry > found.query {
                continue;
            }
            let classes = &self.classes;
            for class in classes.of_fingerprint(found.query) {
                for other in classes.of_fingerprint(found.entry) {
                    if other >= class {
                        break;
                    }
                    let [sketch, other_sketch] =
                        [class, other].map(|class| batch.sketch(classes.row(class)));
                    let compared = self.compare(sketch, other_sketch);
                    let Some(similarity) = counts.add(compared) else {
                        continue;
                    };
                    rows.classes.push(class);
                    rows.others.push(Some(other));
                    rows.distances.push(found.distance.cast_signed());
                    rows.similarities.push(similarity);
                    if rows.classes.len() == BATCH_ROWS
                        && !send(std::mem::take(&mut rows).finish(self)?).await
                    {
                        return Ok(counts);
                    }
                }
            }
        }
        if !rows.classes.is_empty() {
            send(rows.finish(self)?).await;
        }
        Ok(counts)
    }

    /// Takes the nearest documents of the archive.
    pub(super) fn take_nearest(&mut self) -> Result<Vec<RecordBatch>> {
        let nearest: Vec<(u32, Neighbour)> =
            std::mem::take(&mut self.nearest).into_iter().collect();
        // Few rows at once: an id may have a megabyte.
        let batches = nearest.chunks(1024).map(|some| {
            let ids: Vec<Id> = some.iter().map(|(_, near)| near.id.clone()).collect();
            let each = || some.iter().map(|(_, near)| near);
            let rows = Rows {
                classes: some.iter().map(|(class, _)| *class).collect(),
                others: vec![None; some.len()],
                distances: each().map(|near| near.distance.cast_signed()).collect(),
                similarities: each().map(|near| near.similarity).collect(),
                base: Some((
                    Id::array(&ids, self.text_ids),
                    each().map(|near| near.day).collect(),
                )),
            };
            Ok(rows.finish(self)?)
        });
        batches.collect()
    }

    /// Compares two sketches if the request asks for it.
    fn compare(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Compared {
        self.sketches
            .map_or(Compared::NotAsked, |compare| compare.compare(a, b))
    }
}

/// Bytes of a class's nearest document.
fn bytes_of(neighbour: &Neighbour) -> usize {
    size_of::<(u32, Neighbour)>() + neighbour.id.bytes()
}

/// Rows of pairs of classes.
#[derive(Default)]
struct Rows {
    classes: Vec<u32>,
    others: Vec<Option<u32>>,
    distances: Vec<i32>,
    similarities: Vec<Option<f64>>,
    /// Ids and days of documents of the archive; `None` if the others are classes.
    base: Option<(ArrayRef, Date32Array)>,
}

impl Rows {
    fn finish(self, pairs: &ClassPairs) -> Result<RecordBatch, ArrowError> {
        let rows = self.classes.len();
        let (ids, days) = self.base.unwrap_or_else(|| {
            let id_type = pairs.schema.field(2).data_type();
            (
                arrow::array::new_null_array(id_type, rows),
                Date32Array::new_null(rows),
            )
        });
        RecordBatch::try_new(
            Arc::clone(&pairs.schema),
            vec![
                Arc::new(UInt32Array::from(self.classes)),
                Arc::new(UInt32Array::from(self.others)),
                ids,
                Arc::new(days),
                Arc::new(Int32Array::from(self.distances)),
                Arc::new(Float64Array::from(self.similarities)),
            ],
        )
    }
}
