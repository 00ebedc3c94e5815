//! `dedup-job split`, `map` and `reduce`: a run in parts, which any machines do.

use std::sync::Arc;

use documents::Replace;
use engine::job::{self, Found, Job, PartDone, Record, Split, do_parts};
use engine::{EngineError, RunSettings};
use serde::Serialize;

use super::run;
use crate::args::{CommonArgs, MapArgs, ReduceArgs, RunArgs, SplitArgs};
use crate::config::run_options;
use crate::exit::{Failure, usage};
use crate::printing::{count, print, print_json, print_summary, size};
use crate::process::{self, Process};

/// Plans the next round of a job.
pub fn split(common: &CommonArgs, args: &SplitArgs) -> Result<(), Failure> {
    let place = args
        .run
        .with_day("JOB", &args.job)
        .map_err(Failure::Usage)?;
    let args = &SplitArgs {
        job: place,
        ..args.clone()
    };
    let split = process::run(common, async |process: &Process| {
        let Some(record) = prepare(process, args).await? else {
            return Ok(None);
        };
        let run = run_options(&record.options)?;
        run.check().map_err(Failure::Usage)?;
        check_place(process, &args.job, &run).await?;
        let settings = run::settings::build(process, &run, &mut None).await?;
        if args.restart {
            job::remove(process.stores(), &args.job).await?;
        }
        let scratch = process.scratch.path();
        let job = Job::open(process.stores(), &args.job, record, scratch, true).await?;
        if let Err(error) = job.check().await {
            if let (
                true,
                EngineError::Unanswered {
                    missing, damaged, ..
                },
            ) = (common.json, &error)
            {
                // What a driver needs to go on, if it lost the answer of the `split` that planned the round.
                let missing = missing.iter().chain(damaged).copied().collect();
                let split = job.current_split().map(|split| Split { missing, ..split });
                print_json(&split)?;
            }
            return Err(error.into());
        }
        if job.is_ready() {
            return Ok(Some(job.finish_split().await?));
        }
        let settings = RunSettings {
            job: Some(Arc::new(job)),
            ..settings
        };
        let split = engine::run::split(&process.context, &process.resources, &settings);
        Ok(Some(split.await?))
    })?;
    match split {
        Some(split) => print_split(common, &split),
        None if common.json => print_json(&Split {
            job: args.job.clone(),
            round: 0,
            ready: true,
            parts: 0,
            maps: Vec::new(),
            missing: Vec::new(),
        }),
        None if common.quiet => Ok(()),
        None => print(&format!(
            "{}: the job is reduced already; `dedup-job reduce {}` writes its outputs again, `split --restart` begins anew\n",
            args.job, args.job
        )),
    }
}

/// The record of the job: the one that is there, or a new one; `None` if the job is reduced.
async fn prepare(process: &Process, args: &SplitArgs) -> Result<Option<Record>, Failure> {
    let refuse = |option: &str, reason: &str| usage(format!("{option}: {reason}"));
    if args.run.metrics.is_some() {
        return refuse(
            "--metrics",
            "give it to `reduce`, which ends the run; a job must hold no password",
        );
    }
    if args.run.resume.is_some() {
        return refuse(
            "--resume",
            "a job keeps what is done by itself: leave it out",
        );
    }
    let found = match job::find(process.stores(), &args.job).await {
        // Whatever version of the program made it, it is removed.
        Err(_) if args.restart && !args.options.is_empty() => Found::Nothing,
        found => found?,
    };
    let is_same = |record: &Record| {
        (args.options.is_empty() || args.options == record.options)
            && (args.parts.is_none() || args.parts == record.parts)
    };
    let other = |record: &Record| {
        Failure::Usage(format!(
            "{}: it is a job of other options ({}); leave the options out to go on with it, or begin anew with --restart",
            args.job,
            record.options.join(" ")
        ))
    };
    match found {
        Found::Job(record) | Found::Done(record) if args.restart => {
            let (options, parts) = if args.options.is_empty() {
                (&record.options, args.parts.or(record.parts))
            } else {
                (&args.options, args.parts)
            };
            Ok(Some(Record::new(options.clone(), parts)))
        }
        Found::Job(record) if is_same(&record) => Ok(Some(*record)),
        Found::Done(record) if is_same(&record) => Ok(None),
        Found::Job(record) | Found::Done(record) => Err(other(&record)),
        Found::Nothing if args.options.is_empty() => usage(format!(
            "{}: there is no job yet; begin with the options of the run: dedup-job split {} NEW… --base ARCHIVE …",
            args.job, args.job
        )),
        Found::Nothing => Ok(Some(Record::new(args.options.clone(), args.parts))),
    }
}

/// Refuses a job inside an archive or another table, or at one of its documents.
async fn check_place(process: &Process, job: &str, run: &RunArgs) -> Result<(), Failure> {
    let job = process.locate(job)?;
    let inside = |place: &str| {
        Failure::Usage(format!(
            "{job}: a job needs a place of its own, and this is inside {place}"
        ))
    };
    if let Some(table) = job.table_above().await? {
        return Err(inside(&table));
    }
    let texts = &run.verify.base_text;
    for path in run.base.iter().chain(run.batch()).chain(texts) {
        let Ok(input) = process.locate(path) else {
            continue;
        };
        if job.is_within(&input) || input.is(&job) {
            return Err(inside(path));
        }
    }
    Ok(())
}

