//! Streams: made ahead of who takes them, in batches of a size, and as a table of a plan.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::exec_err;
use datafusion::common::runtime::SpawnedTask;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use futures::stream::{BoxStream, Stream};
use tokio::sync::mpsc::{Receiver, Sender};

/// Items of a stream that are made ahead of who takes them.
const AHEAD: usize = 2;

/// The same items, which a task of its own makes from now on, a few ahead of who takes them.
pub(crate) fn begun<T: Send + 'static>(
    items: impl Stream<Item = T> + Send + Unpin + 'static,
) -> BoxStream<'static, T> {
    let (sender, receiver) = tokio::sync::mpsc::channel(AHEAD);
    // Ends when it is dropped.
    received(receiver, SpawnedTask::spawn(send_all(items, sender)))
}

/// As [`begun`], on a thread of its own and one item ahead: for a stream that computes long before it waits.
///
/// A task that is woken by another waits in that one's queue, where no other thread finds it, until that one waits. So
/// what is made without a pause would be used by the thread that made it, alone.
pub(crate) fn begun_apart<T: Send + 'static>(
    items: impl Stream<Item = T> + Send + Unpin + 'static,
) -> BoxStream<'static, T> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let runtime = tokio::runtime::Handle::current();
    let making = SpawnedTask::spawn_blocking(move || runtime.block_on(send_all(items, sender)));
    received(receiver, making)
}

/// Sends all items, as long as someone takes them; none is made before there is a place for it.
async fn send_all<T>(mut items: impl Stream<Item = T> + Unpin, sender: Sender<T>) {
    while let Ok(place) = sender.reserve().await {
        let item = tokio::select! {
            biased;
            () = sender.closed() => break,
            item = items.next() => item,
        };
        match item {
            Some(item) => place.send(item),
            None => break,
        }
    }
}

/// What is sent, to the end of who sends.
fn received<T: Send + 'static>(
    receiver: Receiver<T>,
    making: SpawnedTask<()>,
) -> BoxStream<'static, T> {
    futures::stream::unfold(Some((receiver, making)), |begun| async {
        let (mut receiver, making) = begun?;
        if let Some(item) = receiver.recv().await {
            return Some((item, Some((receiver, making))));
        }
        // A panic goes on here: it is no end of the items.
        let _ = making.join_unwind().await;
        None
    })
    .boxed()
}

/// The same rows, in batches of so many: what is sorted or sent costs something for each batch.
#[must_use]
pub fn coalesced(stream: SendableRecordBatchStream, rows: usize) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let coalescer = BatchCoalescer::new(Arc::clone(&schema), rows);
    let begin = (Some(stream), coalescer);
    let batches = futures::stream::try_unfold(begin, |(mut stream, mut coalescer)| async {
        loop {
            if let Some(batch) = coalescer.next_completed_batch() {
                return Ok(Some((batch, (stream, coalescer))));
            }
            let Some(rows) = &mut stream else {
                return Ok(None);
            };
            match rows.next().await.transpose()? {
                Some(batch) => coalescer.push_batch(batch)?,
                None => {
                    stream = None;
                    coalescer.finish_buffered_batch()?;
                }
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// The rows of `streams`, which can be read once.
///
/// # Errors
/// None in practice.
pub fn table(
    context: &SessionContext,
    schema: SchemaRef,
    streams: Vec<SendableRecordBatchStream>,
) -> Result<DataFrame> {
    let once = |stream| {
        Arc::new(Once {
            schema: Arc::clone(&schema),
            stream: Mutex::new(Some(stream)),
        }) as Arc<dyn PartitionStream>
    };
    let parts = streams.into_iter().map(once).collect();
    context.read_table(Arc::new(StreamingTable::try_new(
        Arc::clone(&schema),
        parts,
    )?))
}

struct Once {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let stream = self
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        stream.unwrap_or_else(|| {
            let error = futures::stream::once(async { exec_err!("a stream is read once") });
            Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                error,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray as _, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use futures::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn what_was_begun_gives_all_items() {
        let items = || futures::stream::iter(0..100);
        for begun in [begun(items()), begun_apart(items())] {
            let items: Vec<u32> = begun.collect().await;
            assert!(items.into_iter().eq(0..100));
        }
    }

    fn that_panics() -> impl Stream<Item = i32> + Send + Unpin + 'static {
        futures::stream::iter(0..3).inspect(|&item| {
            assert!(item < 2, "no end of the items");
        })
    }

    #[tokio::test]
    #[should_panic(expected = "no end of the items")]
    async fn a_panic_ends_who_waits_for_the_items() {
        let taken: Vec<i32> = begun(that_panics()).collect().await;
        unreachable!("{taken:?}");
    }

    #[tokio::test]
    #[should_panic(expected = "no end of the items")]
    async fn a_panic_apart_ends_who_waits_for_the_items() {
        let taken: Vec<i32> = begun_apart(that_panics()).collect().await;
        unreachable!("{taken:?}");
    }

    #[tokio::test]
    async fn who_is_not_waited_for_any_more_stops_waiting() {
        // An item, and another that never comes; dropped when the channel is.
        let items = || {
            let (alive, gone) = tokio::sync::oneshot::channel::<()>();
            let items = futures::stream::iter([1]).chain(futures::stream::once(async move {
                let () = std::future::pending().await;
                drop(alive);
                2
            }));
            (items.boxed(), gone)
        };
        for make in [begun, begun_apart] {
            let (items, gone) = items();
            let mut begun = make(items);
            assert_eq!(begun.next().await, Some(1));
            drop(begun);
            assert!(gone.await.is_err(), "the items are dropped");
        }
    }

    #[tokio::test]
    async fn coalesced_batches_have_the_same_rows() {
        let batch = |first: i64, rows: i64| {
            let numbers: Int64Array = (first..first + rows).collect();
            let names: StringArray = (first..first + rows)
                .map(|number| (number % 3 > 0).then(|| number.to_string()))
                .collect();
            RecordBatch::try_from_iter_with_nullable([
                (
                    "number",
                    Arc::new(numbers) as Arc<dyn arrow::array::Array>,
                    false,
                ),
                ("name", Arc::new(names), true),
            ])
        };
        let sizes = [1, 0, 700, 9000, 3, 20_000, 0];
        let mut first = 0;
        let batches: Vec<RecordBatch> = sizes
            .into_iter()
            .map(|rows| {
                first += rows;
                batch(first - rows, rows).unwrap()
            })
            .collect();
        let schema = batches[0].schema();
        let stream = futures::stream::iter(batches.into_iter().map(Ok));
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&schema), stream);
        let found: Vec<RecordBatch> = coalesced(Box::pin(stream), 8192)
            .try_collect()
            .await
            .unwrap();
        let whole = arrow::compute::concat_batches(&schema, &found).unwrap();
        assert_eq!(whole, batch(0, first).unwrap());
        assert_eq!(
            whole.column(0).as_primitive::<Int64Type>().len() as i64,
            first
        );
        let (last, others) = found.split_last().unwrap();
        assert!(others.iter().all(|batch| batch.num_rows() == 8192));
        assert!((1..=8192).contains(&last.num_rows()));
    }
}
