//! Tests of `--on-update` and `--pins`: random histories against a plain model of the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::json;

use crate::helpers::support::*;

/// A small generator of numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// A text of its own for each content: two contents share no word.
fn text(content: u64) -> String {
    (0..60).map(|word| format!("c{content}w{word} ")).collect()
}

/// A row of the archive.
#[derive(Debug, Clone)]
struct Row {
    day: usize,
    id: String,
    content: u64,
    is_kept: bool,
    is_superseded: bool,
}

#[derive(Debug, Default)]
struct Pins {
    same: BTreeSet<(String, String)>,
    distinct: BTreeSet<(String, String)>,
    keep: BTreeSet<String>,
}

fn has(pairs: &BTreeSet<(String, String)>, a: &str, b: &str) -> bool {
    let has = |a: &str, b: &str| pairs.contains(&(a.to_owned(), b.to_owned()));
    has(a, b) || has(b, a)
}

/// What the rules say of a document: whether it is kept, the documents that it may be a duplicate of, and the day of the content that
/// it is an update of.
#[derive(Debug, PartialEq)]
struct Expected {
    is_kept: bool,
    of: Vec<String>,
    update_day: Option<usize>,
}

/// Decides about a day by the rules, and appends it.
fn decide(
    archive: &mut Vec<Row>,
    day: usize,
    batch: &BTreeMap<String, u64>,
    rule: &str,
    pins: &Pins,
) -> BTreeMap<String, Expected> {
    let standing = |id: &str| {
        let captures = archive.iter().filter(|row| row.id == id);
        captures.cloned().max_by_key(|row| {
            let counts = row.is_kept && !row.is_superseded;
            match rule {
                "keep-old" => (counts, -(row.day as i64)),
                _ => (counts, row.day as i64),
            }
        })
    };
    let is_update = |id: &str, content: u64| standing(id).is_some_and(|row| row.content != content);
    let is_barred = |id: &str, content: u64| {
        let counts = |row: Row| row.is_kept && !row.is_superseded;
        rule == "keep-old"
            && is_update(id, content)
            && standing(id).is_some_and(counts)
            && !pins.keep.contains(id)
    };
    let mut order: Vec<(&String, &u64)> = batch.iter().collect();
    order.sort_by_key(|(id, content)| (is_barred(id, **content), (*id).clone()));
    let mut kept: Vec<(String, u64)> = Vec::new();
    let mut expected = BTreeMap::new();
    let mut superseded = Vec::new();
    for (id, &content) in order {
        let is_pair = |other: &str, of_other: u64| {
            !has(&pins.distinct, id, other) && (content == of_other || has(&pins.same, id, other))
        };
        let of_archive = archive
            .iter()
            .filter(|row| row.is_kept && !row.is_superseded && is_pair(&row.id, row.content));
        let mut of: Vec<String> = of_archive.map(|row| row.id.clone()).collect();
        if of.is_empty() {
            let earlier = kept.iter().filter(|(other, of)| is_pair(other, *of));
            of.extend(earlier.map(|(other, _)| other.clone()));
        }
        if pins.keep.contains(id) {
            of.clear();
        }
        let is_kept = of.is_empty() && !is_barred(id, content);
        let update_day = standing(id).filter(|row| row.content != content);
        if is_kept {
            kept.push((id.clone(), content));
            if update_day.is_some() && rule == "keep-new" {
                superseded.push(id.clone());
            }
        }
        let update_day = update_day.map(|row| row.day);
        expected.insert(
            id.clone(),
            Expected {
                is_kept,
                of,
                update_day,
            },
        );
    }
    for row in archive
        .iter_mut()
        .filter(|row| superseded.contains(&row.id))
    {
        row.is_superseded |= row.is_kept;
    }
    archive.extend(batch.iter().map(|(id, content)| Row {
        day,
        id: id.clone(),
        content: *content,
        is_kept: expected[id].is_kept,
        is_superseded: false,
    }));
    expected
}

fn date(day: usize) -> String {
    format!("2026-01-{day:02}")
}

