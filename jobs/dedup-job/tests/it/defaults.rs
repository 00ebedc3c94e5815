//! Tests of what a run does without options: the settings that an archive records, and those of a batch alone.

use std::collections::BTreeMap;
use std::fs;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use serde_json::json;

use crate::decisions::read_decisions;
use crate::helpers::foreign_writer::OtherEngine;
use crate::helpers::support::*;
use crate::verify::{Documents, jaccard, read_similar, write};

/// A sharp archive with the old documents, and files of both sides.
fn prepared(documents: &Documents) -> (Dir, String) {
    let dir = Dir::new();
    let (old, archive) = (dir.at("old.parquet"), dir.at("archive"));
    write(&old, &documents.base);
    write(&dir.at("new.parquet"), &documents.new);
    dedup_ok(&format!("archive create {archive}"));
    dedup_ok(&format!(
        "archive append {archive} --input {old} --day 2026-01-01"
    ));
    (dir, archive)
}

#[test]
fn an_archive_records_settings_of_runs() {
    let dir = Dir::new();
    let archive = dir.at("archive");
    let created = dedup_json(&format!("archive create {archive} --json"));
    assert_eq!(created["runs"], json!({ "k": 7, "min_similarity": 0.755 }));
    assert_eq!(created["spec"]["sketch"], 256);
    assert_eq!(created["decisions"], true);
    let set = |settings: &str| dedup(&format!("archive set {archive} {settings} --json"));
    let changed = set("k=5 min-similarity=0.9 text-column=body").ok().json();
    let runs = json!({ "k": 5, "min_similarity": 0.9, "text_column": "body" });
    assert_eq!((&changed["runs"], &changed["version"]), (&runs, &1.into()));
    assert!(set("k=5").ok().json()["version"].is_null());
    let info = || dedup_json(&format!("archive info {archive} --json"));
    assert_eq!(info()["runs"], runs);
    for (wrong, said) in [
        ("k=17", "0 to 16"),
        ("min-similarity=2", "0 to 1"),
        ("verify=jaccard", "sketch or none"),
        ("k", "KEY=VALUE"),
        ("seed=1", "text-column"),
    ] {
        set(wrong).fails(64, &[said]);
    }
    // A column that is recorded is the one that is read.
    write_parquet(
        dir.join("named.parquet"),
        vec![
            ("id", strings(["a", "b"])),
            (
                "text",
                strings(["one two three four five", "six seven eight nine ten"]),
            ),
            ("body", strings(["one two three four five"; 2])),
        ],
    );
    let (new, output) = (dir.at("named.parquet"), dir.at("pairs.csv"));
    let run = format!("run {new} --base {archive} -o {output} --json");
    assert_eq!(dedup_json(&run)["hits"], 1);
    assert_eq!(dedup_json(&format!("{run} --text-column text"))["hits"], 0);
    set("text-column= verify=none").ok();
    assert_eq!(info()["runs"], json!({ "k": 5 }));
    dedup(&run).fails(65, &["text", "body", "--text-column"]);

    let paper = dir.at("paper");
    let created = dedup(&format!("archive create {paper} --profile paper --json"));
    let created = created.ok().json();
    assert_eq!(created["runs"], json!({ "k": 3 }));
    assert_eq!(
        (&created["spec"]["sketch"], &created["decisions"]),
        (&json!(null), &json!(false))
    );
    dedup(&format!("archive set {paper} min-similarity=0.5")).fails(64, &["no sketches"]);
}

