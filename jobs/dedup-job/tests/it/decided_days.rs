//! Tests of decisions over several days: the archive's column `kept`, and days committed with kept
//! documents only.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fs;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::Int64Type;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::decisions::{
    Archived, Decision, Document, by_definition, crowded, days_since_epoch, read_decisions,
    write_scored,
};
use crate::helpers::foreign_writer::OtherEngine;
use crate::helpers::servers::seaweed;
use crate::helpers::support::*;

/// The first day, in days since 1970.
const FIRST: i32 = 20_454;
const DAYS: [&str; 4] = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"];

/// A batch in the order of its file, and the decisions about its documents in the same order.
struct Day {
    documents: Vec<Document>,
    expected: Vec<Decision>,
    kept: Vec<bool>,
}

impl Day {
    /// A random batch, decided by the definition against the documents of `before`.
    fn random(
        random: &mut ChaCha8Rng,
        centres: &[u64],
        number: usize,
        k: u32,
        before: &Archived,
    ) -> Self {
        let documents: Vec<Document> = (0..random.random_range(1..40))
            .map(|_| Document {
                // Some documents share an id, in one day and across days.
                id: format!("page/{}", random.random_range(0..40)),
                fingerprint: random.random_bool(0.95).then(|| crowded(random, centres)),
                score: None,
            })
            .collect();
        Self::decided(documents, number, k, before)
    }

    /// Decides about a batch by the definition, against the documents of `before`.
    fn decided(documents: Vec<Document>, number: usize, k: u32, before: &Archived) -> Self {
        let day = FIRST + number as i32;
        let expected = by_definition(before, &documents, Some(day), k, |_, _| Ordering::Equal);
        let mut places: Vec<usize> = (0..documents.len()).collect();
        places.sort_by(|a, b| documents[*a].id.cmp(&documents[*b].id).then(a.cmp(b)));
        let mut kept = vec![false; documents.len()];
        for (place, decision) in places.into_iter().zip(&expected) {
            kept[place] = decision.kept;
        }
        Self {
            documents,
            expected,
            kept,
        }
    }

    /// Id, fingerprint and decision of the documents with a fingerprint.
    fn rows(&self) -> impl Iterator<Item = (String, u64, bool)> {
        let documents = self.documents.iter().zip(&self.kept);
        documents.filter_map(|(document, &kept)| {
            Some((document.id.clone(), document.fingerprint?, kept))
        })
    }
}

/// Day, id, fingerprint and decision of each document of the archive, sorted.
type Rows = Vec<(i32, String, u64, Option<bool>)>;

/// What the archive holds, as another program reads it.
fn archive_rows(archive: &str) -> Rows {
    let engine = OtherEngine::new(archive);
    let mut rows = Rows::new();
    for add in engine.files() {
        let day = days_since_epoch(add["partitionValues"]["day"].as_str().unwrap());
        for batch in read_parquet(format!("{archive}/{}", add["path"].as_str().unwrap())) {
            let column = |name: &str| batch.column_by_name(name).unwrap();
            let fingerprints = column("fp").as_primitive::<Int64Type>();
            let kept = batch
                .column_by_name("kept")
                .map(|kept| kept.as_boolean().clone());
            for (row, id) in texts(column("id")).into_iter().enumerate() {
                let kept = kept.as_ref().filter(|kept| kept.is_valid(row));
                let kept = kept.map(|kept| kept.value(row));
                rows.push((day, id, fingerprints.value(row).cast_unsigned(), kept));
            }
        }
    }
    rows.sort();
    rows
}

/// The archives tested: whether it has the column `kept`, and which documents --append commits.
const ARCHIVES: [(bool, &str); 4] = [
    (true, "all"),
    (true, "kept"),
    (false, "all"),
    (false, "kept"),
];

