//! The interface between a run and a cluster. The cluster does both maps: it fingerprints, and it
//! probes.
//!
//! The reduce, the output and the commit stay in this process, which drops repeated answers and
//! notices missing ones.

use std::fmt::Debug;

use archive::fingerprint_file::FingerprintFile;
use archive::{Archive, IdType};
use async_trait::async_trait;
use datafusion::execution::SendableRecordBatchStream;
use serde::{Deserialize, Serialize};
use simhash::Spec;

use crate::batch::BatchRef;
use crate::documents::{Columns, Documents};
use crate::error::Result;
use crate::map_counters::MapCounters;
use crate::probe::Probe;
use crate::recipe::SpecOptions;
use crate::work_items::Numbered;

/// A cluster that does the maps of one run.
#[async_trait]
pub trait Cluster: Debug + Send + Sync {
    /// Map 1: fingerprints each document once; `None` when the cluster cannot reach the documents.
    async fn fingerprint(
        &self,
        request: FingerprintRequest<'_>,
    ) -> Result<Option<FingerprintedRows>>;

    /// The number of executors and of their slots, and their memory for the batch and its tables.
    async fn capacity(&self) -> Result<Capacity>;

    /// Puts the batch's file where the executors find it; returns a reference to it.
    async fn share(&self, file: &FingerprintFile) -> Result<BatchRef>;

    /// Map 2: finds the pairs of the work items, each at least once. The stream ends without an
    /// error only if all items were answered; the cluster reports each answer to the run's
    /// progress.
    async fn probe(&self, items: Vec<Numbered>, probe: Probe) -> Result<SendableRecordBatchStream>;

    /// What the cluster did so far, in numbers.
    fn summary(&self) -> ClusterSummary;
}

/// Documents to fingerprint, and how.
#[derive(Debug, Clone, Copy)]
pub struct FingerprintRequest<'a> {
    /// The documents.
    pub documents: &'a Documents,
    /// The columns that the options ask for.
    pub columns: &'a Columns,
    /// The type that ids get.
    pub id_type: IdType,
    /// The spec of the fingerprints.
    pub spec: &'a Spec,
    /// The archive that keeps the spec's files (document frequencies, stop words); `None` when
    /// `spec_options` name them.
    pub archive: Option<&'a Archive>,
    /// The spec fields that the options set, and the files that they name.
    pub spec_options: &'a SpecOptions,
    /// Whether the rows get the decision columns.
    pub decision_columns: bool,
}

/// Rows that a cluster fingerprints.
pub struct FingerprintedRows {
    /// The rows, with the schema of [`rows_schema`](crate::fingerprint::rows_schema).
    pub rows: SendableRecordBatchStream,
    /// Counts of what was read; complete when the rows have ended.
    pub counters: MapCounters,
}

/// The executors of a cluster, and their memory for the batch and its tables, which each executor holds once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Number of executors.
    pub executors: usize,
    /// Slices that all executors together process at the same time.
    pub slots: usize,
    /// Bytes for the batch and its tables in the executor that has the least.
    pub memory: usize,
}

/// What a cluster did in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClusterSummary {
    /// The scheduler.
    pub scheduler: String,
    /// Jobs that it was given.
    pub jobs: u32,
    /// Slices that the work was cut into. A slice is the work items that an executor takes at once.
    pub slices: u64,
    /// Slices that were sent again because their answers were lost.
    pub slices_again: u64,
    /// Bytes of plans sent to the scheduler.
    pub plan_bytes: u64,
    /// Seconds until the first slice of the last job started.
    pub start_seconds: f64,
    /// What each executor did.
    pub executors: Vec<ExecutorSummary>,
}

/// What an executor did in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutorSummary {
    /// Its name.
    pub id: String,
    /// Slices that it answered.
    pub slices: u64,
    /// Fingerprints of the archive that it probed.
    pub probed: u64,
    /// Documents that it fingerprinted.
    pub documents: u64,
    /// Seconds that its slots were busy.
    pub seconds: f64,
    /// Seconds that it took to load the batch and to build its tables.
    pub prepare_seconds: f64,
    /// Encoded bytes of fingerprints that it read.
    pub bytes_read: u64,
    /// Requests that it sent to stores.
    pub requests: u64,
}
