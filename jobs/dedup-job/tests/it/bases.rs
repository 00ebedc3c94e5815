//! Tests of runs against documents, and against several archives and files at once: against brute force over all of them.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::helpers::support::*;

fn text(of: usize, edited: Option<usize>) -> String {
    let word = |word: usize| match edited {
        Some(at) if at == word => format!("edit{of}"),
        _ => format!("t{of}w{word}"),
    };
    (0..120).map(word).collect::<Vec<_>>().join(" ")
}

fn write(path: &str, documents: impl IntoIterator<Item = (String, String)>) {
    let lines = documents
        .into_iter()
        .map(|(id, text)| json!({ "id": id, "text": text }).to_string());
    fs::write(path, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

/// The ids of kept and of dropped documents, with what these repeat.
fn decisions(path: &str) -> (Vec<String>, Vec<(String, String)>) {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        match fields[1] {
            "true" => kept.push(fields[0].to_owned()),
            _ => dropped.push((fields[0].to_owned(), fields[2].to_owned())),
        }
    }
    (kept, dropped)
}

#[test]
fn a_training_set_is_cleaned_of_a_test_set() {
    let dir = Dir::new();
    let (train, test, output) = (dir.at("train.jsonl"), dir.at("test"), dir.at("d.csv"));
    fs::create_dir(&test).unwrap();
    // Two files of documents, in other formats and without an archive.
    write(&format!("{test}/1.jsonl"), [("e1".into(), text(1, None))]);
    fs::write(
        format!("{test}/2.csv"),
        format!("id,text\ne2,{}\n", text(2, None)),
    )
    .unwrap();
    write(
        &train,
        [
            ("leak1".into(), text(1, Some(5))),
            ("leak2".into(), text(2, None)),
            ("own1".into(), text(3, None)),
            // A copy within the training set.
            ("own2".into(), text(3, None)),
        ],
    );
    let before: BTreeSet<String> = names_in(&test);
    let run = format!("run {train} --base {test} --no-within --decisions {output} --overwrite");
    let ran = dedup_ok(&run);
    let expected = (
        vec!["own1".to_owned(), "own2".to_owned()],
        vec![("leak1".into(), "e1".into()), ("leak2".into(), "e2".into())],
    );
    assert_eq!(decisions(&output), expected, "{}", ran.stderr);
    assert_eq!(names_in(&test), before);
    // Verified by the texts of both: an unrelated text of few equal words is no copy.
    dedup_ok(&format!("{run} --min-similarity 0.99"));
    let (kept, dropped) = decisions(&output);
    assert_eq!(kept, ["leak1", "own1", "own2"]);
    assert_eq!(dropped, [("leak2".into(), "e2".into())]);
    // Without ids, documents get the file and the row.
    let bare = dir.at("bare.jsonl");
    fs::write(&bare, json!({ "text": text(1, None) }).to_string()).unwrap();
    dedup_ok(&format!(
        "run {bare} --base {test} --no-within --decisions {output} --overwrite"
    ));
    assert_eq!(decisions(&output).1.len(), 1);

    // Ready fingerprints cannot be compared with documents, which the message says.
    let ready = dir.at("ready.parquet");
    dedup_ok(&format!("fingerprint {train} --output {ready}"));
    dedup(&format!("run {ready} --base {test}")).fails(64, &["dedup-job fingerprint"]);
    // An archive that is committed to is one.
    dedup(&format!(
        "run {train} --base {test} --append --day 2026-01-01"
    ))
    .fails(64, &["--append"]);
}

fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn several_archives_and_files_are_compared_at_once() {
    let dir = Dir::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.at(name));
    let documents = |from: usize| {
        (from..from + 4)
            .map(|of| (format!("base{of}"), text(of, None)))
            .collect::<Vec<_>>()
    };
    for (number, archive) in [&a, &b].into_iter().enumerate() {
        let input = dir.at("input.jsonl");
        write(&input, documents(10 * number));
        dedup_ok(&format!("archive create {archive}"));
        let day = format!("2026-01-0{}", number + 1);
        dedup_ok(&format!(
            "run {input} --base {archive} --append --day {day} -o {archive}.csv"
        ));
    }
    let (plain, fingerprints) = (dir.at("c.jsonl"), dir.at("c.parquet"));
    write(&plain, documents(20));
    dedup_ok(&format!(
        "fingerprint {plain} --base {a} --output {fingerprints}"
    ));
    let texts = dir.at("d.jsonl");
    write(&texts, documents(30));
    fs::create_dir(&c).unwrap();

    let new = dir.at("new.jsonl");
    let batch = (0..4).flat_map(|group| {
        let of = 10 * group + 1;
        [
            (format!("near{of}"), text(of, Some(7))),
            (format!("own{of}"), text(of + 1000, None)),
        ]
    });
    write(&new, batch);
    let output = dir.at("pairs.csv");
    let versions = || [&a, &b].map(|archive| names_in(&format!("{archive}/_delta_log")));
    let before = versions();
    let ran = dedup_ok(&format!(
        "run {new} --base {a} --base {b} --base {fingerprints} --base {texts} --output {output}"
    ));
    let pairs = fs::read_to_string(&output).unwrap();
    let found: BTreeSet<(String, String, String)> = pairs
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[0].into(), fields[1].into(), fields[3].into())
        })
        .collect();
    let pair = |of: usize, day: &str| (format!("near{of}"), format!("base{of}"), day.to_owned());
    let expected = [
        pair(1, "2026-01-01"),
        pair(11, "2026-01-02"),
        pair(21, ""),
        pair(31, ""),
    ];
    assert_eq!(found, expected.into(), "{}", ran.stderr);
    assert_eq!(versions(), before);

    // Each alone finds its own; a repeated one changes nothing.
    let twice = dir.at("twice.csv");
    dedup_ok(&format!(
        "run {new} --base {b} --base {a} --base {b} --base {texts} --base {fingerprints} --output {twice}"
    ));
    assert_eq!(fs::read_to_string(&twice).unwrap(), pairs);
    // Decisions of an archive count: what it dropped is no original.
    let decided = dir.at("d.csv");
    dedup_ok(&format!(
        "run {new} --base {a} --base {b} --no-within --decisions {decided}"
    ));
    assert_eq!(decisions(&decided).1.len(), 2);

    dedup(&format!(
        "run {new} --base {a} --base {b} --append --day 2026-01-03"
    ))
    .fails(64, &["--append", "one"]);
    dedup(&format!(
        "split {} {new} --base {a} --base {b}",
        dir.at("job")
    ))
    .fails(64, &["archive append"]);
    let other = dir.archive("other", "--sketch 128");
    dedup(&format!(
        "run {new} --base {a} --base {other} --output {twice} --overwrite"
    ))
    .fails(78, &["sketch"]);
}

