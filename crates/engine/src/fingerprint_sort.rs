//! Sorts a batch's fingerprints: in memory if they fit there, else by DataFusion's sort, which uses the disk.
//!
//! In memory, 16 bytes for each row are sorted on all threads: the fingerprint, and where the row is. Ids are compared only
//! where fingerprints are equal, and each column is copied once.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Atomic};

use archive::schema::{FINGERPRINT, ID, SKETCH};
use arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryArray, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use futures::future::try_join_all;
use futures::stream::BoxStream;
use rayon::slice::ParallelSliceMut as _;

use crate::memory;
use documents::POSITION;
use streams::{BATCH_ROWS, BatchSize, blocking, ended, free_bytes, thread_pool};

/// Rows of a record batch that DataFusion sorts by itself, before it merges them.
const SORTED_ROWS: usize = 1 << 15;
/// The most bytes of a column in a record batch of sorted rows, unless a single value has more.
const SORTED_BYTES: usize = 16 << 20;

type Rows = BoxStream<'static, Result<RecordBatch>>;

/// The rows of `partitions` in one stream: sorted by fingerprint with nulls last, then by id, by sketch and by position,
/// whichever of these the schema has.
pub(crate) async fn sorted(
    context: &SessionContext,
    schema: SchemaRef,
    partitions: Vec<SendableRecordBatchStream>,
) -> Result<Rows> {
    let pool = &context.runtime_env().memory_pool;
    let limit = Arc::new(Limit {
        // The rest is for the sort of DataFusion, should these rows not be all.
        bytes: free_bytes(pool) / 3,
        used: AtomicUsize::new(0),
        is_reached: AtomicBool::new(false),
    });
    let collecting = partitions.into_iter().map(|partition| {
        let memory = MemoryConsumer::new("sorting fingerprints").register(pool);
        SpawnedTask::spawn(collect(partition, memory, Arc::clone(&limit)))
    });
    // The first error ends all.
    let collected = try_join_all(collecting.map(ended)).await?;
    if collected.iter().all(|part| part.rest.is_none()) {
        sorted_in_memory(context, schema, collected).await
    } else {
        sorted_by_datafusion(context, schema, collected).await
    }
}

/// The bytes that the collected rows of all partitions may take, and those that they take so far.
struct Limit {
    bytes: usize,
    used: AtomicUsize,
    is_reached: AtomicBool,
}

/// The rows of a partition.
struct Collected {
    batches: Vec<RecordBatch>,
    /// What was not read, because the memory is short.
    rest: Option<SendableRecordBatchStream>,
    /// The bytes of the rows in memory.
    memory: MemoryReservation,
}

/// Reads a partition as long as the memory allows.
async fn collect(
    partition: SendableRecordBatchStream,
    memory: MemoryReservation,
    limit: Arc<Limit>,
) -> Result<Collected> {
    let (mut batches, mut rest) = (Vec::new(), Some(partition));
    while !limit.is_reached.load(Atomic::Relaxed)
        && let Some(partition) = &mut rest
    {
        let Some(batch) = partition.next().await.transpose()? else {
            rest = None;
            break;
        };
        let bytes = bytes_of(&batch);
        let used = limit.used.fetch_add(bytes, Atomic::Relaxed) + bytes;
        if used > limit.bytes || memory.try_grow(bytes).is_err() {
            limit.is_reached.store(true, Atomic::Relaxed);
        }
        batches.push(batch);
    }
    Ok(Collected {
        batches,
        rest,
        memory,
    })
}

/// Bytes that the rows of a record batch take while they are sorted.
fn bytes_of(batch: &RecordBatch) -> usize {
    batch.get_array_memory_size() + batch.num_rows() * size_of::<Row>()
}

