//! `dedup-job plan`: what a run would read, build and cost.

use std::fmt::Write as _;

use ::archive::{Base, Scope};
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
    if common.json {
        print_json(&as_json(&found, k, queries, &plans))
    } else {
        print(&as_text(&found, k, queries, &plans))
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
