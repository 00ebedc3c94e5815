//! `dedup-job plan`: what a run would read, build and cost.

use std::fmt::Write as _;

use ::archive::{Base, Scope};
use cluster::sizing::{Sizing, Workload};
use engine::Wanted;
use engine::run::{Opened, open_day};
use hamming::{Design, Limits, Plan};
use serde_json::json;
use simhash::Spec;

use super::required;
use crate::args::{CommonArgs, PlanArgs};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json, size};

/// What was found out about a run.
struct Found {
    documents: u64,
    files: usize,
    texts: bool,
    spec: Spec,
    base: Base,
}

pub fn run(common: &CommonArgs, args: &PlanArgs) -> Result<(), Failure> {
    if args.new.is_empty() {
        return Err(Failure::Usage(
            "--new is needed: the documents of the new day; see --help".into(),
        ));
    }
    let base = required(args.base.clone(), "--base")?;
    let k = args.max_distance.unwrap_or(3);
    let only = args
        .design
        .as_ref()
        .map(|name| Design::named(name, k))
        .transpose();
    let only = only.map_err(|error| Failure::Usage(error.to_string()))?;
    let columns = args.columns.columns();
    let found = process::run(common, async |process: &Process| {
        let opened = Opened::base(process.stores(), &base, &columns).await?;
        let (documents, recipe, id_type) = open_day(
            &process.context,
            &args.new,
            &columns,
            Some(&opened),
            &Wanted::default(),
        )
        .await?;
        let rows = match documents.known_rows() {
            Some(rows) => rows,
            None => {
                let table = documents.table(&process.context, id_type, 1)?;
                let counted = table
                    .count()
                    .await
                    .map_err(engine::EngineError::query(documents.given()))?;
                counted as u64
            }
        };
        let base = match opened {
            Opened::Plain(base) => base,
            Opened::Archive(archive) => Base::of_archive(&archive, Scope::All).await?,
        };
        Ok(Found {
            documents: rows,
            files: documents.file_count(),
            texts: !documents.has_fingerprints(),
            spec: recipe.spec().clone(),
            base,
        })
    })?;
    let queries = found.base.rows() + found.documents;
    let documents = found.documents as usize;
    let limits = Limits {
        // The day's fingerprints and ids take about so much before there are tables.
        memory: process::memory(common).saturating_sub(40 * documents),
        queries,
    };
    let plans = match only {
        Some(design) => {
            vec![Plan::within(design, documents, &limits).map_err(engine::EngineError::from)?]
        }
        None => Plan::alternatives(documents, k, &limits)
            .map_err(|error| Failure::Usage(error.to_string()))?,
    };
    if plans.is_empty() {
        Plan::choose(documents, k, &limits).map_err(engine::EngineError::from)?;
    }
    let cluster = match (args.cluster, plans.first()) {
        (Some(executors), Some(plan)) => {
            let slots = args.slots.unwrap_or(SLOTS);
            Some(OnCluster::of(&found, plan, executors, slots))
        }
        _ => None,
    };
    if common.json {
        let mut report = as_json(&found, k, queries, &plans);
        if let Some(cluster) = &cluster {
            report["cluster"] = cluster.as_json();
        }
        print_json(&report)
    } else {
        let cluster = cluster.map_or(String::new(), |cluster| cluster.as_text());
        print(&(as_text(&found, k, queries, &plans) + &cluster))
    }
}

/// Slots of an executor, unless told otherwise.
const SLOTS: u32 = 4;

/// What the run would take on a cluster, with the cheapest design.
struct OnCluster {
    executors: u32,
    slots: u32,
    design: String,
    sizing: Sizing,
}