#[test]
fn decisions_of_several_days_are_those_of_the_definition() {
    for seed in 0..16 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let (has_kept, append) = ARCHIVES[seed as usize % 4];
        let dir = Dir::new();
        let k = random.random_range(1..5);
        let centres: Vec<u64> = (0..random.random_range(1..6))
            .map(|_| random.random())
            .collect();
        let (archive, output) = (dir.at("archive"), dir.at("decisions.parquet"));
        let create = if has_kept { "--decisions" } else { "" };
        dedup_ok(&format!(
            "archive create --profile paper {archive} {create}"
        ));
        // `before`: the documents that later ones can be duplicates of. `rows`: all that the
        // archive holds.
        let mut before = Archived::new();
        let mut rows = Rows::new();
        let mut days: Vec<Day> = Vec::new();
        let run = |number: usize, options: &str| {
            let day = DAYS[number];
            let new = dir.at(&format!("{day}.parquet"));
            let line = format!(
                "run {new} --base {archive} --day {day} -k {k} --decisions {output} --json {options}"
            );
            let summary = dedup_json(&line);
            (summary, read_decisions(&output))
        };
        for (number, name) in DAYS.into_iter().enumerate() {
            let day = Day::random(random, &centres, number, k, &before);
            write_scored(dir.join(&format!("{name}.parquet")), &day.documents);
            // Decides about the day before its commit, with its commit, and after it.
            for (options, commit) in [
                (String::new(), "not_asked"),
                (format!("--append={append}"), "committed"),
                (format!("--append {append}"), "already_there"),
            ] {
                let (summary, found) = run(number, &options);
                assert_eq!(found, day.expected, "{seed}: {options}");
                assert!(
                    summary["commit"].to_string().contains(commit),
                    "{seed}: {options}: {summary}"
                );
            }
            let number = FIRST + number as i32;
            for (id, fingerprint, kept) in day.rows() {
                if kept || !has_kept && append == "all" {
                    before.push((number, id.clone(), fingerprint));
                }
                if kept || append == "all" {
                    rows.push((number, id, fingerprint, has_kept.then_some(kept)));
                }
            }
            rows.sort();
            assert_eq!(archive_rows(&archive), rows, "{seed}");
            days.push(day);
        }
        // Reruns, with and without --append, decide about each day as at first, whatever came after
        // it.
        for (number, day) in days.iter().enumerate() {
            for options in [format!("--append={append}"), String::new()] {
                let (_, found) = run(number, &options);
                assert_eq!(found, day.expected, "{seed}: day {number} again {options}");
            }
        }
        // Compaction, and removal of some documents, keep the decisions on the others.
        let gone: BTreeSet<String> = before.iter().map(|row| row.1.clone()).take(2).collect();
        fs::write(
            dir.join("ids"),
            gone.iter().map(|id| format!("{id}\n")).collect::<String>(),
        )
        .unwrap();
        dedup_ok(&format!("archive compact {archive}"));
        assert_eq!(archive_rows(&archive), rows, "{seed}");
        dedup_ok(&format!("archive remove {archive} --ids {}", dir.at("ids")));
        rows.retain(|(_, id, ..)| !gone.contains(id));
        before.retain(|(_, id, _)| !gone.contains(id));
        assert_eq!(archive_rows(&archive), rows, "{seed}");
        let next = Day::random(random, &centres, DAYS.len(), k, &before);
        write_scored(dir.join("next.parquet"), &next.documents);
        let new = dir.at("next.parquet");
        dedup_ok(&format!(
            "run {new} --base {archive} --day 2026-01-05 -k {k} --decisions {output}"
        ));
        assert_eq!(read_decisions(&output), next.expected, "{seed}");
        dedup_ok(&format!("archive info {archive} --verify"));
    }
}

/// Three days, each of which repeats documents of the day before.
fn write_chain(dir: &Dir) -> [String; 3] {
    let rows = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
        rows.iter()
            .map(|(id, fp)| ((*id).to_owned(), *fp))
            .collect()
    };
    // b is near a, and c is near b alone: c is near a duplicate only.
    let days = [
        rows(&[("a", 0), ("x", 0xff00)]),
        rows(&[("b", 0b111), ("x2", 0xff01)]),
        rows(&[("c", 0b11_1111), ("x3", 0xff03), ("y", 0xff_0000)]),
    ];
    std::array::from_fn(|number| {
        let path = dir.at(&format!("{}.parquet", DAYS[number]));
        write_fingerprints(&path, &days[number]);
        path
    })
}

/// The id and the `duplicate_of` of each decision.
fn originals(path: &str) -> Vec<(String, Option<String>)> {
    let rows = read_decisions(path).into_iter();
    rows.map(|row| (row.id, row.duplicate_of)).collect()
}

