//! What a process does beside a part of a job: it looks for the answers of later parts, and sends those of earlier ones.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Instant;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use serde::Serialize;

use super::answer::{Answer, NoAnswer};
use crate::error::{EngineError, Result};

/// Answers that are sent while a part is done.
const SENT: usize = 8;
/// Their bytes; a larger answer is sent when all before it are.
const SENT_BYTES: u64 = 32 << 20;

/// A part that is done.
#[derive(Debug, Clone, Serialize)]
pub struct PartDone {
    /// Its number.
    pub part: u32,
    /// Rows of its answer.
    pub rows: u64,
    /// Seconds that it took, whoever did it.
    pub seconds: f64,
    /// Whether it was done before.
    pub was_done: bool,
}

/// Whether a part has an answer, and when that was looked for.
pub(super) type LookedFor = (std::result::Result<Answer, NoAnswer>, Instant);

/// What a process does beside a part. All of it goes on all the time: a request that waits too long fails.
pub(super) struct Beside<'a, F> {
    /// The answers of later parts are looked for.
    pub(super) looks: FuturesOrdered<BoxFuture<'a, LookedFor>>,
    /// Those of the next ones were.
    pub(super) found: VecDeque<LookedFor>,
    /// The answers of earlier parts are sent.
    sends: FuturesOrdered<BoxFuture<'a, Result<PartDone>>>,
    /// Their bytes.
    bytes: VecDeque<u64>,
    /// Is told of each part that is done.
    each: F,
    /// The first error of those that were sent.
    pub(super) error: Option<EngineError>,
}

impl<'a, F: FnMut(&PartDone)> Beside<'a, F> {
    pub(super) fn new(each: F) -> Self {
        Self {
            looks: FuturesOrdered::new(),
            found: VecDeque::new(),
            sends: FuturesOrdered::new(),
            bytes: VecDeque::new(),
            each,
            error: None,
        }
    }

    /// Waits for `work`, while all else goes on.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(answer) = self.looks.next() => self.found.push_back(answer),
                Some(sent) = self.sends.next() => self.sent(sent),
            }
        }
    }

    /// Waits until something is found or sent; `false` if there is nothing to wait for.
    async fn step(&mut self) -> bool {
        tokio::select! {
            Some(answer) = self.looks.next() => self.found.push_back(answer),
            Some(sent) = self.sends.next() => self.sent(sent),
            else => return false,
        }
        true
    }

    /// Whether the next part has an answer.
    pub(super) async fn next_answer(&mut self) -> Result<LookedFor> {
        loop {
            if let Some(answer) = self.found.pop_front() {
                return Ok(answer);
            }
            if !self.step().await {
                return Err(EngineError::Internal("no answer is looked for".into()));
            }
        }
    }

    /// Begins to send an answer of so many bytes, as soon as there is room for it.
    pub(super) async fn send(&mut self, bytes: u64, answer: BoxFuture<'a, Result<PartDone>>) {
        // Answers of parts that were done before have no bytes.
        let is_full = |sent: &VecDeque<u64>| {
            let sent = sent.iter().filter(|bytes| **bytes > 0);
            let all = sent.clone().sum::<u64>().saturating_add(bytes);
            sent.clone().count() >= SENT || all > SENT_BYTES && sent.count() > 0
        };
        while bytes > 0 && is_full(&self.bytes) {
            self.step().await;
        }
        self.sends.push_back(answer);
        self.bytes.push_back(bytes);
    }

    /// An answer was sent.
    fn sent(&mut self, sent: Result<PartDone>) {
        self.bytes.pop_front();
        match sent {
            Ok(done) => (self.each)(&done),
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Sends what is left.
    pub(super) async fn finish(mut self) -> Result<()> {
        while let Some(sent) = self.sends.next().await {
            self.sent(sent);
        }
        self.error.map_or(Ok(()), Err)
    }
}
