//! A run on a cluster gives the same bytes as in one process.

use std::collections::BTreeMap;
use std::fs;

use crate::helpers::processes::*;
use crate::helpers::servers::*;
use crate::helpers::support::*;

const COUNTS: &str = "--new 3000 --base 20000 --filler 60000 --days 5";

/// Two executors on local files: every option of a run gives the same bytes as in one process.
#[test]
fn local_files() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!("generate pages --output {data} {COUNTS}")).ok();
    // Splits the batch into several files, formats and row groups.
    let day = read_parquet(dir.join("data/day.parquet"));
    let (ids, pages): (Vec<String>, Vec<String>) = day
        .iter()
        .flat_map(|batch| {
            let rows = texts(batch.column(0))
                .into_iter()
                .zip(texts(batch.column(1)));
            rows.collect::<Vec<_>>()
        })
        .unzip();
    fs::create_dir(dir.join("parts")).unwrap();
    let half = ids.len() / 2;
    write_parquet_in_groups(
        dir.join("parts/a.parquet"),
        vec![
            ("id", strings(&ids[..half])),
            ("text", strings(&pages[..half])),
        ],
        100,
    );
    let lines = ids[half..].iter().zip(&pages[half..]);
    let lines: String = lines
        .map(|(id, text)| format!("{}\n", serde_json::json!({ "id": id, "text": text })))
        .collect();
    fs::write(dir.join("parts/b.jsonl"), lines).unwrap();

    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    let expected = fs::read(dir.join("data/expected.parquet")).unwrap();
    let base = format!("--base {data}/archive --day 2026-01-31");
    let plain = dir.at("plain");
    copy_data_files(dir.join("data/archive"), &plain);
    let sketches = dir.at("sketches");
    dedup(&format!("archive create {sketches} --sketch 64")).ok();
    let append = format!("fingerprint --input {data}/day.parquet --append {sketches}");
    dedup(&format!("{append} --day 2026-01-01")).ok();
    let sketches = format!("--new {data}/day.parquet --base {sketches} --day 2026-01-31");
    for (options, is_expected) in [
        (format!("--new {data}/day.parquet {base}"), true),
        (format!("--new {}/ {base}", dir.at("parts")), true),
        (
            format!("--new {data}/day.parquet {base} --no-within"),
            false,
        ),
        (
            format!("--new {data}/day.parquet {base} -k 6 --max-hits-per-document 2"),
            false,
        ),
        (format!("--new {data}/day.parquet {base} -k 8"), false),
        (
            format!(
                "--new {data}/day.parquet {base} -k 5 --verify jaccard --base-text {data}/day.parquet"
            ),
            false,
        ),
        (
            format!("--new {data}/day.parquet --base {plain}/day=*/*.parquet"),
            false,
        ),
        (format!("{sketches} -k 8"), false),
        (
            format!("{sketches} -k 8 --verify sketch --min-similarity 0.9"),
            false,
        ),
    ] {
        let alone = dedup(&format!("run {options} --output {here} --json"))
            .ok()
            .json();
        let summary = dedup(&format!(
            "run {options} --output {there} --cluster {} --json",
            cluster.address()
        ));
        let summary = summary.ok().json();
        let bytes = fs::read(&here).unwrap();
        assert!(fs::read(&there).unwrap() == bytes, "{options}");
        assert!(!is_expected || bytes == expected, "{options}");
        let executors = summary["cluster"]["executors"].as_array().unwrap();
        let sum =
            |field: &str| -> u64 { executors.iter().map(|of| of[field].as_u64().unwrap()).sum() };
        assert_eq!(
            sum("slices"),
            summary["cluster"]["slices"].as_u64().unwrap()
        );
        assert_eq!(sum("documents"), 3000, "{options}");
        assert_eq!(
            sum("probed"),
            summary["base"]["fingerprints"].as_u64().unwrap() * summary["passes"].as_u64().unwrap()
        );
        assert_eq!(summary["cluster"]["slices_again"], 0);
        for field in [
            "new",
            "hits",
            "hits_left_out",
            "verified",
            "commit",
            "spec_digest",
        ] {
            assert_eq!(summary[field], alone[field], "{field}, {options}");
        }
    }

    // Two runs at the same time.
    let line = format!(
        "run --new {data}/day.parquet {base} --cluster {} --output",
        cluster.address()
    );
    let other = dir.at("other.parquet");
    let runs = [&there, &other].map(|output| {
        let line = format!("{line} {output} --quiet");
        command().args(line.split_whitespace()).spawn().unwrap()
    });
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    assert!(fs::read(&there).unwrap() == expected && fs::read(&other).unwrap() == expected);

    // The tables of the batch exceed the executors' memory.
    let mut small = TestCluster::new();
    small.add(&BTreeMap::new(), "--memory-limit 100KiB");
    dedup(&format!(
        "run --new {data}/day.parquet {base} --cluster {} --output {there}",
        small.address()
    ))
    .fails(75, &["too little memory", "--memory-limit"]);

    // Commits a day twice.
    let append = format!(
        "--new {data}/day.parquet {base} --append --cluster {}",
        cluster.address()
    );
    for commit in [
        serde_json::json!({ "committed": 6 }),
        "already_there".into(),
    ] {
        let summary = dedup(&format!("run {append} --output {there} --json"));
        assert_eq!(summary.ok().json()["commit"], commit);
        assert!(fs::read(&there).unwrap() == expected);
    }
    dedup(&format!("archive info {data}/archive --verify")).ok();
}

