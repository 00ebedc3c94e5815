//! Builds the settings of a run from its options. Resolves paths and checks outputs, but reads no
//! documents.

use std::collections::HashMap;
use std::path::PathBuf;

use archive::Existing;
use documents::{Columns, KeptPlace, Prefer, Replace};
use engine::RunSettings;
use engine::decide::{Decide, OnUpdate, read_pins};
use engine::output::{OutputKind, OutputTarget};
use engine::run::{OnRepeats, RunLimits};
use storage::{Location, Stores};

use super::metrics;
use crate::args::{DEFAULT_OUTPUT, PairRows, RunArgs, UpdateRule};
use crate::commands::design_named;
use crate::commands::output_checks::{Outputs, is_same};
use crate::exit::{Failure, usage};
use crate::process::Process;

/// Builds the settings of a run. Sets `metrics_file` once the checks allow the run to write that file.
pub async fn build(
    process: &Process,
    args: &RunArgs,
    metrics_file: &mut Option<String>,
) -> Result<RunSettings, Failure> {
    let stores = process.stores();
    let base = args.base.clone();
    let new: Result<Vec<String>, String> = args
        .batch()
        .iter()
        .map(|new| args.with_day("--new", new))
        .collect();
    let new = new.map_err(Failure::Usage)?;
    for base in &base {
        refuse_base_as_batch(stores, &new, base)?;
    }
    let inputs = new.iter().chain(&base).chain(&args.verify.base_text);
    let outputs = Outputs {
        stores,
        inputs: inputs
            .map(String::as_str)
            .chain(args.spec.table_files())
            .chain(args.preference_files())
            .chain(args.pins.as_deref())
            .collect(),
        overwrite: args.overwrite,
    };
    let default_output = (!args.writes_decisions()).then_some(DEFAULT_OUTPUT);
    let output = args.output.as_deref().or(default_output);
    let output = match with_day(args, "--output", output)? {
        None => None,
        Some(path) => {
            let target = outputs.check_rows("--output", &path, OutputKind::Pairs);
            Some(target.await?)
        }
    };
    let decide = decide(args, &outputs).await?;
    let decisions = decide.as_ref().and_then(|decide| decide.decisions.as_ref());
    if let (Some(pairs), Some(decisions)) = (&output, decisions)
        && pairs.location().or(decisions.location()).is_none()
    {
        return usage("--output and --decisions are both standard output");
    }
    let fingerprints = args.fingerprints.as_deref();
    let fingerprints = match with_day(args, "--fingerprints", fingerprints)? {
        None => None,
        Some(path) => {
            let target = outputs.check_parquet("--fingerprints", &path, OutputKind::Fingerprints);
            Some(target.await?)
        }
    };
    let resume = with_day(args, "--resume", args.resume.as_deref())?;
    let metrics = match &args.metrics {
        None => None,
        Some(place) => metrics::check(&outputs, args, place).await?,
    };
    let kept = match decide.as_ref().and_then(|decide| decide.kept.as_ref()) {
        Some(kept) => Some(stores.locate(&kept.given)?),
        None => None,
    };
    refuse_same_files(&[
        ("--kept", kept.as_ref()),
        ("--fingerprints", fingerprints.as_ref()),
        ("--output", output.as_ref().and_then(OutputTarget::location)),
        ("--decisions", decisions.and_then(OutputTarget::location)),
        ("--metrics", metrics.as_ref()),
    ])?;
    *metrics_file = metrics.map(|place| place.given().to_owned());
    if let Some(k) = args.max_distance {
        design_named(args.design.as_deref(), k)?;
    }
    Ok(RunSettings {
        new,
        base,
        output,
        decide,
        compare: args.compare(),
        within: !args.no_within,
        limits: RunLimits {
            min_new: args.min_new,
            allow_empty: args.allow_empty,
            max_dropped: args.max_dropped,
            strict: args.strict,
            on_repeats: if args.refuse_repeats {
                OnRepeats::Refuse
            } else {
                OnRepeats::Warn
            },
        },
        drop_empty: args.drop_empty,
        finds_updates: match args.on_update {
            Some(rule) => rule != UpdateRule::Ignore,
            None => args.decisions.is_some(),
        },
        compares_all: false,
        on_update: args.on_update.map(OnUpdate::from).unwrap_or_default(),
        pins: match &args.pins {
            Some(path) => read_pins(path, &stores.locate(path)?.read().await?)?,
            None => Vec::new(),
        },
        pins_from: args.pins.clone(),
        audit: args.audit.map(|documents| documents as usize),
        append: args.append,
        existing: if args.replace_day {
            Existing::Replace
        } else {
            Existing::Keep
        },
        rows_per_file: args.rows_per_file,
        day: args.day,
        batch_name: args.batch_name.unwrap_or_default(),
        fingerprints,
        columns: Columns {
            // File name and row number may replace missing ids, but they would repeat in an
            // archive, on other days.
            row_ids: args.base.is_empty(),
            prefer: prefer(args, stores).await?,
            source: args.source.clone(),
            carried: args.carried.clone(),
            ..args.columns.columns()
        },
        design: args.design.clone(),
        pairs_by_class: args.pairs == Some(PairRows::Classes),
        max_hits: args.max_hits_per_document,
        spec_options: args.spec.spec_options(stores).await?,
        resume: resume.map(PathBuf::from),
        scratch: process.scratch.path().to_owned(),
        job: None,
    })
}