#[test]
fn a_rerun_of_a_day_compares_as_its_first_run_did() {
    let documents = Documents::make();
    let (dir, archive) = prepared(&documents);
    let (new, output) = (dir.at("new.parquet"), dir.at("pairs.parquet"));
    let decisions = dir.at("decisions.parquet");
    let run = |options: &str| {
        let line =
            format!("run {new} --base {archive} -o {output} --decisions {decisions} {options}");
        let summary = dedup_json(&format!("{line} --json"));
        (
            summary["max_distance"].clone(),
            fs::read(&output).unwrap(),
            fs::read(&decisions).unwrap(),
        )
    };
    let first = run("--append --day 2026-01-02");
    assert_eq!(first.0, 7);
    let similar = read_similar(&output);
    assert!(similar.len() > 5 && similar.iter().all(|pair| pair.3 >= Some(0.755)));
    dedup_ok(&format!("archive set {archive} k=1 min-similarity=0.95"));
    assert_eq!(run("--append --day 2026-01-02"), first);
    assert_eq!(run("--day 2026-01-02"), first);
    assert_eq!(run(""), first);
    // An option counts before what the archive records; another day has the new settings.
    assert_eq!(run("-k 2 --day 2026-01-02").0, 2);
    let (other, all) = (
        dir.at("other.parquet"),
        [documents.new, documents.base].concat(),
    );
    write(&other, &all[..30]);
    let line = format!("run {other} --base {archive} -o {output} --day 2026-01-03 --json");
    let summary = dedup_json(&line);
    assert_eq!(summary["max_distance"], 1);
    assert_eq!(summary["verified"]["min_similarity"], 0.95);
    let plan = dedup_json(&format!("plan {other} --base {archive} --json"));
    assert_eq!(plan["max_distance"], 1);
    let explained = dedup_json(&format!("explain one two --base {archive} --json"));
    assert_eq!(explained["max_distance"], 1);
}

/// Without an archive the texts are at hand: they decide, with the fingerprints within the sharp k as candidates.
#[test]
fn a_batch_alone_is_verified_by_its_texts() {
    let documents = Documents::make();
    let dir = Dir::new();
    let (new, fingerprints) = (dir.at("new.parquet"), dir.at("fp.parquet"));
    let (output, decisions) = (dir.at("pairs.parquet"), dir.at("decisions.parquet"));
    let all: Vec<(String, String)> = [&*documents.base, &*documents.new].concat();
    write(&new, &all);
    let run = format!("run {new} -o {output} --decisions {decisions}");
    let ran = dedup_ok(&format!("{run} --fingerprints {fingerprints}"));
    assert!(
        ran.stdout.contains("verified by text (jaccard)"),
        "{}",
        ran.stdout
    );
    let mut by_id = BTreeMap::new();
    for rows in read_parquet(&fingerprints) {
        let values = rows
            .column_by_name("fp")
            .unwrap()
            .as_primitive::<Int64Type>();
        let ids = texts(rows.column_by_name("id").unwrap());
        by_id.extend(
            ids.into_iter()
                .zip(values.values().iter().map(|fp| fp.cast_unsigned())),
        );
    }
    let mut expected = Vec::new();
    for (id, fingerprint) in &by_id {
        for (other, near) in by_id.range::<String, _>(..id) {
            let distance = (fingerprint ^ near).count_ones();
            let similarity = jaccard(documents.text(id), documents.text(other));
            if distance <= 7 && similarity >= 0.8 {
                expected.push((
                    id.clone(),
                    other.clone(),
                    distance.cast_signed(),
                    Some(similarity),
                ));
            }
        }
    }
    let mut found = read_similar(&output);
    found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    assert!(expected.len() > 5 && found == expected);
    for row in read_decisions(&decisions).iter().filter(|row| !row.kept) {
        let of = row.duplicate_of.as_deref().unwrap();
        assert!(jaccard(documents.text(&row.id), documents.text(of)) >= 0.8);
    }
    // An empty archive-to-be is as none; the paper's profile and ready fingerprints verify nothing, and say so.
    fs::create_dir(dir.join("empty")).unwrap();
    let with_base = dedup_json(&format!("{run} --base {} --json", dir.at("empty")));
    assert_eq!(with_base["hits"], expected.len());
    for unverified in [
        format!("{run} --profile paper"),
        format!("run {fingerprints} -o {output}"),
        format!("run {new} --base {fingerprints} -o {output}"),
    ] {
        let ran = dedup_ok(&unverified);
        assert!(ran.stdout.contains("pairs within 3 bits"), "{}", ran.stdout);
        assert!(ran.stdout.contains("not verified"), "{}", ran.stdout);
    }
    let ran = dedup_ok(&format!("{run} --verify none"));
    assert!(ran.stdout.contains("pairs within 7 bits"), "{}", ran.stdout);
}

