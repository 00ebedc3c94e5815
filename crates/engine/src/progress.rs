//! How far a run is: counters that its stages advance and a display reads.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Opening inputs and the archive.
    Open,
    /// Documents to fingerprints.
    Fingerprint,
    /// Building the tables of the new batch.
    Build,
    /// Streaming the archive past the tables.
    Probe,
    /// Comparing the texts of hits.
    Verify,
    /// Committing the day.
    Commit,
}

const STAGES: [Stage; 6] = [
    Stage::Open,
    Stage::Fingerprint,
    Stage::Build,
    Stage::Probe,
    Stage::Verify,
    Stage::Commit,
];

impl Stage {
    /// What is being done.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Open => "opening",
            Self::Fingerprint => "fingerprinting",
            Self::Build => "building tables",
            Self::Probe => "probing",
            Self::Verify => "verifying",
            Self::Commit => "committing",
        }
    }
}

/// Counters of a run, shared by all its threads.
#[derive(Debug, Default)]
pub struct Progress {
    stage: AtomicU8,
    /// Documents to fingerprint; 0 where the input does not tell.
    pub documents_total: AtomicU64,
    /// Documents read and on their way to their fingerprint.
    pub documents: AtomicU64,
    /// Texts of them that are not UTF-8, where an executor counts them.
    pub invalid_utf8: AtomicU64,
    /// Archive fingerprints to probe.
    pub probe_total: AtomicU64,
    /// Archive fingerprints probed.
    pub probed: AtomicU64,
    /// Encoded bytes of archive fingerprints read.
    pub bytes_read: AtomicU64,
    /// Hits found, before repeated ones are dropped.
    pub hits: AtomicU64,
    /// Hits left out because a document has nearer ones.
    pub left_out: AtomicU64,
    /// Time spent in the stages of the probe, by all threads.
    pub stages: Stages,
    /// Work that was cut into slices for a cluster, and how much of it is done.
    pub slices_total: AtomicU64,
    /// See [`Self::slices_total`].
    pub slices: AtomicU64,
    /// Executors of the cluster that are alive.
    pub executors: AtomicU64,
    /// Numbers of the work items whose hits are all on their way; an item that was done twice is there twice.
    answered: Mutex<Vec<u32>>,
    probe_done: Mutex<Option<Instant>>,
}

/// Time spent in the stages of the probe.
#[derive(Debug, Default)]
pub struct Stages {
    /// Loading the new batch and building its tables, or waiting for who does.
    pub prepare: Spent,
    /// Fetching encoded fingerprints.
    pub read: Spent,
    /// Decoding them.
    pub decode: Spent,
    /// Bringing them into the order of a table.
    pub partition: Spent,
    /// Picking those that are worth a lookup.
    pub filter: Spent,
    /// Looking them up and comparing.
    pub verify: Spent,
    /// Reading the ids of hits.
    pub ids: Spent,
}

impl Stages {
    /// Reading, decoding, partitioning, filtering, verifying, and reading ids.
    #[must_use]
    pub fn of_probe(&self) -> [&Spent; 6] {
        [
            &self.read,
            &self.decode,
            &self.partition,
            &self.filter,
            &self.verify,
            &self.ids,
        ]
    }
}

/// A sum of durations.
#[derive(Debug, Default)]
pub struct Spent(AtomicU64);

impl Spent {
    /// Adds one.
    pub fn add(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The sum in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

impl Progress {
    /// Begins `stage`.
    pub fn enter(&self, stage: Stage) {
        tracing::debug!(stage = stage.label(), "stage");
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Notes that a partition of the probe is done; the last one stands.
    pub fn probe_done(&self) {
        *self
            .probe_done
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Notes that all hits of these work items are on their way.
    pub fn answer(&self, items: impl IntoIterator<Item = u32>) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.extend(items);
    }

    /// The work items that were answered since this was last asked, ascending, each once.
    pub fn take_answered(&self) -> Vec<u32> {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items = std::mem::take(&mut *answered);
        items.sort_unstable();
        items.dedup();
        items
    }

    /// Begins the count of the probe anew; times add up.
    pub fn compare_again(&self) {
        for counter in [&self.probed, &self.hits, &self.left_out, &self.slices] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Seconds since the last partition of the probe was done.
    #[must_use]
    pub fn seconds_since_probe(&self) -> f64 {
        let done = *self
            .probe_done
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        done.map_or(0.0, |done| done.elapsed().as_secs_f64())
    }

    /// The stage that runs.
    #[must_use]
    pub fn stage(&self) -> Stage {
        STAGES[usize::from(self.stage.load(Ordering::Relaxed))]
    }
}
