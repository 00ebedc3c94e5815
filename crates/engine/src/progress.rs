//! How far a run is: counters that its stages advance and a display reads.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

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
    /// Writing the hits.
    Write,
    /// Committing the day.
    Commit,
}

const STAGES: [Stage; 6] = [
    Stage::Open,
    Stage::Fingerprint,
    Stage::Build,
    Stage::Probe,
    Stage::Write,
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
            Self::Write => "writing hits",
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
    /// Archive fingerprints to probe.
    pub probe_total: AtomicU64,
    /// Archive fingerprints probed.
    pub probed: AtomicU64,
    /// Encoded bytes of archive fingerprints read.
    pub bytes_read: AtomicU64,
    /// Hits found, before repeated ones are dropped.
    pub hits: AtomicU64,
}

impl Progress {
    /// Begins `stage`.
    pub fn enter(&self, stage: Stage) {
        tracing::debug!(stage = stage.label(), "stage");
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// The stage that runs.
    #[must_use]
    pub fn stage(&self) -> Stage {
        STAGES[usize::from(self.stage.load(Ordering::Relaxed))]
    }
}
