//! Encodes the row groups of a Parquet file on threads of their own, several at a time.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum full row groups that are encoded while the next one gets its rows.
const AT_ONCE: usize = 1;
/// Maximum KiB of rows that wait for their encoders.
const WAITING_KIB: usize = 48 << 10;

pub struct RowGroup(Vec<ArrowColumnChunk>);

impl RowGroup {
    pub fn append_to<W: Write + Send>(
        self,
        writer: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut row_group = writer.next_row_group()?;
        for column in self.0 {
            column.append_to_row_group(&mut row_group)?;
        }
        row_group.close().map(drop)
    }
}

/// Encodes rows as row groups; the rows arrive in the order of the file.
pub struct RowGroups {
    schema: SchemaRef,
    factory: ArrowRowGroupWriterFactory,
    /// The rows of a full row group.
    full: usize,
    begun: usize,
    /// The row group that gets the next rows, and how many it has.
    open: Option<(Encoder, usize)>,
    /// Row groups that have all their rows, in order.
    encoding: VecDeque<Encoder>,
    waiting: Arc<Semaphore>,
}

/// The thread that encodes one row group: takes its rows, and returns its columns.
struct Encoder {
    rows: Sender<(RecordBatch, OwnedSemaphorePermit)>,
    encoded: oneshot::Receiver<Result<RowGroup, ParquetError>>,
}

impl RowGroups {
    /// Row groups of `full` rows of `schema`; the last may have fewer.
    pub fn new(schema: SchemaRef, factory: ArrowRowGroupWriterFactory, full: usize) -> Self {
        Self {
            schema,
            factory,
            full,
            begun: 0,
            open: None,
            encoding: VecDeque::new(),
            waiting: Arc::new(Semaphore::new(WAITING_KIB)),
        }
    }

    /// How many rows the row group that is open still takes.
    pub fn room(&self) -> usize {
        self.full - self.open.as_ref().map_or(0, |(_, rows)| *rows)
    }

    /// Adds a record batch of at most [`Self::room`] rows. If more than [`AT_ONCE`] full row groups are then being encoded,
    /// waits for the oldest, and returns it.
    pub async fn add(&mut self, batch: RecordBatch) -> Result<Option<RowGroup>, ParquetError> {
        if batch.num_rows() > self.room() {
            let reason = "a record batch does not fit its row group";
            return Err(ParquetError::General(reason.into()));
        }
        let kib = batch.get_array_memory_size().div_ceil(1024);
        let kib = kib.min(WAITING_KIB) as u32;
        let permit = Arc::clone(&self.waiting).acquire_many_owned(kib).await;
        let permit = permit.map_err(|error| ParquetError::General(error.to_string()))?;
        let (encoder, before) = match self.open.take() {
            Some(open) => open,
            None => (self.begin()?, 0),
        };
        let rows = before + batch.num_rows();
        // If the encoder failed, `next` returns its error.
        let _ = encoder.rows.send((batch, permit));
        if rows < self.full {
            self.open = Some((encoder, rows));
            return Ok(None);
        }
        self.encoding.push_back(encoder);
        self.oldest().await
    }

    /// Ends the row group that is open, and waits as [`Self::add`].
    pub async fn end_row_group(&mut self) -> Result<Option<RowGroup>, ParquetError> {
        self.close();
        self.oldest().await
    }

    async fn oldest(&mut self) -> Result<Option<RowGroup>, ParquetError> {
        if self.encoding.len() > AT_ONCE {
            self.next().await
        } else {
            Ok(None)
        }
    }

    /// Waits for the encoder of the oldest row group that has all its rows, and returns that row
    /// group; `None` if there is none.
    pub async fn next(&mut self) -> Result<Option<RowGroup>, ParquetError> {
        let Some(Encoder { rows, encoded }) = self.encoding.pop_front() else {
            return Ok(None);
        };
        drop(rows);
        let ended = encoded.await;
        ended
            .unwrap_or_else(|_| Err(ParquetError::General("an encoder ended early".into())))
            .map(Some)
    }

    /// Ends the row group that is open, because no rows follow.
    pub fn close(&mut self) {
        let open = self.open.take();
        self.encoding.extend(open.map(|(encoder, _)| encoder));
    }

    fn begin(&mut self) -> Result<Encoder, ParquetError> {
        let mut columns = self.factory.create_column_writers(self.begun)?;
        self.begun += 1;
        let schema = Arc::clone(&self.schema);
        let (sender, rows) = channel::<(RecordBatch, OwnedSemaphorePermit)>();
        let (done, encoded) = oneshot::channel();
        let mut encode_rows = move || {
            for (batch, _permit) in rows.iter() {
                encode(&schema, &batch, &mut columns)?;
            }
            let columns = std::mem::take(&mut columns).into_iter();
            let columns: Result<_, _> = columns.map(ArrowColumnWriter::close).collect();
            columns.map(RowGroup)
        };
        // A thread of its own: it waits for rows, and the runtime's blocking threads may be few.
        let started = std::thread::Builder::new()
            .name("row group".into())
            // If nobody waits for the columns, the write failed.
            .spawn(move || drop(done.send(encode_rows())));
        started.map_err(|error| ParquetError::External(error.into()))?;
        Ok(Encoder {
            rows: sender,
            encoded,
        })
    }
}

/// Encodes rows; `columns` are the leaves of all columns.
fn encode(
    schema: &SchemaRef,
    batch: &RecordBatch,
    columns: &mut [ArrowColumnWriter],
) -> Result<(), ParquetError> {
    let mut columns = columns.iter_mut();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        for (leaf, column) in compute_leaves(field, array)?.iter().zip(&mut columns) {
            column.write(leaf)?;
        }
    }
    Ok(())
}