/// The decisions in a file, as the model says them.
fn read(path: &str, expected: &BTreeMap<String, Expected>) -> BTreeMap<String, Expected> {
    let rows = fs::read_to_string(path).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.map(|row: serde_json::Value| {
        let id = row["id"].as_str().unwrap().to_owned();
        let is_kept = row["kept"].as_bool().unwrap();
        let of = row["duplicate_of"].as_str().map(str::to_owned);
        // Of several, the nearest is named, and that is not the model's.
        let is_known = of.iter().all(|of| expected[&id].of.contains(of));
        assert!(is_known, "{row}: {:?}", expected[&id]);
        assert!(
            row["update_of"].is_null() || row["update_of"] == id.as_str(),
            "{row}"
        );
        assert_eq!(
            row["update_of"].is_null(),
            row["update_day"].is_null(),
            "{row}"
        );
        let update_day = row["update_day"]
            .as_str()
            .map(|day| day[8..].parse().unwrap());
        let of = match of {
            Some(_) => expected[&id].of.clone(),
            None => Vec::new(),
        };
        (
            id,
            Expected {
                is_kept,
                of,
                update_day,
            },
        )
    })
    .collect()
}

/// Runs a random history, with pins if `pinned`, and reruns each of its days.
fn check_history(seed: u64, rule: &str, pinned: bool) {
    let dir = Dir::new();
    let archive = dir.archive("a", "");
    let mut numbers = Numbers(seed);
    let (mut rows, mut pins) = (Vec::new(), Pins::default());
    let mut runs = Vec::new();
    for day in 1..=6 {
        let mut batch = BTreeMap::new();
        for number in 0..8 {
            if numbers.below(3) > 0 {
                batch.insert(format!("d{number}"), numbers.below(5));
            }
        }
        let new = dir.at(&format!("{day}.jsonl"));
        let lines = batch
            .iter()
            .map(|(id, content)| json!({"id": id, "text": text(*content)}).to_string());
        fs::write(&new, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let mut options = format!("--on-update {rule}");
        if pinned && day > 1 {
            let mut file = "pin,id,other\n".to_owned();
            for _ in 0..4 {
                let (a, b) = (numbers.below(8), numbers.below(8));
                let (a, b) = (format!("d{a}"), format!("d{b}"));
                let is_in_file = |a: &str, b: &str| file.contains(&format!(",{a},{b}\n"));
                let is_said = [&pins.same, &pins.distinct]
                    .iter()
                    .any(|said| has(said, &a, &b))
                    || is_in_file(&a, &b)
                    || is_in_file(&b, &a);
                match numbers.below(5) {
                    kind @ (3 | 4) => {
                        let keep = pins.keep.iter().map(|id| (id.clone(), String::new()));
                        let said = pins.same.iter().chain(&pins.distinct).cloned().chain(keep);
                        let said: Vec<_> = said.filter(|(a, b)| !is_in_file(a, b)).collect();
                        let Some((a, b)) =
                            said.get(numbers.below(said.len().max(1) as u64) as usize)
                        else {
                            continue;
                        };
                        // In either order.
                        file += &match kind {
                            3 => format!("forget,{a},{b}\n"),
                            _ if b.is_empty() => format!("forget,{a},\n"),
                            _ => format!("forget,{b},{a}\n"),
                        };
                        pins.same.remove(&(a.clone(), b.clone()));
                        pins.distinct.remove(&(a.clone(), b.clone()));
                        if b.is_empty() {
                            pins.keep.remove(a);
                        }
                    }
                    0 if a != b && !is_said => {
                        file += &format!("same,{a},{b}\n");
                        pins.same.insert((a, b));
                    }
                    1 if a != b && !is_said => {
                        file += &format!("distinct,{a},{b}\n");
                        pins.distinct.insert((a, b));
                    }
                    2 if !is_in_file(&a, "") => {
                        file += &format!("keep,{a},\n");
                        pins.keep.insert(a);
                    }
                    _ => {}
                }
            }
            let path = dir.at(&format!("{day}.pins.csv"));
            fs::write(&path, file).unwrap();
            options += &format!(" --pins {path}");
        }
        let expected = decide(&mut rows, day, &batch, rule, &pins);
        let decisions = dir.at(&format!("{day}.decisions.jsonl"));
        let run = format!(
            "run {new} --base {archive} --append --day {} {options}",
            date(day)
        );
        dedup_ok(&format!("{run} --decisions {decisions} --threads 2"));
        assert_eq!(
            read(&decisions, &expected),
            expected,
            "seed {seed}, {rule}, day {day}"
        );
        runs.push((run, decisions));
    }
    for (run, decisions) in &runs {
        let again = dir.at("again.jsonl");
        let ran = dedup(&format!(
            "{run} --decisions {again} --overwrite --threads 1 --json"
        ));
        assert_eq!(ran.ok().json()["commit"], "already_there");
        let [before, after] = [decisions, &again].map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(before, after, "seed {seed}, {rule}: {run}");
    }
    // What a removed day said counts no more; a merged archive has it all.
    let merged = dir.archive("merged", "");
    dedup_ok(&format!("archive append {merged} --input {archive}"));
    let (run, decisions) = &runs[5];
    let (run, again) = (run.replace(&archive, &merged), dir.at("merged.jsonl"));
    dedup_ok(&format!("{run} --decisions {again}"));
    let [before, after] = [decisions, &again].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(before, after, "seed {seed}, {rule}: merged");
    dedup_ok(&format!(
        "archive vacuum {merged} --older-than 0s --nothing-runs"
    ));
    dedup_ok(&format!("{run} --decisions {again} --overwrite"));
    assert_eq!(before, fs::read_to_string(&again).unwrap(), "after vacuum");
}

#[test]
fn updates_are_decided_by_the_rule() {
    for (seed, rule) in [
        (1, "both"),
        (2, "keep-new"),
        (3, "keep-new"),
        (4, "keep-old"),
        (5, "keep-old"),
    ] {
        check_history(seed, rule, false);
    }
}

#[test]
fn pins_win_over_distances() {
    for (seed, rule) in [(6, "both"), (7, "both"), (8, "keep-new"), (9, "keep-old")] {
        check_history(seed, rule, true);
    }
}

#[test]
fn each_pin_about_the_archive_counts() {
    let dir = Dir::new();
    let (archive, new, pins) = (dir.at("a"), dir.at("n.jsonl"), dir.at("pins.csv"));
    dedup_ok(&format!("archive create {archive}"));
    let write = |name: &str, first: u64| {
        let lines = (0..8).map(|number| {
            let id = format!("{name}{number}");
            json!({"id": id, "text": text(first + number)}).to_string()
        });
        fs::write(&new, lines.collect::<Vec<_>>().join("\n")).unwrap();
    };
    write("a", 0);
    let run = format!("run {new} --base {archive} -o {}", dir.at("o.csv"));
    dedup_ok(&format!("{run} --append --day 2026-01-01"));
    write("b", 8);
    let lines: String = (0..8)
        .map(|number| format!("same,a{number},b{number}\n"))
        .collect();
    fs::write(&pins, format!("pin,id,other\n{lines}")).unwrap();
    let decisions = dir.at("d.csv");
    let ran = dedup(&format!(
        "{run} --pins {pins} --decisions {decisions} --json"
    ));
    assert_eq!(ran.ok().json()["decisions"]["duplicates_of_archive"], 8);
}

#[test]
fn a_history_says_what_is_superseded_until_the_day_is_removed() {
    let dir = Dir::new();
    let archive = dir.archive("a", "");
    for (day, content) in [(1, 1), (2, 2)] {
        let new = dir.at(&format!("{day}.jsonl"));
        fs::write(&new, json!({"id": "x", "text": text(content)}).to_string()).unwrap();
        let day = date(day);
        let run = format!("run {new} --base {archive} --append --day {day} --on-update keep-new");
        let ran = dedup_json(&format!("{run} -o {} --overwrite --json", dir.at("o.csv")));
        assert_eq!(ran["decisions"]["updates"], content - 1, "{ran}");
    }
    let superseded = || {
        let history = dedup_json(&format!("history {archive} x --json"));
        let captures = history["captures"].as_array().unwrap().clone();
        captures
            .iter()
            .map(|capture| capture["superseded"].as_bool().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(superseded(), [true, false]);
    let table = dedup_ok(&format!("history {archive} x")).stdout;
    assert!(table.contains("superseded"), "{table}");
    // The old content comes back: it is an update again, of what superseded it.
    let new = dir.at("1.jsonl");
    let run = format!("run {new} --base {archive} --day 2026-01-03 --on-update keep-new");
    let ran = dedup_json(&format!("{run} --decisions {} --json", dir.at("d.csv")));
    assert_eq!(
        (&ran["decisions"]["kept"], &ran["decisions"]["updates"]),
        (&json!(1), &json!(1)),
        "{ran}"
    );
    dedup_ok(&format!("archive remove {archive} --day 2026-01-02"));
    assert_eq!(superseded(), [false]);
}

#[test]
fn pins_that_say_nothing_are_refused() {
    let dir = Dir::new();
    let (new, pins, output) = (dir.at("n.jsonl"), dir.at("pins.csv"), dir.at("d.csv"));
    fs::write(&new, json!({"id": "x", "text": text(1)}).to_string()).unwrap();
    fs::write(&pins, "pin,id,other\nsame,a,b\ndistinct,b,a\n").unwrap();
    dedup(&format!("run {new} --pins {pins} --decisions {output}"))
        .fails(65, &["pins.csv", "contradict"]);
    dedup(&format!("run {new} --pins {pins} -o {output}")).fails(64, &["--pins", "--decisions"]);
    dedup(&format!(
        "run {new} --on-update keep-new --decisions {output}"
    ))
    .fails(64, &["--on-update", "--base"]);
    dedup(&format!("run {new} --pins {new} --decisions {output}")).fails(65, &["n.jsonl", "pin"]);
}

/// Runs a batch of documents, given by their ids and contents; returns its decisions by id.
fn run(dir: &Dir, documents: &[(&str, u64)], options: &str) -> BTreeMap<String, serde_json::Value> {
    let (new, output) = (dir.at("new.jsonl"), dir.at("decided.jsonl"));
    let lines = documents
        .iter()
        .map(|(id, content)| json!({"id": id, "text": text(*content)}).to_string());
    fs::write(&new, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let archive = dir.at("a");
    dedup_ok(&format!(
        "run {new} --base {archive} --decisions {output} --overwrite {options}"
    ));
    let rows = fs::read_to_string(&output).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.map(|row: serde_json::Value| (row["id"].as_str().unwrap().to_owned(), row))
        .collect()
}

fn archive_with(dir: &Dir, days: &[(&[(&str, u64)], &str)]) {
    dedup_ok(&format!("archive create {}", dir.at("a")));
    for (documents, options) in days {
        run(dir, documents, &format!("--append {options}"));
    }
}

#[test]
fn rulings_count_as_long_as_their_commit_does() {
    let dir = Dir::new();
    let pins = dir.at("pins.csv");
    fs::write(&pins, "pin,id,other\nkeep,copy,\n").unwrap();
    archive_with(
        &dir,
        &[
            (&[("x", 1)], "--day 2026-01-01"),
            (
                &[("x", 2)],
                &format!("--day 2026-01-02 --on-update keep-new --pins {pins}"),
            ),
        ],
    );
    let decided = || run(&dir, &[("copy", 2), ("old", 1)], "");
    assert_eq!(
        (&decided()["copy"]["kept"], &decided()["old"]["kept"]),
        (&json!(true), &json!(true))
    );
    // The same documents again, without these options: the old content counts again, and the pin does not.
    run(&dir, &[("x", 2)], "--append --day 2026-01-02 --replace-day");
    assert_eq!(
        (&decided()["copy"]["kept"], &decided()["old"]["kept"]),
        (&json!(false), &json!(false))
    );
}

#[test]
fn of_two_captures_of_a_day_the_older_is_superseded() {
    let dir = Dir::new();
    archive_with(
        &dir,
        &[
            (
                &[("x", 1)],
                "--day 2026-01-01 --batch a --on-update keep-new",
            ),
            (
                &[("x", 2)],
                "--day 2026-01-01 --batch b --on-update keep-new",
            ),
        ],
    );
    let decided = run(&dir, &[("y", 1), ("z", 2)], "");
    assert_eq!(
        (&decided["y"]["kept"], &decided["z"]["kept"]),
        (&json!(true), &json!(false))
    );
    let history = dedup_json(&format!("history {} x --json", dir.at("a")));
    let captures = history["captures"].as_array().unwrap().iter();
    let found: Vec<_> = captures
        .map(|capture| (&capture["batch"], &capture["superseded"]))
        .collect();
    assert_eq!(
        found,
        [(&json!("a"), &json!(true)), (&json!("b"), &json!(false))]
    );
}

#[test]
fn a_content_that_comes_back_on_its_day_counts_again() {
    let dir = Dir::new();
    let batch = |name: &str| format!("--day 2026-01-01 --batch {name} --on-update keep-new");
    archive_with(
        &dir,
        &[
            (&[("x", 1)], &batch("a")),
            (&[("x", 2)], &batch("b")),
            (&[("x", 1)], &batch("c")),
        ],
    );
    let decided = run(&dir, &[("y", 1), ("z", 2)], "");
    assert_eq!(
        (&decided["y"]["kept"], &decided["z"]["kept"]),
        (&json!(false), &json!(true))
    );
}

#[test]
fn what_is_remembered_of_an_id_that_many_documents_have_is_left_out() {
    let dir = Dir::new();
    let pins = dir.at("pins.csv");
    fs::write(&pins, "pin,id,other\nkeep,menu,\n").unwrap();
    archive_with(
        &dir,
        &[(&[("o", 3)], &format!("--day 2026-01-01 --pins {pins}"))],
    );
    let (new, output) = (dir.at("menus.jsonl"), dir.at("menus.csv"));
    let menus = (0..70).map(|_| json!({"id": "menu", "text": text(1)}).to_string());
    fs::write(&new, menus.collect::<Vec<_>>().join("\n")).unwrap();
    let line = format!("run {new} --base {} --decisions {output}", dir.at("a"));
    let ran = dedup_ok(&line);
    assert!(ran.stderr.contains("70 documents"), "{}", ran.stderr);
    dedup(&format!("{line} --overwrite --pins {pins}")).fails(65, &["70 documents", "menu"]);
}

#[test]
fn a_second_merge_brings_nothing_back() {
    let dir = Dir::new();
    let pins = dir.at("pins.csv");
    fs::write(&pins, "pin,id,other\nsame,p,q\nkeep,secret,\n").unwrap();
    archive_with(
        &dir,
        &[(&[("o", 3)], &format!("--day 2026-01-01 --pins {pins}"))],
    );
    let (other, merged, forget) = (dir.at("a"), dir.at("merged"), dir.at("forget.txt"));
    dedup_ok(&format!("archive create {merged}"));
    let merge = format!("archive append {merged} --input {other}");
    dedup_ok(&merge);
    fs::write(&forget, "secret\n").unwrap();
    dedup_ok(&format!("archive remove {merged} --ids {forget}"));
    // Another word since then, and another day of the other archive.
    let new = dir.at("q.jsonl");
    fs::write(&pins, "pin,id,other\ndistinct,p,q\n").unwrap();
    fs::write(&new, json!({"id": "o2", "text": text(4)}).to_string()).unwrap();
    let output = dir.at("o.csv");
    dedup_ok(&format!(
        "run {new} --base {merged} --append --day 2026-02-01 --pins {pins} -o {output}"
    ));
    run(&dir, &[("o3", 5)], "--append --day 2026-01-02");
    dedup_ok(&merge);
    let pq = [("p", 6), ("q", 7)]
        .map(|(id, content)| json!({"id": id, "text": text(content)}).to_string());
    fs::write(&new, pq.join("\n")).unwrap();
    let decided = dir.at("d.csv");
    dedup_ok(&format!("run {new} --base {merged} --decisions {decided}"));
    let rows = fs::read_to_string(&decided).unwrap();
    assert!(rows.contains("p,true") && rows.contains("q,true"), "{rows}");
    dedup_ok(&format!(
        "archive vacuum {merged} --older-than 0s --nothing-runs"
    ));
    for (_, bytes) in contents(dir.join("merged/_dedup-job/rulings")) {
        assert!(!bytes.windows(6).any(|part| part == b"secret"));
    }
}

#[test]
fn the_last_word_counts() {
    let dir = Dir::new();
    let pins = |pins: &str| {
        let path = dir.at("pins.csv");
        fs::write(&path, format!("pin,id,other\n{pins}\n")).unwrap();
        format!("--pins {path}")
    };
    archive_with(
        &dir,
        &[
            (&[("p", 1)], "--day 2026-01-01"),
            (
                &[("o", 3)],
                &format!("--day 2026-01-02 {}", pins("distinct,p,q")),
            ),
        ],
    );
    let kept = |options: &str| run(&dir, &[("q", 1)], options)["q"]["kept"].clone();
    assert_eq!(kept(""), true);
    assert_eq!(kept(&pins("same,q,p")), false);
    run(
        &dir,
        &[("o2", 4)],
        &format!("--append --day 2026-01-03 {}", pins("same,q,p")),
    );
    assert_eq!(kept(""), false);
    // A merged archive has it from its first day on.
    let merged = dir.archive("merged", "");
    dedup_ok(&format!(
        "archive append {merged} --input {} --day 2026-01-03",
        dir.at("a")
    ));
    let new = dir.at("new.jsonl");
    fs::write(
        &new,
        format!(
            "{}\n{}",
            json!({"id": "p", "text": text(5)}),
            json!({"id": "q", "text": text(6)})
        ),
    )
    .unwrap();
    let output = dir.at("merged.csv");
    dedup_ok(&format!("run {new} --base {merged} --decisions {output}"));
    let decided = fs::read_to_string(&output).unwrap();
    assert!(decided.contains("q,false,p,"), "{decided}");
}

#[test]
fn removed_documents_leave_no_rulings() {
    let dir = Dir::new();
    let pins = dir.at("pins.csv");
    fs::write(&pins, "pin,id,other\nkeep,secret-y,\nkeep,z,\n").unwrap();
    archive_with(
        &dir,
        &[
            (&[("secret-x", 1)], "--day 2026-01-01"),
            (
                &[("secret-x", 2), ("z", 2)],
                &format!("--day 2026-01-02 --on-update keep-new --pins {pins}"),
            ),
        ],
    );
    let (archive, forget) = (dir.at("a"), dir.at("forget.txt"));
    fs::write(&forget, "secret-x\nsecret-y\n").unwrap();
    dedup_ok(&format!("archive remove {archive} --ids {forget}"));
    dedup_ok(&format!(
        "archive vacuum {archive} --older-than 0s --nothing-runs"
    ));
    for (path, _) in contents(dir.join("a/_dedup-job/rulings")) {
        if path.extension().is_some_and(|ending| ending == "parquet") {
            let rows = read_parquet(dir.join("a/_dedup-job/rulings").join(&path));
            let ids: Vec<String> = rows
                .iter()
                .flat_map(|rows| texts(rows.column_by_name("id").unwrap()))
                .collect();
            assert_eq!(ids, ["z"]);
        }
    }
    assert_eq!(run(&dir, &[("z", 2), ("y", 2)], "")["z"]["kept"], true);
}

#[test]
fn pins_of_other_forms_and_types_are_refused() {
    let dir = Dir::new();
    let (new, pins, output) = (dir.at("n.jsonl"), dir.at("pins.csv"), dir.at("d.csv"));
    fs::write(&new, json!({"id": 5, "text": text(1)}).to_string()).unwrap();
    for (file, said) in [
        ("pin,id,other\nsame,5,05\n", "both documents"),
        ("pin,id,other\nkeep,five,\n", "no integer"),
        ("[{\"pin\":\"keep\",\"id\":5}]", "array"),
        ("pin;id;other\n", "columns"),
    ] {
        fs::write(&pins, file).unwrap();
        let run = format!("run {new} --pins {pins} --decisions {output} --overwrite");
        dedup(&run).fails(65, &["pins.csv", said]);
    }
    // An empty document is never dropped, either.
    fs::write(&new, "{\"id\":5,\"text\":\"\"}\n{\"id\":6,\"text\":\"\"}\n").unwrap();
    fs::write(&pins, "\u{feff}{\"pin\":\"keep\",\"id\":5}").unwrap();
    dedup_ok(&format!(
        "run {new} --pins {pins} --drop-empty --decisions {output} --overwrite"
    ));
    let decided = fs::read_to_string(&output).unwrap();
    assert!(
        decided.contains("5,true") && decided.contains("6,false"),
        "{decided}"
    );
}
