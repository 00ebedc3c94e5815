//! The receipt that ends each slice: what was answered, and what it took.

use std::sync::atomic::Ordering;

use engine::cluster::ExecutorSummary;
use engine::progress::Progress;
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// Numbers of the items, ascending.
    pub(crate) items: Vec<u32>,
    /// Rows that stand before this.
    pub(crate) rows: u64,
    /// Hits that were left out because their document has nearer ones.
    pub(crate) left_out: u64,
    /// Texts that are not UTF-8.
    pub(crate) invalid_utf8: u64,
    /// Seconds of the probe's stages: read, decode, partition, filter, verify, ids.
    pub(crate) stages: [f64; 6],
    /// Who did it; what it took.
    pub(crate) executor: ExecutorSummary,
}

impl Receipt {
    /// What `progress` of a task comes to.
    pub(crate) fn of(progress: &Progress, executor: ExecutorSummary) -> Self {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let stages = progress.stages.of_probe();
        Self {
            items: progress.take_answered(),
            rows: 0,
            left_out: load(&progress.left_out),
            invalid_utf8: load(&progress.invalid_utf8),
            stages: stages.map(|spent| spent.seconds()),
            executor: ExecutorSummary {
                slices: 1,
                probed: load(&progress.probed),
                documents: load(&progress.documents),
                bytes_read: load(&progress.bytes_read),
                prepare_seconds: progress.stages.prepare.seconds(),
                ..executor
            },
        }
    }

    /// Adds it to the progress of the run.
    pub(crate) fn add_to(&self, progress: &Progress) {
        let counters = [
            (&progress.probed, self.executor.probed),
            (&progress.documents, self.executor.documents),
            (&progress.bytes_read, self.executor.bytes_read),
            (&progress.left_out, self.left_out),
        ];
        for (counter, number) in counters {
            counter.fetch_add(number, Ordering::Relaxed);
        }
        let stages = progress.stages.of_probe();
        for (spent, seconds) in stages.into_iter().zip(self.stages) {
            spent.add(std::time::Duration::from_secs_f64(seconds.max(0.0)));
        }
        progress.answer(self.items.iter().copied());
    }
}
