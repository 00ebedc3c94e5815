//! SIGINT and SIGTERM: the work is dropped, and its temporary files with it.

use std::time::Duration;

use engine::progress::{Progress, Stage};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;

/// A commit that has begun is given so long to end: then the day is there and its hits have their name, or
/// neither.
const GRACE: Duration = Duration::from_millis(1000);

/// Runs `work` until it ends or a signal comes.
pub async fn until_signal<T>(
    progress: &Progress,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let listen = |kind| {
        signal(kind).map_err(|source| Failure::Io {
            path: "listening for signals".into(),
            source,
        })
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut work = std::pin::pin!(work);
    let (name, number) = tokio::select! {
        done = &mut work => return done,
        _ = interrupt.recv() => ("SIGINT", 2),
        _ = terminate.recv() => ("SIGTERM", 15),
    };
    let committing = progress.stage() == Stage::Commit;
    if committing && let Ok(done) = tokio::time::timeout(GRACE, &mut work).await {
        return done;
    }
    Err(Failure::Signal {
        name,
        number,
        committing,
    })
}