/// Specs with tables of words, which the executors read from the archive or from this process.
#[test]
fn weights_and_stop_words() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup(&format!(
        "generate pages --output {data} --new 500 --base 2000 --days 2"
    ))
    .ok();
    let (idf, words) = (dir.at("idf.parquet"), dir.at("words.txt"));
    dedup(&format!(
        "idf {data}/day.parquet --output {idf} --terms 300"
    ))
    .ok();
    fs::write(&words, "the\nand\n").unwrap();
    dedup(&format!(
        "idf {data}/day.parquet --stop-words {words} --output {idf} --terms 300"
    ))
    .ok();
    let spec = format!("--idf {idf} --stop-words {words} --weight log-tf");
    let archive = dir.at("archive");
    dedup(&format!("archive create {archive} {spec}")).ok();
    dedup(&format!(
        "archive append {archive} --input {data}/day.parquet --day 2026-01-01"
    ))
    .ok();
    let plain = dir.at("plain");
    copy_data_files(&archive, &plain);
    let cluster = TestCluster::of(2, &BTreeMap::new(), "");
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    let (kept_here, kept_there) = (dir.at("fp-here.parquet"), dir.at("fp-there.parquet"));
    for options in [
        format!("--base {archive} --day 2026-02-01"),
        format!("--base {plain}/day=2026-01-01/*.parquet {spec}"),
    ] {
        let line = format!("run --new {data}/day.parquet {options}");
        dedup(&format!(
            "{line} --output {here} --fingerprints {kept_here}"
        ))
        .ok();
        let address = cluster.address();
        dedup(&format!(
            "{line} --output {there} --fingerprints {kept_there} --cluster {address}"
        ))
        .ok();
        assert!(fs::read(&here).unwrap() == fs::read(&there).unwrap());
        assert!(fs::read(&kept_here).unwrap() == fs::read(&kept_there).unwrap());
        assert!(read_hits(&here).len() > 500);
    }
}

/// The archive, the batch and the scratch prefix are in an object store; afterwards the prefix is
/// empty.
#[test]
fn object_storage() {
    let Some(storage) = seaweed() else { return };
    let dir = Dir::new();
    let at = storage.unique("cluster");
    storage
        .dedup(&format!("generate pages --output {at} {COUNTS}"))
        .ok();
    let expected = storage.get(&format!("{at}/expected.parquet")).unwrap();
    let cluster = TestCluster::of(2, &storage.environment(), "");
    let line = format!(
        "run --new {at}/day.parquet --base {at}/archive --day 2026-01-31 --cluster {} --json",
        cluster.address()
    );
    storage
        .dedup(&format!("{line} --output {at}/hits.parquet"))
        .fails(64, &["--scratch URL", "s3://"]);
    let line = format!("{line} --scratch {at}/scratch");
    let summary = storage
        .dedup(&format!("{line} --output {at}/hits.parquet --append"))
        .ok()
        .json();
    assert!(storage.get(&format!("{at}/hits.parquet")).unwrap() == expected);
    assert_eq!(summary["commit"]["committed"], 6);
    let requests = |of: &serde_json::Value| of["requests"].as_u64().unwrap();
    let executors = summary["cluster"]["executors"].as_array().unwrap();
    assert!(executors.iter().map(requests).sum::<u64>() > 5);
    assert_eq!(storage.list(&format!("{at}/scratch")), Vec::<String>::new());

    // The client fingerprints a batch that is on its own disk.
    let day = dir.at("day.parquet");
    fs::write(&day, storage.get(&format!("{at}/day.parquet")).unwrap()).unwrap();
    let hits = dir.at("hits.parquet");
    let ran = storage.dedup(&format!(
        "run --new {day} --base {at}/archive --day 2026-01-31 --output {hits} --scratch {at}/scratch --cluster {}",
        cluster.address()
    ));
    ran.ok();
    assert!(fs::read(&hits).unwrap() == expected);
    assert_eq!(storage.list(&format!("{at}/scratch")), Vec::<String>::new());

    // The client decides, from the batch that the executors read below the scratch prefix.
    let (here, there) = (dir.at("here.parquet"), dir.at("there.parquet"));
    let line = format!("run {day} --base {at}/archive --day 2026-01-31 --decisions");
    storage.dedup(&format!("{line} {here}")).ok();
    let address = cluster.address();
    let line = format!("{line} {there} --scratch {at}/scratch --cluster {address}");
    storage.dedup(&line).ok();
    assert!(fs::read(&there).unwrap() == fs::read(&here).unwrap());
    assert_eq!(storage.list(&format!("{at}/scratch")), Vec::<String>::new());
}
