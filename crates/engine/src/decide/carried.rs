//! Decisions with carried columns: columns of the documents that go along.
//!
//! Decisions have the order of the ids, and documents that of the inputs. So the carried columns are read by themselves, each
//! row with the rank of its document among the decisions; DataFusion sorts them, on the disk if they do not fit into memory;
//! and then both streams run side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archive::IdType;
use arrow::array::{ArrayRef, AsArray as _, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, is_not_null};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt32Type};
use arrow::error::ArrowError;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use futures::stream::Fuse;

use super::Decided;
use super::keys::Keys;
use super::output_rows::ROWS_AT_ONCE;
use crate::error::{EngineError, Result};
use crate::job::Answers;
use crate::memory;
use documents::{Documents, InputNumbers};
use streams::{BatchSize, blocking};

/// Column of ranks. No carried column has this name: theirs have a prefix.
const RANK: &str = "rank";
/// Stands for the rank of a row that is no document of the batch.
const NONE: u32 = u32::MAX;
/// The part of the free memory that the rows of a merge may take together.
const MERGED_ROWS_PART: usize = 16;
/// The bytes that each row may have, unless memory is scarce.
const ROW_BYTES: usize = 1 << 20;
/// The rows that are merged at once where memory is scarce.
const LEAST_ROWS: usize = 64;
/// Bytes of memory of a document while ranks are made: its position.
const POSITION_BYTES: usize = 8;

