//! The progress of a run: counters that the stages advance and a display reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use streams::locked;

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Opening inputs and the archive.
    #[default]
    Open,
    Fingerprint,
    /// Building the tables of the batch.
    Build,
    /// Comparing the fingerprints of the archive, and of the batch if asked for, with the tables.
    Probe,
    /// Comparing the texts of pairs.
    Verify,
    /// Committing the batch and publishing the outputs.
    Commit,
    Index,
    /// Dropping repeated pairs and sorting, after the last fingerprint was probed. No one enters it: the probe does.
    Sort,
    Decide,
    Write,
    Tune,
    /// Reading the outputs and texts of a report.
    Read,
    Templates,
}

impl Stage {
    /// The stage's name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Open => "opening",
            Self::Fingerprint => "fingerprinting",
            Self::Build => "building tables",
            Self::Probe => "probing",
            Self::Verify => "verifying",
            Self::Commit => "committing",
            Self::Index => "indexing",
            Self::Sort => "sorting pairs",
            Self::Decide => "deciding",
            Self::Write => "writing",
            Self::Tune => "comparing",
            Self::Read => "reading",
            Self::Templates => "finding templates",
        }
    }

    /// What its steps are, in the plural.
    fn unit(self) -> &'static str {
        match self {
            Self::Verify => "pairs",
            Self::Write => "rows",
            Self::Tune => "settings",
            _ => "documents",
        }
    }
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Units that are done.
    pub done: u64,
    /// Units to do; `None` when the total is not known.
    pub total: Option<u64>,
    /// What is counted, in the plural.
    pub unit: &'static str,
}

/// Counters of a run, shared by all its threads.
#[derive(Debug, Default)]
pub struct Progress {
    stage: Mutex<Stage>,
    /// Whether documents were removed from an archive, and its repair is not done.
    is_repairing: AtomicBool,
    /// Documents to fingerprint; 0 when the number is not known.
    pub documents_total: AtomicU64,
    /// Documents read.
    pub documents: Arc<AtomicU64>,
    /// Archive fingerprints to probe.
    pub probe_total: AtomicU64,
    /// Archive fingerprints probed.
    pub probed: AtomicU64,
    /// Distinct fingerprints of the batch to compare with the batch.
    pub within_total: AtomicU64,
    /// Distinct fingerprints of the batch compared with the batch.
    pub probed_within: AtomicU64,
    /// What the current stage has to do; 0 when it is not known.
    pub steps_total: AtomicU64,
    /// What of it is done.
    pub steps: AtomicU64,
    /// Rows written into segments of an index, those of merges among them.
    pub indexed: AtomicU64,
    /// Encoded bytes of archive fingerprints read.
    pub bytes_read: AtomicU64,
    /// Pairs found, before repeated ones are dropped.
    pub pairs: AtomicU64,
    /// Pairs left out because a document has nearer ones.
    pub left_out: AtomicU64,
    /// Pairs dropped because their sketches say that the texts are not similar enough.
    pub dissimilar: AtomicU64,
    /// Pairs without a similarity, because the archive has no sketch of a document.
    pub without_sketch: AtomicU64,
    /// Time spent in the stages inside the probe, summed over all threads.
    pub stages: Stages,
    /// Numbers of the work items whose pairs are all sent. An item that was done twice is listed twice.
    answered: Mutex<Vec<u32>>,
    probe_done: Mutex<Option<Instant>>,
}

/// What the maps of a run count while they work, apart from texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    counters: [u64; 8],
    /// Seconds in the stages of the probe, as [`Stages::of_probe`].
    stages: [f64; 6],
}

impl Counts {
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            counters: std::array::from_fn(|at| {
                self.counters[at].saturating_sub(before.counters[at])
            }),
            stages: std::array::from_fn(|at| self.stages[at] - before.stages[at]),
        }
    }
}

/// Time spent in the stages inside the probe, and in their preparation.
#[derive(Debug, Default)]
pub struct Stages {
    /// Loading the batch and building its tables, or waiting for the task that does.
    pub prepare: Spent,
    /// Fetching encoded fingerprints.
    pub read: Spent,
    /// Decoding them.
    pub decode: Spent,
    /// Partitioning them by table.
    pub partition: Spent,
    /// Filtering out fingerprints that have no candidate.
    pub filter: Spent,
    /// Finding candidates and comparing them.
    pub compare: Spent,
    /// Reading the ids of pairs.
    pub ids: Spent,
}

impl Stages {
    /// The stages after the preparation, in order.
    pub fn of_probe(&self) -> [&Spent; 6] {
        [
            &self.read,
            &self.decode,
            &self.partition,
            &self.filter,
            &self.compare,
            &self.ids,
        ]
    }
}

/// A sum of durations.
#[derive(Debug, Default)]
pub struct Spent(AtomicU64);

