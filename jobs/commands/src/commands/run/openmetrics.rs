//! Encodes the metrics of a run as OpenMetrics text.
//!
//! All metrics are gauges with the values of the last finished run: nobody can query a scheduled
//! job while it runs.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use engine::Summary;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::process;

/// The metric with the time of the last success; a failed run does not set it.
pub(super) const SUCCESS: &str = "dedup_job_last_success_timestamp_seconds";
/// The last line of the text.
pub(super) const END: &str = "# EOF\n";

type Number = Gauge<f64, AtomicU64>;

/// Encodes the metrics of a run that took `duration`, from its summary or its exit code.
pub(super) fn encode(outcome: Result<&Summary, u8>, duration: Duration) -> String {
    let mut registry = Registry::with_prefix("dedup_job");
    let mut set = |name: &str, help: &str, value: f64| {
        let gauge = Number::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let now = chrono::Utc::now().timestamp_millis() as f64 / 1000.0;
    set(
        "end_timestamp_seconds",
        "End of the last run, in seconds since 1970",
        now,
    );
    set(
        "duration_seconds",
        "Duration of the last run",
        duration.as_secs_f64(),
    );
    let code = outcome.err().unwrap_or(0);
    set(
        "exit_code",
        "Exit code of the last run; 0 for success",
        f64::from(code),
    );
    if let Some(bytes) = process::peak_memory() {
        set(
            "peak_memory_bytes",
            "Peak memory of the last run",
            bytes as f64,
        );
    }
    if code == 0 {
        set(
            "last_success_timestamp_seconds",
            "End of the last successful run, in seconds since 1970",
            now,
        );
    }
    if let Ok(summary) = outcome {
        set_summary(summary, &mut set);
        let seconds = &summary.seconds;
        let stages = [
            ("open", seconds.open),
            ("fingerprint", seconds.fingerprint),
            ("build", seconds.build),
            ("probe", seconds.probe),
            ("verify", seconds.verify),
            ("commit", seconds.commit),
        ];
        let stages = labelled("stage", stages);
        registry.register("stage_seconds", "Seconds of each stage", stages);
        if let Some(records) = &summary.new.crawl_records {
            let skipped = records.skipped.iter();
            let skipped = skipped.map(|(reason, number)| (reason.as_str(), *number as f64));
            let all = [("document", records.documents as f64)].into_iter();
            registry.register(
                "new_crawl_records",
                "Records of WARC files in the batch: documents, and others by the reason why they are none",
                labelled("outcome", all.chain(skipped)),
            );
        }
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode_text(&mut text, &registry);
    text
}

/// Numbers that differ in the value of a label.
fn labelled<'a>(
    label: &'static str,
    numbers: impl IntoIterator<Item = (&'a str, f64)>,
) -> Family<[(&'static str, String); 1], Number> {
    let family = Family::<[(&'static str, String); 1], Number>::default();
    for (value, number) in numbers {
        let gauge = family.get_or_create(&[(label, value.to_owned())]);
        gauge.set(number);
    }
    family
}

fn set_summary(summary: &Summary, set: &mut impl FnMut(&str, &str, f64)) {
    let (new, base, network) = (&summary.new, &summary.base, &summary.network);
    let numbers = [
        (
            "new_documents",
            "Documents of the batch",
            new.documents as f64,
        ),
        (
            "new_without_fingerprint",
            "Documents of the batch with too few features for a fingerprint",
            new.without_fingerprint as f64,
        ),
        (
            "new_duplicate_ids",
            "Documents of the batch whose id another one has too",
            new.duplicate_ids as f64,
        ),
        (
            "new_invalid_utf8",
            "Documents of the batch whose text is not UTF-8",
            new.invalid_utf8 as f64,
        ),
        (
            "base_fingerprints",
            "Fingerprints of the archive",
            base.fingerprints as f64,
        ),
        ("base_files", "Files of the archive", base.files as f64),
        (
            "base_read_bytes",
            "Encoded bytes of archive fingerprints read",
            base.bytes_read as f64,
        ),
        (
            "hits_left_out",
            "Pairs left out by --max-hits-per-document",
            summary.hits_left_out as f64,
        ),
        (
            "comparisons",
            "Number of times the batch was compared with the archive",
            f64::from(summary.comparisons),
        ),
        (
            "storage_requests",
            "Requests to object stores",
            network.requests as f64,
        ),
        (
            "storage_retries",
            "Requests to object stores that failed temporarily",
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
    if let Some((hits, bytes)) = summary.hits.zip(summary.output_bytes) {
        set("hits", "Pairs written", hits as f64);
        set("output_bytes", "Size of the output", bytes as f64);
    }
    if let Some(decisions) = &summary.decisions {
        let counts = &decisions.counts;
        for (name, help, number) in [
            ("kept", "Documents kept", counts.kept),
            (
                "duplicates_of_archive",
                "Documents that are duplicates of the archive",
                counts.duplicates_of_archive,
            ),
            (
                "duplicates_within",
                "Documents that are duplicates within the batch",
                counts.duplicates_within,
            ),
        ] {
            set(name, help, number as f64);
        }
    }
    if let Some(version) = summary.archive_version_after {
        set(
            "archive_version",
            "Version of the archive after the run",
            version as f64,
        );
    }
}