#[test]
fn an_index_answers_as_the_runs_of_its_archive_do() {
    let documents = Documents::make();
    let (dir, archive) = prepared(&documents);
    let index = dir.at("index");
    dedup_ok(&format!("index build --base {archive} --output {index}"));
    let queries = dir.at("queries.jsonl");
    let lines = documents
        .new
        .iter()
        .map(|(_, text)| json!({ "text": text }).to_string());
    fs::write(&queries, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let lookup = |options: &str| {
        let line = format!("lookup --index {index} {queries} --json {options}");
        dedup_ok(&line).stdout
    };
    let found = lookup("");
    assert_eq!(found, lookup("-k 7 --min-similarity 0.755"));
    assert_ne!(found, lookup("-k 3"));
}

/// An archive of an earlier build is refused with both versions.
#[test]
fn an_archive_of_another_format_is_refused() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "");
    let engine = OtherEngine::new(&archive);
    let earlier = engine.metadata(|metadata, _| {
        metadata["configuration"]
            .as_object_mut()
            .unwrap()
            .remove("dedup-job.format");
    });
    engine.commit("SET TBLPROPERTIES", &[earlier]);
    let info = dedup(&format!("archive info {archive}"));
    info.fails(
        78,
        &["format 1", "reads format 2", "create the archive again"],
    );
    let damaged = engine.metadata(|metadata, _| {
        metadata["configuration"]["dedup-job.format"] = "2".into();
        metadata["configuration"]["dedup-job.run-defaults"] = "[]".into();
    });
    engine.commit("SET TBLPROPERTIES", &[damaged]);
    let info = dedup(&format!("archive info {archive}"));
    info.fails(78, &["dedup-job.run-defaults", "damaged"]);
}

/// Equal texts are duplicates at any length, in a batch and across days; empty ones are in no pair.
#[test]
fn equal_texts_are_duplicates_at_any_length() {
    let dir = Dir::new();
    let (archive, decisions) = (dir.at("archive"), dir.at("decisions.csv"));
    dedup_ok(&format!("archive create {archive}"));
    let day = |name: &str, documents: &[(&str, &str)], options: &str| {
        write_documents(dir.join(name), documents);
        let line = format!("run {} --decisions {decisions} {options}", dir.at(name));
        let ran = dedup_ok(&line);
        let rows = fs::read_to_string(&decisions).unwrap();
        (
            rows.lines().skip(1).map(str::to_owned).collect::<Vec<_>>(),
            ran.stdout,
        )
    };
    let first = [
        ("a", "404 Not Found"),
        ("b", "404 not\nfound"),
        ("c", "Forbidden"),
        ("d", ""),
        ("e", " \n"),
    ];
    for options in [
        "".to_owned(),
        format!("--base {archive} --append --day 2026-01-01"),
    ] {
        let (rows, said) = day("first.parquet", &first, &options);
        let expected = ["a,true,,", "b,false,a,", "c,true,,", "d,true,,", "e,true,,"];
        assert!(
            rows.iter()
                .zip(expected)
                .all(|(row, start)| row.starts_with(start)),
            "{rows:?}"
        );
        assert!(said.contains("5 documents, 2 empty"), "{said}");
    }
    let next = [
        ("x", "404 Not Found"),
        ("y", "402 Not Found"),
        ("z", "Forbidden"),
    ];
    let (rows, _) = day(
        "next.parquet",
        &next,
        &format!("--base {archive} --day 2026-01-02"),
    );
    assert_eq!(
        rows,
        [
            "x,false,a,2026-01-01,0,1.0,2,,",
            "y,true,,,,,1,,",
            "z,false,c,2026-01-01,0,1.0,2,,",
        ]
    );
    let (rows, said) = day("next.parquet", &next, "--profile paper");
    assert!(rows.iter().all(|row| row.contains(",true,")), "{rows:?}");
    assert!(
        said.contains("3 documents, 3 too short to compare"),
        "{said}"
    );
}

