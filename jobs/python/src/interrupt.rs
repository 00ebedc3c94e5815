//! Work without the GIL that Ctrl-C stops: on several threads, or waiting for files and stores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use storage::ErrorKind;

use crate::error::Failed;
use crate::lock::lock;
use crate::progress::Progress;

/// How often Python is asked whether a signal arrived.
const CHECK: Duration = Duration::from_millis(100);

/// The most threads, as of the command.
const MAX_THREADS: usize = 1024;

/// The number of threads: `given`, or one per core that this process may use.
pub(crate) fn thread_count(given: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    given.unwrap_or_else(cores).clamp(1, MAX_THREADS)
}

/// Whether work should end early, because a signal arrived or another piece of the work failed.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Whether work should end early. Work on a piece that may take longer than a second asks now and then.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls `work` for each piece, on up to `threads` threads, and reports the progress, which `work` counts. Each thread has a
/// state, which `start` makes.
///
/// # Errors
/// The first error of `work`; or the exception of a signal, such as `KeyboardInterrupt`, or of the function that gets the
/// reports. Pieces that other threads have begun are ended first: `work` may return early once its [`Stop`] is set. A single piece
/// that `is_short` is done here, and no signal ends it.
pub(crate) fn for_each<Piece, State>(
    py: Python<'_>,
    progress: &Progress,
    pieces: impl ExactSizeIterator<Item = Piece> + Send,
    is_short: bool,
    threads: usize,
    start: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, Piece, &Stop) -> Result<(), Failed> + Sync,
) -> PyResult<()> {
    py.detach(|| {
        let count = pieces.len();
        let pieces = Mutex::new(pieces);
        let stop = Stop::default();
        let failed: Mutex<Option<Failed>> = Mutex::new(None);
        let run = || {
            let mut state = start();
            while !stop.is_set() {
                let piece = lock(&pieces).next();
                let Some(piece) = piece else { break };
                if let Err(error) = work(&mut state, piece, &stop) {
                    stop.set();
                    lock(&failed).get_or_insert(error);
                }
            }
        };
        let mut interrupted = None;
        if count <= 1 && is_short {
            run();
        } else {
            std::thread::scope(|scope| {
                let (ended, end) = channel::<()>();
                for _ in 0..threads.min(count) {
                    let ended = ended.clone();
                    let run = &run;
                    scope.spawn(move || {
                        let _ended = ended;
                        run();
                    });
                }
                drop(ended);
                // The channel closes when the last thread has ended.
                while end.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) {
                    if interrupted.is_none()
                        && let Err(error) = progress.check()
                    {
                        stop.set();
                        interrupted = Some(error);
                    }
                }
            });
        }
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (interrupted, failed) {
            (Some(error), _) => Err(error),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Ok(()),
        }
    })
}

/// Runs `work`, which cannot be stopped, on a thread of its own, until the first error of `check`. The thread is abandoned then: it
/// ends by itself, and nobody gets its result.
fn on_own_thread<T: Send + 'static, E>(
    work: impl FnOnce() -> T + Send + 'static,
    check: impl Fn() -> Result<(), E>,
) -> Result<std::thread::Result<T>, E> {
    let (ended, end) = channel::<()>();
    let thread = std::thread::spawn(move || {
        let _ended = ended;
        work()
    });
    // The channel closes when the work has ended.
    while end.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) {
        check()?;
    }
    Ok(thread.join())
}

/// Runs `work`, which cannot be stopped, on a thread of its own; `None` once `stop` is set.
pub(crate) fn unless_stopped<T: Send + 'static>(
    stop: &Stop,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let check = || if stop.is_set() { Err(()) } else { Ok(()) };
    let done = on_own_thread(work, check).ok()?;
    Some(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Runs `work`, which cannot be stopped, on a thread of its own, and reports the progress.
///
/// # Errors
/// The exception of a signal, or of the function that gets the reports.
pub(crate) fn on_thread<T: Send + 'static>(
    py: Python<'_>,
    progress: &Progress,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    py.detach(|| -> PyResult<T> {
        let done = on_own_thread(work, || progress.check())?;
        done.map_err(|_| Failed::new(ErrorKind::Internal, "a thread panicked").into())
    })
}

/// Runs `work`, which waits for files and stores.
///
/// # Errors
/// Its error, or the exception of a signal.
pub(crate) fn wait_for<T: Send>(
    py: Python<'_>,
    work: impl AsyncFnOnce() -> Result<T, Failed> + Send,
) -> PyResult<T> {
    py.detach(|| {
        let done = block_on(async {
            tokio::select! {
                done = work() => done.map_err(PyErr::from),
                error = interrupted() => Err(error),
            }
        });
        done?
    })
}

/// Runs `work` on this thread.
///
/// # Errors
/// When the system gives no resources for it.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::io("starting a runtime", &error))?;
    let done = runtime.block_on(work);
    // Abandoned work on other threads must not delay the caller.
    runtime.shutdown_background();
    Ok(done)
}

/// The exception of a signal, if one arrived and its handler raised one.
pub(crate) fn check_signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// Waits until a signal arrives whose handler raises an exception, and returns that.
async fn interrupted() -> PyErr {
    loop {
        tokio::time::sleep(CHECK).await;
        if let Err(error) = check_signals() {
            return error;
        }
    }
}