fn print_split(common: &CommonArgs, split: &Split) -> Result<(), Failure> {
    if common.json {
        return print_json(split);
    }
    let job = &split.job;
    let mut text = String::new();
    if split.ready {
        text += &format!("{job}: ready; end the run: dedup-job reduce {job}\n");
        return print_summary(common, &text);
    }
    let maps = split.maps.iter().map(|map| {
        format!(
            "{} in {} parts, {} to read, {:.0} s of one core",
            map.map,
            count(u64::from(map.parts)),
            size(map.bytes),
            map.core_seconds.ceil()
        )
    });
    text += &format!(
        "round {} of {job}: {}\n",
        split.round,
        maps.collect::<Vec<_>>().join("; ")
    );
    if split.parts > 0 {
        let last = split.parts - 1;
        let list = match last {
            0 => "0".to_owned(),
            _ => format!("0..{last}"),
        };
        text += &format!(
            "  do its parts, on any machines, in any order: dedup-job map {job} --part {list}\n"
        );
    }
    text += &format!("  then plan the next round: dedup-job split {job}\n");
    print_summary(common, &text)
}

/// What `map --json` prints.
#[derive(Serialize)]
struct Mapped<'a> {
    job: &'a str,
    round: u32,
    parts: Vec<PartDone>,
}

/// Does parts of a round.
pub fn map(common: &CommonArgs, args: &MapArgs) -> Result<(), Failure> {
    let mut parts = args.parts.concat();
    parts.sort_unstable();
    parts.dedup();
    let (round, done) = process::run(common, async |process: &Process| {
        let record = match job::find(process.stores(), &args.job).await? {
            Found::Job(record) => *record,
            // Nothing is left to do: a late attempt of a part ends well.
            Found::Done(_) => return Ok((0, Vec::new())),
            Found::Nothing => return Err(no_job(&args.job)),
        };
        let scratch = process.scratch.path();
        let job = Job::open(process.stores(), &args.job, record, scratch, false).await?;
        let mut done = Vec::new();
        let round = args.round.unwrap_or(job.current_round());
        let doing = do_parts(&process.context, &job, round, &parts, |part| {
            tracing::info!(part = part.part, rows = part.rows, "a part is done");
            done.push(part.clone());
        });
        doing.await?;
        Ok((round, done))
    })?;
    if common.json {
        return print_json(&Mapped {
            job: &args.job,
            round,
            parts: done,
        });
    }
    let mut text = String::new();
    for part in &done {
        let before = if part.was_done { ", done before" } else { "" };
        text += &format!(
            "part {} of round {round}: {} rows in {:.2} s{before}\n",
            part.part,
            count(part.rows),
            part.seconds
        );
    }
    if done.is_empty() {
        text += &format!("{}: all rounds are done\n", args.job);
    }
    print_summary(common, &text)
}

/// Ends a run whose parts are done.
pub fn reduce(common: &CommonArgs, args: &ReduceArgs) -> Result<(), Failure> {
    let found = process::run(common, async |process: &Process| {
        Ok(job::find(process.stores(), &args.job).await?)
    })?;
    let (record, is_done) = match found {
        Found::Job(record) => (*record, false),
        Found::Done(record) => (*record, true),
        Found::Nothing => return Err(no_job(&args.job)),
    };
    let run = RunArgs {
        metrics: args.metrics.clone(),
        ..run_options(&record.options)?
    };
    run::run_with(common, &run, async |process, mut settings| {
        // An earlier `reduce` may have put the copies in their places before it was killed.
        if let Some(kept) = settings
            .decide
            .as_mut()
            .and_then(|decide| decide.kept.as_mut())
            && kept.replace == Replace::Nothing
        {
            kept.replace = Replace::Same;
        }
        if is_done {
            // What a `reduce` that was killed did not remove.
            clean(process, args).await;
            return run::find_pairs(process, settings).await;
        }
        let reduced = reduce_job(process, args, record, settings.clone()).await;
        let failure = match reduced {
            Err(failure) if !matches!(failure, Failure::BehindRun { .. }) => failure,
            reduced => return reduced,
        };
        // Another `reduce` may have ended the job, and removed what this one needs.
        match job::find(process.stores(), &args.job).await {
            Ok(Found::Done(_)) => run::find_pairs(process, settings).await,
            _ => Err(failure),
        }
    })
}

async fn reduce_job(
    process: &Process,
    args: &ReduceArgs,
    record: Record,
    settings: RunSettings,
) -> Result<(RunSettings, engine::Summary), Failure> {
    let scratch = process.scratch.path();
    let job = Job::open(process.stores(), &args.job, record, scratch, false).await?;
    if !job.is_ready() {
        job.check().await?;
        return Err(EngineError::TryAgain(format!(
            "{}: not all rounds are planned; run: dedup-job split {}",
            args.job, args.job
        ))
        .into());
    }
    let job = Arc::new(job);
    let settings = RunSettings {
        job: Some(Arc::clone(&job)),
        ..settings
    };
    let (settings, summary) = run::find_pairs(process, settings).await?;
    if let Err(error) = job.mark_done(args.keep_job).await {
        let what = "the job cannot be marked as done, run the same command again";
        return Err(Failure::from(error).behind(&summary, what));
    }
    clean(process, args).await;
    Ok((settings, summary))
}

/// Removes what a job that is done has beside its marker, unless it is to be kept.
async fn clean(process: &Process, args: &ReduceArgs) {
    let job = &args.job;
    if !args.keep_job
        && let Err(error) = job::clean(process.stores(), job).await
    {
        tracing::warn!(
            "{job}: the run is done, but what the job has beside its marker cannot be removed: {error}; `dedup-job archive vacuum --jobs {job}` removes it"
        );
    }
}

fn no_job(job: &str) -> Failure {
    Failure::Usage(format!(
        "{job}: there is no job; begin one: dedup-job split {job} NEW… --base ARCHIVE …"
    ))
}
