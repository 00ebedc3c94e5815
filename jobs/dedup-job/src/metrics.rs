//! Metrics of a run as OpenMetrics text: in a file, where a collector of text files finds it, or pushed to a gateway.
//!
//! All are gauges, of the run that ended last: a scheduled job is gone before anybody could ask it.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ::archive::Location;
use ::archive::store::scrub;
use chrono::NaiveDate;
use engine::Summary;
use engine::draft::Draft;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::args::CommonArgs;
use crate::commands::{output, with_day};
use crate::exit::Failure;
use crate::process::{self, Process};

/// What the text is, for those who are sent it. Gateways read the older name of the format, which this text is too.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metric that only a success sets.
const SUCCESS: &str = "dedup_job_last_success_timestamp_seconds";
/// What the text ends with.
const END: &str = "# EOF\n";
/// How long a delivery may take.
const PATIENCE: Duration = Duration::from_secs(30);

type Number = Gauge<f64, AtomicU64>;

/// Whether metrics go to a gateway.
fn is_gateway(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

/// Refuses a place where metrics could not go, before any work is done.
pub async fn check(
    process: &Process,
    place: &str,
    day: Option<NaiveDate>,
    read: &[&str],
) -> Result<(), Failure> {
    let place = with_day("--metrics", place, day)?;
    if is_gateway(&place) {
        return match reqwest::Url::parse(&place) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Usage(format!("--metrics is no URL: {error}"))),
        };
    }
    output(process.stores(), "--metrics", &place, read)
        .await
        .map(drop)
}

/// Delivers the metrics of a run, however it ended. A run does not fail for want of its metrics.
pub fn deliver(
    common: &CommonArgs,
    place: &str,
    day: Option<NaiveDate>,
    outcome: Result<&Summary, &Failure>,
    took: Duration,
) {
    let Ok(place) = with_day("--metrics", place, day) else {
        return;
    };
    let patience = match outcome {
        Err(Failure::Signal { .. }) => Duration::from_millis(400),
        _ => PATIENCE,
    };
    let quiet = CommonArgs {
        quiet: true,
        ..common.clone()
    };
    let outcome = outcome.map_err(Failure::code);
    let delivered = process::run(&quiet, async |process: &Process| {
        let delivery = async {
            match is_gateway(&place) {
                true => push(&place, outcome.is_ok(), text(outcome, took)).await,
                false => write(process, &place, text(outcome, took)).await,
            }
        };
        let delivered = tokio::time::timeout(patience, delivery).await;
        Ok(delivered.unwrap_or_else(|elapsed| Err(elapsed.to_string())))
    });
    let lost = match delivered {
        Ok(Ok(())) => return,
        Ok(Err(reason)) => reason,
        Err(failure) => failure.to_string(),
    };
    tracing::warn!("the metrics are lost: {}", scrub(&lost));
}

/// Replaces the group's metrics; those of a run that failed leave alone what only a success has.
async fn push(url: &str, replace: bool, text: String) -> Result<(), String> {
    let client = reqwest::Client::builder().timeout(PATIENCE).build();
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
    // The URL may have a password in it.
    let answer = sent.await.map_err(|error| error.without_url());
    answer.map(drop).map_err(|error| {
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        format!("the gateway: {}", causes.join(": "))
    })
}

async fn write(process: &Process, place: &str, text: String) -> Result<(), String> {
    let written = async {
        let place = process.locate(place)?;
        let text = match text.contains(SUCCESS) {
            true => text,
            false => with_last_success(&place, text).await,
        };
        let draft = Draft::new(&place, process.scratch.path())?;
        let written = std::io::Write::write_all(&mut draft.open()?, text.as_bytes());
        written.map_err(|source| Failure::Io {
            path: place.to_string(),
            source,
        })?;
        Ok::<(), Failure>(draft.publish().await?)
    };
    written.await.map_err(|error| error.to_string())
}

/// The metrics of a run that failed, with the time of the last success that the file had: what alerts look at.
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

fn text(outcome: Result<&Summary, u8>, took: Duration) -> String {
    let mut registry = Registry::with_prefix("dedup_job");
    let mut set = |name: &str, help: &str, value: f64| {
        let gauge = Number::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let now = chrono::Utc::now().timestamp_millis() as f64 / 1000.0;
    set(
        "end_timestamp_seconds",
        "When the last run ended, in seconds since 1970",
        now,
    );
    set("duration_seconds", "How long it took", took.as_secs_f64());
    let code = outcome.err().unwrap_or(0);
    set(
        "exit_code",
        "Its exit code; 0 when it ended well",
        f64::from(code),
    );
    if let Some(bytes) = process::peak_memory() {
        set("peak_memory_bytes", "The most memory it had", bytes as f64);
    }
    if let Ok(summary) = outcome {
        of_summary(summary, now, &mut set);
        let family = Family::<[(&'static str, &'static str); 1], Number>::default();
        let seconds = &summary.seconds;
        for (stage, spent) in [
            ("open", seconds.open),
            ("fingerprint", seconds.fingerprint),
            ("build", seconds.build),
            ("probe", seconds.probe),
            ("verify", seconds.verify),
            ("commit", seconds.commit),
        ] {
            family.get_or_create(&[("stage", stage)]).set(spent);
        }
        registry.register("stage_seconds", "Seconds of each stage", family);
    }
    let mut text = String::new();
    // A string takes all that is written to it.
    let _ = encode(&mut text, &registry);
    text
}

fn of_summary(summary: &Summary, now: f64, set: &mut impl FnMut(&str, &str, f64)) {
    let (new, base, network) = (&summary.new, &summary.base, &summary.network);
    let numbers = [
        (
            "last_success_timestamp_seconds",
            "When the last run that ended well ended",
            now,
        ),
        (
            "new_documents",
            "Documents of the new day",
            new.documents as f64,
        ),
        (
            "new_without_fingerprint",
            "Those with too few features",
            new.without_fingerprint as f64,
        ),
        (
            "new_duplicate_ids",
            "Those whose id another has too",
            new.duplicate_ids as f64,
        ),
        (
            "new_invalid_utf8",
            "Those whose text is not UTF-8",
            new.invalid_utf8 as f64,
        ),
        (
            "base_fingerprints",
            "Fingerprints of the history",
            base.fingerprints as f64,
        ),
        ("base_files", "Files of the history", base.files as f64),
        (
            "base_read_bytes",
            "Encoded fingerprints read",
            base.bytes_read as f64,
        ),
        ("hits", "Pairs written", summary.hits as f64),
        (
            "hits_left_out",
            "Pairs left out by a limit",
            summary.hits_left_out as f64,
        ),
        (
            "output_bytes",
            "Size of the output",
            summary.output_bytes as f64,
        ),
        (
            "comparisons",
            "How often the day was compared with the history",
            f64::from(summary.comparisons),
        ),
        (
            "storage_requests",
            "Requests to object stores",
            network.requests as f64,
        ),
        (
            "storage_retries",
            "Those that failed and were sent again, or given up",
            network.retries as f64,
        ),
        (
            "storage_received_bytes",
            "Bytes received from object stores",
            network.bytes_received as f64,
        ),
        (
            "storage_sent_bytes",
            "Bytes sent to object stores",
            network.bytes_sent as f64,
        ),
    ];
    for (name, help, value) in numbers {
        set(name, help, value);
    }
    if let Some(version) = summary.archive_version_after {
        set(
            "archive_version",
            "Version of the archive after the run",
            version as f64,
        );
    }
}