/// The path of an option, with its placeholders replaced.
fn with_day(args: &RunArgs, option: &str, path: Option<&str>) -> Result<Option<String>, Failure> {
    let path = path.map(|path| args.with_day(option, path));
    path.transpose().map_err(Failure::Usage)
}

/// The order of preference, with the files of sources read.
async fn prefer(args: &RunArgs, stores: &Stores) -> Result<Prefer, Failure> {
    let mut texts = HashMap::new();
    for path in args.preference_files() {
        let text = stores.locate(path)?.read().await?;
        texts.insert(path, String::from_utf8_lossy(&text).into_owned());
    }
    let read = |path: &str| {
        let text = texts.get(path).cloned();
        text.ok_or_else(|| format!("{path}: it was not read"))
    };
    args.preference(read).map_err(Failure::Usage)
}

/// The settings of decisions; `None` if the options require no decisions.
async fn decide(args: &RunArgs, outputs: &Outputs<'_>) -> Result<Option<Decide>, Failure> {
    if !args.decides() {
        return Ok(None);
    }
    let decisions = match with_day(args, "--decisions", args.decisions.as_deref())? {
        None => None,
        Some(path) => {
            let target = outputs.check_rows("--decisions", &path, OutputKind::Decisions);
            Some(target.await?)
        }
    };
    let kept = match with_day(args, "--kept", args.kept.as_deref())? {
        None => None,
        Some(path) => Some(KeptPlace {
            given: outputs.check_copies("--kept", &path).await?,
            replace: match (args.overwrite, args.append) {
                (true, _) => Replace::Everything,
                (false, Some(_)) => Replace::Same,
                (false, None) => Replace::Nothing,
            },
        }),
    };
    Ok(Some(Decide { decisions, kept }))
}

/// Refuses a --new path that is also --base.
fn refuse_base_as_batch(stores: &Stores, new: &[String], base: &str) -> Result<(), Failure> {
    for new in new {
        let same = match (stores.locate(new), stores.locate(base)) {
            (Ok(one), Ok(other)) => is_same(&one, &other),
            _ => new == base,
        };
        if same {
            return usage(format!("--new and --base are the same: {new}"));
        }
    }
    Ok(())
}

/// Refuses two outputs that are one file; each is given with its option.
fn refuse_same_files(outputs: &[(&str, Option<&Location>)]) -> Result<(), Failure> {
    for (at, (option, one)) in outputs.iter().enumerate() {
        for (other_option, other) in &outputs[at + 1..] {
            if one.zip(*other).is_some_and(|(a, b)| is_same(a, b)) {
                return usage(format!("{option} and {other_option} are the same file"));
            }
        }
    }
    Ok(())
}
