//! Tests of the archive through the program: create, append, rerun, race, verify. Fault numbers are
//! those of docs/faults.md.

use std::fs;
use std::process::Stdio;

use crate::helpers::support::*;

const PAGE: &str = "Near duplicate web documents are abundant and differ in a small portion such as advertisements";

fn archive_with_days(dir: &Dir) -> String {
    let archive = dir.archive("archive", "--profile paper");
    for day in ["2026-01-01", "2026-01-02"] {
        let path = dir.join("input.parquet");
        let other =
            format!("On {day} a page of its own about gardens, rivers and the weather of spring");
        write_documents(
            &path,
            &[
                (&format!("{day}/copy"), PAGE),
                (&format!("{day}/other"), &other),
                ("empty", "404"),
            ],
        );
        dedup_ok(&format!(
            "archive append {archive} --input {} --day {day}",
            path.display()
        ));
    }
    archive
}

fn new_day(dir: &Dir) -> String {
    let path = dir.at("day.parquet");
    write_documents(
        &path,
        &[
            ("n1", PAGE),
            (
                "n2",
                "Something else entirely was written on this page by somebody",
            ),
            ("n3", ""),
        ],
    );
    path
}

#[test]
fn append_commits_the_day_and_a_rerun_changes_nothing() {
    let dir = Dir::new();
    let (archive, day, hits) = (
        archive_with_days(&dir),
        new_day(&dir),
        dir.at("hits.parquet"),
    );
    let run = format!(
        "run --new {day} --base {archive} --output {hits} --append --day 2026-01-03 --json"
    );
    let first = dedup_json(&run);
    assert_eq!(first["commit"]["committed"], 3);
    assert_eq!(first["new"]["without_fingerprint"], 1);
    let bytes = fs::read(&hits).unwrap();
    let found = read_pairs(&hits);
    let row = |base: &str| ("n1".to_owned(), base.to_owned(), 0);
    assert_eq!(found, [row("2026-01-01/copy"), row("2026-01-02/copy")]);
    // Fault 10: reruns the day three times, then once more after a later day was committed and the
    // output deleted.
    let archived = contents(&archive);
    for _ in 0..3 {
        assert_eq!(dedup_json(&run)["commit"], "already_there");
        assert!(fs::read(&hits).unwrap() == bytes && contents(&archive) == archived);
    }
    assert!(
        dedup_ok(run.trim_end_matches(" --json"))
            .stdout
            .contains("committed already")
    );
    let later = dir.join("later.parquet");
    write_documents(&later, &[("l1", PAGE)]);
    dedup_ok(&format!(
        "archive append {archive} --input {} --day 2026-01-04",
        later.display()
    ));
    fs::remove_file(&hits).unwrap();
    dedup_ok(&run);
    assert!(fs::read(&hits).unwrap() == bytes);
    dedup_ok(&format!("archive info {archive} --verify"));
}

/// Fault 9: a committed day is appended with other documents; the error names both digests.
#[test]
fn the_same_day_with_other_content_is_refused() {
    let dir = Dir::new();
    let (archive, day, hits) = (
        archive_with_days(&dir),
        new_day(&dir),
        dir.at("hits.parquet"),
    );
    let run = format!(
        "run --new {day} --base {archive} --output {hits} --append --day 2026-01-03 --json"
    );
    let first = dedup_json(&run)["new"]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    let (before, archived) = (fs::read(&hits).unwrap(), contents(&archive));
    write_documents(
        &day,
        &[("n1", "A page that now has some other words on it")],
    );
    let ran = dedup(&run).fails(65, &["2026-01-03", &first]);
    let digests = ran
        .stderr
        .split(|c: char| !c.is_ascii_hexdigit())
        .filter(|word| word.len() == 64)
        .count();
    assert_eq!(digests, 2, "{}", ran.stderr);
    assert!(fs::read(&hits).unwrap() == before && contents(&archive) == archived);
    // Without --append, a run compares the day with the archive as it was before the day.
    dedup_ok(run.replace(" --append", "").as_str());
}

