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

#[derive(Debug, Clone, Serialize)]
pub struct PartDone {
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

/// The look-ups and uploads of a process that does parts. They are polled while a part is done: a request that is not polled for
/// long runs into its time limit.
pub(super) struct Beside<'a, F> {
    /// Look-ups of the answers of later parts, in their order.
    pub(super) looks: FuturesOrdered<BoxFuture<'a, LookedFor>>,
    /// Results of look-ups that ended, for the next parts in their order.
    pub(super) found: VecDeque<LookedFor>,
    /// Uploads of the answers of earlier parts, in their order.
    sends: FuturesOrdered<BoxFuture<'a, Result<PartDone>>>,
    /// The bytes of each answer in `sends`; 0 for a part that was done before.
    bytes: VecDeque<u64>,
    /// Is called for each part when its answer is sent.
    each: F,
    /// The first error of an upload or of a part.
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

    /// Waits for `work`, and polls look-ups and uploads meanwhile.
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

    /// Waits until a look-up or an upload ends; returns `false` if there is none.
    async fn step(&mut self) -> bool {
        tokio::select! {
            Some(answer) = self.looks.next() => self.found.push_back(answer),
            Some(sent) = self.sends.next() => self.sent(sent),
            else => return false,
        }
        true
    }

    /// Waits for the look-up of the next part's answer, and returns its result.
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

    /// Adds `upload`, of an answer of `bytes` bytes, to the uploads. Waits before that until fewer than [`SENT`] uploads run, and
    /// all have at most [`SENT_BYTES`] bytes with it, or none runs.
    pub(super) async fn send(&mut self, bytes: u64, upload: BoxFuture<'a, Result<PartDone>>) {
        let is_full = |sent: &VecDeque<u64>| {
            let sent = sent.iter().filter(|bytes| **bytes > 0);
            let all = sent.clone().sum::<u64>().saturating_add(bytes);
            sent.clone().count() >= SENT || all > SENT_BYTES && sent.count() > 0
        };
        while bytes > 0 && is_full(&self.bytes) {
            self.step().await;
        }
        self.sends.push_back(upload);
        self.bytes.push_back(bytes);
    }

    /// Takes the result of the first upload.
    fn sent(&mut self, sent: Result<PartDone>) {
        self.bytes.pop_front();
        match sent {
            Ok(done) => (self.each)(&done),
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Waits until all uploads have ended; returns the first error.
    pub(super) async fn finish(mut self) -> Result<()> {
        while let Some(sent) = self.sends.next().await {
            self.sent(sent);
        }
        self.error.map_or(Ok(()), Err)
    }
}
