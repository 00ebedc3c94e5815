//! Work on several threads.

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Starts `threads` threads, each of which calls `work` with its own number from 0 on. Returns their results in the order of
/// these numbers.
pub fn run<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let workers = workers.into_iter();
        workers
            .map(|worker| worker.join().expect("no panic"))
            .collect()
    })
}
