//! Tests of runs at the same time. Fault numbers are those of docs/faults.md.

use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::proxy::{Fault, Request};

use crate::helpers::servers::*;
use crate::helpers::support::*;

/// Fingerprints of a day: one differs from that of other days in two bits, the others are far from
/// all.
fn day(number: u64) -> Vec<(String, u64)> {
    let shared = 0x0123_4567_89ab_cdef ^ (1 << number);
    let others = (0..200).map(|n: u64| {
        let value = (number << 32 | n)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23);
        (format!("{number}/{n}"), value ^ 0x5555_0000_ffff_3333)
    });
    std::iter::once((format!("{number}/shared"), shared))
        .chain(others)
        .collect()
}

/// Whether a request writes the log entry of `version`.
fn is_commit(request: &Request, version: u64) -> bool {
    let entry = format!("/_delta_log/{version:020}.json");
    request.method == "PUT" && request.path().ends_with(&entry)
}

fn end(child: Child) -> Ran {
    without_secrets(Ran::of(child.wait_with_output().unwrap()))
}

/// Fault 8: different days at the same time. Every run commits its day, and of any two days, the
/// later commit was compared with the earlier.
fn different_days(command: impl Fn() -> std::process::Command, archive: &str) {
    let dir = Dir::new();
    end(start(
        command(),
        &format!("archive create --profile paper {archive}"),
    ))
    .ok();
    let runs: Vec<Child> = (1..=4)
        .map(|number| {
            let new = dir.at(&format!("{number}.parquet"));
            write_fingerprints(&new, &day(number));
            let hits = dir.at(&format!("hits-{number}.parquet"));
            let line = format!(
                "run --new {new} --base {archive} --append --day 2026-01-0{number} --output {hits} --json"
            );
            start(command(), &line)
        })
        .collect();
    for run in runs {
        end(run).ok();
    }
    let mut found: Vec<(String, String)> = (1..=4)
        .flat_map(|number| read_hits(dir.join(&format!("hits-{number}.parquet"))))
        .map(|hit| {
            let (a, b) = (hit.0, hit.1);
            if a < b { (a, b) } else { (b, a) }
        })
        .collect();
    found.sort();
    let mut expected = Vec::new();
    for a in 1..=4 {
        for b in a + 1..=4 {
            expected.push((format!("{a}/shared"), format!("{b}/shared")));
        }
    }
    assert_eq!(found, expected);
    let info = end(start(
        command(),
        &format!("archive info {archive} --verify --json"),
    ))
    .ok();
    assert_eq!(info.json()["version"], 4);
    // A rerun of each gives the same output.
    for number in 1..=4 {
        let hits = dir.at(&format!("hits-{number}.parquet"));
        let before = fs::read(&hits).unwrap();
        let new = dir.at(&format!("{number}.parquet"));
        let line = format!(
            "run --new {new} --base {archive} --append --day 2026-01-0{number} --output {hits} --json"
        );
        assert_eq!(
            end(start(command(), &line)).ok().json()["commit"],
            "already_there"
        );
        assert!(fs::read(&hits).unwrap() == before, "day {number}");
    }
}

#[test]
fn different_days_at_once_are_compared_with_each_other() {
    let dir = Dir::new();
    different_days(command, &dir.at("archive"));
}

#[test]
fn different_days_at_once_are_compared_with_each_other_on_s3() {
    let Some(storage) = seaweed() else { return };
    different_days(|| storage.command(), &storage.unique("days"));
}

/// Fault 7: two runs of the same day at the same time. They make one commit, and both succeed with
/// the same output.
#[test]
fn the_same_day_at_once_is_one_commit_on_s3() {
    let Some(storage) = seaweed() else { return };
    let (dir, archive) = (Dir::new(), storage.unique("same"));
    storage.dedup_ok(&format!("archive create --profile paper {archive}"));
    let new = dir.at("day.parquet");
    write_fingerprints(&new, &day(1));
    let runs: Vec<Child> = (0..4)
        .map(|number| {
            let hits = dir.at(&format!("hits-{number}.parquet"));
            let line = format!(
                "run --new {new} --base {archive} --append --day 2026-01-01 --output {hits} --json"
            );
            start(storage.command(), &line)
        })
        .collect();
    let committed = runs
        .into_iter()
        .map(|run| end(run).ok().json()["commit"].clone())
        .filter(|commit| commit.get("committed").is_some())
        .count();
    assert_eq!(committed, 1);
    let info = storage
        .dedup_ok(&format!("archive info {archive} --verify --json"))
        .json();
    assert_eq!(
        (&info["version"], &info["fingerprints"]),
        (&1.into(), &201.into())
    );
    let first = fs::read(dir.join("hits-0.parquet")).unwrap();
    for number in 1..4 {
        assert!(fs::read(dir.join(&format!("hits-{number}.parquet"))).unwrap() == first);
    }
}

