//! Tests of metrics and logs, for programs that watch the job.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::helpers::support::*;

fn value(text: &str, name: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in {text}"))
        .parse()
        .unwrap()
}

#[test]
fn metrics_of_a_run_go_to_a_file_whether_it_ends_well_or_not() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 300 --base 1000"
    ));
    let metrics = dir.at("{day}.prom");
    let run = format!(
        "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --append --output {} --metrics {metrics} --json",
        dir.at("hits.parquet")
    );
    let summary = dedup_json(&run);
    let path = dir.join("2026-01-31.prom");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert_eq!(value(&text, "dedup_job_exit_code"), 0.0);
    assert_eq!(
        value(&text, "dedup_job_hits"),
        summary["hits"].as_f64().unwrap()
    );
    assert_eq!(value(&text, "dedup_job_new_documents"), 300.0);
    assert_eq!(value(&text, "dedup_job_archive_version"), 4.0);
    assert!(value(&text, "dedup_job_stage_seconds{stage=\"probe\"}") >= 0.0);
    let succeeded = value(&text, "dedup_job_last_success_timestamp_seconds");
    assert!(succeeded > 1.7e9);
    // Another program can parse it.
    if let Some(python) = crate::interop::python() {
        let script = "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as f; \
                      print(sum(len(m.samples) for m in f(open(sys.argv[1]).read())))";
        let output = std::process::Command::new(python)
            .args(["-c", script, path.to_str().unwrap()])
            .output()
            .unwrap();
        let samples: usize = Ran::of(output).ok().stdout.trim().parse().unwrap();
        assert!(samples > 20, "{samples}");
    }
    let failed = run.replace("day.parquet", "missing.parquet");
    dedup(&failed).fails(64, &["missing.parquet"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(value(&text, "dedup_job_exit_code"), 64.0);
    // The time of the last success is unchanged: alerts depend on it.
    assert_eq!(
        value(&text, "dedup_job_last_success_timestamp_seconds"),
        succeeded
    );
    assert!(text.ends_with("# EOF\n"));
    // A metrics file that the checks refused is not written at the end, either.
    let hits = dir.at("both.csv");
    let both = format!(
        "run --new {data}/day.parquet --base {data}/archive --output {hits} --metrics {hits}"
    );
    dedup(&both).fails(64, &["same file"]);
    dedup(&format!("{both} --overwrite")).fails(64, &["same file"]);
    assert!(!std::path::Path::new(&hits).exists());
    // A file that cannot be written is refused before any work.
    dedup(&run.replace(&metrics, "/missing/x.prom")).fails(74, &["/missing"]);
}

#[test]
fn metrics_are_pushed_to_a_gateway_and_their_loss_is_no_failure() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 100 --base 300"
    ));
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gateway.local_addr().unwrap();
    let pushed = std::thread::spawn(move || {
        let (mut stream, _) = gateway.accept().unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !request.ends_with(b"# EOF\n") {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0);
            request.extend_from_slice(&buffer[..read]);
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        String::from_utf8(request).unwrap()
    });
    let run = |url: &str| {
        dedup(&format!(
            "run --new {data}/day.parquet --base {data}/archive --output {} --metrics {url}",
            dir.at("hits.parquet")
        ))
    };
    run(&format!("http://{address}/metrics/job/dedup-job")).ok();
    let request = pushed.join().unwrap();
    assert!(
        request.starts_with("PUT /metrics/job/dedup-job HTTP/1.1\r\n"),
        "{request}"
    );
    assert_eq!(value(&request, "dedup_job_new_documents"), 100.0);
    // Nobody listens at this address any more. The message does not show the URL's password.
    let lost = run(&format!(
        "http://user:canary-password@{address}/metrics/job/dedup-job"
    ))
    .ok();
    assert!(
        lost.stderr.contains("the metrics are lost"),
        "{}",
        lost.stderr
    );
    assert!(!lost.stderr.contains("canary"), "{}", lost.stderr);
}

#[test]
fn log_lines_are_json_when_asked_for() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 100 --base 300"
    ));
    let ran = dedup_ok(&format!(
        "run --new {data}/day.parquet --base {data}/archive --output {} -vv --log-format json",
        dir.at("hits.parquet")
    ));
    assert!(ran.stderr.lines().count() > 3);
    for line in ran.stderr.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["timestamp"].is_string() && line["level"].is_string());
        assert!(line["fields"].is_object());
    }
}
