//! The whole job on object storage gives the same as on local files.

use std::fs;

use crate::helpers::servers::*;
use crate::helpers::support::*;

const COUNTS: &str = "--new 3000 --base 20000 --filler 60000 --days 5";

/// Runs the job on local files and on `storage`, and compares bytes.
fn same_as_local(storage: &Storage) {
    let dir = Dir::new();
    let local = dir.at("data");
    dedup_ok(&format!("generate pages --output {local} {COUNTS}"));
    let remote = storage.unique("data");
    let made = storage.dedup(&format!("generate pages --output {remote} {COUNTS} --json"));
    assert_eq!(made.ok().json()["output"], remote);
    for name in ["day.parquet", "expected.parquet"] {
        let object = storage.get(&format!("{remote}/{name}")).unwrap();
        assert!(
            object == fs::read(dir.join("data").join(name)).unwrap(),
            "{name}"
        );
    }
    // A second run with the same target is refused before anything is written.
    storage
        .dedup(&format!("generate pages --output {remote} {COUNTS}"))
        .fails(64, &["exists already"]);

    let (hits, kept) = (dir.at("hits.parquet"), dir.at("fp.parquet"));
    let line = |data: &str, hits: &str, kept: &str| {
        format!(
            "run --new {data}/day.parquet --base {data}/archive --output {hits} --fingerprints {kept} \
             --append --day 2026-01-31 --json"
        )
    };
    let here = dedup_json(&line(&local, &hits, &kept));
    let there_hits = format!("{remote}/out/hits-{{day}}.parquet");
    let there_kept = format!("{remote}/out/fp.parquet");
    let there = storage
        .dedup_ok(&line(&remote, &there_hits, &there_kept))
        .json();
    let there_hits = there_hits.replace("{day}", "2026-01-31");
    for field in [
        "hits",
        "commit",
        "design",
        "spec_digest",
        "archive_version_before",
        "archive_version_after",
    ] {
        assert_eq!(here[field], there[field], "{field}");
    }
    assert_eq!(there["archive_version_after"], 6);
    assert_eq!(here["new"], there["new"]);
    assert_eq!(here["network"]["requests"], 0);
    assert!(there["network"]["requests"].as_u64().unwrap() > 10);
    assert!(there["network"]["bytes_received"].as_u64() > there["output_bytes"].as_u64());
    let bytes = fs::read(&hits).unwrap();
    assert!(bytes == fs::read(dir.join("data/expected.parquet")).unwrap());
    assert!(storage.get(&there_hits).unwrap() == bytes);
    assert!(storage.get(&there_kept).unwrap() == fs::read(&kept).unwrap());

    // Reruns the day from compressed and plain JSON Lines below a prefix, with a local output.
    let pages = format!("{remote}/pages");
    let script_rows = read_parquet(dir.join("data/day.parquet"));
    let lines: Vec<String> = script_rows
        .iter()
        .flat_map(|batch| {
            let (ids, texts) = (texts(batch.column(0)), texts(batch.column(1)));
            ids.into_iter().zip(texts).collect::<Vec<_>>()
        })
        .map(|(id, text)| serde_json::json!({ "id": id, "text": text }).to_string())
        .collect();
    let half = lines.len() / 2;
    storage.put(
        &format!("{pages}/a.jsonl"),
        (lines[..half].join("\n") + "\n").into_bytes(),
    );
    let packed = zstd::encode_all((lines[half..].join("\n") + "\n").as_bytes(), 3).unwrap();
    storage.put(&format!("{pages}/deep/b.jsonl.zst"), packed);
    storage.put(&format!("{pages}/_log.jsonl"), b"not a document\n".into());
    let again = dir.at("again.parquet");
    let log = storage.log(&format!("{remote}/archive"));
    for new in [
        format!("{pages}/"),
        format!("{pages}/*.jsonl {pages}/*/*.zst"),
    ] {
        let ran = storage.dedup(&format!(
            "run --new {new} --base {remote}/archive --output {again} --append --day 2026-01-31 --json"
        ));
        assert_eq!(ran.ok().json()["commit"], "already_there");
        assert!(fs::read(&again).unwrap() == bytes);
    }
    assert!(storage.log(&format!("{remote}/archive")) == log);

    // Writes decisions, and copies of the kept documents: of a batch of one file, and of several.
    let decide = |data: &str, decisions: &str, clean: &str| {
        format!(
            "run {data}/day.parquet --base {data}/archive --decisions {decisions} --kept {clean} --json"
        )
    };
    let (decisions, clean) = (dir.at("decisions.csv"), dir.at("clean.parquet"));
    let here = dedup_json(&decide(&local, &decisions, &clean));
    let out = format!("{remote}/out");
    let there_decisions = format!("{out}/decisions.csv");
    let there_clean = format!("{out}/clean.parquet");
    let ran = storage.dedup(&decide(&remote, &there_decisions, &there_clean));
    let kept = &ran.ok().json()["decisions"]["kept"];
    assert_eq!(here["decisions"]["kept"], *kept);
    assert!(storage.get(&there_decisions).unwrap() == fs::read(&decisions).unwrap());
    assert!(storage.get(&there_clean).unwrap() == fs::read(&clean).unwrap());
    let several = format!("run {pages}/ --base {remote}/archive --kept {out}/pages/");
    storage.dedup_ok(&several);
    storage
        .dedup(&several)
        .fails(64, &["exists", "--overwrite"]);
    let first = storage.get(&format!("{out}/pages/a.jsonl")).unwrap();
    let packed = storage
        .get(&format!("{out}/pages/deep/b.jsonl.zst"))
        .unwrap();
    let rows = [first, zstd::decode_all(&packed[..]).unwrap()].concat();
    let rows = String::from_utf8(rows).unwrap();
    assert!(rows.lines().all(|row| lines.iter().any(|line| line == row)));
    assert_eq!(rows.lines().count() as u64, kept.as_u64().unwrap());

    let info = storage
        .dedup_ok(&format!("archive info {remote}/archive --verify --json"))
        .json();
    assert_eq!(info["verified_files"], 6);
    let plan = storage.dedup(&format!(
        "plan --new {remote}/day.parquet --base {remote}/archive --json"
    ));
    assert_eq!(plan.ok().json()["base"]["version"], 6);

    // Plain files, by prefix and by pattern.
    for (url, bytes) in storage.contents(&format!("{remote}/archive")) {
        let url = url.replace("/archive/day=", "/plain/day=");
        if url.contains("/plain/") {
            storage.put(&url, bytes);
        }
    }
    let plain = |base: &str| {
        let ran = storage.dedup(&format!(
            "run --new {remote}/day.parquet --base {base} --output {again} --json"
        ));
        ran.ok().json()["base"]["fingerprints"].as_u64().unwrap()
    };
    let days = format!("{remote}/plain/day=*/*.parquet");
    assert_eq!(plain(&days), info["fingerprints"].as_u64().unwrap());
    assert_eq!(
        plain(&format!("{remote}/plain/day=2026-01-30")),
        info["days"]["2026-01-30"]["fingerprints"].as_u64().unwrap()
    );
}

