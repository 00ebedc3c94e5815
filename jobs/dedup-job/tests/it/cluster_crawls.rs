//! Crawls on a cluster: WARC files are shared by the executors, large ones in parts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::helpers::crawl_files::{
    write_crawl, write_crawl_with_skipped_frames, write_large_crawl,
    write_large_crawl_with_dictionary,
};
use crate::helpers::processes::*;
use crate::helpers::support::*;

/// WARC files are dealt out to the executors, which report what they read and what they did not. Pairs, decisions and kept
/// records are those of one process.
#[test]
fn crawls() {
    let dir = Dir::new();
    write_crawl(&dir.join("first"), 0..200);
    write_crawl(&dir.join("second"), 200..500);
    let archive = dir.at("archive");
    dedup(&format!("archive create {archive} --markup text")).ok();
    let first = dir.at("first");
    dedup(&format!(
        "archive append {archive} --input {first}/ --day 2026-01-01"
    ))
    .ok();
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let run = |place: &str, options: &str| {
        let at = |name: &str| dir.at(&format!("{place}-{name}"));
        let (pairs, decisions) = (at("pairs.parquet"), at("decisions.parquet"));
        dedup(&format!(
            "run --new {}/ --base {archive} --day 2026-01-31 -k 8 --output {pairs} --decisions {decisions} --kept {}/ \
             --metrics {} --json {options}",
            dir.at("second"),
            at("kept"),
            at("metrics.prom")
        ))
        .ok()
        .json()
    };
    let alone = run("here", "");
    let summary = run("there", &format!("--cluster {}", cluster.address()));
    for field in ["new", "hits", "spec_digest"] {
        assert_eq!(summary[field], alone[field], "{field}");
    }
    let expected =
        serde_json::json!({ "other status": 30, "request": 300, "truncated": 1, "warcinfo": 5 });
    let records = &summary["new"]["crawl_records"];
    assert_eq!(records["skipped"], expected);
    assert_eq!(records["documents"], 269);
    assert_eq!(records["statuses"]["404"], 30);
    let executors = summary["cluster"]["executors"].as_array().unwrap();
    let documents = executors.iter().map(|of| of["documents"].as_u64().unwrap());
    assert_eq!(documents.sum::<u64>(), 269);
    assert!(read_hits(dir.join("there-pairs.parquet")).len() > 200);
    for name in ["pairs.parquet", "decisions.parquet"] {
        let [here, there] =
            ["here", "there"].map(|place| fs::read(dir.join(&format!("{place}-{name}"))).unwrap());
        assert!(here == there, "{name}");
    }
    let [here, there] = ["here", "there"].map(|place| {
        let kept = dir.join(&format!("{place}-kept"));
        let files = contents(&kept).into_iter();
        let named =
            files.map(|(path, bytes)| (path.strip_prefix(&kept).unwrap().to_owned(), bytes));
        named.collect::<Vec<_>>()
    });
    assert!(here == there && here.len() == 5);
    let metrics = fs::read_to_string(dir.join("there-metrics.prom")).unwrap();
    for line in [
        "dedup_job_new_crawl_records{outcome=\"document\"} 269",
        "dedup_job_new_crawl_records{outcome=\"request\"} 300",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

/// A large WARC file is cut where members start, and several threads or executors read it. The results are those of one reader.
#[test]
fn a_large_crawl_is_shared() {
    let dir = Dir::new();
    let archive = dir.at("archive");
    dedup(&format!("archive create {archive} --markup text")).ok();
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let by_cluster = format!("--cluster {}", cluster.address());
    type Write = fn(&Path);
    let crawls: [(&str, Write); 2] = [
        ("gz", write_large_crawl),
        ("zst", write_large_crawl_with_dictionary),
    ];
    for (ending, write) in crawls {
        let crawl = dir.at(&format!("crawl.warc.{ending}"));
        write(Path::new(&crawl));
        // Files of less than 8 MiB are not cut.
        assert!(fs::metadata(&crawl).unwrap().len() > 10 << 20);
        let mut all = Vec::new();
        for (place, options) in [
            ("one", "--threads 1"),
            ("two", "--threads 2"),
            ("cluster", by_cluster.as_str()),
        ] {
            let at = |name: &str| dir.at(&format!("{ending}-{place}-{name}"));
            let kept = format!("kept.warc.{ending}");
            let paths = ["pairs.parquet", "decisions.parquet", &kept].map(at);
            let [pairs, decisions, kept] = &paths;
            let ran = dedup(&format!(
                "run --new {crawl} --base {archive} --output {pairs} --decisions {decisions} --kept {kept} -k 6 --json -vv {options}"
            ));
            let ran = ran.ok();
            assert_eq!(ran.stderr.contains("a file is cut"), place != "one");
            let summary = ran.json();
            assert_eq!(summary["new"]["crawl_records"]["documents"], 3_000);
            if place == "cluster" {
                let executors = summary["cluster"]["executors"].as_array().unwrap();
                let documents = executors.iter().map(|of| of["documents"].as_u64().unwrap());
                assert_eq!(documents.sum::<u64>(), 3_000);
            }
            assert!(read_hits(pairs).len() > 1_400);
            let bytes = paths.map(|path| fs::read(path).unwrap());
            all.push((
                summary["new"].clone(),
                summary["decisions"]["kept"].clone(),
                bytes,
            ));
        }
        assert!(all[0] == all[1] && all[0] == all[2], "{ending}");
    }
}

/// Fault 53: an executor finds that a file is cut within a member. The executors then read it as a whole. Where this process reads
/// the file before, it is whole for the executors.
#[test]
fn a_file_that_is_cut_within_a_member_is_read_again_by_the_cluster() {
    let dir = Dir::new();
    let (crawls, archive) = (dir.at("in"), dir.at("archive"));
    write_crawl(&dir.join("in"), 100..400);
    // The files behind this one have other numbers when it is whole.
    write_crawl_with_skipped_frames(&dir.join("in/a.warc.zst"), true);
    dedup(&format!("archive create {archive} --markup text")).ok();
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let by_cluster = format!("--cluster {}", cluster.address());
    let mut all = Vec::new();
    for (place, options, warnings) in [
        ("one", "--day 2026-01-30 --threads 1".to_owned(), 0),
        ("there", format!("--day 2026-01-30 {by_cluster}"), 1),
        ("days", format!("--day from-records {by_cluster}"), 1),
    ] {
        let at = |name: &str| dir.at(&format!("{place}-{name}"));
        let paths = ["pairs.parquet", "decisions.parquet"].map(at);
        let [pairs, decisions] = &paths;
        let ran = dedup(&format!(
            "run --new {crawls}/ --base {archive} -k 8 --output {pairs} --decisions {decisions} --json {options}"
        ))
        .ok();
        let warned = ran.stderr.matches("this file as a whole").count();
        assert_eq!(warned, warnings, "{place}: {}", ran.stderr);
        let summary = ran.json();
        assert_eq!(summary["new"]["crawl_records"]["documents"], 272);
        if warnings > 0 {
            let executors = summary["cluster"]["executors"].as_array().unwrap();
            let documents = executors.iter().map(|of| of["documents"].as_u64().unwrap());
            assert_eq!(documents.sum::<u64>(), 272);
        }
        let bytes = paths.map(|path| fs::read(path).unwrap());
        all.push((summary["new"].clone(), bytes));
    }
    assert!(all[1..].iter().all(|other| *other == all[0]));
}
