//! Decides which documents of the batch are kept, and names for each duplicate the kept document that it repeats.
//!
//! The documents of the archive are kept; those of the batch are decided one after the other, in a fixed order. A document is
//! kept unless it forms a pair with a kept document before it. So every duplicate forms a pair with its kept document, and no
//! two kept documents form a pair. Connected components would chain: if A and B are a pair, and B and C are one, they make C
//! a duplicate of A, though A and C may have little in common.
//!
//! ```text
//! keys of the documents ──▶ order of their classes ─┐
//!                                                   ▼
//! pairs of classes (probe) ──▶ (later, earlier), sorted by later ──▶ greedy ──▶ decisions, kept documents
//! ```
//!
//! The memory is that of the documents' classes, however many pairs there are: pairs are sorted on the disk if need be.

pub mod greedy;
pub(crate) mod keys;
mod order;
mod rows;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array as _, AsArray as _, Float64Array, RecordBatch, UInt8Array, UInt32Array};
use arrow::datatypes::{
    DataType, Date32Type, Field, Float64Type, Int32Type, Schema, SchemaRef, UInt8Type, UInt32Type,
};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::Partitioning;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use serde::Serialize;

use crate::batch::{Batch, Classes, Id};
use crate::class_pairs::{CLASS, OTHER_CLASS};
use crate::documents::{KeptPlace, KeptRows, Prefer};
use crate::error::{EngineError, Result};
use crate::output::OutputTarget;
use crate::pairs::{BASE_DAY, BASE_ID, DISTANCE, SIMILARITY};
use crate::probe::Neighbour;
use crate::stream;
use greedy::{Decision, Greedy, OrderedPair};
use order::Order;

pub use keys::Keys;
pub use rows::{DUPLICATE_DAY, DUPLICATE_OF, layout};

/// Bytes of memory of a class that is a duplicate of a document of the archive: an entry of two maps, and their free slots.
const NEIGHBOUR_BYTES: usize = 192;
/// Pairs that are sorted at once; the sorted batches are then merged.
const SORTED_ROWS: usize = 1 << 20;

/// What is to be decided, and where the decisions go.
#[derive(Debug, Clone)]
pub struct Decide {
    /// Which of several near-duplicates is preferred.
    pub prefer: Prefer,
    /// The output of decisions, one row for each document.
    pub decisions: Option<OutputTarget>,
    /// Where the kept documents are copied to.
    pub kept: Option<KeptPlace>,
}

/// What was decided, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Documents that are kept.
    pub kept: u64,
    /// Duplicates of documents of the archive.
    pub duplicates_of_archive: u64,
    /// Duplicates of other documents of the batch.
    pub duplicates_within: u64,
    /// Documents of the largest group: a kept document and its duplicates in the batch.
    pub largest_group: u64,
    /// Bytes of the texts of all duplicates.
    pub duplicate_bytes: u64,
}

/// What decisions need of a comparison.
pub(crate) struct Deciding<'a> {
    pub(crate) context: &'a SessionContext,
    pub(crate) batch: Arc<Batch>,
    pub(crate) keys: &'a Keys,
    /// Whether pairs are compared by their sketches.
    pub(crate) by_sketch: bool,
    /// Day of the batch, in days since 1970.
    pub(crate) day: Option<i32>,
}

/// The decisions about a batch.
pub(crate) struct Decided {
    batch: Arc<Batch>,
    classes: Arc<Classes>,
    order: Arc<Order>,
    greedy: Greedy,
    /// The document of the archive that each class is a duplicate of, by rank.
    of_archive: HashMap<u32, Neighbour>,
    /// Documents of the group of each kept class, by rank.
    group_sizes: Vec<u32>,
    /// Documents of the groups of documents of the archive, by day and id.
    archive_group_sizes: HashMap<(Option<i32>, Id), u64>,
    by_sketch: bool,
    day: Option<i32>,
    pub(crate) counts: DecisionCounts,
    pub(crate) kept_rows: KeptRows,
    _memory: MemoryReservation,
}

