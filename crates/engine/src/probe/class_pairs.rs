//! Pairs of classes, for decisions: pairs each class with other classes of the batch, and with its
//! nearest document of the archive or with all near ones.
//!
//! A page that is in the batch a million times is one class, and makes no pairs with itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Date32Array, Float64Array, Int32Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hamming::Match;
use tokio::sync::mpsc::Sender;

use super::ids::ArchiveMatches;
use super::pair_builder::Sent;
use super::request::{CompareSketches, Originals, Probe};
use crate::batch::{Batch, Classes};
use crate::memory::reserve;
use crate::pairs::BASE_ID;
use documents::DocumentId;
use streams::BATCH_ROWS;

/// A document of the archive near a class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Neighbour {
    /// Bits in which the fingerprints differ.
    pub(crate) distance: u32,
    /// The similarity that the sketches estimate.
    pub(crate) similarity: Option<f64>,
    /// Its day, in days since 1970.
    pub(crate) day: Option<i32>,
    pub(crate) id: DocumentId,
}

impl Neighbour {
    /// Orders neighbours: the nearest first, then the most similar, the earliest, and the one with
    /// the smallest id.
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
    originals: Originals,
    /// The nearest document of the archive of each class so far, if only that is asked for.
    nearest: BTreeMap<u32, Neighbour>,
    memory: MemoryReservation,
    sender: Sender<Result<RecordBatch>>,
}

impl ClassPairs {
    pub(super) fn new(
        batch: &Batch,
        probe: &Probe,
        originals: Originals,
        pool: &Arc<dyn MemoryPool>,
        sender: Sender<Result<RecordBatch>>,
    ) -> Result<Self> {
        Ok(Self {
            classes: batch.classes(probe.sketches.is_some())?,
            sketches: probe.sketches,
            schema: probe.schema(),
            originals,
            nearest: BTreeMap::new(),
            memory: MemoryConsumer::new("nearest documents").register(pool),
            sender,
        })
    }

    /// Keeps the nearest documents of the archive for [`Self::send_nearest`], or sends all of them.
    pub(super) async fn add_archive_matches(
        &mut self,
        found: &ArchiveMatches,
        batch: &Batch,
    ) -> Result<Sent> {
        let mut counts = Sent::default();
        let classes = Arc::clone(&self.classes);
        let mut rows = Rows::default();
        for matched in &found.matches {
            let sketch = found.rows.sketch(matched.row);
            for class in classes.of_fingerprint(matched.entry) {
                let own = batch.sketch(classes.row(class));
                let compared = CompareSketches::compare(self.sketches, own, sketch);
                let Some(similarity) = counts.add(compared) else {
                    continue;
                };
                let (id, day) = found.rows.document(matched.row);
                let neighbour = Neighbour {
                    distance: matched.distance,
                    similarity,
                    day,
                    id,
                };
                let is_verified = similarity.is_some();
                match self.originals {
                    Originals::Nearest if !is_verified && self.verifies() => {}
                    Originals::Nearest => self.keep_if_nearest(class, neighbour)?,
                    Originals::All => {
                        rows.push_archived(class, neighbour);
                        if rows.classes.len() == ARCHIVED_ROWS
                            && !self.send(std::mem::take(&mut rows)).await?
                        {
                            return Ok(counts);
                        }
                    }
                }
            }
        }
        self.send(rows).await?;
        Ok(counts)
    }

    /// Whether pairs are verified by their sketches.
    fn verifies(&self) -> bool {
        self.sketches.is_some_and(|sketches| sketches.verifies)
    }

    /// Keeps a document of the archive if it is the nearest of its class so far.
    fn keep_if_nearest(&mut self, class: u32, neighbour: Neighbour) -> Result<()> {
        match self.nearest.get(&class) {
            Some(nearest) if nearest.order(&neighbour).is_le() => return Ok(()),
            Some(nearest) => self.memory.shrink(bytes_of(nearest)),
            None => {}
        }
        reserve(&self.memory, bytes_of(&neighbour), || {
            "the nearest documents of the archive".into()
        })?;
        self.nearest.insert(class, neighbour);
        Ok(())
    }

    /// Sends the pairs inside the batch. `matches` are those of each distinct fingerprint with the
    /// others and with itself.
    pub(super) async fn send_within(&self, matches: &[Match], batch: &Batch) -> Result<Sent> {
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
                    let compared = CompareSketches::compare(self.sketches, sketch, other_sketch);
                    let Some(similarity) = counts.add(compared) else {
                        continue;
                    };
                    rows.classes.push(class);
                    rows.others.push(Some(other));
                    rows.distances.push(found.distance.cast_signed());
                    rows.similarities.push(similarity);
                    if rows.classes.len() == BATCH_ROWS
                        && !self.send(std::mem::take(&mut rows)).await?
                    {
                        return Ok(counts);
                    }
                }
            }
        }
        self.send(rows).await?;
        Ok(counts)
    }

    /// Sends the nearest documents of the archive.
    pub(super) async fn send_nearest(&mut self) -> Result<()> {
        let nearest: Vec<(u32, Neighbour)> =
            std::mem::take(&mut self.nearest).into_iter().collect();
        for some in nearest.chunks(ARCHIVED_ROWS) {
            let mut rows = Rows::default();
            for (class, neighbour) in some {
                rows.push_archived(*class, neighbour.clone());
            }
            self.send(rows).await?;
        }
        Ok(())
    }

    /// Sends rows, if there are any; false when the receiver is gone.
    async fn send(&self, rows: Rows) -> Result<bool> {
        if rows.classes.is_empty() {
            return Ok(true);
        }
        let rows = rows.finish(&self.schema)?;
        Ok(self.sender.send(Ok(rows)).await.is_ok())
    }
}

/// Bytes of a class's nearest document.
fn bytes_of(neighbour: &Neighbour) -> usize {
    size_of::<(u32, Neighbour)>() + neighbour.id.bytes()
}

/// Pairs with documents of the archive in a record batch: few, because an id may take 1 MiB.
const ARCHIVED_ROWS: usize = 1024;

#[derive(Default)]
struct Rows {
    classes: Vec<u32>,
    others: Vec<Option<u32>>,
    distances: Vec<i32>,
    similarities: Vec<Option<f64>>,
    /// Ids and days of documents of the archive; none if the others are classes.
    base_ids: Vec<DocumentId>,
    base_days: Vec<Option<i32>>,
}

impl Rows {
    /// Adds a pair of a class and a document of the archive.
    fn push_archived(&mut self, class: u32, neighbour: Neighbour) {
        self.classes.push(class);
        self.others.push(None);
        self.distances.push(neighbour.distance.cast_signed());
        self.similarities.push(neighbour.similarity);
        self.base_ids.push(neighbour.id);
        self.base_days.push(neighbour.day);
    }

    fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let rows = self.classes.len();
        let id_type = schema.field_with_name(BASE_ID)?.data_type();
        let (ids, days) = if self.base_ids.is_empty() {
            let ids = arrow::array::new_null_array(id_type, rows);
            (ids, Date32Array::new_null(rows))
        } else {
            let ids = DocumentId::array(&self.base_ids, *id_type == DataType::Utf8);
            (ids, Date32Array::from(self.base_days))
        };
        RecordBatch::try_new(
            Arc::clone(schema),
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