#[test]
fn a_duplicate_of_a_duplicate_is_kept() {
    let dir = Dir::new();
    let days = write_chain(&dir);
    let output = dir.at("o.parquet");
    // In an archive without decisions, c is a duplicate of b. In one with decisions, or with kept
    // documents only, c is kept, because b is a duplicate.
    for (name, create, append, [c, x3]) in [
        ("plain", "", "all", [Some("b"), Some("x2")]),
        ("decided", "--decisions", "all", [None, Some("x")]),
        ("kept", "", "kept", [None, Some("x")]),
    ] {
        let archive = dir.at(name);
        dedup_ok(&format!(
            "archive create --profile paper {archive} {create}"
        ));
        for (day, new) in DAYS.iter().zip(&days) {
            let line = format!(
                "run {new} --base {archive} --day {day} --append {append} --decisions {output} --json"
            );
            let summary = dedup_json(&line);
            assert!(summary["commit"]["committed"].is_u64(), "{summary}");
        }
        let text = |id: &str| Some(id.to_owned());
        assert_eq!(
            originals(&output),
            [
                ("c".to_owned(), c.and_then(text)),
                ("x3".to_owned(), x3.and_then(text)),
                ("y".to_owned(), None),
            ],
            "{name}"
        );
        // Pairs are found with duplicates, too.
        let hits = dir.at("hits.parquet");
        dedup_ok(&format!(
            "run {} --base {archive} --day {} -o {hits}",
            days[2], DAYS[2]
        ));
        let pairs: BTreeSet<(String, String)> = read_hits(&hits)
            .into_iter()
            .map(|hit| (hit.0, hit.1))
            .collect();
        assert_eq!(pairs.contains(&("c".into(), "b".into())), append == "all");
        let info = dedup_json(&format!("archive info {archive} --json"));
        assert_eq!(info["decisions"], !create.is_empty());
        assert_eq!(
            info["fingerprints"].as_u64().unwrap(),
            if append == "all" { 7 } else { 4 }
        );
    }
}

#[test]
fn foreign_writers_rows_count_as_kept() {
    let dir = Dir::new();
    let days = write_chain(&dir);
    let (archive, output) = (dir.at("archive"), dir.at("o.parquet"));
    dedup_ok(&format!(
        "archive create --profile paper {archive} --decisions"
    ));
    let engine = OtherEngine::new(&archive);
    // Two kinds of rows have no decision: those of another engine, whose file lacks the column, and
    // those of `archive append`, which decides nothing.
    engine.append(Some("2025-12-31"), &[("theirs", 0b11_0111)]);
    let early = dir.at("early.parquet");
    write_fingerprints(&early, &[("early".into(), 0xff_0001)]);
    dedup_ok(&format!(
        "archive append {archive} --input {early} --day 2025-12-30"
    ));
    assert!(archive_rows(&archive).iter().all(|row| row.3.is_none()));
    for (day, new) in DAYS.iter().zip(&days) {
        dedup_ok(&format!(
            "run {new} --base {archive} --day {day} --append --decisions {output}"
        ));
    }
    let found = originals(&output);
    assert_eq!(found[0], ("c".into(), Some("theirs".into())));
    assert_eq!(found[2], ("y".into(), Some("early".into())));
}

#[test]
fn days_at_once_are_decided_one_after_the_other() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper --decisions");
    let random = &mut ChaCha8Rng::seed_from_u64(5);
    let centres = [random.random(), random.random()];
    let none = Archived::new();
    let days: Vec<Day> = (0..4)
        .map(|number| Day::random(random, &centres, number, 3, &none))
        .collect();
    let runs: Vec<std::process::Child> = DAYS
        .iter()
        .zip(&days)
        .map(|(day, batch)| {
            let new = dir.at(&format!("{day}.parquet"));
            write_scored(&new, &batch.documents);
            let output = dir.at(&format!("{day}.csv"));
            let line =
                format!("run {new} --base {archive} --append --day {day} --decisions {output}");
            start(command(), &line)
        })
        .collect();
    for run in runs {
        Ran::of(run.wait_with_output().unwrap()).ok();
    }
    // In the order of the commits, each day must be decided against the days before it.
    let mut before = Archived::new();
    let mut rows = Rows::new();
    for actions in &OtherEngine::new(&archive).log()[1..] {
        let add = actions.iter().find_map(|action| action.get("add")).unwrap();
        let name = add["partitionValues"]["day"].as_str().unwrap();
        let number = DAYS.iter().position(|day| *day == name).unwrap();
        let batch = &days[number].documents;
        let day = Day::decided(batch.clone(), number, 3, &before);
        for (id, fingerprint, kept) in day.rows() {
            rows.push((FIRST + number as i32, id.clone(), fingerprint, Some(kept)));
            if kept {
                before.push((FIRST + number as i32, id, fingerprint));
            }
        }
        let output = dir.at(&format!("{name}.csv"));
        let again = dir.at("again.csv");
        let new = dir.at(&format!("{name}.parquet"));
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day {name} --decisions {again}"
        ));
        assert!(
            fs::read(&output).unwrap() == fs::read(&again).unwrap(),
            "{name}"
        );
        let found = fs::read_to_string(&output).unwrap();
        let kept = found.lines().filter(|line| line.contains(",true,")).count();
        assert_eq!(
            kept,
            day.kept.iter().filter(|kept| **kept).count(),
            "{name}"
        );
    }
    rows.sort();
    assert_eq!(archive_rows(&archive), rows);
}