impl Spent {
    pub fn add(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

fn sum(counters: &[&AtomicU64]) -> u64 {
    let each = counters.iter();
    each.map(|counter| counter.load(Ordering::Relaxed)).sum()
}

impl Progress {
    pub fn enter(&self, stage: Stage) {
        self.begin(stage, 0);
    }

    /// Notes that documents are removed from an archive, and that those that were dropped for them are looked for now.
    pub fn begin_repair(&self) {
        self.is_repairing.store(true, Ordering::Relaxed);
    }

    pub fn is_repairing(&self) -> bool {
        self.is_repairing.load(Ordering::Relaxed)
    }

    /// Enters `stage`, which has `total` steps to do, or 0 if their number is not known.
    pub fn begin(&self, stage: Stage, total: u64) {
        tracing::debug!(stage = stage.label(), "stage");
        self.steps.store(0, Ordering::Relaxed);
        self.steps_total.store(total, Ordering::Relaxed);
        *locked(&self.stage) = stage;
    }

    fn counters(&self) -> [&AtomicU64; 8] {
        [
            &self.documents,
            &self.probed,
            &self.probed_within,
            &self.bytes_read,
            &self.pairs,
            &self.left_out,
            &self.dissimilar,
            &self.without_sketch,
        ]
    }

    /// What the maps counted so far.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            counters: self
                .counters()
                .map(|counter| counter.load(Ordering::Relaxed)),
            stages: self.stages.of_probe().map(Spent::seconds),
        }
    }

    /// Adds what a part counted.
    pub(crate) fn add_counts(&self, counts: &Counts) {
        for (counter, number) in self.counters().into_iter().zip(counts.counters) {
            counter.fetch_add(number, Ordering::Relaxed);
        }
        for (spent, seconds) in self.stages.of_probe().into_iter().zip(counts.stages) {
            spent.add(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        }
    }

    /// Notes the time when a partition of the probe is done; the last partition counts.
    pub fn note_probe_done(&self) {
        *locked(&self.probe_done) = Some(Instant::now());
    }

    /// Notes that all pairs of these work items are sent.
    pub fn note_answered(&self, items: impl IntoIterator<Item = u32>) {
        locked(&self.answered).extend(items);
    }

    /// Takes the numbers of the work items that were answered since the last call, ascending, each once.
    pub fn take_answered(&self) -> Vec<u32> {
        let mut items = std::mem::take(&mut *locked(&self.answered));
        items.sort_unstable();
        items.dedup();
        items
    }

    /// Takes the answers, and refuses another number of work items than `expected`, so that no missing answer passes unnoticed.
    pub(crate) fn check_answered(&self, expected: usize) -> Result<()> {
        match self.take_answered().len() {
            answered if answered == expected => Ok(()),
            answered => Err(EngineError::Internal(format!(
                "{answered} of {expected} work items were answered"
            ))),
        }
    }

    /// Resets the number of documents read, to read them again.
    pub fn reset_documents(&self) {
        self.documents.store(0, Ordering::Relaxed);
    }

    /// Resets the counters of the probe, for another comparison. Times keep adding up.
    pub fn reset_probe(&self) {
        for counter in [
            &self.probed,
            &self.probed_within,
            &self.pairs,
            &self.left_out,
            &self.dissimilar,
            &self.without_sketch,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// How far the current stage is. The probe counts fingerprints of the archive, and of the batch if it is compared
    /// with itself.
    pub fn position(&self) -> Position {
        let (done, total, unit) = match self.stage() {
            Stage::Probe => (
                sum(&[&self.probed, &self.probed_within]),
                sum(&[&self.probe_total, &self.within_total]),
                "fingerprints",
            ),
            Stage::Fingerprint => (
                sum(&[&self.documents]),
                sum(&[&self.documents_total]),
                "documents",
            ),
            Stage::Index => (sum(&[&self.indexed]), 0, "documents"),
            stage => (sum(&[&self.steps]), sum(&[&self.steps_total]), stage.unit()),
        };
        Position {
            done,
            total: Some(total).filter(|total| *total > 0),
            unit,
        }
    }

    /// Seconds since the last partition of the probe was done.
    pub fn seconds_since_probe(&self) -> f64 {
        locked(&self.probe_done).map_or(0.0, |done| done.elapsed().as_secs_f64())
    }

    pub fn stage(&self) -> Stage {
        let stage = *locked(&self.stage);
        let to_probe = sum(&[&self.probe_total, &self.within_total]);
        let is_probed = to_probe > 0 && sum(&[&self.probed, &self.probed_within]) >= to_probe;
        match stage {
            Stage::Probe if is_probed => Stage::Sort,
            _ => stage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_compared_with_itself_counts() {
        let progress = Progress::default();
        progress.enter(Stage::Probe);
        progress.within_total.store(9, Ordering::Relaxed);
        progress.probed_within.store(4, Ordering::Relaxed);
        let expected = |done, total| Position {
            done,
            total: Some(total),
            unit: "fingerprints",
        };
        assert_eq!(progress.position(), expected(4, 9));
        progress.probe_total.store(100, Ordering::Relaxed);
        progress.probed.store(50, Ordering::Relaxed);
        assert_eq!(progress.position(), expected(54, 109));
        progress.reset_probe();
        assert_eq!(progress.position(), expected(0, 109));
    }
}
