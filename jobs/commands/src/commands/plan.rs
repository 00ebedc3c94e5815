//! `dedup-job plan`: what a run would read, build and cost.

use ::archive::{Scope, Snapshot, SnapshotFile};
use documents::{Columns, Rows};
use engine::job::{Forecast, Sizes};
use engine::run::{OpenedArchive, are_documents, open_batch};
use engine::{CompareOptions, EngineError, Profile, SpecOptions};
use hamming::{Design, Limits, Plan};
use serde_json::json;
use simhash::Spec;
use simhash::unrelated_rates::unrelated_documents;

use super::design_named;
use crate::args::{CommonArgs, PlanArgs, either};
use crate::exit::{Failure, usage};
use crate::printing::{count, print, print_json, size};
use crate::process::{self, Process};

/// Memory, in bytes, that a document of the batch needs outside the tables: for its fingerprint and
/// id.
const DOCUMENT_BYTES: usize = 40;

/// `plan` warns from this number of unrelated documents per new document on.
const MANY_UNRELATED: f64 = 10.0;

/// The inputs of the planned run.
struct Inputs {
    documents: u64,
    files: usize,
    /// Bytes of the texts that a run must fingerprint; `None` for ready fingerprints.
    text_bytes: Option<u64>,
    spec: Spec,
    base: Snapshot,
    /// Fingerprints of the archive.
    archive: u64,
    max_distance: u32,
}

/// Bytes of a text where there are no documents yet: about those of a page's visible text.
const TEXT_BYTES: u64 = 5_000;

pub fn run(common: &CommonArgs, args: &PlanArgs) -> Result<(), Failure> {
    let new = either(&args.documents, &args.new);
    if new.is_empty() && args.batch_rows.is_none() {
        return usage(
            "the documents of the batch are missing: name them after `plan`, or by --new; see --help",
        );
    }
    let inputs = match args.batch_rows {
        Some(documents) => Inputs {
            documents,
            files: 0,
            text_bytes: Some(documents * TEXT_BYTES),
            spec: Spec::default(),
            base: Snapshot::none(),
            archive: args.archive_rows.unwrap_or(0),
            max_distance: args.max_distance.unwrap_or(Profile::Sharp.max_distance()),
        },
        None => process::run(common, async |process: &Process| {
            open(process, args, new).await
        })?,
    };
    let k = inputs.max_distance;
    let only = design_named(args.design.as_deref(), k)?;
    let queries = inputs.archive + inputs.documents;
    let (memory, threads) = (process::memory_limit(common), process::threads(common));
    let plans = plans(&inputs, k, only, memory, queries, threads)?;
    let forecast = match (args.machines, plans.first()) {
        (Some(machines), Some(plan)) => {
            let sizes = Sizes {
                documents: inputs.documents,
                text_bytes: inputs.text_bytes,
                sketches: !inputs.spec.sketch.is_none(),
                archive: inputs.archive,
            };
            Some(Forecast::new(sizes, plan, machines, threads as u64))
        }
        _ => None,
    };
    if common.json {
        let mut report = as_json(&inputs, k, queries, &plans);
        if let Some(forecast) = &forecast {
            report["machines"] = json!(forecast);
        }
        print_json(&report)
    } else {
        let mut text = as_text(&inputs, k, queries, &plans);
        if let Some(forecast) = &forecast {
            write_forecast(&mut text, forecast);
        }
        print(&text)
    }
}

fn write_forecast(text: &mut String, forecast: &Forecast) {
    *text += &format!(
        "in parts on {} machines of {} cores, by split, map and reduce: {:.1} s\n",
        count(forecast.machines),
        count(forecast.cores),
        forecast.seconds
    );
    for round in &forecast.rounds {
        *text += &format!(
            "  {:<12} {} parts, {:.1} s of one core, {:.1} s with all machines\n",
            round.map,
            count(round.parts as u64),
            round.core_seconds,
            round.seconds
        );
    }
}

/// Opens the batch and the archive, and counts the documents.
async fn open(process: &Process, args: &PlanArgs, new: &[String]) -> Result<Inputs, Failure> {
    let columns = Columns {
        row_ids: args.base.is_none(),
        ..args.columns.columns()
    };
    let base = args.base.as_deref();
    if let Some(base) = base
        && are_documents(&process.context, base, &columns).await?
    {
        return usage(format!(
            "--base {base}: these are documents, and a plan is of an archive, or of fingerprints: make them by `dedup-job fingerprint`"
        ));
    }
    let opened = OpenedArchive::open(process.stores(), base, &columns, None).await?;
    let (documents, recipe, id_type) = open_batch(
        &process.context,
        new,
        &columns,
        &opened,
        &SpecOptions::default(),
        Profile::Sharp,
    )
    .await?;
    let rows = match documents.known_rows() {
        Some(rows) => rows,
        None => {
            let table = documents.table(&process.context, id_type, 1, Rows::All, None)?;
            let counted = table
                .count()
                .await
                .map_err(EngineError::query(documents.given()))?;
            counted as u64
        }
    };
    let options = CompareOptions {
        max_distance: args.max_distance,
        ..CompareOptions::default()
    };
    let compare = opened.compare(&options, &recipe)?;
    let base = match opened {
        OpenedArchive::Plain(base) => base,
        OpenedArchive::Archive(archive) => {
            if let Some(features) = archive.unwritable_features()? {
                tracing::warn!(
                    "{}: nothing can be committed: another program set features that this version does not write: {features}",
                    archive.location()
                );
            }
            Snapshot::open_archive(&archive, Scope::All).await?
        }
    };
    Ok(Inputs {
        documents: rows,
        files: documents.file_count(),
        text_bytes: (!documents.has_fingerprints()).then(|| documents.bytes()),
        spec: recipe.spec().clone(),
        archive: base.rows(),
        base,
        max_distance: compare.max_distance,
    })
}

