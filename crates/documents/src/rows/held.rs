//! The bytes of small files in stores that stay in memory, so that a run that reads its documents several times fetches each once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use storage::Location;

use crate::error::Result;

/// The most bytes of a file that is held.
pub(crate) const SMALL: u64 = 1 << 20;
/// The part of the memory limit that held files may take.
const PART: usize = 8;

/// How many bytes of files may be held.
#[derive(Debug, Clone)]
pub(crate) struct HeldFiles {
    reservation: Arc<Mutex<MemoryReservation>>,
    most: usize,
    /// Files that are held already, by their paths.
    known: HashMap<String, Held>,
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(super) bytes: Bytes,
    /// Frees the memory with the last of the files.
    _reservation: Arc<Mutex<MemoryReservation>>,
}

impl HeldFiles {
    /// Of a run with this memory, with the files that are `known` already.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>, known: HashMap<String, Held>) -> Self {
        let reservation = MemoryConsumer::new("small files").register(pool);
        Self {
            reservation: Arc::new(Mutex::new(reservation)),
            most: streams::limit_bytes(pool) / PART,
            known,
        }
    }

    /// Holds an object of this size, if it is small and may be held.
    pub(super) async fn hold(&self, location: &Location, size: u64) -> Result<Option<Held>> {
        if let Some(known) = self.known.get(location.given()) {
            return Ok(Some(known.clone()));
        }
        if !self.reserve(size) {
            return Ok(None);
        }
        Ok(Some(Held {
            bytes: location.read().await?,
            _reservation: Arc::clone(&self.reservation),
        }))
    }

    /// Whether a file of this size may be held. Its bytes count from now on.
    fn reserve(&self, size: u64) -> bool {
        let reservation = self.reservation.lock();
        let reservation = reservation.unwrap_or_else(PoisonError::into_inner);
        let size = size as usize;
        size as u64 <= SMALL
            && reservation.size() + size <= self.most
            && reservation.try_grow(size).is_ok()
    }
}
