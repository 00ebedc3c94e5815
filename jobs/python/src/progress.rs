//! [`Progress`]: how far a call in this process is, for a Python function that it calls now and then.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::lock::lock;

/// The shortest time between two calls of the function: that of a job's reports.
const EVERY: Duration = Duration::from_millis(250);
/// The total of a stage that has none.
const UNKNOWN: u64 = u64::MAX;

/// The progress of a call. The threads of the call count; the thread that made the call reports.
pub(crate) struct Progress {
    /// It takes the stage, the number done, the number of all (None if it is not known), and the number of pairs.
    function: Option<Py<PyAny>>,
    stage: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
    pairs: AtomicU64,
    reported: Mutex<Instant>,
}

impl Progress {
    /// The progress of a call that begins with `stage`, in which `total` things are to be done.
    pub(crate) fn new(function: Option<Py<PyAny>>, stage: &'static str, total: usize) -> Self {
        Self {
            function,
            stage: Mutex::new(stage),
            done: AtomicU64::new(0),
            total: AtomicU64::new(total as u64),
            pairs: AtomicU64::new(0),
            reported: Mutex::new(Instant::now()),
        }
    }

    /// Enters a stage, of whose `total` things `done` are done; the total may be unknown.
    pub(crate) fn enter(&self, stage: &'static str, done: usize, total: Option<usize>) {
        *lock(&self.stage) = stage;
        let total = total.map_or(UNKNOWN, |total| total as u64);
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done as u64, Ordering::Relaxed);
    }

    /// Counts things that are done.
    pub(crate) fn advance(&self, count: usize) {
        self.done.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts pairs that are found; returns how many there were before.
    pub(crate) fn add_pairs(&self, count: u64) -> u64 {
        self.pairs.fetch_add(count, Ordering::Relaxed)
    }

    /// The pairs found so far.
    pub(crate) fn pairs(&self) -> u64 {
        self.pairs.load(Ordering::Relaxed)
    }

    /// Handles signals, and calls the function if it was not called for a while. Call it without the GIL, on the thread that
    /// made the call.
    ///
    /// # Errors
    /// The exception of a signal's handler or of the function; the call must then end.
    pub(crate) fn check(&self) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            let elapsed = lock(&self.reported).elapsed();
            if elapsed >= EVERY {
                self.report(py)
            } else {
                Ok(())
            }
        })
    }

    /// Calls the function.
    ///
    /// # Errors
    /// The exception of the function.
    pub(crate) fn report(&self, py: Python<'_>) -> PyResult<()> {
        let Some(function) = &self.function else {
            return Ok(());
        };
        let stage = *lock(&self.stage);
        let done = self.done.load(Ordering::Relaxed);
        let total = self.total.load(Ordering::Relaxed);
        let total = Some(total).filter(|total| *total != UNKNOWN);
        function.call1(py, (stage, done, total, self.pairs()))?;
        // From its end on: a slow function must not be called all the time.
        *lock(&self.reported) = Instant::now();
        Ok(())
    }
}
