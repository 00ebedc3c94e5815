//! Building tables on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns `build(0)` to `build(count - 1)`, in order, on up to `threads` threads; a free thread takes the next number.
pub(crate) fn build_in_parallel<T: Send>(
    count: usize,
    threads: usize,
    build: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let at = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        at.take_while(|&at| at < count)
            .map(|at| (at, build(at)))
            .collect::<Vec<_>>()
    };
    let mut built: Vec<(usize, T)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(work)).collect();
        let mut built = work();
        for worker in others {
            built.extend(
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        built
    });
    built.sort_unstable_by_key(|(at, _)| *at);
    built.into_iter().map(|(_, built)| built).collect()
}
