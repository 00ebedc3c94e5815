//! Tests of histories of an archive: several batches of one day (`--batch`), the groups over all days, and the repair of decisions when
//! days are removed.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::helpers::support::*;
use crate::interop::python;

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
    dedup_json(&format!("{run} --json"))["commit"].clone()
}

#[test]
fn a_batch_is_compared_with_the_batches_before_it() {
    let dir = Dir::new();
    let [days, batches] = ["days", "batches"].map(|name| dir.at(name));
    for archive in [&days, &batches] {
        dedup_ok(&format!("archive create {archive}"));
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
        dedup_ok(&format!(
            "run {new} --base {days} --append --day 2026-03-0{} --decisions {expected} --overwrite",
            number + 1
        ));
        let run = format!("run {new} --base {batches} --append --day 2026-03-01 {name}");
        dedup_ok(&format!("{run} --decisions {found}"));
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
    let info = dedup_json(&format!("archive info {batches} --json"));
    let days = info["days"].as_object().unwrap();
    assert_eq!(days.len(), 1, "{info}");
    let of_day = days["2026-03-01"]["batches"].as_object().unwrap();
    let names: Vec<&str> = of_day.keys().map(String::as_str).collect();
    assert_eq!(names, ["", "3", "morning", "noon"], "{info}");
    let rows: u64 = of_day.values().filter_map(Value::as_u64).sum();
    assert_eq!(rows, info["fingerprints"]);
    let shown = dedup_ok(&format!("archive info {batches}")).stdout;
    assert!(shown.contains("; batches: without a name "), "{shown}");
    dedup_ok(&format!("archive compact {batches}"));
    dedup_ok(&format!(
        "archive vacuum {batches} --older-than 0s --nothing-runs"
    ));
    check_reruns("after vacuum");
    // A merged archive has the batches, too.
    let merged = dir.archive("merged", "");
    let copied = dedup(&format!("archive append {merged} --input {batches} --json"));
    assert_eq!(copied.ok().json()["days"], 4);
    for (run, found) in &runs {
        let run = run.replace(&batches, &merged);
        dedup_ok(&format!("{run} --decisions {again} --overwrite"));
        let [before, after] = [found, &again].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(before, after, "merged: {run}");
    }
}

#[test]
fn a_batch_is_replaced_and_removed_by_its_name() {
    let dir = Dir::new();
    let archive = dir.archive("a", "");
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
    let rows = || dedup_json(&format!("archive info {archive} --json"))["fingerprints"].clone();
    assert_eq!(rows(), 5);
    dedup_ok(&format!(
        "archive remove {archive} --day 2026-03-01 --batch one"
    ));
    assert_eq!(rows(), 2);
    assert_eq!(
        commit(&run(&first, "--batch one")),
        json!({ "committed": 5 })
    );
    dedup_ok(&format!("archive remove {archive} --day 2026-03-01"));
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

/// The ids of the kept documents of a batch's decisions.
fn kept(path: &str) -> Vec<String> {
    let rows = decisions(path).into_iter();
    let kept = rows.filter(|row| row["kept"] == true);
    kept.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A document: its day, its id, its content, and whether it is kept.
type Document = (usize, String, usize, bool);

/// Commits six days of random documents to a new archive; some ids are URLs. Returns the documents, with what was decided.
fn random_history(dir: &Dir, archive: &str, seed: u64) -> Vec<Document> {
    dedup_ok(&format!("archive create {archive}"));
    let mut number = numbers_below(seed);
    let mut documents = Vec::new();
    for day in 1..=6 {
        let batch: Vec<(String, usize)> = (0..6)
            .map(|at| (format!("https://site{at}.example/{day}"), number(7)))
            .collect();
        let new = dir.at("new.jsonl");
        let lines = batch
            .iter()
            .map(|(id, content)| json!({ "id": id, "text": text(*content) }).to_string());
        fs::write(&new, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let output = dir.at(&format!("{day}.jsonl"));
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day 2026-04-0{day} --decisions {output}"
        ));
        let kept = kept(&output);
        for (id, content) in batch {
            let is_kept = kept.contains(&id);
            documents.push((day, id, content, is_kept));
        }
    }
    documents
}

#[test]
fn the_groups_of_an_archive_are_those_of_its_decisions() {
    for seed in 1..4 {
        let dir = Dir::new();
        let archive = dir.at("a");
        random_history(&dir, &archive, seed);
        let files: Vec<String> = (1..=6).map(|day| dir.at(&format!("{day}.jsonl"))).collect();
        let mut of_files = dedup_json(&format!("groups {} --json -n 50", files.join(" ")));
        let mut of_archive = dedup_json(&format!("groups {archive} --json -n 50"));
        let orphans = of_archive
            .as_object_mut()
            .unwrap()
            .remove("duplicates_of_nothing_kept");
        assert_eq!(orphans, Some(json!(0)));
        for groups in [&mut of_files, &mut of_archive] {
            for day in groups["days"].as_array_mut().unwrap() {
                day["file"] = Value::Null;
            }
        }
        assert_eq!(of_archive, of_files, "seed {seed}");
        let text = dedup_ok(&format!("groups {archive}"));
        assert!(text.stdout.contains("in 6 days"), "{}", text.stdout);
        assert_eq!(text.stderr, "");
    }
}

#[test]
fn the_repair_of_a_removal_keeps_what_nothing_else_is_like() {
    for seed in 1..6 {
        let dir = Dir::new();
        let archive = dir.at("a");
        let mut documents = random_history(&dir, &archive, seed);
        let removed = 1 + seed as usize % 3;
        let out = dedup(&format!(
            "archive remove {archive} --day 2026-04-0{removed} --repair --json"
        ));
        let out = out.ok().json();
        documents.retain(|(day, ..)| *day != removed);
        // For each content that nothing keeps any more, one document of its first day is kept.
        let mut expected = Vec::new();
        for content in 0..7 {
            let same: Vec<&Document> = documents
                .iter()
                .filter(|(_, _, of, _)| *of == content)
                .collect();
            if let (Some(first), true) = (
                same.iter().map(|(day, ..)| *day).min(),
                same.iter().all(|(.., is_kept)| !is_kept),
            ) {
                expected.push((content, first));
            }
        }
        let named = out["repaired"]["first"].as_array().unwrap();
        let mut found: Vec<(usize, usize)> = named
            .iter()
            .map(|named| {
                let (id, day) = (named[0].as_str().unwrap(), named[1].as_str().unwrap());
                let day: usize = day[9..].parse().unwrap();
                let document = documents
                    .iter()
                    .find(|(of, own, ..)| *of == day && own == id)
                    .unwrap();
                (document.2, day)
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "seed {seed}: {out}");
        // Each document has a kept one of its content again, and nothing is left to repair.
        let again = dedup(&format!(
            "archive remove {archive} --day 2026-04-0{removed} --repair"
        ));
        assert!(
            again.ok().stdout.contains("nothing to remove"),
            "seed {seed}"
        );
        let groups = dedup_json(&format!("groups {archive} --json"));
        let contents: std::collections::BTreeSet<usize> = documents
            .iter()
            .map(|(_, _, content, _)| *content)
            .collect();
        assert_eq!(groups["groups"], contents.len(), "seed {seed}: {groups}");
        dedup_ok(&format!("archive info {archive} --verify"));
        // The days are still those that were committed.
        let new = dir.at("new.jsonl");
        let rerun = format!(
            "run {new} --base {archive} --append --day 2026-04-06 -o {}",
            dir.at("o.csv")
        );
        assert_eq!(commit(&rerun), "already_there", "seed {seed}");
    }
}

/// The documents that are decided about again may be all that a day has.
#[test]
fn a_day_of_nothing_but_dropped_documents_is_decided_again() {
    let dir = Dir::new();
    let archive = dir.archive("a", "");
    let commit = |day: u32, id: &str, content: usize| {
        let (new, output) = (dir.at("new.jsonl"), dir.at("o.csv"));
        write(&new, &[(id, content)]);
        let run = format!("run {new} --base {archive} --append --day 2026-05-0{day}");
        dedup_ok(&format!("{run} -o {output} --overwrite"));
    };
    commit(1, "first", 1);
    commit(2, "copy", 1);
    dedup_ok(&format!("archive remove {archive} --day 2026-05-01"));
    commit(3, "again", 1);
    let groups = dedup_json(&format!("groups {archive} --json"));
    assert_eq!(
        (&groups["groups"], &groups["duplicates_of_nothing_kept"]),
        (&json!(1), &json!(0)),
        "{groups}"
    );
    // The removal leaves nothing but the copy with this content, so the repair keeps it. Another document had dropped it.
    let removed = dedup(&format!(
        "archive remove {archive} --day 2026-05-03 --repair --json"
    ));
    assert_eq!(removed.ok().json()["repaired"]["documents"], 1);
    let nothing = dedup(&format!(
        "archive remove {archive} --day 2026-05-09 --repair --json"
    ));
    assert_eq!(nothing.ok().json()["repaired"]["documents"], 0);
}

/// A text, and one that is a duplicate of it at k = 7 and a similarity of .755 alone.
fn whole_and_part() -> (String, String) {
    let words = |words: std::ops::Range<usize>| -> String {
        words.map(|word| format!("t2w{word} ")).collect()
    };
    (words(0..104), words(3..103))
}

/// Another program drops what says to which batch a file belongs, how it was decided, and when.
#[test]
fn a_repair_knows_days_that_another_program_rewrote() {
    let Some(python) = python() else { return };
    let (whole, part) = whole_and_part();
    let dir = Dir::new();
    let archive = dir.archive("a", "");
    dedup_ok(&format!("archive set {archive} k=7 min-similarity=0.755"));
    let new = dir.at("new.jsonl");
    for (day, id, own, options) in [
        (1, "x", &whole, ""),
        (2, "y", &part, " --batch noon"),
        (3, "z", &part, ""),
    ] {
        let lines = [(id.to_owned(), own.clone()), (format!("u{day}"), text(day))];
        let lines = lines.map(|(id, text)| json!({ "id": id, "text": text }).to_string());
        fs::write(&new, lines.join("\n")).unwrap();
        let run = format!(
            "run {new} --base {archive} --append --day 2026-05-0{day} -o {} --overwrite",
            dir.at("o.csv")
        );
        dedup_ok(&format!("{run}{options}"));
    }
    dedup_ok(&format!("archive set {archive} k=0 min-similarity=1"));
    let delete = "import deltalake, sys; deltalake.DeltaTable(sys.argv[1]).delete(sys.argv[2])";
    for day in [3, 2] {
        let deleted = Command::new(&python)
            .args(["-c", delete, &archive, &format!("id = 'u{day}'")])
            .output();
        Ran::of(deleted.unwrap()).ok();
    }
    let removed = dedup_json(&format!(
        "archive remove {archive} --day 2026-05-01 --repair --json"
    ));
    assert_eq!(
        removed["repaired"]["first"],
        json!([["y", "2026-05-02"]]),
        "{removed}"
    );
}

#[test]
fn a_repair_compares_by_the_settings_of_each_day() {
    let (whole, part) = whole_and_part();
    // The settings of each day with its document, and those that count when the first day is removed. At k = 0 and a similarity of 1,
    // the part is no duplicate of the whole.
    let (loose, other, strict) = (
        "k=7 min-similarity=0.755",
        "k=7 min-similarity=0.7",
        "k=0 min-similarity=1",
    );
    let [x, y, of_part, last] = [("x", &whole), ("y", &whole), ("y", &part), ("z", &part)];
    for (days, now) in [
        (vec![(loose, x), (loose, of_part)], strict),
        (vec![(strict, x), (strict, y), (strict, last)], loose),
        // The third is a duplicate of the second, which the repair keeps.
        (vec![(loose, x), (loose, of_part), (other, last)], strict),
    ] {
        let dir = Dir::new();
        let archive = dir.archive("a", "");
        let new = dir.at("new.jsonl");
        for (number, (settings, (id, text))) in (1..).zip(&days) {
            dedup_ok(&format!("archive set {archive} {settings}"));
            fs::write(&new, json!({ "id": id, "text": text }).to_string()).unwrap();
            let run = format!(
                "run {new} --base {archive} --append --day 2026-05-0{number} -o {} --overwrite",
                dir.at("o.csv")
            );
            dedup_ok(&run);
        }
        dedup_ok(&format!("archive set {archive} {now}"));
        let removed = dedup_json(&format!(
            "archive remove {archive} --day 2026-05-01 --repair --json"
        ));
        let expected = json!([["y", "2026-05-02"]]);
        assert_eq!(removed["repaired"]["first"], expected, "{days:?}");
        let groups = dedup_json(&format!("groups {archive} --json"));
        assert_eq!(groups["duplicates_of_nothing_kept"], 0, "{days:?}");
    }
}

#[test]
fn replacing_and_removing_say_what_stays_dropped() {
    let history = History::new("");
    let documents = [(1, "a", 1), (2, "b", 1), (3, "c", 2)];
    for document in documents {
        history.commit(document, "");
    }
    let (archive, new, ids) = (
        history.dir.at("a"),
        history.dir.at("new.jsonl"),
        history.dir.at("ids.txt"),
    );
    write(&new, &[("d", 3)]);
    let replace = |day: u32| {
        let run = format!(
            "run {new} --base {archive} --append --day 2026-05-0{day} -o {} --overwrite",
            history.dir.at("o.csv")
        );
        dedup_ok(&format!("{run} --replace-day")).stderr
    };
    let said = "in order: 2026-05-02, 2026-05-03";
    assert!(replace(1).contains(said));
    // The new first day was decided with the third.
    assert!(replace(3).contains("in order: 2026-05-01"));
    assert!(!replace(1).contains("stays dropped"));
    fs::write(&ids, "b\n").unwrap();
    let removed = dedup_ok(&format!("archive remove {archive} --ids {ids}"));
    assert!(removed.stdout.contains("--repair, given with the removal"));
}

/// A history of an archive: commits of one document each, with further options, and the repair of the removal of a day.
struct History {
    dir: Dir,
}

impl History {
    fn new(create: &str) -> Self {
        let dir = Dir::new();
        dedup_ok(&format!("archive create {} {create}", dir.at("a")));
        Self { dir }
    }

    fn commit(&self, (day, id, content): (u32, &str, usize), options: &str) -> &Self {
        let new = self.dir.at("new.jsonl");
        write(&new, &[(id, content)]);
        let archive = self.dir.at("a");
        let run = format!(
            "run {new} --base {archive} --append --day 2026-05-0{day} -o {} --overwrite",
            self.dir.at("o.csv")
        );
        dedup_ok(&format!("{run} {options}"));
        self
    }

    fn pins(&self, pins: &str) -> String {
        let file = self.dir.at("pins.csv");
        fs::write(&file, format!("pin,id,other\n{pins}")).unwrap();
        format!("--pins {file}")
    }

    /// The ids that the repair of the removal of a day keeps, and the groups and duplicates of nothing that are left.
    fn remove(&self, day: u32) -> (Vec<String>, Value, Value) {
        let archive = self.dir.at("a");
        let removed = format!("archive remove {archive} --day 2026-05-0{day} --repair --json");
        let removed = dedup_json(&removed);
        let first = removed["repaired"]["first"].as_array().unwrap();
        let ids = first
            .iter()
            .map(|kept| kept[0].as_str().unwrap().to_owned());
        let groups = dedup_json(&format!("groups {archive} --json"));
        let nothing = groups["duplicates_of_nothing_kept"].clone();
        (ids.collect(), groups["groups"].clone(), nothing)
    }
}

#[test]
fn a_repair_knows_the_order_of_commits_pins_and_updates() {
    let kept = |id: &str| (vec![id.to_owned()], json!(1), json!(0));
    // A day that is committed late is decided by the days that were there.
    let history = History::new("");
    history.commit((2, "a", 1), "").commit((1, "b", 1), "");
    assert_eq!(history.remove(2), kept("b"));
    // A duplicate by a pin alone.
    let history = History::new("");
    let same = history.pins("same,a,b\n");
    history.commit((1, "a", 1), "").commit((2, "b", 2), &same);
    assert_eq!(history.remove(1), kept("b"));
    // The nearest one does not count, by a pin.
    let history = History::new("");
    let distinct = history.pins("distinct,a,c\ndistinct,a,b\n");
    history.commit((1, "a", 1), &distinct);
    history.commit((2, "b", 1), "").commit((3, "c", 1), "");
    let repaired = history.remove(2);
    assert_eq!(repaired, (vec!["c".into()], json!(2), json!(0)));
    // What is superseded stands for nothing.
    let history = History::new("");
    history.commit((1, "x", 1), "");
    history.commit((2, "x", 2), "--on-update keep-new");
    history.commit((3, "y", 1), "").commit((4, "z", 1), "");
    // Its group is one of those that are left.
    let repaired = history.remove(3);
    assert_eq!(repaired, (vec!["z".into()], json!(3), json!(0)));
}

#[test]
fn a_content_that_comes_back_is_an_update_in_batches_as_in_days() {
    for batches in [false, true] {
        let history = History::new("");
        let mut last = Value::Null;
        for (number, content) in (1..).zip([1, 2, 1]) {
            let decisions = history.dir.at("decisions.jsonl");
            let (day, batch) = if batches {
                (1, format!("--batch b{number}"))
            } else {
                (number, String::new())
            };
            let options = format!("{batch} --decisions {decisions}");
            history.commit((day, "x", content), &options);
            last = serde_json::from_str(&fs::read_to_string(&decisions).unwrap()).unwrap();
        }
        assert_eq!(last["update_of"], "x", "{batches}");
    }
}
