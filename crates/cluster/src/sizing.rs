//! Estimates what a run takes on a cluster of a given size, from the cost model of the join and from measurements.
//!
//! | quantity | formula |
//! |---|---|
//! | slices | each a third of a slot's share of the remaining encoded fingerprints, between 4 MiB and 256 MiB |
//! | memory of an executor | the batch (40 bytes per document), the tables of a part, and 64 MiB per slot |
//! | start | every executor loads the batch and builds its tables |
//! | probe | the probe's seconds on one core, divided by the number of slots and by [`EFFICIENCY`] |
//! | requests | one per row group and pass, up to two more for the ids of its pairs, three per file, one per executor for the batch |
//! | bytes from the store | the encoded fingerprints once per pass, and the batch once per executor |
//!
//! Example: 8 billion fingerprints against a batch of 10 million at k = 3, on 50 executors with 4
//! slots each. The archive is as this program writes it: 4.3 bytes per fingerprint, row groups of
//! 2²⁰ fingerprints, files of 2²⁴.
//!
//! | | |
//! |---|---:|
//! | slices | 1,259, of at most 57 MB |
//! | memory of an executor | 2.1 GB |
//! | start | 2.0 s |
//! | probe | 0.9 s |
//! | requests | at most 24,365: 487 per executor |
//! | bytes from the store | 46.4 GB: 34.4 GB of fingerprints and 12 GB of the batch |
//! | bytes to each executor | 928 MB; 715 MB/s while it probes |
//!
//! So the start and the store limit this run, not the cores. 4 executors take 13 s. With a batch of
//! 1 million, 50 executors take 0.7 s.

use hamming::Plan;

use crate::client::slices::Weights;

/// Speed of a slot relative to a thread of one process, including the wait for its next slice.
///
/// Measured by `bench cluster`: 0.81 to 0.93 from local files, 0.92 from a store. Executors on one machine, each with
/// its own tables, compete for its caches.
pub const EFFICIENCY: f64 = 0.85;
/// Nanoseconds that an executor takes to load a document of the batch: fetch, decode, check and group.
///
/// Measured by `bench cluster`: an executor loads a batch of 1 million documents and builds its
/// tables in 140 ms.
pub const LOAD_NS: f64 = 130.0;
/// Bytes of a document of the batch in memory, without tables.
pub const DOCUMENT_BYTES: u64 = 40;
/// Bytes of a document of the batch in the store.
const STORED_BYTES: u64 = 24;
/// Memory of a slot besides batch and tables, in bytes: read-ahead, and pairs not yet sent.
const SLOT_BYTES: u64 = 64 << 20;

/// The work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Documents of the batch.
    pub documents: u64,
    /// Fingerprints of the archive.
    pub fingerprints: u64,
    /// Encoded bytes of these fingerprints.
    pub fingerprint_bytes: u64,
    /// Row groups of the archive.
    pub row_groups: u64,
    /// Data files of the archive.
    pub files: u64,
}

/// An estimate of what a run takes; the module's documentation has the formulas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizing {
    /// Slices that the archive is cut into.
    pub slices: u64,
    /// Encoded bytes of the first slice, which is the largest.
    pub slice_bytes: u64,
    /// Memory that an executor needs, in bytes.
    pub memory: u64,
    /// Seconds until an executor has built its tables.
    pub start_seconds: f64,
    /// Seconds to probe the archive.
    pub probe_seconds: f64,
    /// Upper bound on requests to the store, over all executors.
    pub requests: u64,
    /// Bytes read from the store, over all executors.
    pub bytes: u64,
}

impl Sizing {
    /// Estimates what `workload` takes with `plan` on `executors` executors with `slots` slots each.
    #[must_use]
    pub fn estimate(workload: &Workload, plan: &Plan, executors: u64, slots: u64) -> Self {
        let (executors, slots) = (executors.max(1), slots.max(1));
        let passes = plan.parts as u64;
        let read = workload.fingerprint_bytes * passes;
        let all_slots = executors * slots;
        let slices = || Weights::new(read, all_slots as usize);
        let batch = workload.documents * STORED_BYTES;
        let load = 1e-9 * LOAD_NS * workload.documents as f64;
        // All threads of an executor build its tables.
        let build = plan.build_seconds / slots as f64;
        let work = plan.seconds(workload.fingerprints) - plan.build_seconds;
        Self {
            slices: slices().count() as u64,
            slice_bytes: slices().next().unwrap_or(0),
            memory: workload.documents * DOCUMENT_BYTES + plan.bytes as u64 + slots * SLOT_BYTES,
            start_seconds: load + build,
            probe_seconds: work / all_slots as f64 / EFFICIENCY,
            requests: 3 * workload.row_groups * passes + 3 * workload.files + executors,
            bytes: read + executors * batch,
        }
    }

    /// Returns the seconds of map 2: the start and the probe.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.start_seconds + self.probe_seconds
    }
}

#[cfg(test)]
mod tests {
    use hamming::Limits;

    use super::*;

    /// Estimates 8 billion fingerprints against `documents`, on executors with 4 slots.
    fn sized(documents: u64, executors: u64) -> Sizing {
        let fingerprints = 8_000_000_000;
        let row_groups = fingerprints / (1 << 20);
        let workload = Workload {
            documents,
            fingerprints,
            fingerprint_bytes: fingerprints * 43 / 10,
            row_groups,
            files: row_groups / 16,
        };
        let limits = Limits {
            memory: 4 << 30,
            queries: fingerprints / executors,
        };
        let plan = Plan::choose(documents as usize, 3, &limits).unwrap();
        Sizing::estimate(&workload, &plan, executors, 4)
    }

    #[test]
    fn the_example_of_the_docs() {
        let sizing = sized(10_000_000, 50);
        assert_eq!((sizing.slices, sizing.slice_bytes), (1259, 57_333_333));
        assert_eq!((sizing.memory / 100_000_000, sizing.requests), (20, 24_365));
        assert_eq!(sizing.bytes, 46_400_000_000);
        let tenths = |seconds: f64| (10.0 * seconds).round() / 10.0;
        assert_eq!(
            (tenths(sizing.start_seconds), tenths(sizing.probe_seconds)),
            (2.0, 0.9)
        );
        assert_eq!(sized(10_000_000, 4).seconds().round(), 13.0);
        assert_eq!(tenths(sized(1_000_000, 50).seconds()), 0.7);
    }
}
