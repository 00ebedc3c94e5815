//! Headers that our processes add to Ballista's gRPC calls, each a JSON value.
//!
//! Ballista's messages have no fields for these values. Ballista compares its own major version and a protocol number,
//! but not the versions of the program whose operators are in the plan. Its reply about a job has neither the number of
//! executors nor the job's progress.

use serde::{Deserialize, Serialize};
use tonic::Status;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// Version of this program; a plan is understood only by the version that wrote it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Header of a submission: the client's version.
pub(crate) const CLIENT: &str = "dedup-job-client";
/// Header of an executor's calls: an [`Announcement`].
pub(crate) const EXECUTOR: &str = "dedup-job-executor";
/// Header of a client's call for a job's status: the scheduler may hold the reply for half a second while the job goes
/// on.
pub(crate) const WAIT: &str = "dedup-job-wait";
/// Header of the scheduler's replies: a [`ClusterState`].
pub(crate) const STATE: &str = "dedup-job-state";

/// How an executor describes itself in each of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    pub(crate) version: String,
    /// Number of slices that it computes at the same time.
    pub(crate) slots: usize,
    /// Bytes that it has for batches and tables.
    pub(crate) memory: u64,
}

/// The state of the cluster, and of the job that the call asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterState {
    pub(crate) version: String,
    /// Number of executors that are alive.
    pub(crate) executors: usize,
    /// Sum of their slots.
    pub(crate) slots: usize,
    /// Memory of the executor that has the least, in bytes.
    pub(crate) memory: u64,
    /// Number of slices of the job that are done.
    pub(crate) done: usize,
    /// When the job's first slice began, in milliseconds since 1970.
    pub(crate) began: Option<u64>,
    /// The slice for which the scheduler ended the job, because every executor that got it was lost.
    pub(crate) doomed: Option<u32>,
}

/// Adds `value` to the headers as JSON.
pub(crate) fn insert(headers: &mut MetadataMap, name: &'static str, value: &impl Serialize) {
    let text = serde_json::to_string(value).unwrap_or_default();
    if let Ok(text) = AsciiMetadataValue::try_from(text) {
        headers.insert(name, text);
    }
}

/// Returns the value of a header, if it is there and valid.
pub(crate) fn get<T: for<'a> Deserialize<'a>>(headers: &MetadataMap, name: &str) -> Option<T> {
    serde_json::from_str(headers.get(name)?.to_str().ok()?).ok()
}

/// Checks in the scheduler that a caller has the scheduler's version.
pub(crate) fn check_version(version: Option<&str>) -> Result<(), Status> {
    match version {
        Some(VERSION) => Ok(()),
        version => Err(Status::failed_precondition(format!(
            "the scheduler is dedup-job {VERSION}, this is {}: all processes of a cluster, and its clients, must have the same version",
            version.unwrap_or("another program")
        ))),
    }
}