/// Faults 7 and 8: runs of the same day at the same time make one commit; runs of different days
/// are both committed.
#[test]
fn racing_runs_leave_whole_days() {
    let dir = Dir::new();
    let (archive, day) = (archive_with_days(&dir), new_day(&dir));
    let other = dir.at("other.parquet");
    write_documents(
        &other,
        &[
            ("o1", PAGE),
            ("o2", "Yet another page with five different words"),
        ],
    );
    let start = |new: &str, date: &str, name: &str| {
        let line = format!(
            "run --new {new} --base {archive} --output {} --append --day {date} --json",
            dir.at(name)
        );
        let child = command()
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.unwrap()
    };
    let children = [
        start(&day, "2026-01-03", "a.parquet"),
        start(&day, "2026-01-03", "b.parquet"),
        start(&other, "2026-01-04", "c.parquet"),
    ];
    let mut committed = 0;
    for child in children {
        let summary = Ran::of(child.wait_with_output().unwrap()).ok().json();
        committed += usize::from(summary["commit"]["committed"].is_u64());
    }
    assert_eq!(committed, 2);
    let info = dedup_json(&format!("archive info {archive} --verify --json"));
    assert_eq!(info["days"]["2026-01-03"]["files"], 1);
    assert_eq!(info["days"]["2026-01-03"]["fingerprints"], 2);
    assert_eq!(info["days"]["2026-01-04"]["fingerprints"], 2);
    // The run that lost the race removed its files.
    let files = contents(&archive)
        .into_iter()
        .filter(|(path, _)| path.extension() == Some("parquet".as_ref()));
    assert_eq!(files.count(), 4);
}

#[test]
fn an_archive_of_numbers_keeps_numbers() {
    let dir = Dir::new();
    let archive = dir.archive(
        "archive",
        "--profile paper --id-type bigint --weight log-tf --min-features 2",
    );
    write_parquet(
        dir.join("a.parquet"),
        vec![
            ("id", numbers([1, 2])),
            ("text", strings(["one two three", "four"])),
        ],
    );
    dedup_ok(&format!(
        "fingerprint --input {} --append {archive} --day 2026-01-01",
        dir.at("a.parquet")
    ));
    let info = dedup_json(&format!("archive info {archive} --json"));
    assert_eq!(
        (
            &info["id_type"],
            &info["spec"]["weight"],
            &info["fingerprints"]
        ),
        (&"bigint".into(), &"log-tf".into(), &1.into())
    );
    // CSV has only text; here its numbers become bigint ids.
    fs::write(dir.join("b.csv"), "id,text\n7,one two three\n").unwrap();
    dedup_ok(&format!(
        "run --new {} --base {archive} --output {}",
        dir.at("b.csv"),
        dir.at("hits.parquet")
    ));
    assert_eq!(read_hits(dir.join("hits.parquet"))[0].0, "7");
    fs::write(dir.join("c.csv"), "id,text\nseven,one two three\n").unwrap();
    dedup(&format!(
        "run --new {} --base {archive} --output {}",
        dir.at("c.csv"),
        dir.at("hits.parquet")
    ))
    .fails(65, &["c.csv", "id", "bigint", "seven"]);
}

#[test]
fn kept_fingerprints_serve_as_the_day() {
    let dir = Dir::new();
    let (archive, day) = (archive_with_days(&dir), new_day(&dir));
    let (kept, made) = (dir.at("kept.parquet"), dir.at("made.parquet"));
    dedup_ok(&format!(
        "run --new {day} --base {archive} --output {} --fingerprints {kept}",
        dir.at("a.parquet")
    ));
    dedup_ok(&format!("fingerprint --input {day} --output {made}"));
    assert_eq!(fs::read(&kept).unwrap(), fs::read(&made).unwrap());
    dedup_ok(&format!(
        "run --new {kept} --base {archive} --output {}",
        dir.at("b.parquet")
    ));
    assert_eq!(
        fs::read(dir.join("a.parquet")).unwrap(),
        fs::read(dir.join("b.parquet")).unwrap()
    );
    // A day is the same whether it was committed from texts or from fingerprints.
    dedup_ok(&format!(
        "archive append {archive} --input {kept} --day 2026-01-03"
    ));
    let again = dedup_ok(&format!(
        "archive append {archive} --input {day} --day 2026-01-03 --json"
    ));
    assert_eq!(again.json()["commit"], "already_there");
    // Plain files of fingerprints keep their spec too.
    fs::create_dir(dir.join("plain")).unwrap();
    fs::rename(&kept, dir.join("plain/kept.parquet")).unwrap();
    dedup_ok(&format!(
        "run --new {day} --base {} --output {}",
        dir.at("plain"),
        dir.at("c.parquet")
    ));
    assert!(
        read_hits(dir.join("c.parquet"))
            .iter()
            .any(|hit| hit.0 == "n1" && hit.1 == "n1")
    );
}
