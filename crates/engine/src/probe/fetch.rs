//! Stage 1, fetch: reads the bytes of work items ahead, for all partitions of a process.
//!
//! A partition that is free takes the item whose fetch started first, whichever partition started it. So the probe waits for
//! a store only until its first answer.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use archive::{Encoded, FingerprintReader};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::Result;

use super::request::Probe;
use crate::resources::Resources;
use crate::work_items::{Numbered, WorkItem};
use streams::locked;

/// The most items from a store that are being fetched or wait to be probed.
const ITEMS: usize = 64;
/// The most bytes from a store that are being fetched or wait to be probed.
const BYTES: u64 = 64 << 20;
/// The most items of local files for each thread: the one that is probed next, and the one after it.
const LOCAL_ITEMS: usize = 2;

/// A task that fetches an item; it returns the number of the item, too.
type Fetch = SpawnedTask<Result<(u32, Fetched)>>;

/// A queue of tasks that fetch, shared by the partitions of a process.
#[derive(Debug)]
pub(super) struct FetchQueue {
    state: Mutex<State>,
    local_items: usize,
    bytes: u64,
}

#[derive(Debug)]
struct State {
    items: VecDeque<(Fetch, u64)>,
    bytes: u64,
}

impl FetchQueue {
    /// An empty queue for `threads` threads within `memory` bytes.
    pub(super) fn new(threads: usize, memory: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                bytes: 0,
            }),
            local_items: LOCAL_ITEMS * threads.max(1),
            bytes: BYTES.min(memory as u64 / 16),
        }
    }

    /// Whether another item should be fetched. `remote` says that items are in a store: more of
    /// these are fetched ahead than of local files.
    pub(super) fn has_room(&self, remote: bool) -> bool {
        let state = locked(&self.state);
        let items = state.items.len();
        items < self.local_items || (remote && items < ITEMS && state.bytes < self.bytes)
    }

    /// Starts to fetch an item.
    pub(super) fn fetch(
        &self,
        (number, item): Numbered,
        resources: Arc<Resources>,
        probe: Arc<Probe>,
    ) {
        let bytes = item.bytes();
        let task: Fetch = SpawnedTask::spawn(async move {
            Ok((number, Fetched::fetch(item, resources, probe).await?))
        });
        let mut state = locked(&self.state);
        state.items.push_back((task, bytes));
        state.bytes += bytes;
    }

    /// Takes the item whose fetch started first.
    pub(super) fn next(&self) -> Option<Fetch> {
        let mut state = locked(&self.state);
        let (task, bytes) = state.items.pop_front()?;
        state.bytes -= bytes;
        Some(task)
    }
}

/// A work item with the bytes that it needs.
#[derive(Debug)]
pub(super) enum Fetched {
    /// A row group of the archive.
    RowGroup(RowGroup),
    /// A range of the batch's own distinct fingerprints.
    Within { first: u32, end: u32, part: u32 },
}

/// A row group of a file of the archive, to be probed with one part of the batch.
#[derive(Debug)]
pub(super) struct RowGroup {
    pub(super) reader: Box<FingerprintReader>,
    pub(super) number: usize,
    /// Day of its rows, in days since 1970.
    pub(super) day: Option<i32>,
    pub(super) part: u32,
    pub(super) encoded: Encoded,
}

impl Fetched {
    /// Fetches the bytes of an item.
    async fn fetch(item: WorkItem, resources: Arc<Resources>, probe: Arc<Probe>) -> Result<Self> {
        match item {
            WorkItem::RowGroup {
                row_group,
                day,
                part,
                bytes,
                ..
            } => {
                let begin = Instant::now();
                let (reader, encoded) = resources.row_group(&item, &probe.columns).await?;
                let progress = &resources.progress;
                progress.bytes_read.fetch_add(bytes, Ordering::Relaxed);
                // A local file is read, and the read timed, when it is decoded.
                if matches!(encoded, Encoded::Fetched(_)) {
                    progress.stages.read.add(begin.elapsed());
                }
                Ok(Self::RowGroup(RowGroup {
                    reader: Box::new(reader),
                    number: row_group as usize,
                    day,
                    part,
                    encoded,
                }))
            }
            WorkItem::Within { first, end, part } => Ok(Self::Within { first, end, part }),
        }
    }
}
