//! Results are what people mean by them. Fault numbers are those of docs/faults.md.

use std::fs;

use serde_json::{Value, json};

use crate::helpers::support::*;

/// A text that is close to no text of another seed; the last word is another for another `edit`.
fn text(seed: usize, edit: usize) -> String {
    let word = |n: usize| format!("w{:x}", (seed * 1_000_003 + n).wrapping_mul(2_654_435_761));
    let words: Vec<String> = (0..100).map(word).collect();
    format!("{} edit{edit}", words.join(" "))
}

fn write(path: &str, documents: &[(&str, String)]) {
    let line = |(id, text): &(&str, String)| format!("{}\n", json!({ "id": id, "text": text }));
    fs::write(path, documents.iter().map(line).collect::<String>()).unwrap();
}

/// The ids of kept documents, and for the others the id that they repeat.
fn decisions(path: &str) -> Vec<(String, Option<String>)> {
    let read = fs::read_to_string(path).unwrap();
    let rows = read
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    rows.map(|row| (text(&row["id"]).unwrap(), text(&row["duplicate_of"])))
        .collect()
}

/// Row 104: what the test set has is dropped from the training set, and the training set's own duplicates stay.
#[test]
fn a_training_set_is_cleaned_of_a_test_set_alone() {
    let dir = Dir::new();
    let [test, train, archive, decided, clean] = [
        "test.jsonl",
        "train.jsonl",
        "archive",
        "d.jsonl",
        "clean.jsonl",
    ]
    .map(|name| dir.at(name));
    write(&test, &[("e", text(1, 0))]);
    let documents = [
        ("leak", text(1, 1)),
        ("t1", text(2, 0)),
        ("t2", text(2, 0)),
        ("t3", text(2, 1)),
    ];
    write(&train, &documents);
    dedup_ok(&format!("archive create {archive}"));
    dedup_ok(&format!(
        "archive append {archive} --input {test} --day 2026-01-01"
    ));
    // Nor does a pin within the set.
    let pins = dir.at("pins.csv");
    fs::write(&pins, "pin, id, other\nsame, t1, t3\n").unwrap();
    let run = format!(
        "run {train} --base {archive} --no-within --decisions {decided} --kept {clean} --pins {pins} --json"
    );
    for verify in ["", "--verify jaccard"] {
        let base_text = format!("--base-text {test}");
        let base_text = if verify.is_empty() { "" } else { &base_text };
        let summary = dedup_json(&format!("{run} {verify} {base_text} --overwrite"));
        assert_eq!(summary["decisions"]["kept"], 3);
        let own = |id: &str| (id.to_owned(), None);
        let leak = ("leak".to_owned(), Some("e".to_owned()));
        let mut found = decisions(&decided);
        found.sort();
        assert_eq!(found, [leak, own("t1"), own("t2"), own("t3")]);
        assert_eq!(fs::read_to_string(&clean).unwrap().lines().count(), 3);
    }
    dedup(&format!("{run} --append --day 2026-01-02 --overwrite")).fails(64, &["--no-within"]);
}

/// Row 97: another batch of a committed day is no rerun of the first.
#[test]
fn another_batch_of_a_day_is_compared_with_the_first() {
    let dir = Dir::new();
    let [morning, evening, archive, decided] =
        ["morning.jsonl", "evening.jsonl", "archive", "d.jsonl"].map(|name| dir.at(name));
    write(&morning, &[("m", text(1, 0))]);
    write(&evening, &[("e", text(1, 1))]);
    dedup_ok(&format!("archive create {archive}"));
    let run = |new: &str, more: &str| {
        dedup(&format!(
            "run {new} --base {archive} --day 2026-01-01 --decisions {decided} --overwrite {more}"
        ))
    };
    run(&morning, "--append").ok();
    let ran = run(&evening, "").ok();
    assert!(
        ran.stderr
            .contains("2026-01-01 was committed with other documents"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        decisions(&decided),
        [("e".to_owned(), Some("m".to_owned()))]
    );
    // The first batch again, whose own day does not count.
    let ran = run(&morning, "").ok();
    assert!(!ran.stderr.contains("other documents"), "{}", ran.stderr);
    assert_eq!(decisions(&decided), [("m".to_owned(), None)]);
}

/// Row 102: of several documents with an id, commands speak of the one that decisions speak of.
#[test]
fn documents_that_share_an_id_are_told_apart() {
    let dir = Dir::new();
    let [new, decided] = ["new.jsonl", "d.jsonl"].map(|name| dir.at(name));
    write(
        &new,
        &[("a", text(1, 0)), ("a", text(2, 0)), ("b", text(2, 0))],
    );
    dedup_ok(&format!("run {new} --decisions {decided}"));
    let explained = dedup_ok(&format!("explain b a --documents {new}")).stdout;
    assert!(
        explained.contains("one of 2 documents of this id"),
        "{explained}"
    );
    assert!(
        explained.lines().any(|line| line.starts_with("found")),
        "{explained}"
    );
    let shown = dedup_ok(&format!("show {decided} --documents {new} --json"));
    let shown = shown.json();
    assert_eq!(shown["new_text"], text(2, 0));
    assert_eq!(shown["base_text"], text(2, 0));
    let groups = dedup_json(&format!("groups {decided} --json"));
    assert_eq!(
        (&groups["documents"], &groups["groups"]),
        (&json!(3), &json!(2)),
        "{groups}"
    );
}

/// Row 103: what later days dropped for a day that is removed.
#[test]
fn removing_a_day_names_the_days_that_were_decided_with_it() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "");
    for day in 1..4 {
        let new = dir.at("new.jsonl");
        write(&new, &[("x", text(1, day)), ("y", text(10 + day, 0))]);
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day 2026-01-0{day}"
        ));
    }
    let remove = |day: &str| dedup_ok(&format!("archive remove {archive} --day {day}")).stdout;
    let said = remove("2026-01-02");
    assert!(
        said.contains("later days were decided") && said.contains("2026-01-03"),
        "{said}"
    );
    assert!(!remove("2026-01-03").contains("later days"));
}

