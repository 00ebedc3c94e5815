//! The predicted cost of a run on a cluster, with the cheapest design.

use std::fmt::Write as _;

use cluster::sizing::{Sizing, Workload};
use hamming::Plan;
use serde_json::{Value, json};

use super::{Inputs, fingerprint_bytes};
use crate::printing::{count, size};

/// Slots of an executor without --slots.
const DEFAULT_SLOTS: u32 = 4;

/// Adds the prediction, if there is one, to the plan's report.
pub(super) fn with_cluster(mut report: Value, on_cluster: Option<&OnCluster>) -> Value {
    if let Some(cluster) = on_cluster {
        report["cluster"] = cluster.as_json();
    }
    report
}

/// A cluster of a given size, and the predicted cost of a run there.
pub(super) struct OnCluster {
    executors: u32,
    slots: u32,
    design: String,
    sizing: Sizing,
}

impl OnCluster {
    /// Predicts the cost of `plan` on `executors` with `slots` each.
    pub(super) fn predict(
        inputs: &Inputs,
        plan: &Plan,
        executors: u32,
        slots: Option<u32>,
    ) -> Self {
        let slots = slots.unwrap_or(DEFAULT_SLOTS);
        let files = &inputs.base.files;
        let row_groups: usize = files
            .iter()
            .map(|file| file.reader.row_groups().len())
            .sum();
        let workload = Workload {
            documents: inputs.documents,
            fingerprints: inputs.base.rows(),
            fingerprint_bytes: fingerprint_bytes(&inputs.base),
            row_groups: row_groups as u64,
            files: files.len() as u64,
        };
        Self {
            executors,
            slots,
            design: plan.design.name(),
            sizing: Sizing::estimate(&workload, plan, executors.into(), slots.into()),
        }
    }

    fn as_json(&self) -> Value {
        let sizing = &self.sizing;
        json!({
            "executors": self.executors,
            "slots": self.slots,
            "design": self.design,
            "slices": sizing.slices,
            "slice_bytes": sizing.slice_bytes,
            "executor_memory_bytes": sizing.memory,
            "start_seconds": sizing.start_seconds,
            "probe_seconds": sizing.probe_seconds,
            "requests": sizing.requests,
            "bytes": sizing.bytes,
        })
    }

    pub(super) fn as_text(&self) -> String {
        let sizing = &self.sizing;
        let mut text = String::new();
        let _ = writeln!(
            text,
            "on a cluster of {} executors with {} slots each, with {} (predicted, without the time to fingerprint texts):",
            self.executors, self.slots, self.design
        );
        let _ = writeln!(
            text,
            "  {:.2} s: {:.2} until each executor has its tables, {:.2} to probe; {} of memory per executor",
            sizing.seconds(),
            sizing.start_seconds,
            sizing.probe_seconds,
            size(sizing.memory)
        );
        let _ = writeln!(
            text,
            "  {} slices of at most {}; at most {} requests; {} from the store, {} per executor",
            count(sizing.slices),
            size(sizing.slice_bytes),
            count(sizing.requests),
            size(sizing.bytes),
            size(sizing.bytes / u64::from(self.executors))
        );
        text
    }
}
