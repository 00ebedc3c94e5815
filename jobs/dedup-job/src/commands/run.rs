//! `dedup-job run`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::{Address, Guard, Remote, RemoteSettings};
use engine::run::Commit;
use engine::{RunSettings, Summary, Verify};
use serde::Serialize;

use super::{is_same, output, required, with_day};
use crate::args::{CommonArgs, RemoteArgs, RunArgs, VerifyArgs};
use crate::exit::Failure;
use crate::metrics;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json, size};

/// The summary that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    day: Option<String>,
    peak_memory_bytes: Option<u64>,
    version: &'static str,
}

pub fn run(common: &CommonArgs, args: &RunArgs) -> Result<(), Failure> {
    let begin = Instant::now();
    let done = process::run(common, async |process: &Process| {
        let mut settings = settings(process, args).await?;
        let on_cluster = remote(process, common, args, &settings).await?;
        settings.cluster = match &on_cluster {
            Some((remote, _)) => Some(Arc::new(remote.clone())),
            None => None,
        };
        let done = engine::run(&process.context, &process.resources, &settings).await;
        if let Some((remote, guard)) = on_cluster {
            remote.close(guard).await;
        }
        Ok((settings, done?))
    });
    if let Some(place) = &args.metrics {
        let outcome = done.as_ref().map(|(_, summary)| summary);
        metrics::deliver(common, place, args.day, outcome, begin.elapsed());
    }
    let (settings, summary) = done?;
    if common.json {
        let report = Report {
            summary: &summary,
            day: settings.day.map(|day| day.to_string()),
            peak_memory_bytes: process::peak_memory(),
            version: env!("CARGO_PKG_VERSION"),
        };
        return print_json(&report);
    }
    if common.quiet {
        return Ok(());
    }
    print(&text(&settings, &summary))
}

/// Judges the arguments, without a look at any data but the files that options name.
async fn settings(process: &Process, args: &RunArgs) -> Result<RunSettings, Failure> {
    let stores = process.stores();
    if args.new.is_empty() {
        return Err(Failure::Usage(
            "--new is needed: the documents of the new day; see --help".into(),
        ));
    }
    let base = required(args.base.clone(), "--base")?;
    if args.append && args.day.is_none() {
        return Err(Failure::Usage("--append needs --day YYYY-MM-DD".into()));
    }
    let new: Result<Vec<String>, Failure> = args
        .new
        .iter()
        .map(|new| with_day("--new", new, args.day))
        .collect();
    let new = new?;
    for new in &new {
        let same = match (stores.locate(new), stores.locate(&base)) {
            (Ok(one), Ok(other)) => is_same(&one, &other),
            _ => *new == base,
        };
        if same {
            return Err(Failure::Usage(format!(
                "--new and --base are the same: {new}"
            )));
        }
    }
    let read: Vec<&str> = new
        .iter()
        .map(String::as_str)
        .chain([base.as_str()])
        .chain(args.verify.base_text.iter().map(String::as_str))
        .collect();
    let place = args.output.as_deref().unwrap_or("hits.parquet");
    let place = with_day("--output", place, args.day)?;
    let hits = output(stores, "--output", &place, &read).await?;
    let fingerprints = match &args.fingerprints {
        None => None,
        Some(path) => {
            let path = with_day("--fingerprints", path, args.day)?;
            Some(output(stores, "--fingerprints", &path, &read).await?)
        }
    };
    if fingerprints
        .as_ref()
        .is_some_and(|kept| is_same(kept, &hits))
    {
        return Err(Failure::Usage(
            "--fingerprints and --output are the same file".into(),
        ));
    }
    if let Some(place) = &args.metrics {
        metrics::check(process, place, args.day, &read).await?;
    }
    let max_distance = args.max_distance.unwrap_or(3);
    if let Some(name) = &args.design {
        hamming::Design::named(name, max_distance)
            .map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(RunSettings {
        new,
        base,
        output: hits,
        max_distance,
        within: !args.no_within,
        append: args.append,
        rows_per_file: args.rows_per_file,
        day: args.day,
        fingerprints,
        columns: args.columns.columns(),
        design: args.design.clone(),
        max_hits: args.max_hits_per_document,
        verify: verify(&args.verify)?,
        wanted: args.spec.wanted(stores).await?,
        scratch: process.scratch.path().to_owned(),
        cluster: None,
    })
}

/// The cluster that is to do the work, and what ends it there if this process stops before it is done.
async fn remote(
    process: &Process,
    common: &CommonArgs,
    args: &RunArgs,
    settings: &RunSettings,
) -> Result<Option<(Remote, Guard)>, Failure> {
    let RemoteArgs {
        cluster,
        resubmit,
        executor_wait,
    } = &args.remote;
    let Some(address) = cluster else {
        let alone = [
            (resubmit.is_some(), "--resubmit"),
            (executor_wait.is_some(), "--executor-wait"),
            (args.tls.tls_ca.is_some(), "--tls-ca"),
        ];
        return match alone.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::Usage(format!("{option} needs --cluster"))),
            None => Ok(None),
        };
    };
    let scheduler: Address = address.parse()?;
    let in_store = process::is_in_store(&settings.base);
    let shared = match &common.scratch {
        Some(given) if process::is_in_store(given) || !in_store => given.clone(),
        // Of a cluster on this machine.
        None if !in_store && scheduler.is_loopback() => {
            process.scratch.path().to_string_lossy().into_owned()
        }
        _ => {
            return Err(Failure::Usage(format!(
                "--cluster needs --scratch {}, where the executors find the new day's fingerprints{}",
                if in_store {
                    "URL, a prefix in a store"
                } else {
                    "DIR, a directory"
                },
                if in_store {
                    format!(", such as {}", beside(&settings.base))
                } else {
                    String::new()
                }
            )));
        }
    };
    let remote = RemoteSettings {
        scheduler,
        tls: args.tls.read()?,
        shared,
        scratch: process.scratch.path().to_owned(),
        resubmit: resubmit.unwrap_or(0),
        wait: executor_wait.unwrap_or(Duration::from_secs(60)),
    };
    let resources = Arc::clone(&process.resources);
    Ok(Some(Remote::connect(remote, resources).await?))
}

