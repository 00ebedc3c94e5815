//! Where the two maps of a run happen when it is not this process: what a run asks of a cluster.
//!
//! Only the maps run there. The reduce, the output and the commit are this process's own: there an answer that comes
//! twice does no harm, and one that is missing is noticed.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use archive::fingerprints::FingerprintFile;
use archive::{Archive, IdType};
use async_trait::async_trait;
use datafusion::execution::SendableRecordBatchStream;
use serde::{Deserialize, Serialize};
use simhash::Spec;

use crate::documents::{Columns, Documents};
use crate::error::Result;
use crate::probe::{BatchName, Probe};
use crate::recipe::Wanted;
use crate::work::Numbered;

/// A cluster that does the maps of one run.
#[async_trait]
pub trait Cluster: Debug + Send + Sync {
    /// Map 1: each document once; `None` where the documents are out of the cluster's reach.
    async fn fingerprint(&self, task: Fingerprinting<'_>) -> Result<Option<Fingerprinted>>;

    /// What its executors have for tables.
    async fn capacity(&self) -> Result<Capacity>;

    /// Puts the new batch where the executors find it.
    async fn share(&self, file: &FingerprintFile) -> Result<BatchName>;

    /// Map 2: the hits of the work items, each at least once. Ends without an error only if all items were answered, and says
    /// so to the progress of the run.
    async fn probe(&self, items: Vec<Numbered>, probe: Probe) -> Result<SendableRecordBatchStream>;

    /// What it did so far.
    fn summary(&self) -> ClusterSummary;
}

/// Documents to fingerprint, and how.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprinting<'a> {
    /// The documents.
    pub documents: &'a Documents,
    /// Their columns, as they were asked for.
    pub columns: &'a Columns,
    /// The type that ids get.
    pub id_type: IdType,
    /// How fingerprints are made.
    pub spec: &'a Spec,
    /// The archive that keeps the tables that the spec names; where there is none, they are `wanted`.
    pub archive: Option<&'a Archive>,
    /// See [`Self::archive`].
    pub wanted: &'a Wanted,
}

/// Documents on their way back from a cluster.
pub struct Fingerprinted {
    /// `fp` and `id`.
    pub rows: SendableRecordBatchStream,
    /// Texts that are not UTF-8; complete when the rows have ended.
    pub invalid_utf8: Arc<AtomicU64>,
}

/// What a cluster has for the tables of the new batch, which each executor holds once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Executors.
    pub executors: usize,
    /// Bytes for the batch and its tables, in the one that has the fewest.
    pub memory: usize,
}

/// What a cluster did in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClusterSummary {
    /// The scheduler.
    pub scheduler: String,
    /// Jobs that it was given.
    pub jobs: u32,
    /// Slices that the work was cut into.
    pub slices: u64,
    /// Slices that were handed out again, because their answers were lost.
    pub slices_again: u64,
    /// Bytes of plans that went to the scheduler.
    pub plan_bytes: u64,
    /// Seconds until the last job's first slice began.
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
    /// Fingerprints of the history that it probed.
    pub probed: u64,
    /// Documents that it fingerprinted.
    pub documents: u64,
    /// Seconds that its slots were busy.
    pub seconds: f64,
    /// Seconds that it took to load the new batch and to build its tables.
    pub prepare_seconds: f64,
    /// Encoded bytes of fingerprints that it read.
    pub bytes_read: u64,
    /// Requests that it sent to stores.
    pub requests: u64,
}
