//! Documents sent to `/v1/seen`: duplicates that arrive before the next build find each other.
//!
//! Their fingerprints and ids are in a table in memory, and in a log on the disk, from which a restarted server reads
//! them back. The server answers a request once its records are on the disk. It forgets a document after
//! [`Remember::keep`]: by then the index should have it.

mod log;
mod table;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{LookupError, Result};
use log::Log;
use table::Table;

/// Where and how long to remember.
#[derive(Debug, Clone)]
pub struct Remember {
    /// Directory of the log; one server at a time may use it.
    pub directory: PathBuf,
    /// How long to remember a document.
    pub keep: Duration,
    /// The most documents to remember; more are refused.
    pub max: usize,
}

/// A document that was sent to `/v1/seen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) fingerprint: u64,
    pub(crate) id: String,
}

/// The distance to the query, and a remembered document.
type Near = (u32, Remembered);

pub(crate) struct Seen {
    remember: Remember,
    state: Mutex<State>,
}

struct State {
    table: Table,
    log: Log,
    /// The time of the last entry.
    last: u64,
}

impl Seen {
    /// Reads the remembered documents back from the log.
    pub(crate) fn open(remember: &Remember) -> Result<Self> {
        let oldest = now().saturating_sub(remember.keep.as_secs());
        let mut table = Table::new(remember.keep.as_secs());
        let mut last = 0;
        let log = Log::open(&remember.directory, oldest, |time, entry| {
            last = time.max(last);
            table.add(last, entry, oldest);
        })?;
        Ok(Self {
            remember: remember.clone(),
            state: Mutex::new(State { table, log, last }),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.state().table.len(self.oldest())
    }

    /// The time before which documents are forgotten.
    fn oldest(&self) -> u64 {
        now().saturating_sub(self.remember.keep.as_secs())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For each entry in order: finds the remembered documents within `k` bits, except those with its own id; then
    /// remembers the entry. Returns for each entry the `limit` nearest, by distance, then id. The future ends when all
    /// entries are on the disk.
    ///
    /// # Errors
    /// [`LookupError::Full`] when not all entries have room; then none is remembered.
    pub(crate) fn look_up_and_add(
        &self,
        entries: Vec<Remembered>,
        k: u32,
        limit: usize,
    ) -> Result<(Vec<Vec<Near>>, impl Future<Output = Result<()>> + use<>)> {
        let oldest = self.oldest();
        let mut state = self.state();
        // Here, too, so that their memory is bounded however seldom the server looks for a new version of the index. To free
        // it takes a while.
        let old = state.table.forget_before(oldest);
        if !old.is_empty() {
            std::thread::spawn(move || drop(old));
        }
        let is_new = |entry: &&Remembered| !state.table.has(entry, oldest);
        let new: Vec<Remembered> = entries.iter().filter(is_new).cloned().collect();
        if state.table.len(oldest) + new.len() > self.remember.max {
            return Err(LookupError::Full {
                path: self.remember.directory.display().to_string(),
                max: self.remember.max,
            });
        }
        // The clock may be set back.
        let time = now().max(state.last);
        state.last = time;
        let mut all = Vec::with_capacity(entries.len());
        for entry in &entries {
            let near = state
                .table
                .within(entry.fingerprint, k, &entry.id, limit, oldest);
            all.push(near);
            state.table.add(time, entry.clone(), oldest);
        }
        // The lock is still held, so the log has the order of the table. An entry that the table has is in the log, or on its
        // way there; after a failure it may be in neither.
        let logged = if state.log.has_failed() {
            &entries
        } else {
            &new
        };
        let durable = state.log.append(time, logged);
        Ok((all, durable))
    }

    /// Frees the memory and the files of documents that are older than [`Remember::keep`]. Takes a while, but no lock.
    pub(crate) fn forget_old(&self) {
        let oldest = self.oldest();
        let old = self.state().table.forget_before(oldest);
        drop(old);
        log::remove_before(&self.remember.directory, oldest);
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remember(directory: &std::path::Path) -> Remember {
        Remember {
            directory: directory.to_owned(),
            keep: Duration::from_secs(3600),
            max: 3,
        }
    }

    fn entry(fingerprint: u64, id: &str) -> Remembered {
        Remembered {
            fingerprint,
            id: id.into(),
        }
    }

    #[tokio::test]
    async fn copies_find_each_other_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let seen = Seen::open(&remember(directory.path())).unwrap();
        let both = vec![entry(7, "a"), entry(6, "b")];
        let (near, durable) = seen.look_up_and_add(both, 3, 10).unwrap();
        durable.await.unwrap();
        assert_eq!(near, [vec![], vec![(1, entry(7, "a"))]]);
        // A client that asks again does not find itself, and takes no room.
        let (near, durable) = seen.look_up_and_add(vec![entry(7, "a")], 0, 10).unwrap();
        durable.await.unwrap();
        assert_eq!((near, seen.len()), (vec![vec![]], 2));
        let error = Seen::open(&remember(directory.path()))
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.kind(), storage::ErrorKind::TryAgain, "{error}");
        drop(seen);
        let seen = Seen::open(&remember(directory.path())).unwrap();
        let (near, durable) = seen.look_up_and_add(vec![entry(7, "c")], 3, 1).unwrap();
        durable.await.unwrap();
        assert_eq!(near, [vec![(0, entry(7, "a"))]]);
        let full = seen
            .look_up_and_add(vec![entry(9, "d"), entry(9, "e")], 3, 1)
            .map(|_| ());
        assert!(matches!(full, Err(LookupError::Full { max: 3, .. })));
    }
}
