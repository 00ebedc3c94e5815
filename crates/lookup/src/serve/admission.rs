//! Room for requests: a request that does not fit is refused at once, so that memory stays bounded and clients know.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::ServeSettings;

/// Bytes of all bodies that are held at once.
const BODIES: usize = 64 << 20;

/// What is left for requests.
pub(super) struct Admission {
    /// In units of 1 KiB.
    bodies: Semaphore,
    /// Requests that look up or wait to.
    places: Semaphore,
    threads: Semaphore,
    timeout: Duration,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Too many requests are in progress.
    Full,
    /// It waited too long for a thread.
    Late,
}

/// The right to look up, until it is dropped.
pub(super) struct Turn<'a> {
    _place: SemaphorePermit<'a>,
    _thread: SemaphorePermit<'a>,
}

impl Admission {
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            bodies: Semaphore::new(BODIES.max(settings.max_body) / 1024 + 1),
            places: Semaphore::new(settings.threads + settings.queue),
            threads: Semaphore::new(settings.threads),
            timeout: settings.timeout,
        }
    }

    /// Room for a body of up to `bytes` bytes.
    pub(super) fn body(&self, bytes: usize) -> Result<SemaphorePermit<'_>, Refused> {
        let units = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
        self.bodies
            .try_acquire_many(units)
            .map_err(|_| Refused::Full)
    }

    /// Waits for a thread, if few wait already.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Refused> {
        let place = self.places.try_acquire().map_err(|_| Refused::Full)?;
        let thread = tokio::time::timeout(self.timeout, self.threads.acquire()).await;
        match thread {
            Ok(Ok(thread)) => Ok(Turn {
                _place: place,
                _thread: thread,
            }),
            _ => Err(Refused::Late),
        }
    }
}