/// Sorts by DataFusion, which writes to the disk what its memory does not hold.
async fn sorted_by_datafusion(
    context: &SessionContext,
    schema: SchemaRef,
    collected: Vec<Collected>,
) -> Result<Rows> {
    let partitions = context.state().config().target_partitions();
    let runtime = context.runtime_env();
    memory::merge_without_limit(&runtime);
    // The whole pool counts: the memory of the collected rows is handed over to the sort.
    let bytes = streams::limit_bytes(&runtime.memory_pool);
    let size = BatchSize {
        rows: SORTED_ROWS,
        bytes: memory::sorted_bytes(bytes, partitions),
    };
    let partitions = collected.into_iter().map(|part| {
        let memory = part.memory;
        // The sort reserves the memory of each record batch that it gets.
        let handed_over = part.batches.into_iter().map(move |batch| {
            memory.shrink(bytes_of(&batch).min(memory.size()));
            Ok(batch)
        });
        let rest = futures::stream::iter(part.rest).flatten();
        let rows = futures::stream::iter(handed_over).chain(rest);
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
        streams::coalesced(Box::pin(rows), size)
    });
    let table = streams::table(context, Arc::clone(&schema), partitions.collect())?;
    let order = [FINGERPRINT, ID, SKETCH, POSITION].into_iter();
    let order = order.filter(|name| schema.field_with_name(name).is_ok());
    let order = order.map(|name| ident(name).sort(true, false)).collect();
    let sorted = table.sort(order)?.execute_stream().await?;
    // A task merges the next rows while these are written.
    Ok(streams::read_ahead(sorted))
}

async fn sorted_in_memory(
    context: &SessionContext,
    schema: SchemaRef,
    collected: Vec<Collected>,
) -> Result<Rows> {
    let threads = context.state().config().target_partitions();
    let pool = thread_pool(context).map_err(crate::EngineError::from)?;
    let (mut batches, mut memory) = (Vec::new(), Vec::new());
    for part in collected {
        batches.extend(part.batches);
        memory.push(part.memory);
    }
    let sorted = blocking(move || pool.install(|| Sorted::new(batches))).await?;
    let sorted = Arc::new(sorted);
    let (rows, piece) = (sorted.rows.len(), sorted.rows_at_once());
    let batches = futures::stream::iter((0..rows).step_by(piece))
        .map(move |start| {
            // The memory stays reserved until the last rows are made.
            let _memory = &memory;
            let (sorted, schema) = (Arc::clone(&sorted), Arc::clone(&schema));
            let end = (start + piece).min(rows);
            blocking(move || -> Result<RecordBatch> { Ok(sorted.batch(&schema, start..end)?) })
        })
        .buffered(threads.max(1));
    Ok(streams::read_ahead(batches.boxed()))
}

/// A row: its fingerprint, and its place in the record batches. In a row without a fingerprint,
/// `fingerprint` has no meaning, and the sort does not use it.
#[derive(Debug, Clone, Copy)]
struct Row {
    fingerprint: i64,
    batch: u32,
    row: u32,
}

/// Rows in memory, and their order.
struct Sorted {
    batches: Vec<RecordBatch>,
    rows: Vec<Row>,
}

impl Sorted {
    fn new(batches: Vec<RecordBatch>) -> Result<Self> {
        let ties: Result<Vec<Ties<'_>>, ArrowError> = batches.iter().map(Ties::of).collect();
        let ties = ties?;
        let count = batches.iter().map(RecordBatch::num_rows).sum();
        let mut rows: Vec<Row> = Vec::with_capacity(count);
        let mut without_fingerprint = Vec::new();
        for (batch, ties) in (0..).zip(&ties) {
            for row in 0..ties.fingerprints.len() {
                let found = Row {
                    fingerprint: ties.fingerprints.value(row),
                    batch,
                    row: row as u32,
                };
                if ties.fingerprints.is_valid(row) {
                    rows.push(found)
                } else {
                    without_fingerprint.push(found)
                }
            }
        }
        let compare = |a: &Row, b: &Row| {
            let [one, other] = [a, b].map(|row| &ties[row.batch as usize]);
            one.compare(a.row as usize, other, b.row as usize)
        };
        rows.par_sort_unstable_by(|a, b| {
            let by_fingerprint = a.fingerprint.cmp(&b.fingerprint);
            by_fingerprint.then_with(|| compare(a, b))
        });
        without_fingerprint.par_sort_unstable_by(compare);
        rows.extend(without_fingerprint);
        drop(ties);
        Ok(Self { batches, rows })
    }

