//! Handles SIGHUP, SIGINT and SIGTERM: the process drops its work and removes its temporary files.

use std::time::Duration;

use engine::progress::{Progress, Stage};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Failure;

/// Time that a commit gets to finish after a signal, so that both the archive's day and the output
/// are in place.
const GRACE: Duration = Duration::from_millis(1000);

/// The signals that ask a process to stop.
struct Signals {
    /// `None` if the process ignores SIGHUP, as under `nohup`.
    hangup: Option<Signal>,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|source| Failure::Io {
                path: "listening for signals".into(),
                source,
            })
        };
        let hangup = match is_hangup_ignored() {
            true => None,
            false => Some(listen(SignalKind::hangup())?),
        };
        Ok(Self {
            hangup,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for one of the signals; returns its name and number.
    async fn receive(&mut self) -> (&'static str, u8) {
        let Self {
            hangup,
            interrupt,
            terminate,
        } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => {
                    hangup.recv().await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hung_up => ("SIGHUP", 1),
            _ = interrupt.recv() => ("SIGINT", 2),
            _ = terminate.recv() => ("SIGTERM", 15),
        }
    }
}

/// Whether the process inherited an ignored SIGHUP, as under `nohup`; listening for it would undo
/// that.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// Waits for a signal that asks the process to stop; with `with_stdin`, also for the end of
/// standard input.
pub async fn wait_for_stop(with_stdin: bool) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let (ended, end) = oneshot::channel();
    if with_stdin {
        // This thread may block until the process ends.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = ended.send(());
        });
    }
    tokio::select! {
        _ = signals.receive() => {}
        Ok(()) = end => {}
    }
    Ok(())
}

/// Runs `work` until it ends or a signal arrives. After a signal, a commit gets `GRACE` to finish.
pub async fn until_signal<T>(
    progress: &Progress,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut signals = Signals::listen()?;
    let mut work = std::pin::pin!(work);
    let (name, number) = tokio::select! {
        done = &mut work => return done,
        received = signals.receive() => received,
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
