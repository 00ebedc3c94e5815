//! `dedup-job run`: checks the options, builds settings, calls `engine` once, then delivers metrics
//! and prints a summary.

mod metrics;
mod openmetrics;
pub mod settings;
mod summary;

use std::time::Instant;

use engine::{EngineError, RunSettings, Summary};
use storage::is_closed_pipe;

use crate::args::{CommonArgs, RunArgs};
use crate::exit::{Failure, usage};
use crate::printing::{print, print_aside};
use crate::process::{self, Process};
use crate::spooled::spooled;

pub fn run(common: &CommonArgs, args: &RunArgs) -> Result<(), Failure> {
    run_with(common, args, find_pairs)
}

/// Does a run by `work`, which gets its settings; delivers metrics and prints the summary.
pub fn run_with(
    common: &CommonArgs,
    args: &RunArgs,
    work: impl AsyncFnOnce(&Process, RunSettings) -> Result<(RunSettings, Summary), Failure>,
) -> Result<(), Failure> {
    let begin = Instant::now();
    // Set once the checks allow the run to write this file.
    let mut metrics_file = None;
    let done = match args.check() {
        Err(reason) => usage(reason),
        Ok(()) => process::run(common, async |process: &Process| {
            let mut settings = settings::build(process, args, &mut metrics_file).await?;
            if settings.job.is_none() {
                settings.new = spooled(process, settings.new, Some(args.pipe)).await?;
                settings.columns.spooled = Some(process.scratch.path().to_owned());
            }
            work(process, settings).await
        }),
    };
    let duration = begin.elapsed();
    let done =
        done.and_then(
            |(settings, summary)| match print_summary(common, &settings, &summary) {
                Ok(()) | Err(Failure::ClosedPipe) => Ok(summary),
                Err(failure) => Err(failure.behind(&summary, "the summary cannot be written")),
            },
        );
    if let Some(place) = &args.metrics {
        let file = metrics_file.as_deref();
        metrics::deliver(common, args, place, file, done.as_ref(), duration);
    }
    done.map(|_| ())
}

/// Prints the summary: on standard output, unless that has the rows.
fn print_summary(
    common: &CommonArgs,
    settings: &RunSettings,
    summary: &Summary,
) -> Result<(), Failure> {
    let Some(text) = summary::render(common, settings, summary)? else {
        return Ok(());
    };
    let decisions = settings
        .decide
        .as_ref()
        .and_then(|decide| decide.decisions.as_ref());
    let mut outputs = settings.output.iter().chain(decisions);
    if outputs.all(|output| output.location().is_some()) {
        print(&text)
    } else {
        // Standard output has the rows, and nothing else.
        print_aside(&text);
        Ok(())
    }
}

/// Does the run, in this process or with the answers of a job.
pub async fn find_pairs(
    process: &Process,
    settings: RunSettings,
) -> Result<(RunSettings, Summary), Failure> {
    match engine::run(&process.context, &process.resources, &settings).await {
        Ok(summary) => Ok((settings, summary)),
        // This run committed no day. After a commit, the error would be
        // `EngineError::Unpublished`, which tells the user to run the command again.
        Err(EngineError::Storage(error)) if is_closed_pipe(&error) => Err(Failure::ClosedPipe),
        Err(error) => Err(error.into()),
    }
}