#[test]
fn a_run_is_refused_before_it_publishes() {
    let documents = Documents::make();
    let (dir, archive) = prepared(&documents);
    let (old, output) = (dir.at("old.parquet"), dir.at("decisions.csv"));
    let run = |new: &str, options: &str| {
        dedup(&format!(
            "run {new} --base {archive} --append --decisions {output} {options}"
        ))
    };
    run(&old, "--day 2026-01-02 --max-dropped 0.5")
        .fails(65, &["old.parquet", "60 of 60", "--max-dropped 0.5"]);
    run(&old, "--day 2026-01-02 --refuse-repeats").fails(65, &["60 of 60", "day 2026-01-01"]);
    run(&old, "--day 2026-01-02 --min-new 61").fails(65, &["60 documents", "--min-new 61"]);
    run(&old, "--day 2026-01-02 --max-dropped 2").fails(64, &["0 to 1"]);
    write_documents(dir.join("empty.parquet"), &[]);
    let empty = dir.at("empty.parquet");
    run(&empty, "--day 2026-01-02").fails(65, &["no documents", "--allow-empty"]);
    let plain = format!("run {old} -o {}", dir.at("pairs.csv"));
    dedup(&format!("{plain} --max-dropped 0.5")).fails(64, &["need decisions"]);
    assert!(!std::path::Path::new(&output).exists());
    let version = || dedup_json(&format!("archive info {archive} --json"))["version"].clone();
    assert_eq!(version(), 1);
    let ran = run(&old, "--day 2026-01-02 --max-dropped 1 --min-new 60 --json").ok();
    assert!(
        ran.stderr.contains("duplicates of day 2026-01-01"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        ran.json()["decisions"]["repeats"],
        json!({ "day": "2026-01-01", "documents": 60 })
    );
    run(&empty, "--day 2026-01-03 --allow-empty").ok();
    assert_eq!(version(), 3);
    // A rerun of the first day is no repeat.
    let rerun = format!(
        "run {old} --base {archive} --day 2026-01-01 --refuse-repeats --decisions {output} -o {}",
        dir.at("p.csv")
    );
    dedup_ok(&rerun);
}

/// Records made from one template have very many candidates; comparing all their texts would take hours.
#[test]
fn the_distance_is_lowered_for_records_of_one_template() {
    let dir = Dir::new();
    let (new, output) = (dir.at("records.parquet"), dir.at("pairs.parquet"));
    let records: Vec<(String, String)> = (0..60_000)
        .map(|n| {
            (
                n.to_string(),
                format!("word{n} of the text {} and the number {n}", n % 2),
            )
        })
        .collect();
    write(&new, &records);
    let ran = dedup_ok(&format!("run {new} -o {output} --json"));
    assert!(
        ran.stderr.contains("are within 7 bits, as if"),
        "{}",
        ran.stderr
    );
    let lowered = ran.json()["max_distance"].as_u64().unwrap();
    assert!((3..7).contains(&lowered));
    let bytes = fs::read(&output).unwrap();
    let given = dedup_ok(&format!("run {new} -o {output} -k {lowered} --json"));
    assert!(!given.stderr.contains("template"), "{}", given.stderr);
    assert!(fs::read(&output).unwrap() == bytes);
}

#[test]
fn an_archive_that_learns_nothing_takes_no_options_of_files() {
    let dir = Dir::new();
    let archive = dir.at("archive");
    for option in ["--delimiter ;", "--charset koi8-r", "--check-digests"] {
        let name = option.split(' ').next().unwrap();
        dedup(&format!("archive create {archive} {option}")).fails(64, &[name, "--learn"]);
    }
    assert!(!std::path::Path::new(&archive).exists());
    std::fs::write(dir.at("texts.csv"), "id;text\n1;one\n2;two\n").unwrap();
    dedup_ok(&format!(
        "archive create {archive} --learn {} --delimiter ;",
        dir.at("texts.csv")
    ));
}