impl Decided {
    /// The decisions as by [`Self::rows`], with the carried columns of `documents` behind the others. `keys` are those of the
    /// batch. The columns are `in_parts` if the parts of a job read them.
    pub(crate) async fn rows_with_carried(
        self: Arc<Self>,
        context: &SessionContext,
        id_type: IdType,
        documents: &Documents,
        keys: &Keys,
        in_parts: Option<Answers>,
    ) -> Result<SendableRecordBatchStream> {
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        let (decided, keys) = (Arc::clone(&self), keys.clone());
        let ranks = blocking(move || Ranks::new(&decided.by_id.rows, &keys, &pool)).await?;
        let carried = sorted(context, documents, Arc::new(ranks), in_parts).await;
        let carried = carried.map_err(EngineError::query(documents.given()))?;
        let decisions = self.rows(context, id_type);
        let own = decisions.schema();
        let carried_fields = documents.carried_fields().into_iter().map(Arc::new);
        let fields: Vec<_> = own.fields().iter().cloned().chain(carried_fields).collect();
        let schema = Arc::new(Schema::new(fields));
        let both = SideBySide {
            schema: Arc::clone(&schema),
            decisions: Rest::new(decisions),
            carried: Rest::new(carried),
            given: documents.given().to_owned(),
            rank: 0,
        };
        let rows = futures::stream::try_unfold(both, |mut both| async move {
            let next = both.next().await?;
            Ok::<_, DataFusionError>(next.map(|batch| (batch, both)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The ranks of documents among the decisions, by their positions in the inputs.
struct Ranks {
    numbers: InputNumbers,
    /// The rank of each row of the inputs, by its number.
    ranks: Vec<u32>,
    count: usize,
    _memory: MemoryReservation,
}

impl Ranks {
    /// The ranks of the documents whose keys are `keys`; `by_id` has their rows in the order of the decisions.
    fn new(by_id: &[u32], keys: &Keys, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let memory = MemoryConsumer::new("ranks of documents").register(pool);
        let grow = |bytes: usize| {
            memory::reserve(&memory, bytes, || {
                format!("the ranks of documents take {bytes} bytes")
            })
        };
        let bytes = by_id.len() * POSITION_BYTES;
        grow(bytes)?;
        let positions = keys.positions()?;
        let numbers = InputNumbers::new(&positions);
        grow(numbers.end() * size_of::<u32>())?;
        let mut ranks = vec![NONE; numbers.end()];
        for (rank, &row) in (0..).zip(by_id) {
            if let Some(number) = numbers.number(positions[row as usize]) {
                ranks[number as usize] = rank;
            }
        }
        drop(positions);
        memory.shrink(bytes);
        Ok(Self {
            numbers,
            ranks,
            count: by_id.len(),
            _memory: memory,
        })
    }

    /// The rank of the document at a position; `None` if it is no document of the batch.
    fn rank(&self, position: i64) -> Option<u32> {
        let rank = self.ranks[self.numbers.number(position)? as usize];
        (rank != NONE).then_some(rank)
    }

    /// Carried columns with ranks instead of positions, without the rows that are no documents of the batch.
    fn ranked(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let positions = batch.column(0).as_primitive::<Int64Type>().values();
        let ranks: UInt32Array = positions.iter().map(|at| self.rank(*at)).collect();
        let known = is_not_null(&ranks)?;
        let columns = std::iter::once(Arc::new(ranks) as ArrayRef);
        let columns = columns.chain(batch.columns()[1..].iter().cloned());
        let ranked = RecordBatch::try_new(Arc::clone(schema), columns.collect())?;
        filter_record_batch(&ranked, &known)
    }
}

/// The ranks and the carried columns of `documents`, in the order of the ranks.
async fn sorted(
    context: &SessionContext,
    documents: &Documents,
    ranks: Arc<Ranks>,
    in_parts: Option<Answers>,
) -> datafusion::error::Result<SendableRecordBatchStream> {
    let partitions = context.state().config().target_partitions();
    let bytes_of_row = documents.carried_bytes() / ranks.count.max(1) as u64;
    let runtime = context.runtime_env();
    memory::merge_without_limit(&runtime);
    let free = streams::free_bytes(&runtime.memory_pool);
    let bytes = memory::sorted_bytes(free, partitions);
    // Few rows at once: a value may be long.
    let rows = bytes / bytes_of_row.max(1) as usize;
    // The sort merges rows by their number, whatever their bytes.
    let merged = free / MERGED_ROWS_PART;
    let at_once = (merged / ROW_BYTES).clamp(LEAST_ROWS, ROWS_AT_ONCE);
    let size = BatchSize {
        rows: rows.clamp(1, at_once),
        bytes,
    };
    let long = Arc::new(LongRows {
        most: merged / size.rows,
        together: merged,
        bytes: AtomicUsize::new(0),
    });
    let table = match in_parts {
        Some(answers) => answers.table(context, &documents.carried_schema())?,
        None => documents.carried_table(context, partitions)?,
    };
    let partitions = table.execute_stream_partitioned().await?;
    let carried = partitions.first().map(|rows| rows.schema());
    let carried = carried.ok_or_else(|| EngineError::Internal("no plan of the columns".into()))?;
    let fields = carried.fields()[1..].iter().cloned();
    let rank = Arc::new(Field::new(RANK, DataType::UInt32, true));
    let fields: Vec<_> = std::iter::once(rank).chain(fields).collect();
    let schema = Arc::new(Schema::new(fields));
    let ranked = partitions.into_iter().map(|rows| {
        let (ranks, of_rows) = (Arc::clone(&ranks), Arc::clone(&schema));
        let long = Arc::clone(&long);
        let rows = rows.map(move |batch| -> datafusion::error::Result<RecordBatch> {
            let ranked = ranks.ranked(&batch?, &of_rows)?;
            long.add(&ranked)?;
            Ok(ranked)
        });
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
        streams::coalesced(Box::pin(rows), size)
    });
    let ranked = streams::table(context, Arc::clone(&schema), ranked.collect())?;
    let (mut state, plan) = ranked
        .sort(vec![ident(RANK).sort(true, false)])?
        .into_parts();
    let config = state.config().clone().with_batch_size(size.rows);
    *state.config_mut() = config;
    DataFrame::new(state, plan).execute_stream().await
}

/// Bounds what a merge holds at once: rows of few bytes are counted, and all long ones may come together.
struct LongRows {
    /// A row of more bytes is long.
    most: usize,
    /// The most bytes of all long rows.
    together: usize,
    /// Bytes of the long rows so far.
    bytes: AtomicUsize,
}

impl LongRows {
    /// Adds the long ones of `rows`.
    fn add(&self, rows: &RecordBatch) -> datafusion::error::Result<()> {
        if streams::bytes(rows)? <= self.most {
            return Ok(());
        }
        let each = (0..rows.num_rows()).map(|row| streams::bytes(&rows.slice(row, 1)));
        let each: Vec<usize> = each.collect::<Result<_, ArrowError>>()?;
        let long = each.into_iter().filter(|bytes| *bytes > self.most).sum();
        let bytes = self.bytes.fetch_add(long, Ordering::Relaxed) + long;
        if bytes <= self.together {
            return Ok(());
        }
        let what = format!(
            "the rows of --columns that have more than {} bytes take {bytes} bytes; under this limit they may take {}",
            self.most, self.together
        );
        Err(EngineError::OutOfMemory { what }.into())
    }
}

/// Decisions and the carried columns of their documents, both in the order of the decisions.
struct SideBySide {
    schema: SchemaRef,
    decisions: Rest,
    carried: Rest,
    /// The name of the documents in errors.
    given: String,
    /// The rank of the next decision.
    rank: u32,
}

impl SideBySide {
    /// The next decisions with their carried columns; `None` at the end.
    async fn next(&mut self) -> datafusion::error::Result<Option<RecordBatch>> {
        let (decisions, carried) = (self.decisions.rows().await?, self.carried.rows().await?);
        if decisions == 0 && carried == 0 {
            return Ok(None);
        }
        // Nothing is copied, so the carried values are never more at once than the sort gives.
        let rows = decisions.min(carried);
        let (decisions, carried) = (self.decisions.take(rows), self.carried.take(rows));
        let ranks = carried.column(0).as_primitive::<UInt32Type>().values();
        // Ranks are sorted, and none repeats: so it suffices that the first and the last are right.
        let end = self.rank + rows as u32;
        if ranks.first() != Some(&self.rank) || ranks.last().map(|last| last + 1) != Some(end) {
            let given = &self.given;
            let changed = EngineError::TryAgain(format!(
                "{given}: documents are no longer there that were there when the run began; run it again"
            ));
            return Err(changed.into());
        }
        self.rank = end;
        let columns = decisions.columns().iter().chain(&carried.columns()[1..]);
        let columns = columns.cloned().collect();
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok(Some(rows))
    }
}

/// The rows of a stream that are not taken yet.
struct Rest {
    stream: Fuse<SendableRecordBatchStream>,
    /// Those that were received.
    rows: RecordBatch,
}

impl Rest {
    fn new(stream: SendableRecordBatchStream) -> Self {
        Self {
            rows: RecordBatch::new_empty(stream.schema()),
            stream: stream.fuse(),
        }
    }

    /// How many rows can be taken; 0 at the end.
    async fn rows(&mut self) -> datafusion::error::Result<usize> {
        while self.rows.num_rows() == 0 {
            match self.stream.next().await.transpose()? {
                Some(rows) => self.rows = rows,
                None => return Ok(0),
            }
        }
        Ok(self.rows.num_rows())
    }

    /// Takes the first `count` rows, of as many at least.
    fn take(&mut self, count: usize) -> RecordBatch {
        let taken = self.rows.slice(0, count);
        self.rows = self.rows.slice(count, self.rows.num_rows() - count);
        taken
    }
}