/// Words of letters alone: numbers in passages do not tell these apart.
fn line(of: &str, words: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    let word = |word: usize| format!("{of}{}{} ", letter(word / 26), letter(word));
    (0..words).map(word).collect()
}

/// A page of a shop: a frame that all its pages share, and between its halves some words of its own.
fn page(shop: &str, number: usize) -> (String, String) {
    let frame = |side: &str| -> Vec<String> {
        let part = |part: usize| line(&format!("{shop}{side}{}", line("", part + 1).trim()), 14);
        (0..6)
            .map(part)
            .map(|part| part.replace(' ', "x "))
            .collect()
    };
    let own = line(&format!("own{}", line("", number + 1).replace(' ', "")), 30);
    let url = format!("https://{shop}.example/{number}");
    let text = [frame("head"), vec![own], frame("foot")].concat();
    (url, text.join("\n"))
}

#[test]
fn the_template_of_both_sets_is_left_out() {
    let dir = Dir::new();
    let (base, new, output) = (dir.at("base.jsonl"), dir.at("new.jsonl"), dir.at("d.csv"));
    write(&base, (0..20).map(|number| page("shop", number)));
    // Few pages, so the batch alone does not tell what the shop's template is: none of them repeats one of the base.
    write(&new, (100..103).map(|number| page("shop", number)));
    let run = format!("run {new} --base {base} --decisions {output} --overwrite");
    dedup_ok(&run);
    assert_eq!(decisions(&output).0.len(), 3);
    // Another frame around the same words.
    write(&new, (0..12).map(|number| page("mirror", number)));
    dedup_ok(&run);
    assert_eq!(decisions(&output).1.len(), 12);
}