#[test]
fn what_cannot_be_decided_is_not_appended() {
    let dir = Dir::new();
    let days = write_chain(&dir);
    let (decided, plain) = (dir.at("decided"), dir.at("plain"));
    dedup_ok(&format!(
        "archive create --profile paper {decided} --decisions"
    ));
    dedup_ok(&format!("archive create --profile paper {plain}"));
    let run = |archive: &str, options: &str| {
        dedup(&format!(
            "run {} --base {archive} --day 2026-01-01 -o {} {options}",
            days[0],
            dir.at("o.parquet")
        ))
    };
    for (archive, options, parts) in [
        (
            &decided,
            "--append --no-within",
            ["has decisions", "leave out --no-within"],
        ),
        (&plain, "--append=some", ["all", "kept"]),
        (&plain, "--append --prefer fp", ["--prefer", "decisions"]),
    ] {
        run(archive, options).fails(64, &parts);
    }
    for archive in [&decided, &plain] {
        assert_eq!(
            dedup_json(&format!("archive info {archive} --json"))["version"],
            0
        );
    }
    // --append before the documents does not take a document for its value.
    dedup_ok(&format!(
        "run --append {} --base {decided} --day 2026-01-01 -o {} --prefer fp:desc",
        days[0],
        dir.at("o.parquet")
    ));
    // The configuration file sets `append` by name.
    fs::write(dir.join("dedup-job.toml"), "[run]\nappend = \"kept\"\n").unwrap();
    let config = dir.at("dedup-job.toml");
    let line = format!(
        "--config {config} run {} --base {plain} --day 2026-01-02 --decisions {} --json",
        days[1],
        dir.at("d.csv")
    );
    assert_eq!(dedup_json(&line)["decisions"]["kept"], 2);
    let info = dedup_json(&format!("archive info {plain} --json"));
    assert_eq!(
        (&info["version"], &info["fingerprints"]),
        (&1.into(), &2.into())
    );
}