/// A prefix in the store of `base`.
fn beside(base: &str) -> String {
    let mut parts = base.splitn(4, '/');
    let scheme = parts.next().unwrap_or_default();
    let bucket = parts.nth(1).unwrap_or_default();
    format!("{scheme}//{bucket}/scratch/")
}

/// What is asked for of verification.
fn verify(args: &VerifyArgs) -> Result<Option<Verify>, Failure> {
    let Some(measure) = args.verify else {
        let alone = match (args.min_similarity, args.base_text.first()) {
            (Some(_), _) => "--min-similarity",
            (_, Some(_)) => "--base-text",
            _ => return Ok(None),
        };
        return Err(Failure::Usage(format!(
            "{alone} needs --verify MEASURE; see --help"
        )));
    };
    let min_similarity = args.min_similarity.unwrap_or(0.8);
    if !(0.0..=1.0).contains(&min_similarity) {
        return Err(Failure::Usage(format!(
            "--min-similarity {min_similarity} is not between 0 and 1"
        )));
    }
    Ok(Some(Verify {
        measure,
        min_similarity,
        base_text: args.base_text.clone(),
    }))
}

fn text(settings: &RunSettings, summary: &Summary) -> String {
    let mut text = String::new();
    let (new, base, seconds) = (&summary.new, &summary.base, &summary.seconds);
    let version = base
        .version
        .map_or(String::new(), |version| format!(" (version {version})"));
    let _ = writeln!(
        text,
        "{}: {} pairs within {} bits",
        summary.output,
        count(summary.hits),
        summary.max_distance
    );
    if let Some(verified) = &summary.verified {
        let _ = writeln!(
            text,
            "  verified by their texts ({}): {} of {} pairs dropped, less alike than {}; {} kept unverified, a text of theirs was not found",
            measure_name(verified.measure),
            count(verified.dropped),
            count(verified.checked),
            verified.min_similarity,
            count(verified.without_text)
        );
    }
    if let Some(limit) = settings.max_hits {
        let _ = writeln!(
            text,
            "  {} more left out: each document has at most its {limit} nearest",
            count(summary.hits_left_out)
        );
    }
    let _ = writeln!(
        text,
        "  new day: {} documents, {} without a fingerprint, {} repeated ids, {} not UTF-8",
        count(new.documents),
        count(new.without_fingerprint),
        count(new.duplicate_ids),
        count(new.invalid_utf8)
    );
    let _ = writeln!(
        text,
        "  history: {} fingerprints in {} files of {}{version}, {} read",
        count(base.fingerprints),
        count(base.files),
        settings.base,
        size(base.bytes_read)
    );
    let day = settings.day.map(|day| day.to_string()).unwrap_or_default();
    match summary.commit {
        Commit::NotAsked => {}
        Commit::Committed(version) => {
            let _ = writeln!(text, "  day {day}: committed as version {version}");
        }
        Commit::AlreadyThere => {
            let _ = writeln!(
                text,
                "  day {day}: committed already; the archive is unchanged"
            );
        }
    }
    if summary.comparisons > 1 {
        let _ = writeln!(
            text,
            "  compared {} times: another run committed meanwhile",
            summary.comparisons
        );
    }
    let network = &summary.network;
    if network.requests > 0 {
        let _ = writeln!(
            text,
            "  storage: {} requests, {} of them failed and were sent again; {} received, {} sent",
            count(network.requests),
            count(network.retries),
            size(network.bytes_received),
            size(network.bytes_sent)
        );
    }
    if let Some(cluster) = &summary.cluster {
        let executors = cluster.executors.len();
        let again = match cluster.slices_again {
            0 => String::new(),
            again => format!(", {} of them handed out again", count(again)),
        };
        let _ = writeln!(
            text,
            "  cluster: {} slices of work{again}, done by {executors} executors of {}; {} of plans",
            count(cluster.slices),
            cluster.scheduler,
            size(cluster.plan_bytes)
        );
    }
    let passes = match summary.passes {
        1 => String::new(),
        passes => format!(", {passes} passes over the history for want of memory"),
    };
    let verify = match summary.verified {
        Some(_) => format!(", verify {:.2}", seconds.verify),
        None => String::new(),
    };
    let peak = process::peak_memory().map_or(String::new(), |bytes| {
        format!("; {} memory at most", size(bytes))
    });
    let _ = writeln!(
        text,
        "  {:.2} s: open {:.2}, fingerprint {:.2}, build {:.2} ({}{passes}), probe {:.2} ({}){verify}, commit {:.2}{peak}",
        seconds.total,
        seconds.open,
        seconds.fingerprint,
        seconds.build,
        summary.design,
        seconds.probe,
        summary.kernel,
        seconds.commit
    );
    text
}

fn measure_name(measure: simhash::Measure) -> &'static str {
    match measure {
        simhash::Measure::Jaccard => "jaccard",
        simhash::Measure::Cosine => "cosine",
        simhash::Measure::Edit => "edit",
    }
}
