//! Admission control: refuses a request at once if there is no room, so that memory stays bounded and clients can back
//! off.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::ServeSettings;

/// Bytes of the bodies of the requests in progress.
const BODIES: usize = 64 << 20;
/// Bytes of the responses that clients have not taken yet.
const RESPONSES: usize = 256 << 20;

/// Permits that requests must get: for a body, a place, a thread.
pub(super) struct Admission {
    /// Bytes for bodies, in units of 1 KiB.
    bodies: Semaphore,
    /// Bytes for responses, in the same units.
    responses: Arc<Semaphore>,
    /// Places for requests that have a thread or wait for one.
    places: Semaphore,
    threads: Semaphore,
    timeout: Duration,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many requests are in progress.
    Full,
    /// The request waited too long for a thread.
    Late,
}

/// A place and a thread, until they are dropped.
pub(super) type Turn<'a> = (SemaphorePermit<'a>, SemaphorePermit<'a>);

impl Admission {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            bodies: Semaphore::new(BODIES.max(settings.max_body).div_ceil(1024)),
            responses: Arc::new(Semaphore::new(RESPONSES / 1024)),
            places: Semaphore::new(settings.threads + settings.queue),
            threads: Semaphore::new(settings.threads),
            timeout: settings.timeout,
        }
    }

    /// Reserves room for `kib` KiB of a body.
    pub(super) fn body(&self, kib: usize) -> Result<SemaphorePermit<'_>, Refused> {
        let units = u32::try_from(kib).unwrap_or(u32::MAX);
        self.bodies
            .try_acquire_many(units)
            .map_err(|_| Refused::Full)
    }

    /// Reserves room for a response of `bytes` bytes, until the client has taken it.
    pub(super) fn response(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refused> {
        let units = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
        let responses = Arc::clone(&self.responses);
        responses
            .try_acquire_many_owned(units)
            .map_err(|_| Refused::Full)
    }

    /// Waits for a thread. Refuses if the queue is full, or after the timeout.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Refused> {
        let place = self.places.try_acquire().map_err(|_| Refused::Full)?;
        let thread = tokio::time::timeout(self.timeout, self.threads.acquire()).await;
        match thread {
            Ok(Ok(thread)) => Ok((place, thread)),
            _ => Err(Refused::Late),
        }
    }
}