/// Fault 8 at an exact moment: another day is committed just before this one's log entry.
#[test]
fn a_day_that_is_overtaken_is_compared_again() {
    let Some(storage) = seaweed() else { return };
    let (dir, archive) = (Dir::new(), storage.unique("overtaken"));
    storage.dedup_ok(&format!("archive create --profile paper {archive}"));
    let files: Vec<String> = (1..=2)
        .map(|number| {
            let new = dir.at(&format!("{number}.parquet"));
            write_fingerprints(&new, &day(number));
            new
        })
        .collect();
    let once = AtomicBool::new(false);
    let (other, second) = (
        storage.clone(),
        format!(
            "run --new {} --base {archive} --append --day 2026-01-02 --output {} --json",
            files[1],
            dir.at("other.parquet")
        ),
    );
    let (slow, _proxy) = storage.through(move |request| {
        if is_commit(request, 1) && !once.swap(true, Ordering::Relaxed) {
            other.dedup_ok(&second);
        }
        Fault::Pass
    });
    let hits = dir.at("hits.parquet");
    let ran = slow.dedup(&format!(
        "run --new {} --base {archive} --append --day 2026-01-01 --output {hits} --json",
        files[0]
    ));
    let ran = ran.ok();
    assert!(
        ran.stderr.contains("the archive changed meanwhile"),
        "{}",
        ran.stderr
    );
    let summary = ran.json();
    assert_eq!(summary["comparisons"], 2);
    assert_eq!(summary["commit"]["committed"], 2);
    assert_eq!(summary["archive_version_before"], 0);
    assert_eq!(summary["base"]["version"], 1);
    let found: Vec<String> = read_hits(&hits).into_iter().map(|hit| hit.1).collect();
    assert_eq!(found, ["2/shared"]);
    // The run leaves one set of data files, however often it tried to commit.
    let files = storage.list(&archive);
    assert_eq!(
        files.iter().filter(|file| file.contains("/day=")).count(),
        2
    );
}

/// Compaction and vacuum happen after a run opened the archive and before it commits. The run
/// commits without another comparison, and finds the same pairs as without them.
#[test]
fn maintenance_beside_a_run_changes_nothing() {
    let Some(storage) = seaweed() else { return };
    let (dir, archive) = (Dir::new(), storage.unique("beside"));
    storage.dedup_ok(&format!("archive create --profile paper {archive}"));
    let file = |number: u64| {
        let new = dir.at(&format!("{number}.parquet"));
        write_fingerprints(&new, &day(number));
        new
    };
    storage.dedup_ok(&format!(
        "run --new {} --base {archive} --append --day 2026-01-01 --rows-per-file 20 --output {}",
        file(1),
        dir.at("first.parquet")
    ));
    let (other, target, once) = (storage.clone(), archive.clone(), AtomicBool::new(false));
    let (slow, _proxy) = storage.through(move |request| {
        if is_commit(request, 2) && !once.swap(true, Ordering::Relaxed) {
            let compacted = other.dedup(&format!("archive compact {target} --json"));
            assert_eq!(compacted.ok().json()["merged_files"], 11);
            // Vacuum finds no file that is old enough to delete.
            let vacuumed = other.dedup(&format!("archive vacuum {target} --json"));
            assert_eq!(vacuumed.ok().json()["files"], serde_json::json!([]));
        }
        Fault::Pass
    });
    let hits = dir.at("hits.parquet");
    let ran = slow.dedup(&format!(
        "run --new {} --base {archive} --append --day 2026-01-02 --output {hits} --json",
        file(2)
    ));
    let summary = ran.ok().json();
    assert_eq!(summary["comparisons"], 1);
    assert_eq!(summary["commit"]["committed"], 3);
    let found: Vec<String> = read_hits(&hits).into_iter().map(|hit| hit.1).collect();
    assert_eq!(found, ["1/shared"]);
    let info = storage
        .dedup_ok(&format!("archive info {archive} --verify --json"))
        .json();
    assert_eq!(info["fingerprints"], 402);
    assert_eq!(info["files"], 2);
}

/// A run's data files are deleted before its commit: the log never names them.
#[test]
fn data_files_that_went_away_are_not_committed() {
    let Some(storage) = seaweed() else { return };
    let (dir, archive) = (Dir::new(), storage.unique("removed"));
    storage.dedup_ok(&format!("archive create --profile paper {archive}"));
    for number in [1, 2] {
        write_fingerprints(dir.join(&format!("{number}.parquet")), &day(number));
    }
    // While the run's log entry waits, its data files are deleted, and another run commits a day,
    // so that this run compares again.
    let (other, target, once) = (storage.clone(), archive.clone(), AtomicBool::new(false));
    let second = dir.at("2.parquet");
    let output = dir.at("other.parquet");
    let (slow, _proxy) = storage.through(move |request| {
        if is_commit(request, 1) && !once.swap(true, Ordering::Relaxed) {
            for file in other.list(&format!("{target}/day=2026-01-01")) {
                other.delete(&file);
            }
            other.dedup_ok(&format!(
                "run --new {second} --base {target} --append --day 2026-01-02 --output {output}"
            ));
        }
        Fault::Pass
    });
    let line = format!(
        "run --new {} --base {archive} --append --day 2026-01-01 --output {} --json",
        dir.at("1.parquet"),
        dir.at("hits.parquet")
    );
    slow.dedup(&line).fails(75, &["day=2026-01-01", "removed"]);
    let days = || {
        let info = storage.dedup(&format!("archive info {archive} --verify --json"));
        info.ok().json()["days"].as_object().unwrap().len()
    };
    assert_eq!(days(), 1);
    let summary = storage.dedup_ok(&line).json();
    assert_eq!(summary["commit"]["committed"], 2);
    assert_eq!(days(), 2);
}
