//! SIGINT and SIGTERM: the work is dropped, and its temporary files with it.

use std::time::Duration;

use engine::progress::{Progress, Stage};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Failure;

/// A commit that has begun is given so long to end: then the day is there and its hits have their name, or
/// neither.
const GRACE: Duration = Duration::from_millis(1000);

/// Waits for a signal that asks a process to stop, or where that is asked for, for the end of standard input.
pub async fn stop(with_stdin: bool) -> Result<(), Failure> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let (ended, end) = oneshot::channel();
    if with_stdin {
        // A thread that ends with the process, or never.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = ended.send(());
        });
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        Ok(()) = end => {}
    }
    Ok(())
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|source| Failure::Io {
        path: "listening for signals".into(),
        source,
    })
}

/// Runs `work` until it ends or a signal comes.
pub async fn until_signal<T>(
    progress: &Progress,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
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