#[test]
fn the_job_on_s3_gives_the_same_bytes() {
    let Some(storage) = seaweed() else { return };
    same_as_local(&storage);
}

#[test]
fn the_job_on_azure_gives_the_same_bytes() {
    let Some(storage) = azurite() else { return };
    same_as_local(&storage);
}

/// A run reads ids for pairs only, and only the pages that hold one.
#[test]
fn fingerprints_alone_are_scanned() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("scanned"));
    let mixed = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let rows: Vec<(String, u64)> = (1..=300_000)
        .map(|n| {
            let id = format!("{:016x}{:016x}", mixed(mixed(n)), mixed(mixed(n) ^ n));
            (id, mixed(mixed(mixed(n))))
        })
        .collect();
    write_fingerprints(dir.join("base.parquet"), &rows);
    write_fingerprints(dir.join("day.parquet"), &[("new".into(), rows[123_456].1)]);
    storage.upload(dir.join("base.parquet"), &format!("{at}/base.parquet"));
    let (base, day, hits) = (
        format!("{at}/base.parquet"),
        dir.at("day.parquet"),
        dir.at("hits.parquet"),
    );
    let ran = storage.dedup(&format!(
        "run --new {day} --base {base} --output {hits} -k 0 --json"
    ));
    let run = ran.ok().json();
    let found = read_hits(&hits);
    assert_eq!((found.len(), &found[0].1), (1, &rows[123_456].0));
    let number = |of: &serde_json::Value| of.as_u64().unwrap();
    let fingerprints = number(&run["base"]["bytes_read"]);
    let received = number(&run["network"]["bytes_received"]);
    let ids = storage.get(&base).unwrap().len() as u64 - fingerprints;
    assert!(ids > 2 * fingerprints);
    assert!(
        received > fingerprints && received < fingerprints + ids / 4,
        "{received} bytes received: {fingerprints} are of fingerprints, {ids} of ids"
    );
}