#[test]
fn a_day_with_other_decisions_is_another_day() {
    let dir = Dir::new();
    let copy = dir.at("copy.parquet");
    let rows = [("p", 0_u64), ("q", 1)].map(|(id, fp)| (id.to_owned(), fp));
    write_fingerprints(&copy, &rows);
    let run = |archive: &str, options: &str| {
        dedup(&format!(
            "run {copy} --base {archive} --day 2026-02-01 --decisions {} --json {options}",
            dir.at("o.csv")
        ))
    };
    let commit = |ran: Ran| ran.ok().json()["commit"].to_string();
    let rows_of = |archive: &str| -> Vec<(String, Option<bool>)> {
        let rows = archive_rows(archive).into_iter();
        rows.filter(|row| row.1 == "p" || row.1 == "q")
            .map(|row| (row.1, row.3))
            .collect()
    };
    let (p, q) = ("p".to_owned(), "q".to_owned());
    // Without the column `kept`, a rerun recognises the day by which of its documents the archive
    // has.
    let plain = dir.archive("plain", "--profile paper");
    assert!(commit(run(&plain, "--append kept")).contains("committed"));
    assert_eq!(rows_of(&plain), [(p.clone(), None)]);
    let differs = [
        "day 2026-02-01",
        "only the kept documents",
        "now it would be all documents",
        "--replace-day",
    ];
    run(&plain, "--append").fails(65, &differs);
    dedup(&format!(
        "archive append {plain} --input {copy} --day 2026-02-01"
    ))
    .fails(65, &differs);
    run(&plain, "--append kept -k 2").fails(65, &["k=3", "k=2"]);
    assert_eq!(commit(run(&plain, "--append kept")), "\"already_there\"");
    assert!(commit(run(&plain, "--append --replace-day")).contains("committed"));
    assert_eq!(rows_of(&plain), [(p.clone(), None), (q.clone(), None)]);
    run(&plain, "--append kept").fails(
        65,
        &[
            "all documents, without decisions",
            "only the kept documents",
        ],
    );
    // With the column, a rerun compares the decisions, too: it notices missing ones, and ones made
    // with other options.
    let decided = dir.archive("decided", "--profile paper --decisions");
    dedup_ok(&format!(
        "archive append {decided} --input {copy} --day 2026-02-01"
    ));
    assert_eq!(rows_of(&decided), [(p.clone(), None), (q.clone(), None)]);
    run(&decided, "--append").fails(65, &["without decisions", "decided by k=3"]);
    assert!(commit(run(&decided, "--append --replace-day")).contains("committed"));
    assert_eq!(
        rows_of(&decided),
        [(p.clone(), Some(true)), (q.clone(), Some(false))]
    );
    run(&decided, "--append --prefer fp:desc").fails(65, &["prefer=fp:desc"]);
    // Without --append, a run may decide with other options.
    run(&decided, "--prefer fp:desc").ok();
    assert!(commit(run(&decided, "--append --prefer fp:desc --replace-day")).contains("committed"));
    assert_eq!(rows_of(&decided), [(p, Some(false)), (q, Some(true))]);
    // A rerun knows what the day holds even after another engine dropped the tags of its files.
    OtherEngine::new(&plain).optimize(Some("2026-02-01"));
    assert_eq!(commit(run(&plain, "--append")), "\"already_there\"");
    run(&plain, "--append kept").fails(65, &["only the kept documents"]);
    // A rerun without --decisions decides nothing anew.
    let again = format!(
        "run {copy} --base {decided} --day 2026-02-01 --append --prefer fp:desc -o {} --json",
        dir.at("hits.csv")
    );
    assert!(dedup_json(&again)["decisions"].is_null());
}

#[test]
fn decisions_need_little_memory() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper --decisions --sketch 64");
    let new = dir.at("new.jsonl");
    let line = |id: u32| {
        format!(
            "{{\"id\": \"{id}\", \"text\": \"one two three four five six seven eight {}\"}}\n",
            id / 2
        )
    };
    fs::write(&new, (0..40).map(line).collect::<String>()).unwrap();
    let summary = dedup(&format!(
        "run {new} --base {archive} --append --day 2026-01-01 --memory-limit 32MiB --decisions {} --json",
        dir.at("o.csv")
    ));
    assert_eq!(
        summary.ok().json()["decisions"]["kept"]
            .as_u64()
            .map(|kept| kept <= 20),
        Some(true)
    );
}

/// Runs the days against an archive; returns the bytes of the decisions of each.
fn decide_days(
    days: &[String],
    dir: &Dir,
    run: impl Fn(&str) -> Ran,
    archive: &str,
) -> Vec<Vec<u8>> {
    run(&format!(
        "archive create --profile paper {archive} --decisions"
    ))
    .ok();
    let output = dir.at("of-a-day.parquet");
    DAYS.iter()
        .zip(days)
        .map(|(day, new)| {
            run(&format!(
                "run {new} --base {archive} --day {day} --append --decisions {output}"
            ))
            .ok();
            fs::read(&output).unwrap()
        })
        .collect()
}

#[test]
fn decisions_on_s3_are_the_same() {
    let Some(storage) = seaweed() else { return };
    let dir = Dir::new();
    let days = write_chain(&dir);
    let here = decide_days(&days, &dir, dedup, &dir.at("here"));
    let archive = storage.unique("decided");
    let there = decide_days(&days, &dir, |line| storage.dedup(line), &archive);
    assert!(here == there);
    let info = storage
        .dedup_ok(&format!("archive info {archive} --verify --json"))
        .json();
    assert_eq!(info["decisions"], true);
}