impl Deciding<'_> {
    /// Decides about all documents; `pairs` are the pairs of classes that the probe finds, in any order.
    pub(crate) async fn decide(self, pairs: SendableRecordBatchStream) -> Result<Decided> {
        let classes = self.batch.classes(self.by_sketch)?;
        let count = classes.count();
        let runtime = self.context.runtime_env();
        let pool = &runtime.memory_pool;
        let memory = MemoryConsumer::new("decisions").register(pool);
        // Four bytes for the size of each group.
        let bytes = Order::bytes_for(count) + Greedy::bytes_for(count, self.by_sketch) + 4 * count;
        memory
            .try_grow(bytes)
            .map_err(|_| EngineError::OutOfMemory {
                what: format!("decisions about {count} distinct documents take {bytes} bytes"),
            })?;
        let order = Order::new(self.context, self.keys, &classes).await?;
        let order = Arc::new(order);
        let of_archive: Arc<Mutex<HashMap<u32, Neighbour>>> = Arc::default();

        let schema = ordered_schema();
        let ordered = {
            let reserved = MemoryConsumer::new("duplicates of the archive").register(pool);
            let (order, of_archive, schema) = (
                Arc::clone(&order),
                Arc::clone(&of_archive),
                Arc::clone(&schema),
            );
            pairs.map(move |batch| {
                let batch = batch?;
                let pairs = ClassPairRows::read(&batch)?;
                let mut nearest = lock(&of_archive);
                Ok(pairs.ordered(&order, &mut nearest, &reserved, &schema)?)
            })
        };
        let ordered = RecordBatchStreamAdapter::new(Arc::clone(&schema), ordered);
        let begin = || {
            let mut greedy = Greedy::new(count, self.by_sketch);
            for rank in lock(&of_archive).keys() {
                greedy.add_duplicate_of_archive(*rank);
            }
            greedy
        };
        let greedy = sort_and_decide(self.context, Box::pin(ordered), begin).await?;
        let of_archive = std::mem::take(&mut *lock(&of_archive));
        let mut decided = Decided {
            batch: self.batch,
            classes,
            order,
            greedy,
            of_archive,
            group_sizes: vec![0; count],
            archive_group_sizes: HashMap::new(),
            by_sketch: self.by_sketch,
            day: self.day,
            counts: DecisionCounts::default(),
            kept_rows: KeptRows::default(),
            _memory: memory,
        };
        decided.count(self.context, self.keys).await?;
        Ok(decided)
    }
}

/// Sorts pairs of [`ordered_schema`] by the later document, on the disk if the memory does not hold them, and decides;
/// `begin` gives the decisions before the first pair, and is called when all pairs were read.
///
/// # Errors
/// [`EngineError`] when the pairs cannot be read or sorted.
pub async fn sort_and_decide(
    context: &SessionContext,
    pairs: SendableRecordBatchStream,
    begin: impl FnOnce() -> Greedy,
) -> Result<Greedy> {
    let failed = || EngineError::query("deciding which documents to keep");
    let schema = pairs.schema();
    let pairs = stream::coalesced(pairs, SORTED_ROWS);
    let partitions = Partitioning::RoundRobinBatch(context.copied_config().target_partitions());
    let sorted = stream::table(context, schema, vec![pairs])
        .and_then(|table| table.repartition(partitions))
        .and_then(|table| table.sort(vec![ident(LATER).sort(true, false)]))
        .map_err(failed())?;
    let mut sorted = sorted.execute_stream().await.map_err(failed())?;
    // The sort gives its first row when it has read all pairs.
    let mut next = sorted.next().await;
    let mut greedy = begin();
    while let Some(batch) = next {
        for pair in ordered_pairs(&batch.map_err(failed())?)? {
            greedy.add(pair);
        }
        next = sorted.next().await;
    }
    Ok(greedy)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is decided about one document.
enum Fate {
    /// It is kept; the rank of its class, if it has a fingerprint.
    Kept(Option<u32>),
    /// It is a duplicate of the preferred document of the class with the rank `kept`.
    Within {
        kept: u32,
        distance: u8,
        similarity: Option<f64>,
    },
    /// It is a duplicate of a document of the archive; the rank of its class.
    OfArchive(u32),
}

impl Decided {
    /// What is decided about the document at a row of the batch's file.
    fn fate(&self, row: u32) -> Fate {
        let Some(class) = self.classes.of_row(row) else {
            return Fate::Kept(None);
        };
        let rank = self.order.rank(class);
        match self.greedy.decision(rank) {
            Decision::Kept if self.order.row(rank) == row => Fate::Kept(Some(rank)),
            // The sketches of a class are equal, if they are known.
            Decision::Kept => Fate::Within {
                kept: rank,
                distance: 0,
                similarity: self
                    .batch
                    .sketch(row)
                    .filter(|_| self.by_sketch)
                    .map(|_| 1.0),
            },
            Decision::Of {
                kept,
                distance,
                similarity,
            } => Fate::Within {
                kept,
                distance,
                similarity,
            },
            Decision::OfArchive => Fate::OfArchive(rank),
        }
    }

    /// Counts the documents of each group and of each fate, and marks those that are kept.
    async fn count(&mut self, context: &SessionContext, keys: &Keys) -> Result<()> {
        let failed = || EngineError::query("counting the decisions");
        let table = keys.table(context)?;
        let mut batches = table.execute_stream().await.map_err(failed())?;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(failed())?;
            let (positions, bytes) = crate::documents::positions_and_bytes(&batch)?;
            for (at, row) in order::rows(&batch)?.into_iter().enumerate() {
                let duplicates = match self.fate(row) {
                    Fate::Kept(rank) => {
                        if let Some(rank) = rank {
                            self.group_sizes[rank as usize] += 1;
                        }
                        self.kept_rows.add(positions.value(at));
                        self.counts.kept += 1;
                        continue;
                    }
                    Fate::Within { kept, .. } => {
                        self.group_sizes[kept as usize] += 1;
                        &mut self.counts.duplicates_within
                    }
                    Fate::OfArchive(rank) => {
                        if let Some(Neighbour { day, id, .. }) = self.of_archive.get(&rank) {
                            let group = self.archive_group_sizes.entry((*day, id.clone()));
                            // The document of the archive itself is one.
                            *group.or_insert(1) += 1;
                        }
                        &mut self.counts.duplicates_of_archive
                    }
                };
                *duplicates += 1;
                if bytes.is_valid(at) {
                    self.counts.duplicate_bytes += bytes.value(at).max(0).cast_unsigned();
                }
            }
        }
        let within = self.group_sizes.iter().map(|size| u64::from(*size)).max();
        let of_archive = self.archive_group_sizes.values().copied().max();
        self.counts.largest_group = within
            .max(of_archive)
            .unwrap_or(0)
            .max(u64::from(self.counts.kept > 0));
        Ok(())
    }
}