    /// How many rows are copied at once: fewer if the longest of all could take much memory.
    fn rows_at_once(&self) -> usize {
        let columns = self.batches.iter().flat_map(RecordBatch::columns);
        let longest = columns.map(longest_value).max().unwrap_or(0);
        (SORTED_BYTES / longest.max(1)).clamp(1, BATCH_ROWS)
    }

    /// Copies a range of the sorted rows.
    fn batch(&self, schema: &SchemaRef, range: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let places = self.rows[range].iter();
        let places = places.map(|row| (row.batch as usize, row.row as usize));
        let places: Vec<(usize, usize)> = places.collect();
        let columns = (0..schema.fields().len()).map(|number| {
            let arrays = self.batches.iter().map(|batch| batch.column(number));
            let arrays: Vec<&dyn Array> = arrays.map(AsRef::as_ref).collect();
            interleave(&arrays, &places)
        });
        RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
    }
}

/// Bytes of the longest text of a column; 0 for numbers.
fn longest_value(column: &ArrayRef) -> usize {
    let offsets = match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value_offsets(),
        DataType::Binary => column.as_binary::<i32>().value_offsets(),
        _ => return 0,
    };
    let lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
    usize::try_from(lengths.max().unwrap_or(0)).unwrap_or(0)
}

/// The columns that order the rows of a record batch.
struct Ties<'a> {
    fingerprints: &'a Int64Array,
    /// The ids are in `texts` or in `numbers`; the other is `None`.
    texts: Option<&'a StringArray>,
    numbers: Option<&'a Int64Array>,
    sketches: Option<&'a BinaryArray>,
    positions: Option<&'a Int64Array>,
}

