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
use crate::error::{DocumentsError, Result};

/// Rows, with the number of their split.
type Item = Result<(usize, ReadRows)>;
/// The thread that finds the records; whoever comes to its end first takes it, so that its panic continues there.
type Thread = Arc<Mutex<Option<SpawnedTask<()>>>>;
type Conform = Box<dyn Fn(Result<NumberedRows>) -> Result<RecordBatch> + Send + Sync>;

/// The partitions that read splits as they are dealt. If there are fewer deals than `partitions`, several partitions read one deal
/// together, provided that its files are row files. They are of one plan, which is executed once.
pub(super) fn partitions(
    dealt: &[Vec<Split>],
    partitions: usize,
    reader: &PartitionReader,
) -> Vec<Arc<dyn PartitionStream>> {
    let all = dealt.len().max(1);
    let streams = dealt.iter().enumerate().flat_map(|(number, splits)| {
        let shares = partitions / all + usize::from(number < partitions % all);
        let is_shared = shares > 1 && splits.iter().all(|split| split.rows.is_none());
        let reader = PartitionReader {
            splits: splits.as_slice().into(),
            ..reader.clone()
        };
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

#[derive(Debug)]
struct SharedReader {
    reader: PartitionReader,
    shares: usize,
    /// `None` until the first partition begins.
    begun: Mutex<Option<Begun>>,
}

/// The rows for the partitions that have not begun, and the thread that finds them.
#[derive(Debug)]
struct Begun {
    shares: Vec<Option<Receiver<Item>>>,
    thread: Thread,
}

#[derive(Debug)]
struct Share {
    shared: Arc<SharedReader>,
    number: usize,
}

impl SharedReader {
    /// The rows for a partition, which takes them once. The first one begins to read.
    fn take(&self, number: usize) -> (Option<Receiver<Item>>, Thread) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.get_or_insert_with(|| self.begin());
        (begun.shares[number].take(), Arc::clone(&begun.thread))
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

/// Sends each item to a partition that has none, until one is an error or no partition is there any more.
fn send_all(runtime: &Handle, items: impl Iterator<Item = Item>, mut senders: Vec<Sender<Item>>) {
    for item in items {
        let is_last = item.is_err();
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
        if is_last {
            return;
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
        if receiver.is_none() {
            let again = DocumentsError::Internal("a partition of documents is read again".into());
            return reader.counted(stream::iter([Err(again)]), &context);
        }
        let batches = stream::unfold((receiver, conform), move |(receiver, conform)| {
            let thread = Arc::clone(&thread);
            async move {
                let mut receiver = receiver?;
                while let Some(item) = receiver.recv().await {
                    let rows = item.and_then(|(split, rows)| Ok((split, rows()?)));
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
