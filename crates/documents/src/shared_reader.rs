//! Row files that several partitions read together: one thread finds the records, and each partition parses those that it takes.
//!
//! A task of its own that parses ahead of the partitions would not do. When a partition takes rows, the runtime queues that task on
//! the partition's thread, and no other thread takes it before the partition waits.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::streaming::PartitionStream;
use futures::future::select_all;
use futures::stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::file::NumberedRows;
use super::partition_reader::PartitionReader;
use super::rows::ReadRows;
use super::splits::Split;
use crate::error::Result;

/// Rows, with the number of their split.
type Item = Result<(usize, ReadRows)>;
/// Converts the rows of a split.
type Conform = Box<dyn Fn(Result<NumberedRows>) -> Result<RecordBatch> + Send + Sync>;

/// Partitions that read splits as they are dealt. If there are fewer than `partitions`, several share the splits of one, if these are
/// of row files.
pub(super) fn partitions(
    dealt: Vec<Vec<Split>>,
    partitions: usize,
    reader: impl Fn(Vec<Split>) -> PartitionReader,
) -> Vec<Arc<dyn PartitionStream>> {
    let all = dealt.len().max(1);
    let streams = dealt.into_iter().enumerate().flat_map(|(number, splits)| {
        let shares = partitions / all + usize::from(number < partitions % all);
        let is_shared = shares > 1 && splits.iter().all(|split| split.rows.is_none());
        let reader = reader(splits);
        if !is_shared {
            return vec![Arc::new(reader) as Arc<dyn PartitionStream>];
        }
        let shared = Arc::new(SharedReader {
            reader,
            shares,
            begun: Mutex::default(),
        });
        let share = |number| {
            let shared = Arc::clone(&shared);
            Arc::new(Share { shared, number }) as Arc<dyn PartitionStream>
        };
        (0..shares).map(share).collect()
    });
    streams.collect()
}

/// The reader of several partitions.
#[derive(Debug)]
pub(super) struct SharedReader {
    reader: PartitionReader,
    shares: usize,
    /// One for each time that the table is read.
    begun: Mutex<Vec<Begun>>,
}

/// What the partitions that have not begun take.
#[derive(Debug)]
struct Begun {
    shares: Vec<Option<Receiver<Item>>>,
    /// The thread that finds the records. Whoever comes to its end first waits for it, so that its panic continues there.
    thread: Arc<Mutex<Option<SpawnedTask<()>>>>,
}

/// One of the partitions.
#[derive(Debug)]
pub(super) struct Share {
    shared: Arc<SharedReader>,
    number: usize,
}

impl SharedReader {
    /// The rows for a partition. The first one begins to read.
    fn take(&self, number: usize) -> (Option<Receiver<Item>>, Arc<Mutex<Option<SpawnedTask<()>>>>) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let at = begun
            .iter()
            .position(|begun| begun.shares[number].is_some())
            .unwrap_or_else(|| {
                begun.push(self.begin());
                begun.len() - 1
            });
        (
            begun[at].shares[number].take(),
            Arc::clone(&begun[at].thread),
        )
    }

    fn begin(&self) -> Begun {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..self.shares).map(|_| channel(1)).unzip();
        let reader = self.reader.clone();
        let runtime = Handle::current();
        let thread = SpawnedTask::spawn_blocking(move || {
            let splits = reader.splits.iter().enumerate();
            let items = splits.flat_map(|(number, split)| {
                let rows = reader.rows_of(split);
                rows.map(move |rows| rows.map(|rows| (number, rows)))
            });
            send_all(&runtime, items, senders);
        });
        Begun {
            shares: receivers.into_iter().map(Some).collect(),
            thread: Arc::new(Mutex::new(Some(thread))),
        }
    }
}

/// Sends each item to a partition that has none, until none is there any more.
fn send_all(runtime: &Handle, items: impl Iterator<Item = Item>, mut senders: Vec<Sender<Item>>) {
    for item in items {
        loop {
            let places = senders.iter().map(|sender| Box::pin(sender.reserve()));
            let gone = match runtime.block_on(select_all(places)) {
                (Ok(place), ..) => {
                    place.send(item);
                    break;
                }
                (Err(_), gone, _) => gone,
            };
            senders.swap_remove(gone);
            if senders.is_empty() {
                return;
            }
        }
    }
}

impl PartitionStream for Share {
    fn schema(&self) -> &SchemaRef {
        &self.shared.reader.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let reader = &self.shared.reader;
        let (receiver, thread) = self.shared.take(self.number);
        let conform = |split| Box::new(reader.conformed(split, split.to_string())) as Conform;
        let conform: Vec<Conform> = reader.splits.iter().map(conform).collect();
        let batches = stream::unfold((receiver, conform), move |(receiver, conform)| {
            let thread = Arc::clone(&thread);
            async move {
                let mut receiver = receiver?;
                while let Some(item) = receiver.recv().await {
                    let rows = item.and_then(|(split, rows)| Ok((split, rows.parse()?)));
                    let batch = match rows {
                        Ok((_, None)) => continue,
                        Ok((split, Some(rows))) => conform[split](Ok(rows)),
                        Err(error) => Err(error),
                    };
                    return Some((batch, (Some(receiver), conform)));
                }
                let ended = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(thread) = ended {
                    // A panic of the thread must not look like the end of the rows.
                    let _ = thread.join_unwind().await;
                }
                None
            }
        });
        reader.counted(batches, &context)
    }
}