/// A spec's tables, documents to explain and texts to verify with can all be in the store.
#[test]
fn every_path_can_be_in_a_store() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("paths"));
    let pages: Vec<(String, String)> = (0..40)
        .map(|n| {
            let words: Vec<String> = (0..30)
                .map(|w| format!("word{}", (n * 7 + w) % 90))
                .collect();
            (format!("d{n}"), words.join(" "))
        })
        .collect();
    let rows: Vec<(&str, &str)> = pages.iter().map(|(id, text)| (&**id, &**text)).collect();
    write_documents(dir.join("docs.parquet"), &rows);
    storage.upload(dir.join("docs.parquet"), &format!("{at}/docs.parquet"));
    storage.put(&format!("{at}/stop.txt"), b"word1\nword2\n".into());
    storage.put(&format!("{at}/page.txt"), pages[3].1.clone().into_bytes());
    let learnt = storage.dedup(&format!(
        "idf {at}/docs.parquet --output {at}/idf.parquet --stop-words {at}/stop.txt --json"
    ));
    assert_eq!(learnt.ok().json()["documents"], 40);
    storage
        .dedup_ok(&format!(
            "archive create --profile paper {at}/archive --idf {at}/idf.parquet --stop-words {at}/stop.txt"
        ));
    storage.dedup_ok(&format!(
        "fingerprint --input {at}/docs.parquet --append {at}/archive --day 2026-01-01"
    ));
    let run = storage.dedup(&format!(
        "run --new {at}/docs.parquet --base {at}/archive --day 2026-02-01 --output {at}/hits.parquet --no-within -k 0 \
         --verify jaccard --base-text {at}/docs.parquet --json"
    ));
    let run = run.ok().json();
    assert_eq!(run["verified"]["without_text"], 0);
    assert_eq!(run["hits"], 40);
    let explained = storage.dedup(&format!(
        "explain d3 {at}/page.txt --documents {at}/docs.parquet --base {at}/archive --json"
    ));
    assert_eq!(explained.ok().json()["distance"], 0);
    storage.dedup_ok(&format!(
        "fingerprint --input {at}/docs.parquet --output {at}/fp.parquet"
    ));
    assert!(storage.get(&format!("{at}/fp.parquet")).is_some());
}

/// Outputs never lie in inputs, in a store as on the disk.
#[test]
fn outputs_in_what_is_read_are_refused() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("refused");
    for (new, base, output) in [
        ("pages/*.parquet", "archive", "pages/hits.parquet"),
        ("pages/", "archive", "pages/deep/hits.parquet"),
        ("day.parquet", "archive", "archive/hits.parquet"),
        ("day.parquet", "archive", "day.parquet"),
        ("day.parquet", "archive", "hits/"),
        ("archive", "archive/", "hits.parquet"),
    ] {
        storage
            .dedup(&format!(
                "run --new {at}/{new} --base {at}/{base} --output {at}/{output}"
            ))
            .fails(64, &[]);
    }
    storage
        .dedup("run --new x.parquet --base ftp://host/x --output hits.parquet")
        .fails(64, &["s3://"]);
    storage
        .dedup("run --new x --base s3://key:canary-in-url@bucket/y --output hits.parquet")
        .fails(64, &["environment variables"]);
    assert!(storage.list(&at).is_empty());
}

