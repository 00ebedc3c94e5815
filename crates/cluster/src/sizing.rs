//! What a run would take on a cluster of a given size: a calculation from the cost model of the join, and what was measured
//! of the rest.
//!
//! | quantity | is |
//! |---|---|
//! | slices | a third of what is left for each slot, so ever smaller ones, none below 4 MiB or above 256 MiB of encoded fingerprints |
//! | memory of an executor | the new day (40 bytes a document), the tables of a part, and 64 MiB for each slot |
//! | start | loading the day and building its tables, by each executor for itself |
//! | probe | the work of all, over all slots, at [`EFFICIENCY`] of what one process does with as many threads |
//! | requests | one for each row group and pass, up to two more for the ids of hits, three for each file, one for the day |
//! | bytes from the store | the encoded fingerprints, once for each pass, and the day, once for each executor |
//!
//! For eight billion fingerprints against a day of ten million at k = 3, on 50 executors with 4 slots each (the
//! archive as this program writes it: 4.3 bytes a fingerprint, row groups of 2²⁰, files of 2²⁴):
//!
//! | | |
//! |---|---:|
//! | slices | 1,259, of 57 MB and less |
//! | memory of an executor | 2.1 GB |
//! | start | 2.0 s |
//! | probe | 0.9 s |
//! | requests | 24,365 at most, 487 for each executor |
//! | bytes from the store | 46.4 GB: 34.4 of fingerprints, and 12 of the day |
//! | to each executor | 928 MB; 715 MB/s while it probes |
//!
//! So the start and the store decide, not cores: on 4 executors it is 13 s, and for a day of a million 0.7 s on 50.

use hamming::Plan;

use crate::slices::Weights;

/// What a slot does of what a thread of one process does, waiting for its next slice included. Measured by `bench cluster`:
/// 0.81 to 0.93 from local files, 0.92 from a store; each executor has tables of its own in the caches.
pub const EFFICIENCY: f64 = 0.85;
/// Nanoseconds to load a document of the new day in an executor: fetched, decoded, checked and grouped. Measured by the same:
/// a day of a million takes 140 ms, with its tables.
pub const LOAD_NS: f64 = 130.0;
/// Bytes of a document of the new day in memory, without tables.
pub const DOCUMENT_BYTES: u64 = 40;
/// Bytes of a document of the new day in the store.
const STORED_BYTES: u64 = 24;
/// Bytes that a slot needs besides: what is fetched ahead, and hits on their way.
const SLOT_BYTES: u64 = 64 << 20;

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Documents of the new day.
    pub documents: u64,
    /// Fingerprints of the history.
    pub fingerprints: u64,
    /// Their encoded bytes.
    pub fingerprint_bytes: u64,
    /// Row groups that they are in.
    pub row_groups: u64,
    /// Files that these are in.
    pub files: u64,
}

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizing {
    /// Slices that the history is cut into.
    pub slices: u64,
    /// Encoded bytes of the largest of them, which are handed out first.
    pub slice_bytes: u64,
    /// Bytes that an executor needs.
    pub memory: u64,
    /// Seconds until an executor has its tables.
    pub start_seconds: f64,
    /// Seconds that the history is probed for.
    pub probe_seconds: f64,
    /// Requests to the store at most, of all executors.
    pub requests: u64,
    /// Bytes from the store, of all executors.
    pub bytes: u64,
}

impl Sizing {
    /// What `workload` takes by `plan` on so many executors with so many slots each.
    #[must_use]
    pub fn of(workload: &Workload, plan: &Plan, executors: u64, slots: u64) -> Self {
        let (executors, slots) = (executors.max(1), slots.max(1));
        let passes = plan.parts as u64;
        let read = workload.fingerprint_bytes * passes;
        let all_slots = executors * slots;
        let slices = || Weights::new(read, all_slots as usize);
        let day = workload.documents * STORED_BYTES;
        let load = 1e-9 * LOAD_NS * workload.documents as f64;
        // A part's tables are built by all threads of an executor.
        let build = plan.build_seconds / slots as f64;
        let work = plan.seconds(workload.fingerprints) - plan.build_seconds;
        Self {
            slices: slices().count() as u64,
            slice_bytes: slices().next().unwrap_or(0),
            memory: workload.documents * DOCUMENT_BYTES + plan.bytes as u64 + slots * SLOT_BYTES,
            start_seconds: load + build,
            probe_seconds: work / all_slots as f64 / EFFICIENCY,
            requests: 3 * workload.row_groups * passes + 3 * workload.files + executors,
            bytes: read + executors * day,
        }
    }

    /// Seconds from the new day's fingerprints to the last hit.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.start_seconds + self.probe_seconds
    }
}

#[cfg(test)]
mod tests {
    use hamming::Limits;

    use super::*;

    /// Eight billion against ten million, or one; 50 executors, or four.
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
        Sizing::of(&workload, &plan, executors, 4)
    }

    #[test]
    fn the_example_of_the_docs() {
        let of = sized(10_000_000, 50);
        assert_eq!((of.slices, of.slice_bytes), (1259, 57_333_333));
        assert_eq!((of.memory / 100_000_000, of.requests), (20, 24_365));
        assert_eq!(of.bytes, 46_400_000_000);
        let tenths = |seconds: f64| (10.0 * seconds).round() / 10.0;
        assert_eq!(
            (tenths(of.start_seconds), tenths(of.probe_seconds)),
            (2.0, 0.9)
        );
        assert_eq!(sized(10_000_000, 4).seconds().round(), 13.0);
        assert_eq!(tenths(sized(1_000_000, 50).seconds()), 0.7);
    }
}
