//! Work on several threads.

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` on `threads` threads, which are numbered from 0; each call gets the number of its thread. Returns the results in
/// the order of the numbers.
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