/// Compaction changes the files but not the results of runs; vacuum deletes the old files.
fn maintained(run: impl Fn(&str) -> Ran, data: &str, files: impl Fn() -> Vec<String>, hits: &str) {
    run(&format!(
        "generate fingerprints --output {data} --new 1000 --base 6000 --days 2"
    ))
    .ok();
    let first = format!(
        "run --new {data}/day.parquet --base {data}/archive --output {hits} --append --day 2026-01-31 --rows-per-file 100 --json"
    );
    let first_run = run(&first).ok().json();
    assert_eq!(first_run["commit"]["committed"], 3);
    let before = fs::read(hits).unwrap();
    let info = |extra: &str| {
        run(&format!("archive info {data}/archive {extra} --json"))
            .ok()
            .json()
    };
    assert_eq!(info("")["days"]["2026-01-31"]["files"], 10);
    assert_eq!(files().len(), 12);
    // The days before the one with many files have nothing to merge.
    let none = run(&format!(
        "archive compact {data}/archive --before 2026-01-31 --json"
    ));
    assert!(none.ok().json()["version"].is_null());
    let compacted = run(&format!("archive compact {data}/archive --json"))
        .ok()
        .json();
    assert_eq!(compacted["merged_files"], 10);
    assert_eq!(compacted["written_files"], 1);
    assert_eq!(compacted["fingerprints"], 1000);
    assert_eq!(info("--verify")["days"]["2026-01-31"]["files"], 1);
    assert_eq!(files().len(), 13);
    let again = run(&format!("archive compact {data}/archive")).ok();
    assert!(again.stdout.contains("nothing to merge"));
    // A rerun compares the day with the days before it, even if its own files were merged.
    let rerun = run(&first).ok().json();
    assert_eq!(rerun["commit"], "already_there");
    assert!(fs::read(hits).unwrap() == before);

    // No file is a week old, so vacuum deletes none.
    let vacuum = |extra: &str| {
        run(&format!("archive vacuum {data}/archive {extra} --json"))
            .ok()
            .json()["files"]
            .clone()
    };
    assert_eq!(vacuum("").as_array().unwrap().len(), 0);
    run(&format!("archive vacuum {data}/archive --older-than 1m")).fails(64, &["--nothing-runs"]);
    let would = vacuum("--older-than 0s --dry-run");
    assert_eq!(would.as_array().unwrap().len(), 10);
    assert_eq!(files().len(), 13);
    assert_eq!(vacuum("--older-than 0s --nothing-runs"), would);
    assert_eq!(files().len(), 3);
    assert_eq!(info("--verify")["fingerprints"], 7000);
    run(&first).ok();
    assert!(fs::read(hits).unwrap() == before);
}

#[test]
fn compact_and_vacuum_change_nothing_that_is_found() {
    let dir = Dir::new();
    let (data, hits) = (dir.at("data"), dir.at("hits.parquet"));
    let files = || {
        let all = contents(dir.join("data/archive"));
        let names = all.into_iter().map(|(path, _)| path.display().to_string());
        names.filter(|name| name.contains("/day=")).collect()
    };
    maintained(dedup, &data, files, &hits);
}

#[test]
fn compact_and_vacuum_work_on_s3() {
    let Some(storage) = seaweed() else { return };
    let (dir, data) = (Dir::new(), storage.unique("maintained"));
    let files = || {
        let all = storage.list(&format!("{data}/archive")).into_iter();
        all.filter(|name| name.contains("/day=")).collect()
    };
    maintained(
        |line| storage.dedup(line),
        &data,
        files,
        &dir.at("hits.parquet"),
    );
}

/// Google's service has no test server here, so the test ends at the first request.
#[test]
fn google_is_reached_as_far_as_credentials() {
    let Some(storage) = seaweed() else { return };
    let alone = storage.with("GCE_METADATA_HOST", Some("127.0.0.1:1"));
    let ran = alone.dedup("run --new gs://bucket/day.parquet --base gs://bucket/archive");
    ran.fails(77, &["gs://bucket", "GOOGLE_APPLICATION_CREDENTIALS"]);
    say("NOT TESTED: gs:// against a server; no emulator of it can be had here");
}
