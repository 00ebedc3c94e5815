//! The receipt that ends the answer to each slice: which work items it answers, how many rows it has, and what it cost.
//!
//! In Ballista 55 a task can run twice, and a result that is cut off ends without an error. Receipts let the client
//! count each work item exactly once, and only from a whole answer.

use std::sync::atomic::Ordering;

use engine::cluster::ExecutorSummary;
use engine::crawl_counts::CrawlRecordCounts;
use engine::map_counters::MapCounters;
use engine::progress::Progress;
use engine::text_counts::TextCounts;
use serde::{Deserialize, Serialize};

/// The last row of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// Numbers of the work items that the answer covers, ascending.
    pub(crate) items: Vec<u32>,
    /// Number of rows before the receipt.
    pub(crate) rows: u64,
    /// Pairs found, before repeated ones are dropped.
    pub(crate) pairs: u64,
    /// Pairs left out because their document has enough nearer ones.
    pub(crate) left_out: u64,
    /// Pairs dropped because their sketches say that the texts are not similar enough.
    pub(crate) dissimilar: u64,
    /// Pairs without a similarity, because the archive has no sketch of a document.
    pub(crate) without_sketch: u64,
    /// Counts of the texts that were fingerprinted.
    pub(crate) texts: TextCounts,
    /// The records of WARC files that were read; `None` without such files.
    pub(crate) crawl_records: Option<CrawlRecordCounts>,
    /// Seconds in the stages of the probe: read, decode, partition, filter, verify, ids.
    pub(crate) stages: [f64; 6],
    /// The executor, and what it did for this slice.
    pub(crate) executor: ExecutorSummary,
}

impl Receipt {
    /// Creates the receipt of a task from its progress; the caller sets `rows`.
    pub(crate) fn from_progress(progress: &Progress, executor: ExecutorSummary) -> Self {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let stages = progress.stages.of_probe();
        Self {
            items: progress.take_answered(),
            rows: 0,
            pairs: load(&progress.pairs),
            left_out: load(&progress.left_out),
            dissimilar: load(&progress.dissimilar),
            without_sketch: load(&progress.without_sketch),
            texts: progress.texts.counts(),
            crawl_records: progress.crawl.counts(),
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

    /// Adds the counts of texts and records to those of the map.
    pub(crate) fn count(&self, counters: &MapCounters) {
        counters.texts.add(&self.texts);
        if let Some(records) = &self.crawl_records {
            counters.crawl.add(records);
        }
    }

    /// Adds the other counts to the progress of the run.
    pub(crate) fn add_to(&self, progress: &Progress) {
        let counters = [
            (&progress.probed, self.executor.probed),
            (&progress.documents, self.executor.documents),
            (&progress.bytes_read, self.executor.bytes_read),
            (&progress.pairs, self.pairs),
            (&progress.left_out, self.left_out),
            (&progress.dissimilar, self.dissimilar),
            (&progress.without_sketch, self.without_sketch),
        ];
        for (counter, number) in counters {
            counter.fetch_add(number, Ordering::Relaxed);
        }
        let stages = progress.stages.of_probe();
        for (spent, seconds) in stages.into_iter().zip(self.stages) {
            // A foreign executor can claim any number.
            spent.add(std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default());
        }
        progress.note_answered(self.items.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault 47 (docs/faults.md), a process that is not ours: the claims of an executor do not overflow.
    #[test]
    fn a_receipt_of_any_numbers_is_added() {
        let progress = Progress::default();
        for seconds in [f64::MAX, f64::INFINITY, f64::NAN, -1.0] {
            let receipt = Receipt {
                left_out: u64::MAX,
                stages: [seconds; 6],
                executor: ExecutorSummary {
                    probed: u64::MAX,
                    ..ExecutorSummary::default()
                },
                ..Receipt::default()
            };
            receipt.add_to(&progress);
        }
    }
}
