//! Reads streams ahead.

use datafusion::common::runtime::SpawnedTask;
use futures::StreamExt as _;
use futures::stream::{BoxStream, Stream};
use tokio::sync::mpsc::{Receiver, Sender};

/// The most items of a stream that are read ahead.
const AHEAD: usize = 2;

/// The same items, read by a task that stays up to [`AHEAD`] items ahead.
pub fn read_ahead<T: Send + 'static>(
    items: impl Stream<Item = T> + Send + Unpin + 'static,
) -> BoxStream<'static, T> {
    let (sender, receiver) = tokio::sync::mpsc::channel(AHEAD);
    // The task is aborted when it is dropped.
    received(receiver, SpawnedTask::spawn(send_all(items, sender)))
}

/// The items of an iterator, made by a thread that stays one item ahead: for iterators that compute or block for long.
///
/// A task would not do. When a task sends an item, the runtime queues the reader on the thread of that task, and no other
/// thread takes it before the task waits. So one thread would both make the items and use them.
pub fn read_ahead_on_thread<T: Send + 'static>(
    mut items: impl Iterator<Item = T> + Send + 'static,
) -> BoxStream<'static, T> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let runtime = tokio::runtime::Handle::current();
    let making = SpawnedTask::spawn_blocking(move || {
        // An item is made only when there is a place for it.
        while let Ok(place) = runtime.block_on(sender.reserve()) {
            match items.next() {
                Some(item) => place.send(item),
                None => break,
            }
        }
    });
    received(receiver, making)
}

/// Sends all items until the receiver is gone; each is made only when there is a place for it.
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

/// The items that `receiver` gets. At their end, waits for the task that makes them, so that its panic continues in the
/// reader.
fn received<T: Send + 'static>(
    receiver: Receiver<T>,
    making: SpawnedTask<()>,
) -> BoxStream<'static, T> {
    futures::stream::unfold(Some((receiver, making)), |begun| async {
        let (mut receiver, making) = begun?;
        if let Some(item) = receiver.recv().await {
            return Some((item, Some((receiver, making))));
        }
        // A panic of the task must not look like the end of the items.
        let _ = making.join_unwind().await;
        None
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_items_are_read_ahead() {
        for stream in [
            read_ahead(futures::stream::iter(0..100)),
            read_ahead_on_thread(0..100),
        ] {
            let items: Vec<u32> = stream.collect().await;
            assert!(items.into_iter().eq(0..100));
        }
    }

    fn items_that_panic() -> impl Iterator<Item = i32> + Send + 'static {
        (0..3).inspect(|&item| {
            assert!(item < 2, "no end of the items");
        })
    }

    #[tokio::test]
    #[should_panic(expected = "no end of the items")]
    async fn a_panic_of_the_task_reaches_the_reader() {
        let items = futures::stream::iter(items_that_panic());
        let taken: Vec<i32> = read_ahead(items).collect().await;
        unreachable!("{taken:?}");
    }

    #[tokio::test]
    #[should_panic(expected = "no end of the items")]
    async fn a_panic_on_the_thread_reaches_the_reader() {
        let taken: Vec<i32> = read_ahead_on_thread(items_that_panic()).collect().await;
        unreachable!("{taken:?}");
    }

    #[tokio::test]
    async fn dropping_the_reader_ends_a_task_that_waits() {
        // An item, and another that never comes; dropped when the channel is.
        let (alive, gone) = tokio::sync::oneshot::channel::<()>();
        let items = futures::stream::iter([1]).chain(futures::stream::once(async move {
            let () = std::future::pending().await;
            drop(alive);
            2
        }));
        let mut begun = read_ahead(items.boxed());
        assert_eq!(begun.next().await, Some(1));
        drop(begun);
        assert!(gone.await.is_err(), "the items are dropped");
    }

    #[tokio::test]
    async fn dropping_the_reader_ends_the_thread() {
        // Items without an end; dropped when the channel is.
        let (alive, gone) = tokio::sync::oneshot::channel::<()>();
        let mut begun = read_ahead_on_thread((1..).inspect(move |_| assert!(!alive.is_closed())));
        assert_eq!(begun.next().await, Some(1));
        drop(begun);
        assert!(gone.await.is_err(), "the items are dropped");
    }

    #[tokio::test]
    async fn an_iterator_on_a_thread_may_block() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let items = std::iter::from_fn(move || receiver.blocking_recv());
        let mut begun = read_ahead_on_thread(items);
        for item in 0..3 {
            sender.send(item).await.unwrap();
            assert_eq!(begun.next().await, Some(item));
        }
        drop(sender);
        assert_eq!(begun.next().await, None);
    }
}
