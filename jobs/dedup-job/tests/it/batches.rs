//! Tests of `--batch`: several batches of one day, each committed once.

use std::fs;

use serde_json::{Value, json};

use crate::helpers::support::*;

fn text(content: usize) -> String {
    (0..60).map(|word| format!("c{content}w{word} ")).collect()
}

/// The contents of four batches, by document.
const BATCHES: [&[(&str, usize)]; 4] = [
    &[("a", 1), ("b", 2), ("c", 1)],
    &[("d", 2), ("e", 3), ("a", 4)],
    &[("f", 3), ("g", 5)],
    &[("h", 5), ("i", 1), ("e", 3)],
];

fn write(path: &str, documents: &[(&str, usize)]) {
    let lines = documents
        .iter()
        .map(|(id, content)| json!({ "id": id, "text": text(*content) }).to_string());
    fs::write(path, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

/// The decisions in a file, without days.
fn decisions(path: &str) -> Vec<Value> {
    let rows = fs::read_to_string(path).unwrap();
    let rows = rows.lines().map(|line| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        row["duplicate_day"] = Value::Null;
        row["update_day"] = Value::Null;
        row
    });
    rows.collect()
}

fn commit(run: &str) -> Value {
    dedup(&format!("{run} --json")).ok().json()["commit"].clone()
}

#[test]
fn a_batch_is_compared_with_the_batches_before_it() {
    let dir = Dir::new();
    let [days, batches] = ["days", "batches"].map(|name| dir.at(name));
    for archive in [&days, &batches] {
        dedup(&format!("archive create {archive}")).ok();
    }
    let mut runs = Vec::new();
    let names = ["--batch morning", "", "--batch noon", "--batch 3"];
    for (number, (documents, name)) in BATCHES.iter().zip(names).enumerate() {
        let new = dir.at(&format!("{number}.jsonl"));
        write(&new, documents);
        let (expected, found) = (
            dir.at("expected.jsonl"),
            dir.at(&format!("d{number}.jsonl")),
        );
        dedup(&format!(
            "run {new} --base {days} --append --day 2026-03-0{} --decisions {expected} --overwrite",
            number + 1
        ))
        .ok();
        let run = format!("run {new} --base {batches} --append --day 2026-03-01 {name}");
        dedup(&format!("{run} --decisions {found}")).ok();
        assert_eq!(decisions(&found), decisions(&expected), "batch {number}");
        runs.push((run, found));
    }
    let again = dir.at("again.jsonl");
    let check_reruns = |when: &str| {
        for (run, found) in &runs {
            let rerun = format!("{run} --decisions {again} --overwrite");
            assert_eq!(commit(&rerun), "already_there", "{when}: {run}");
            let [before, after] = [found, &again].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!(before, after, "{when}: {run}");
        }
    };
    check_reruns("after all");
    let info = dedup(&format!("archive info {batches} --json")).ok().json();
    assert_eq!(info["days"].as_object().map(serde_json::Map::len), Some(1), "{info}");
    dedup(&format!("archive compact {batches}")).ok();
    dedup(&format!(
        "archive vacuum {batches} --older-than 0s --nothing-runs"
    ))
    .ok();
    check_reruns("after vacuum");
    // A merged archive has the batches, too.
    let merged = dir.at("merged");
    dedup(&format!("archive create {merged}")).ok();
    let copied = dedup(&format!("archive append {merged} --input {batches} --json"));
    assert_eq!(copied.ok().json()["days"], 4);
    for (run, found) in &runs {
        let run = run.replace(&batches, &merged);
        dedup(&format!("{run} --decisions {again} --overwrite")).ok();
        let [before, after] = [found, &again].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(before, after, "merged: {run}");
    }
}

#[test]
fn a_batch_is_replaced_and_removed_by_its_name() {
    let dir = Dir::new();
    let archive = dir.at("a");
    dedup(&format!("archive create {archive}")).ok();
    let [first, second, other] = ["1.jsonl", "2.jsonl", "3.jsonl"].map(|name| dir.at(name));
    write(&first, BATCHES[0]);
    write(&second, BATCHES[1]);
    write(&other, BATCHES[2]);
    let run = |new: &str, rest: &str| {
        let output = dir.at("o.jsonl");
        format!(
            "run {new} --base {archive} --append --day 2026-03-01 {rest} --decisions {output} --overwrite"
        )
    };
    assert_eq!(
        commit(&run(&first, "--batch one")),
        json!({ "committed": 1 })
    );
    assert_eq!(
        commit(&run(&second, "--batch two")),
        json!({ "committed": 2 })
    );
    // Another batch of the name: as another day.
    dedup(&run(&other, "--batch two")).fails(65, &["2026-03-01/two"]);
    assert_eq!(
        commit(&run(&other, "--batch two --replace-day")),
        json!({ "committed": 3 })
    );
    let rows =
        || dedup(&format!("archive info {archive} --json")).ok().json()["fingerprints"].clone();
    assert_eq!(rows(), 5);
    dedup(&format!(
        "archive remove {archive} --day 2026-03-01 --batch one"
    ))
    .ok();
    assert_eq!(rows(), 2);
    assert_eq!(
        commit(&run(&first, "--batch one")),
        json!({ "committed": 5 })
    );
    dedup(&format!("archive remove {archive} --day 2026-03-01")).ok();
    assert_eq!(rows(), 0);
    assert_eq!(
        commit(&run(&second, "--batch two")),
        json!({ "committed": 7 })
    );
    dedup(&run(&first, "--batch a/b")).fails(64, &["--batch"]);
    dedup(&format!(
        "run {first} --base {archive} --batch one -o {}",
        dir.at("o.csv")
    ))
    .fails(64, &["--day"]);
}
