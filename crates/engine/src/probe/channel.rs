//! The channel of one item's matches, from the thread that probes to the task that reads ids.

use datafusion::common::internal_err;
use datafusion::error::Result;
use hamming::Match;
use tokio::sync::{mpsc, oneshot};

/// As soon as an item has this many matches, they are sent, before the item is done: equal
/// fingerprints, in the batch or in the archive, can make any number of them.
pub(super) const MATCHES: usize = 1 << 18;

/// The sending end of an item's matches.
#[derive(Debug)]
pub(super) struct Sink {
    matches: mpsc::Sender<Vec<Match>>,
    done: oneshot::Sender<()>,
}

/// Tells whether an item was probed to its end.
#[derive(Debug)]
pub(super) struct Done(oneshot::Receiver<()>);

/// Two channels: one for the matches of an item, which holds one `Vec` of them, and one for the end of the item.
pub(super) fn item_channel() -> (Sink, mpsc::Receiver<Vec<Match>>, Done) {
    let (matches, receiver) = mpsc::channel(1);
    let (done, is_done) = oneshot::channel();
    (Sink { matches, done }, receiver, Done(is_done))
}

impl Sink {
    /// Tells the receiver that the item was probed to its end.
    pub(super) fn done(self) {
        // The receiver may be gone.
        let _ = self.done.send(());
    }

    /// Sends `matches` if there are at least `least`. False when the receiver is gone.
    pub(super) fn send(&self, matches: &mut Vec<Match>, least: usize) -> bool {
        if matches.len() < least {
            return !self.matches.is_closed();
        }
        let sent = self.matches.blocking_send(std::mem::take(matches));
        sent.is_ok()
    }
}

impl Done {
    /// Waits for the end of the item. Call it when the channel of matches has ended.
    ///
    /// # Errors
    /// When the item was given up before its end: it must not count as answered.
    pub(super) async fn check(self) -> Result<()> {
        match self.0.await {
            Ok(()) => Ok(()),
            Err(_) => internal_err!("a work item was not probed to its end"),
        }
    }
}

/// Probes `fingerprints` fingerprints in steps, and sends their matches; false when the receiver is gone.
///
/// `probe(from, found)` probes some fingerprints from index `from` on, adds their matches to `found`, and returns how many
/// it probed. `row` maps the index of a query to its row.
pub(super) fn probe_and_send(
    sink: &Sink,
    found: &mut Vec<Match>,
    fingerprints: usize,
    mut probe: impl FnMut(usize, &mut Vec<Match>) -> usize,
    row: impl Fn(u32) -> u32,
) -> bool {
    let mut done = 0;
    while done < fingerprints {
        let before = found.len();
        done += probe(done, found);
        for found in &mut found[before..] {
            found.query = row(found.query);
        }
        if !sink.send(found, MATCHES) {
            return false;
        }
    }
    true
}

/// Sends the last matches, and tells the receiver that the item was probed to its end.
pub(super) fn finish(sink: Sink, mut found: Vec<Match>) {
    if sink.send(&mut found, 1) {
        sink.done();
    }
}