#[test]
fn signs_and_operators_of_code_count_where_asked() {
    let dir = Dir::new();
    let (new, output) = (dir.at("code.jsonl"), dir.at("d.csv"));
    let code = |less: &str, plus: &str| -> String {
        (0..40)
            .map(|n| format!("fn f{n}(a, b) {{\n if a {less} limit{n} {{ return a {plus} {n}; }}\n return -b\n}}\n"))
            .collect()
    };
    let table = |sign: [&str; 2]| -> String {
        (0..60)
            .map(|n| format!("row{n} {}{}.50\n", sign[n % 2], 137 * n))
            .collect()
    };
    let lines = [
        ("code", code("<", "+")),
        ("flipped", code(">=", "*")),
        ("same", format!("{}\n", code("<", "+"))),
        ("table", table(["-", ""])),
        ("negated", table(["", "-"])),
    ]
    .map(|(id, text)| serde_json::json!({ "id": id, "text": text }).to_string());
    fs::write(&new, lines.join("\n")).unwrap();
    let kept = |options: &str| -> Vec<String> {
        dedup_ok(&format!(
            "run {new} --decisions {output} --overwrite {options}"
        ));
        let text = fs::read_to_string(&output).unwrap();
        let rows = text.lines().skip(1).map(|line| line.split(',').collect());
        let kept = rows.filter(|fields: &Vec<&str>| fields[1] == "true");
        kept.map(|fields| fields[0].to_owned()).collect()
    };
    // Words alone are equal.
    assert_eq!(kept("").len(), 2);
    let by_code = kept("--tokenizer code");
    assert_eq!(by_code.len(), 4, "{by_code:?}");
    assert!(by_code.contains(&"flipped".to_owned()) && by_code.contains(&"negated".to_owned()));
}

#[test]
fn diacritics_are_folded_where_asked() {
    let dir = Dir::new();
    let (new, archive, output) = (dir.at("n.jsonl"), dir.at("archive"), dir.at("d.csv"));
    let text = |words: [&str; 4]| -> String {
        (0..40)
            .map(|n| {
                format!(
                    "{}{n} {}{n} {}{n} {}{n} ",
                    words[0], words[1], words[2], words[3]
                )
            })
            .collect()
    };
    let lines = [
        ("marked", text(["crème", "Dvořák", "żółć", "ёлка"])),
        ("bare", text(["creme", "dvorak", "zolc", "елка"])),
    ]
    .map(|(id, text)| serde_json::json!({ "id": id, "text": text }).to_string());
    fs::write(&new, lines.join("\n")).unwrap();
    let dropped = |options: &str| {
        dedup_ok(&format!(
            "run {new} --decisions {output} --overwrite {options}"
        ));
        fs::read_to_string(&output)
            .unwrap()
            .matches("false")
            .count()
    };
    assert_eq!(dropped(""), 0);
    assert_eq!(dropped("--fold marks"), 1);
    // It is a part of the specification.
    dedup_ok(&format!("archive create {archive} --fold marks"));
    assert_eq!(dropped(&format!("--base {archive}")), 1);
    dedup(&format!(
        "run {new} --base {archive} --fold none --decisions {output} --overwrite"
    ))
    .fails(78, &["fold"]);
}