impl<'a> Ties<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let column = |name: &str| batch.column_by_name(name);
        let integers = |name: &str| column(name)?.as_primitive_opt::<Int64Type>();
        Ok(Self {
            fingerprints: integers(FINGERPRINT).ok_or_else(|| {
                ArrowError::SchemaError("fingerprints are not 64-bit integers".into())
            })?,
            texts: column(ID).and_then(|ids| ids.as_string_opt()),
            numbers: integers(ID),
            sketches: column(SKETCH).and_then(|sketches| sketches.as_binary_opt()),
            positions: integers(POSITION),
        })
    }

    /// Compares the row `a` with the row `b` of `other` by all but their fingerprints.
    fn compare(&self, a: usize, other: &Self, b: usize) -> Ordering {
        let texts = self.texts.zip(other.texts);
        let by_text = texts.map(|(x, y)| x.value(a).cmp(y.value(b)));
        let numbers = || self.numbers.zip(other.numbers);
        let by_number = || numbers().map(|(x, y)| x.value(a).cmp(&y.value(b)));
        let by_id = by_text.or_else(by_number).unwrap_or(Ordering::Equal);
        by_id
            .then_with(|| {
                let sketches = self.sketches.zip(other.sketches);
                // Nulls last.
                let key = |array: &'a BinaryArray, row| (array.is_null(row), array.value(row));
                sketches.map_or(Ordering::Equal, |(x, y)| key(x, a).cmp(&key(y, b)))
            })
            .then_with(|| {
                let positions = self.positions.zip(other.positions);
                positions.map_or(Ordering::Equal, |(x, y)| x.value(a).cmp(&y.value(b)))
            })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionConfig;
    use futures::TryStreamExt as _;
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Random rows with many equal fingerprints and ids, in several partitions.
    fn rows(random: &mut ChaCha8Rng, ids: DataType) -> (SchemaRef, Vec<Vec<RecordBatch>>) {
        let mut position = 0;
        let mut batch = |rows: usize| {
            let mut number = |below: i64| random.random_range(-below..below);
            let fingerprints = (0..rows).map(|_| Some(number(40)).filter(|value| *value != 7));
            let fingerprints: Int64Array = fingerprints.collect();
            let numbers: Vec<i64> = (0..rows).map(|_| number(20)).collect();
            let ids: ArrayRef = match ids {
                DataType::Utf8 => {
                    let texts = numbers
                        .iter()
                        .map(|id| Some("x".repeat(id.unsigned_abs() as usize)));
                    Arc::new(texts.collect::<StringArray>())
                }
                _ => Arc::new(Int64Array::from(numbers)),
            };
            let sketches = fingerprints
                .iter()
                .map(|value| value.map(|_| [number(3) as u8; 2]));
            let sketches: BinaryArray = sketches.collect();
            let positions = position..position + rows as i64;
            position += rows as i64;
            RecordBatch::try_from_iter_with_nullable([
                (FINGERPRINT, Arc::new(fingerprints) as ArrayRef, true),
                (ID, ids, false),
                (SKETCH, Arc::new(sketches) as ArrayRef, true),
                (
                    POSITION,
                    Arc::new(Int64Array::from_iter_values(positions)) as ArrayRef,
                    false,
                ),
            ])
            .unwrap()
        };
        let partitions: Vec<Vec<RecordBatch>> = [vec![5000, 1, 20_000], vec![], vec![3]]
            .map(|sizes| sizes.into_iter().map(&mut batch).collect())
            .into();
        (partitions[0][0].schema(), partitions)
    }

    /// Both sorts, with three threads; the second gets part of the rows from memory and the rest from streams.
    async fn sorted_both_ways(
        schema: &SchemaRef,
        partitions: &[Vec<RecordBatch>],
    ) -> [RecordBatch; 2] {
        let config = SessionConfig::new().with_target_partitions(3);
        let context = SessionContext::new_with_config(config);
        let stream_of = |batches: &Vec<RecordBatch>| {
            streams::of_batches(Arc::clone(schema), batches.clone().into_iter())
        };
        let concat = |rows: Vec<RecordBatch>| arrow::compute::concat_batches(schema, &rows);
        let streams = partitions.iter().map(stream_of).collect();
        let in_memory = sorted(&context, Arc::clone(schema), streams).await.unwrap();
        let in_memory = concat(in_memory.try_collect().await.unwrap()).unwrap();

        let limit = Arc::new(Limit {
            bytes: 1,
            used: AtomicUsize::new(0),
            is_reached: AtomicBool::new(false),
        });
        let mut collected = Vec::new();
        for partition in partitions.iter().map(stream_of) {
            let pool = &context.runtime_env().memory_pool;
            let memory = MemoryConsumer::new("test").register(pool);
            collected.push(
                collect(partition, memory, Arc::clone(&limit))
                    .await
                    .unwrap(),
            );
        }
        assert!(collected[0].batches.len() == 1 && collected[0].rest.is_some());
        assert!(collected[1].batches.is_empty() && collected[1].rest.is_some());
        let by_datafusion = sorted_by_datafusion(&context, Arc::clone(schema), collected);
        let by_datafusion = by_datafusion.await.unwrap().try_collect().await.unwrap();
        [in_memory, concat(by_datafusion).unwrap()]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn both_sorts_give_the_order() {
        let random = &mut ChaCha8Rng::seed_from_u64(1);
        for ids in [DataType::Utf8, DataType::Int64] {
            let (schema, partitions) = rows(random, ids);
            let all = partitions.iter().flatten();
            let all = arrow::compute::concat_batches(&schema, all).unwrap();
            let columns: Vec<_> = all
                .columns()
                .iter()
                .map(|column| arrow::compute::SortColumn {
                    values: Arc::clone(column),
                    options: Some(arrow::compute::SortOptions {
                        descending: false,
                        nulls_first: false,
                    }),
                })
                .collect();
            let order = arrow::compute::lexsort_to_indices(&columns, None).unwrap();
            let expected = arrow::compute::take_record_batch(&all, &order).unwrap();
            for found in sorted_both_ways(&schema, &partitions).await {
                assert_eq!(found, expected);
            }
        }
    }
}
