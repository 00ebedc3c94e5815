//! Tests of `archive append DIR --input ARCHIVE`: the days of another archive, with what was decided about them.

use std::fs;

use serde_json::json;

use crate::helpers::support::*;

fn text(of: usize, words: std::ops::Range<usize>) -> String {
    words.map(|word| format!("t{of}w{word} ")).collect()
}

fn write(path: &str, documents: &[(&str, String)]) {
    let lines = documents
        .iter()
        .map(|(id, text)| json!({ "id": id, "text": text }).to_string());
    fs::write(path, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

fn info(archive: &str) -> serde_json::Value {
    dedup_json(&format!("archive info {archive} --json"))
}

#[test]
fn days_keep_their_decisions() {
    let dir = Dir::new();
    let [a, b] = ["a", "b"].map(|name| dir.at(name));
    for archive in [&a, &b] {
        dedup_ok(&format!("archive create {archive}"));
    }
    let day = |archive: &str, day: &str, documents: &[(&str, String)]| {
        let new = dir.at(&format!("{day}.jsonl"));
        write(&new, documents);
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day {day} -o {archive}.csv"
        ));
        new
    };
    day(&a, "2026-01-01", &[("a1", text(1, 0..100))]);
    // `x` is kept, and `y` dropped for it.
    let second = day(
        &b,
        "2026-01-02",
        &[("x", text(2, 0..104)), ("y", text(2, 3..103))],
    );
    day(&b, "2026-01-03", &[("z", text(3, 0..100))]);
    let before = info(&b);
    let merged = dedup_json(&format!("archive append {a} --input {b} --json"));
    assert_eq!(merged["days"], 2);
    assert_eq!(merged["fingerprints"], 3);
    assert_eq!(info(&b), before);
    // The days have their rows and decisions, and a rerun of a day finds it.
    let rerun = dir.at("rerun.csv");
    let run = format!("run {second} --base {a} --append --day 2026-01-02 --decisions {rerun}");
    let ran = dedup_json(&format!("{run} --json"));
    assert_eq!(ran["commit"], "already_there", "{ran}");
    // Near `y` alone, which nobody kept: no duplicate of it.
    let (new, output) = (dir.at("new.jsonl"), dir.at("new.csv"));
    write(
        &new,
        &[("near", text(2, 3..103)), ("nearz", text(3, 0..99))],
    );
    let decide = |archive: &str| {
        dedup_ok(&format!(
            "run {new} --base {archive} --decisions {output} --overwrite"
        ));
        fs::read_to_string(&output).unwrap()
    };
    assert_eq!(decide(&a), decide(&b));
    assert!(decide(&a).contains("near,false,x"), "{}", decide(&a));

    // Again: nothing to do. One day alone, of an archive that has more.
    let again = dedup_ok(&format!("archive append {a} --input {b}"));
    assert!(
        again.stdout.contains("2 days were there already"),
        "{}",
        again.stdout
    );
    let c = dir.archive("c", "");
    let one = dedup(&format!(
        "archive append {c} --input {b} --day 2026-01-03 --json"
    ));
    assert_eq!(one.ok().json()["days"], 1);
    dedup(&format!("archive append {c} --input {b} --day 2026-01-09")).fails(65, &["2026-01-09"]);
    // Several at once.
    let both = dedup_json(&format!("archive append {c} --input {a} {b} --json"));
    assert_eq!(
        (&both["days"], &both["days_already_there"]),
        (&json!(2), &json!(3))
    );
    dedup_ok(&format!("archive info {c} --verify"));
}

#[test]
fn what_cannot_be_merged_is_refused_before_anything_is_copied() {
    let dir = Dir::new();
    let [a, b, plain, other] = ["a", "b", "plain", "other"].map(|name| dir.at(name));
    dedup_ok(&format!("archive create {a}"));
    dedup_ok(&format!("archive create {b}"));
    dedup_ok(&format!("archive create {plain} --profile paper"));
    dedup_ok(&format!("archive create {other} --sketch 128"));
    let new = dir.at("n.jsonl");
    for (archive, id) in [(&a, "1"), (&b, "2")] {
        write(&new, &[(id, text(4, 0..50))]);
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day 2026-01-05 -o {archive}.csv"
        ));
    }
    write(&new, &[("3", text(5, 0..50))]);
    dedup_ok(&format!(
        "run {new} --base {b} --append --day 2026-01-04 -o {b}.csv"
    ));
    let version = info(&a)["version"].clone();
    // Both have a day, with other documents: nothing of the other day is copied either.
    dedup(&format!("archive append {a} --input {b}"))
        .fails(65, &["2026-01-05", "cannot be merged"]);
    dedup(&format!("archive append {a} --input {other}")).fails(78, &["sketch"]);
    dedup(&format!("archive append {a} --input {a}")).fails(64, &["itself"]);
    dedup(&format!("archive append {a} --input {b} {new}")).fails(64, &["n.jsonl"]);
    dedup(&format!("archive append {a} --input {new}")).fails(64, &["--day"]);
    assert_eq!(info(&a)["version"], version);
    // An archive without decisions takes none.
    let decided = dir.archive("decided", "--profile paper --decisions");
    write(&new, &[("3", text(5, 0..50))]);
    dedup_ok(&format!(
        "run {new} --base {decided} --append --day 2026-01-04 -o {decided}.csv"
    ));
    dedup(&format!("archive append {plain} --input {decided}"))
        .fails(65, &["which documents are kept"]);
    // One with decisions takes the days of one without: all their documents count as kept.
    dedup_ok(&format!(
        "archive append {plain} --input {new} --day 2026-01-06"
    ));
    dedup_ok(&format!("archive append {decided} --input {plain}"));
    dedup_ok(&format!("archive info {decided} --verify"));
}