/// The plans of all designs that fit the memory limit, the cheapest first; or only the plan of
/// `only`.
fn plans(
    inputs: &Inputs,
    k: u32,
    only: Option<Design>,
    memory: usize,
    queries: u64,
    threads: usize,
) -> Result<Vec<Plan>, Failure> {
    let documents = inputs.documents as usize;
    let limits = Limits {
        memory: memory.saturating_sub(DOCUMENT_BYTES * documents),
        queries,
        // Without files, each day is taken to be as large as the batch.
        sorted_run: match inputs.base.rows() {
            0 => inputs.documents,
            _ => inputs.base.sorted_run(),
        },
        threads,
        ..Limits::default()
    };
    if let Some(design) = only {
        let plan = Plan::choose_parts(design, documents, &limits).map_err(EngineError::from)?;
        return Ok(vec![plan]);
    }
    let plans = Plan::alternatives(documents, k, &limits)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    if plans.is_empty() {
        // This call fails too; its error says how much memory is missing.
        Plan::choose(documents, k, &limits).map_err(EngineError::from)?;
    }
    Ok(plans)
}

/// Encoded bytes of the fingerprints in the archive.
fn fingerprint_bytes(base: &Snapshot) -> u64 {
    let in_file = |file: &SnapshotFile| -> u64 {
        (0..file.reader.row_groups().len())
            .map(|group| file.reader.fingerprint_bytes(group))
            .sum()
    };
    base.files.iter().map(in_file).sum()
}

fn as_json(inputs: &Inputs, k: u32, queries: u64, plans: &[Plan]) -> serde_json::Value {
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
    let content = if inputs.text_bytes.is_some() {
        "texts"
    } else {
        "fingerprints"
    };
    let base = &inputs.base;
    json!({
        "max_distance": k,
        "new": { "files": inputs.files, "documents": inputs.documents, "content": content },
        "base": {
            "version": base.version,
            "files": base.files.len(),
            "row_groups": base.files.iter().map(|file| file.reader.row_groups().len()).sum::<usize>(),
            "fingerprints": inputs.archive,
            "days": base.days().len(),
            "fingerprint_bytes": fingerprint_bytes(base),
        },
        "spec": inputs.spec,
        "unrelated_per_document": unrelated_documents(&inputs.spec, k, inputs.archive),
        "designs": designs,
    })
}

fn as_text(inputs: &Inputs, k: u32, queries: u64, plans: &[Plan]) -> String {
    let mut text = String::new();
    let base = &inputs.base;
    let content = if inputs.text_bytes.is_some() {
        "documents, to be fingerprinted"
    } else {
        "ready fingerprints"
    };
    text += &format!(
        "batch: {} {content}, in {} files\n",
        count(inputs.documents),
        inputs.files
    );
    // Without an archive, the batch is compared with itself only.
    if base.version.is_some() || !base.files.is_empty() {
        text += &format!(
            "archive: {} fingerprints of {} days in {} files of {}; {} to read\n",
            count(inputs.archive),
            base.days().len(),
            count(base.files.len() as u64),
            base.name,
            size(fingerprint_bytes(base))
        );
    }
    text += &format!("spec: {}\n", inputs.spec.to_json());
    text +=
        &format!("designs for pairs within {k} bits, the cheapest first (predicted, one core):\n");
    text += &format!(
        "  {:<12} {:>6} {:>12} {:>6} {:>9} {:>12} {:>9} {:>11}\n",
        "design", "tables", "memory", "passes", "lookups", "candidates", "ns/fp", "seconds"
    );
    for plan in plans {
        text += &format!(
            "  {:<12} {:>6} {:>12} {:>6} {:>9.2} {:>12.2} {:>9.1} {:>11.2}\n",
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
    if let Some(cheapest) = plans.first() {
        text += &format!(
            "tables of {}: {}\n",
            cheapest.design.name(),
            cheapest.layout()
        );
    }
    if let Some(met) = unrelated_documents(&inputs.spec, k, inputs.archive)
        && met >= MANY_UNRELATED
    {
        text += &format!(
            "warning: in an archive of this size, a new document meets some {} unrelated documents within {k} bits, as measured on manuals and proposals under this spec. Take a smaller k, compare texts by --verify, or make the archive with --learn; `dedup-job tune` measures your own documents\n",
            count(met.round() as u64)
        );
    }
    text
}