/// The class that is decided later, as its rank.
const LATER: &str = "later";

/// Schema of pairs of documents, or of classes of them, by their ranks in the order in which they are decided.
#[must_use]
pub fn ordered_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(LATER, DataType::UInt32, false),
        Field::new("earlier", DataType::UInt32, false),
        Field::new(DISTANCE, DataType::UInt8, false),
        Field::new(SIMILARITY, DataType::Float64, true),
    ]))
}

/// The pairs in a batch of [`ordered_schema`].
fn ordered_pairs(batch: &RecordBatch) -> Result<impl Iterator<Item = OrderedPair> + '_> {
    let columns = (
        batch.column(0).as_primitive_opt::<UInt32Type>(),
        batch.column(1).as_primitive_opt::<UInt32Type>(),
        batch.column(2).as_primitive_opt::<UInt8Type>(),
        batch.column(3).as_primitive_opt::<Float64Type>(),
    );
    let (Some(later), Some(earlier), Some(distances), Some(similarities)) = columns else {
        return Err(EngineError::Internal(
            "pairs of ranks have other types".into(),
        ));
    };
    Ok((0..batch.num_rows()).map(move |row| OrderedPair {
        later: later.value(row),
        earlier: earlier.value(row),
        distance: distances.value(row),
        similarity: similarities.is_valid(row).then(|| similarities.value(row)),
    }))
}

/// The columns of pairs of classes.
struct ClassPairRows<'a> {
    classes: &'a UInt32Array,
    others: &'a UInt32Array,
    batch: &'a RecordBatch,
}

impl<'a> ClassPairRows<'a> {
    fn read(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
        match (column(CLASS), column(OTHER_CLASS)) {
            (Some(classes), Some(others)) => Ok(Self {
                classes,
                others,
                batch,
            }),
            _ => Err(missing()),
        }
    }

    /// The pairs of two classes, in their order; keeps the nearest document of the archive of each class in `nearest`, whose
    /// bytes are `reserved`.
    fn ordered(
        &self,
        order: &Order,
        nearest: &mut HashMap<u32, Neighbour>,
        reserved: &MemoryReservation,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let column = |name: &str| self.batch.column_by_name(name).ok_or_else(missing);
        let ids = column(BASE_ID)?;
        let days = column(BASE_DAY)?
            .as_primitive_opt::<Date32Type>()
            .ok_or_else(missing)?;
        let distances = column(DISTANCE)?
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(missing)?;
        let similarities = column(SIMILARITY)?
            .as_primitive_opt::<Float64Type>()
            .ok_or_else(missing)?;
        let (mut later, mut earlier, mut between) = (Vec::new(), Vec::new(), Vec::new());
        let mut alike = Vec::new();
        for row in 0..self.batch.num_rows() {
            let rank = order.rank(self.classes.value(row));
            let distance = distances.value(row).cast_unsigned();
            let similarity = similarities.is_valid(row).then(|| similarities.value(row));
            if self.others.is_valid(row) {
                let other = order.rank(self.others.value(row));
                later.push(rank.max(other));
                earlier.push(rank.min(other));
                between.push(distance as u8);
                alike.push(similarity);
                continue;
            }
            let found = Neighbour {
                distance,
                similarity,
                day: days.is_valid(row).then(|| days.value(row)),
                id: Id::read(ids, row),
            };
            match nearest.get_mut(&rank) {
                Some(known) if known.order(&found).is_le() => {}
                Some(known) => *known = found,
                None => {
                    let bytes = NEIGHBOUR_BYTES + 2 * found.id.bytes();
                    reserved
                        .try_grow(bytes)
                        .map_err(|_| EngineError::OutOfMemory {
                            what: "the duplicates of documents of the archive".into(),
                        })?;
                    nearest.insert(rank, found);
                }
            }
        }
        let columns: Vec<arrow::array::ArrayRef> = vec![
            Arc::new(UInt32Array::from(later)),
            Arc::new(UInt32Array::from(earlier)),
            Arc::new(UInt8Array::from(between)),
            Arc::new(Float64Array::from(alike)),
        ];
        RecordBatch::try_new(Arc::clone(schema), columns)
            .map_err(|error| EngineError::Internal(error.to_string()))
    }
}

fn missing() -> EngineError {
    EngineError::Internal("pairs of classes lack a column of the right type".into())
}