#[test]
fn a_file_of_the_batch_is_no_base() {
    let dir = Dir::new();
    let folder = dir.at("all");
    fs::create_dir(&folder).unwrap();
    let new = format!("{folder}/new.jsonl");
    write(&new, [("a".into(), text(1, None))]);
    write(
        &format!("{folder}/old.jsonl"),
        [("b".into(), text(2, None))],
    );
    let kept = dir.at("kept.jsonl");
    dedup(&format!(
        "run {new} --base {folder} --no-within --kept {kept}"
    ))
    .fails(64, &["new.jsonl", "repeat itself"]);
    dedup_ok(&format!(
        "run {new} --base {folder}/old.jsonl --no-within --kept {kept}"
    ));
}

#[test]
fn texts_are_found_on_their_own_side() {
    let dir = Dir::new();
    let (archive, old, base, new) = (
        dir.at("archive"),
        dir.at("old.jsonl"),
        dir.at("base.jsonl"),
        dir.at("new.jsonl"),
    );
    write(&old, [("o1".into(), text(1, None))]);
    dedup_ok(&format!("archive create {archive}"));
    dedup_ok(&format!(
        "run {old} --base {archive} --append --day 2026-01-01 -o {archive}.csv"
    ));
    // A document of the base shares its id with one of the batch.
    write(&base, [("n2".into(), text(3, None))]);
    write(
        &new,
        [
            ("n1".into(), text(1, Some(9))),
            ("n2".into(), text(2, None)),
            ("n3".into(), text(3, Some(9))),
        ],
    );
    let output = dir.at("pairs.csv");
    dedup_ok(&format!(
        "run {new} --base {archive} --base {base} --verify jaccard --base-text {old} --output {output}"
    ));
    let pairs = fs::read_to_string(&output).unwrap();
    let rows: Vec<Vec<&str>> = pairs
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    let ids: Vec<_> = rows.iter().map(|row| (row[0], row[1])).collect();
    assert_eq!(ids, [("n1", "o1"), ("n3", "n2")], "{pairs}");
    assert!(rows.iter().all(|row| row[4].starts_with("0.9")), "{pairs}");
}

#[test]
fn a_batch_that_is_a_day_of_one_of_two_archives_is_found_there() {
    let dir = Dir::new();
    let [new, other, a, b] = ["new.jsonl", "other.jsonl", "a", "b"].map(|name| dir.at(name));
    write(
        &new,
        [
            ("x".to_owned(), text(1, None)),
            ("y".to_owned(), text(2, None)),
        ],
    );
    write(&other, [("z".to_owned(), text(3, None))]);
    for (archive, batch) in [(&a, &new), (&b, &other)] {
        dedup_ok(&format!("archive create {archive}"));
        let output = dir.at("o.csv");
        dedup_ok(&format!(
            "run {batch} --base {archive} --append --day 2026-01-01 -o {output} --overwrite"
        ));
    }
    let output = dir.at("hits.csv");
    dedup_ok(&format!("run {new} --base {a} --base {b} -o {output}"));
    let hits = fs::read_to_string(&output).unwrap();
    let found = hits
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap());
    assert_eq!(found.collect::<Vec<_>>(), ["x", "y"], "{hits}");
}
