//! Handles SIGHUP, SIGINT and SIGTERM: the process drops its work and removes its temporary files.
//!
//! Once a process handles a signal, the signal no longer ends it. So a thread hears the signals from the first
//! [`StopSignals::listen`] to the end of the process, and ends the process if nobody else acts on them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::progress::{Progress, Stage};
use storage::StorageError;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{Failure, StoppedWhile};

/// Time that a commit gets to finish after a signal, so that both the archive's day and the output
/// are in place.
const GRACE: Duration = Duration::from_millis(1000);

/// A signal that arrived: its name and number.
type Received = (&'static str, u8);

/// The last signal that arrived. Set by the thread that hears them.
static RECEIVED: OnceLock<watch::Receiver<Option<Received>>> = OnceLock::new();
/// The number of [`StopSignals`].
static OWNERS: AtomicUsize = AtomicUsize::new(0);

/// The signals that ask this process to stop, from [`Self::listen`] on. While one lives, its owner acts on them. When its work is
/// done and it is dropped, a signal ends the process.
pub struct StopSignals {
    /// Has a change when a signal arrived that [`Self::receive`] has not returned.
    received: watch::Receiver<Option<Received>>,
    /// Whether the work was done before any signal: one that came since ends the process.
    is_done: bool,
}

impl StopSignals {
    /// Starts to listen.
    pub fn listen() -> Result<Self, Failure> {
        let own = || OWNERS.fetch_add(1, Ordering::SeqCst);
        let received = match RECEIVED.get() {
            Some(received) => {
                let mut received = received.clone();
                // An earlier owner has acted on earlier signals. One that comes before the next line ends the process.
                received.mark_unchanged();
                own();
                received
            }
            None => {
                own();
                hear().inspect_err(|_| {
                    OWNERS.fetch_sub(1, Ordering::SeqCst);
                })?
            }
        };
        Ok(Self {
            received,
            is_done: false,
        })
    }

    /// Waits for a signal; returns at once if one arrived since [`Self::listen`].
    pub async fn wait(&mut self) {
        self.receive().await;
    }

    /// As [`Self::wait`]; returns the signal.
    async fn receive(&mut self) -> Received {
        let changed = self.received.changed().await;
        let received = *self.received.borrow_and_update();
        // Its owner acts on this one, and nothing is left to end by another.
        self.is_done = false;
        match received.filter(|_| changed.is_ok()) {
            Some(received) => received,
            // The thread that hears them ends with the process.
            None => std::future::pending().await,
        }
    }

    /// Runs `work` until it ends or a signal arrives. After a signal, a commit gets `GRACE` to finish.
    pub async fn interrupt<T>(
        &mut self,
        progress: &Progress,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = std::pin::pin!(work);
        let received = tokio::select! {
            done = &mut work => {
                self.is_done = done.is_ok();
                return done;
            }
            received = self.receive() => received,
        };
        let stage = progress.stage();
        if stage == Stage::Commit
            && let Ok(done) = tokio::time::timeout(GRACE, &mut work).await
        {
            return done;
        }
        Err(failure(
            received,
            match stage {
                _ if progress.is_repairing() => StoppedWhile::Repairing,
                Stage::Commit => StoppedWhile::Committing,
                Stage::Index => StoppedWhile::Indexing,
                _ => StoppedWhile::Working,
            },
        ))
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        // After a signal or a failure, nothing is left but to report it: this counts as an owner to the end.
        if !self.is_done {
            return;
        }
        let is_last = OWNERS.fetch_sub(1, Ordering::SeqCst) == 1;
        let is_new = self.received.has_changed().unwrap_or(false);
        let received = *self.received.borrow();
        if let Some(received) = received.filter(|_| is_last && is_new) {
            end(received);
        }
    }
}

fn failure((name, number): Received, when: StoppedWhile) -> Failure {
    Failure::Signal { name, number, when }
}

/// Ends the process after a signal that nobody else acts on.
fn end(received: Received) -> ! {
    let failure = failure(received, StoppedWhile::Printing);
    let code = failure.code();
    let (reported, is_reported) = std::sync::mpsc::channel();
    // Standard error may be a pipe that nobody empties.
    std::thread::spawn(move || {
        failure.report();
        let _ = reported.send(());
    });
    let _ = is_reported.recv_timeout(GRACE / 4);
    std::process::exit(code.into())
}

/// Starts the thread that hears the signals, for the rest of the process.
fn hear() -> Result<watch::Receiver<Option<Received>>, Failure> {
    let failed = StorageError::io("listening for signals");
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(&failed)?;
    let mut signals = {
        let _guard = runtime.enter();
        Signals::listen()?
    };
    let (sender, received) = watch::channel(None);
    let listen = move || {
        runtime.block_on(async {
            loop {
                let signal = signals.receive().await;
                sender.send_replace(Some(signal));
                if OWNERS.load(Ordering::SeqCst) == 0 {
                    end(signal);
                }
            }
        })
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(listen)
        .map_err(&failed)?;
    Ok(RECEIVED.get_or_init(|| received).clone())
}

/// The signals that ask a process to stop, of a runtime.
struct Signals {
    /// `None` if the process ignores SIGHUP, as under `nohup`.
    hangup: Option<Signal>,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(StorageError::io("listening for signals"));
        let hangup = if is_hangup_ignored() {
            None
        } else {
            Some(listen(SignalKind::hangup())?)
        };
        Ok(Self {
            hangup,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for one of the signals.
    async fn receive(&mut self) -> Received {
        let hangup = &mut self.hangup;
        let hung_up = async { hangup.as_mut()?.recv().await };
        tokio::select! {
            Some(()) = hung_up => ("SIGHUP", 1),
            _ = self.interrupt.recv() => ("SIGINT", 2),
            _ = self.terminate.recv() => ("SIGTERM", 15),
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