impl OnCluster {
    fn of(found: &Found, plan: &Plan, executors: u32, slots: u32) -> Self {
        let files = &found.base.files;
        let row_groups: usize = files
            .iter()
            .map(|file| file.reader.row_groups().len())
            .sum();
        let workload = Workload {
            documents: found.documents,
            fingerprints: found.base.rows(),
            fingerprint_bytes: fingerprint_bytes(&found.base),
            row_groups: row_groups as u64,
            files: files.len() as u64,
        };
        Self {
            executors,
            slots,
            design: plan.design.name(),
            sizing: Sizing::of(&workload, plan, executors.into(), slots.into()),
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let of = &self.sizing;
        json!({
            "executors": self.executors,
            "slots": self.slots,
            "design": self.design,
            "slices": of.slices,
            "slice_bytes": of.slice_bytes,
            "executor_memory_bytes": of.memory,
            "start_seconds": of.start_seconds,
            "probe_seconds": of.probe_seconds,
            "requests": of.requests,
            "bytes": of.bytes,
        })
    }

    fn as_text(&self) -> String {
        let of = &self.sizing;
        let mut text = String::new();
        let _ = writeln!(
            text,
            "on a cluster of {} executors with {} slots each, with {} (predicted; documents that are texts come on top):",
            self.executors, self.slots, self.design
        );
        let _ = writeln!(
            text,
            "  {:.2} s: {:.2} until each has its tables, {:.2} to probe; {} of memory for each",
            of.seconds(),
            of.start_seconds,
            of.probe_seconds,
            size(of.memory)
        );
        let _ = writeln!(
            text,
            "  {} slices, of {} and less; {} requests at most, and {} from the store, {} to each",
            count(of.slices),
            size(of.slice_bytes),
            count(of.requests),
            size(of.bytes),
            size(of.bytes / u64::from(self.executors))
        );
        text
    }
}

/// Encoded bytes of fingerprints in the base.
fn fingerprint_bytes(base: &Base) -> u64 {
    let of = |file: &::archive::BaseFile| -> u64 {
        (0..file.reader.row_groups().len())
            .map(|group| file.reader.fingerprint_bytes(group))
            .sum()
    };
    base.files.iter().map(of).sum()
}

fn as_json(found: &Found, k: u32, queries: u64, plans: &[Plan]) -> serde_json::Value {
    let designs: Vec<_> = plans
        .iter()
        .map(|plan| {
            json!({
                "design": plan.design.name(),
                "tables": plan.design.blocks().len(),
                "bytes": plan.bytes,
                "passes": plan.parts,
                "lookups_per_fingerprint": plan.lookups,
                "candidates_per_fingerprint": plan.candidates,
                "ns_per_fingerprint": plan.probe_ns,
                "core_seconds": plan.seconds(queries),
            })
        })
        .collect();
    json!({
        "max_distance": k,
        "new": { "files": found.files, "documents": found.documents, "content": if found.texts { "texts" } else { "fingerprints" } },
        "base": {
            "version": found.base.version,
            "files": found.base.files.len(),
            "row_groups": found.base.files.iter().map(|file| file.reader.row_groups().len()).sum::<usize>(),
            "fingerprints": found.base.rows(),
            "days": found.base.days().len(),
            "fingerprint_bytes": fingerprint_bytes(&found.base),
        },
        "spec": found.spec,
        "designs": designs,
    })
}

fn as_text(found: &Found, k: u32, queries: u64, plans: &[Plan]) -> String {
    let mut text = String::new();
    let base = &found.base;
    let what = if found.texts {
        "documents, to be fingerprinted"
    } else {
        "ready fingerprints"
    };
    let _ = writeln!(
        text,
        "new day: {} {what}, in {} files",
        count(found.documents),
        found.files
    );
    let _ = writeln!(
        text,
        "history: {} fingerprints of {} days in {} files of {}; {} to read",
        count(base.rows()),
        base.days().len(),
        count(base.files.len() as u64),
        base.name,
        size(fingerprint_bytes(base))
    );
    let _ = writeln!(text, "spec: {}", found.spec.to_json());
    let _ = writeln!(
        text,
        "designs for pairs within {k} bits, the cheapest first (predicted, one core):"
    );
    let _ = writeln!(
        text,
        "  {:<12} {:>6} {:>12} {:>6} {:>9} {:>12} {:>9} {:>11}",
        "design", "tables", "memory", "passes", "lookups", "candidates", "ns/fp", "seconds"
    );
    for plan in plans {
        let _ = writeln!(
            text,
            "  {:<12} {:>6} {:>12} {:>6} {:>9.2} {:>12.2} {:>9.1} {:>11.2}",
            plan.design.name(),
            plan.design.blocks().len(),
            size(plan.bytes as u64),
            plan.parts,
            plan.lookups,
            plan.candidates,
            plan.probe_ns,
            plan.seconds(queries)
        );
    }
    text
}
