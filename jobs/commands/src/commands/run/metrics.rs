//! Delivers a run's metrics: to a file for a textfile collector, or to a push gateway.

use std::time::Duration;

use engine::Summary;
use engine::output::{OutputKind, may_replace};
use storage::{Location, scrub};

use super::openmetrics::{self, END, SUCCESS};
use crate::args::{CommonArgs, RunArgs};
use crate::commands::output_checks::Outputs;
use crate::exit::{Failure, usage};
use crate::process::{self, Process};

/// The content type of a push. Gateways accept the older Prometheus text format; the metrics are
/// valid in both.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);
const DELIVERY_TIMEOUT_AFTER_SIGNAL: Duration = Duration::from_millis(400);

fn is_gateway(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

/// Checks, before any work, that metrics can go to `place`. Returns the file's location; `None` for
/// a gateway.
pub(super) async fn check(
    outputs: &Outputs<'_>,
    args: &RunArgs,
    place: &str,
) -> Result<Option<Location>, Failure> {
    let place = args.with_day("--metrics", place).map_err(Failure::Usage)?;
    if is_gateway(&place) {
        return match reqwest::Url::parse(&place) {
            Ok(_) => Ok(None),
            Err(error) => usage(format!("--metrics is not a valid URL: {error}")),
        };
    }
    let location = outputs.check_file("--metrics", &place, OutputKind::Metrics);
    location.await.map(Some)
}

/// Delivers the metrics of a run, however it ended; a failed delivery is a warning. `checked` is
/// the file that [`check`] accepted. No other file is written, because it may belong to another
/// program.
pub(super) fn deliver(
    common: &CommonArgs,
    args: &RunArgs,
    place: &str,
    checked: Option<&str>,
    outcome: Result<&Summary, &Failure>,
    duration: Duration,
) {
    let Ok(place) = args.with_day("--metrics", place) else {
        return;
    };
    if !is_gateway(&place) && checked != Some(place.as_str()) {
        return;
    }
    let timeout = match outcome {
        Err(Failure::Signal { .. }) => DELIVERY_TIMEOUT_AFTER_SIGNAL,
        _ => DELIVERY_TIMEOUT,
    };
    let quiet = CommonArgs {
        quiet: true,
        ..common.clone()
    };
    let outcome = outcome.map_err(Failure::code);
    let text = openmetrics::encode(outcome, duration);
    let delivered = process::run(&quiet, async |process: &Process| {
        let delivery = async {
            if is_gateway(&place) {
                push(&place, outcome.is_ok(), text).await
            } else {
                write(process, &place, args.overwrite, text).await
            }
        };
        let delivered = tokio::time::timeout(timeout, delivery).await;
        Ok(delivered.unwrap_or_else(|elapsed| Err(elapsed.to_string())))
    });
    let reason = match delivered {
        Ok(Ok(())) => return,
        Ok(Err(reason)) => reason,
        Err(failure) => failure.to_string(),
    };
    tracing::warn!("the metrics are lost: {}", scrub(&reason));
}

/// Sends metrics to a gateway. A PUT replaces all metrics of the group; a POST, after a failed run,
/// keeps those that only a success sets.
async fn push(url: &str, replace: bool, text: String) -> Result<(), String> {
    let client = reqwest::Client::builder().timeout(DELIVERY_TIMEOUT).build();
    let sent = async {
        let client = client?;
        let request = if replace {
            client.put(url)
        } else {
            client.post(url)
        };
        let request = request.header("Content-Type", CONTENT_TYPE).body(text);
        request.send().await?.error_for_status()
    };
    // The URL may contain a password.
    let answer = sent.await.map_err(|error| error.without_url());
    answer.map(drop).map_err(|error| {
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        format!("the gateway: {}", causes.join(": "))
    })
}

/// Writes metrics to a file. After a failed run, keeps the file's time of the last success.
async fn write(
    process: &Process,
    place: &str,
    overwrite: bool,
    text: String,
) -> Result<(), String> {
    let written = async {
        let place = process.locate(place)?;
        if !overwrite && !may_replace(&place, OutputKind::Metrics).await? {
            return usage(format!(
                "{place}: the existing file has no metrics of dedup-job"
            ));
        }
        let text = if text.contains(SUCCESS) {
            text
        } else {
            with_last_success(&place, text).await
        };
        process.write(&place, text.as_bytes()).await
    };
    written.await.map_err(|error| error.to_string())
}

/// The metrics of a failed run, with the time of the last success from the existing file: alerts
/// depend on it.
async fn with_last_success(place: &Location, text: String) -> String {
    let before = place.read().await.unwrap_or_default();
    let before = String::from_utf8_lossy(&before);
    let kept: String = before
        .lines()
        .filter(|line| line.contains(SUCCESS))
        .map(|line| format!("{line}\n"))
        .collect();
    match text.strip_suffix(END) {
        Some(text) => format!("{text}{kept}{END}"),
        None => text,
    }
}
