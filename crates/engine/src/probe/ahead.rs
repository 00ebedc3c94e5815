//! Items whose bytes are on their way, for all partitions of a process: whoever is done with one takes the next that
//! was asked for, so that the probe waits for a store no longer than its first answer takes.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;

/// Items that are fetched at the same time, where they come from a store.
const ITEMS: usize = 64;
/// Bytes that are on their way, or wait to be probed.
const BYTES: u64 = 64 << 20;
/// Items of local files: the one that is wanted and the next, for each thread.
const LOCAL_ITEMS: usize = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ahead<T> {
    state: Mutex<State<T>>,
    local_items: usize,
    bytes: u64,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(SpawnedTask<Result<T>>, u64)>,
    bytes: u64,
}

impl<T: Send + 'static> Ahead<T> {
    /// Nothing on its way, for `threads` threads within `memory` bytes.
    pub(crate) fn new(threads: usize, memory: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                bytes: 0,
            }),
            local_items: LOCAL_ITEMS * threads.max(1),
            bytes: BYTES.min(memory as u64 / 16),
        }
    }

    /// Whether another item should be asked for; `remote` says that they come from a store.
    pub(crate) fn has_room(&self, remote: bool) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let items = state.items.len();
        items < self.local_items || (remote && items < ITEMS && state.bytes < self.bytes)
    }

    /// Begins to fetch an item of so many bytes.
    pub(crate) fn fetch(
        &self,
        bytes: u64,
        fetch: impl Future<Output = Result<T>> + Send + 'static,
    ) {
        let task = SpawnedTask::spawn(fetch);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.items.push_back((task, bytes));
        state.bytes += bytes;
    }

    /// The item that was asked for first.
    pub(crate) fn next(&self) -> Option<SpawnedTask<Result<T>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (task, bytes) = state.items.pop_front()?;
        state.bytes -= bytes;
        Some(task)
    }
}
