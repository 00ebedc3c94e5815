//! Tests of what a run says and refuses about what it drops: sources, random documents, audits, empty documents.

use std::collections::BTreeMap;
use std::fs;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::helpers::support::*;

/// Words that no other text has.
fn text(of: &str, words: usize) -> String {
    let words: Vec<String> = (0..words).map(|word| format!("{of}w{word}")).collect();
    words.join(" ")
}

/// Three sites: of `a.example` all 12 pages are different, of `b.example` 11 of 12 are one, and `c.example` has two equal pages. Two
/// documents are empty, and one has no URL.
fn sites() -> Vec<Value> {
    let mut documents = Vec::new();
    for page in 0..12 {
        let page_of = |host: &str, text: String| {
            let id = format!("{host}{page}");
            json!({ "id": id, "url": format!("https://www.{host}.example/{page}"), "text": text })
        };
        documents.push(page_of("a", text(&format!("a{page}"), 40)));
        let mut of_b = text(&format!("b{}", page / 11), 60);
        // One word differs.
        of_b += &format!(" b{page}");
        documents.push(page_of("b", of_b));
        if page < 2 {
            documents.push(page_of("c", text("c", 30)));
            documents.push(page_of("e", [" \n", ""][page].into()));
        }
    }
    documents.push(json!({ "id": "none", "text": text("none", 30) }));
    documents
}

#[test]
fn the_summary_says_which_sources_lose_most_and_some_that_are_dropped() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    write_lines(&new, &sites());
    let run = format!("run {new} --decisions {decisions}");
    let summary = dedup_json(&format!("{run} --audit 8 --json"));
    let found = &summary["decisions"];
    assert_eq!(
        found["sources"],
        json!([
            { "source": "b.example", "documents": 12, "dropped": 10 },
            { "source": "c.example", "documents": 2, "dropped": 1 },
        ])
    );
    // What is said of each is what its decision says.
    let rows = fs::read_to_string(&decisions).unwrap();
    let rows: BTreeMap<&str, Vec<&str>> = rows
        .lines()
        .map(|line| (line.split(',').next().unwrap(), line.split(',').collect()))
        .collect();
    let drawn = found["dropped_at_random"].as_array().unwrap();
    assert_eq!(drawn.len(), 5);
    for dropped in drawn {
        let row = &rows[dropped["id"].as_str().unwrap()];
        assert_eq!(row[1], "false");
        assert_eq!(row[2], dropped["duplicate_of"].as_str().unwrap());
        assert_eq!(row[4], dropped["distance"].to_string());
        let similarity: f64 = row[5].parse().unwrap();
        // Parsing JSON may round the last bit.
        let said = dropped["similarity"].as_f64().unwrap();
        assert!((similarity - said).abs() < 1e-12);
    }
    let audit = &found["audit"];
    assert_eq!(audit["compared"], 8);
    assert_eq!(audit["below"], 0);
    // 1 - .05 to the power of 1/8.
    assert!(
        (audit["bound"].as_f64().unwrap() - 0.3123).abs() < 1e-3,
        "{audit}"
    );
    // The same documents for any number of threads.
    for threads in [1, 3] {
        let other = dedup_json(&format!("{run} --audit 8 --json --threads {threads}"));
        assert_eq!(&other["decisions"], found);
    }
    let said = dedup_ok(&run).stdout;
    assert!(
        said.contains("dropped by source: b.example 10 of 12, c.example 1 of 2\n"),
        "{said}"
    );
    assert!(said.contains(" repeats b"), "{said}");

    // Ids that are URLs say their sources; another column is what it says.
    let renamed = |source: fn(&Value) -> Value| -> Vec<Value> {
        let rename = |document: Value| json!({ "id": source(&document), "text": document["text"], "shop": &document["id"].as_str().unwrap()[..1] });
        sites().into_iter().map(rename).collect()
    };
    write_lines(
        &new,
        &renamed(|document| match document["url"].as_str() {
            Some(url) => url.into(),
            None => document["id"].clone(),
        }),
    );
    let summary = dedup_json(&format!("{run} --json"));
    assert_eq!(&summary["decisions"]["sources"], &found["sources"]);
    write_lines(&new, &renamed(|document| document["id"].clone()));
    let summary = dedup_json(&format!("{run} --json --source shop"));
    assert_eq!(summary["decisions"]["sources"][0]["source"], "b");
    let summary = dedup_json(&format!("{run} --json"));
    assert_eq!(summary["decisions"]["sources"], json!([]));
    for option in ["--source", "--columns", "--prefer"] {
        dedup(&format!("{run} {option} nosuch"))
            .fails(65, &["nosuch", "its columns are id, ", "shop"]);
    }
}

#[test]
fn an_audit_finds_what_was_dropped_wrongly() {
    let dir = Dir::new();
    let (old, new) = (dir.at("old.jsonl"), dir.at("new.jsonl"));
    let (archive, decisions) = (dir.at("archive"), dir.at("decisions.csv"));
    // Half of the texts of each pair is another, but the fingerprints are given, and equal.
    let document = |of: &str, number: usize, words: usize| {
        let text = format!(
            "{} {}",
            text(&format!("s{number}"), 40),
            text(&format!("{of}{number}"), words)
        );
        json!({ "id": format!("{of}{number}"), "fp": number * 0x0101_0101_0101, "text": text })
    };
    let documents = |of: &str| -> Vec<Value> {
        (0..30)
            .map(|number| document(of, number, if number < 10 { 40 } else { 0 }))
            .collect()
    };
    write_lines(&old, &documents("old"));
    write_lines(&new, &documents("new"));
    dedup_ok(&format!(
        "archive create {archive} --profile paper --decisions"
    ));
    dedup_ok(&format!(
        "archive append {archive} --input {old} --day 2026-01-01 --fingerprint-column fp"
    ));
    let ready = "--fingerprint-column fp";
    let run = format!("run {new} {ready} --base {archive} --decisions {decisions} -k 0 --json");
    let audit = |options: &str| {
        let summary = dedup_json(&format!("{run} {options}"));
        assert_eq!(summary["decisions"]["duplicates_of_archive"], 30);
        summary["decisions"]["audit"].clone()
    };
    let found = audit(&format!("--audit 30 --base-text {old}"));
    assert_eq!(
        (&found["compared"], &found["below"]),
        (&json!(30), &json!(10))
    );
    assert_eq!(found["min_similarity"], 0.8);
    let bound = found["bound"].as_f64().unwrap();
    assert!((0.45..0.52).contains(&bound), "{bound}");
    let found = audit("--audit 12");
    assert_eq!(
        (&found["compared"], &found["without_text"]),
        (&json!(0), &json!(12))
    );
    assert!(found["bound"].is_null(), "{found}");
    assert_eq!(audit(""), Value::Null);
    // Documents are told apart by their places, whatever their ids.
    let same: Vec<Value> = (0..8)
        .map(|number| json!({ "id": "one", "fp": 7, "text": text(&format!("t{number}"), 50) }))
        .collect();
    write_lines(&new, &same);
    let alone = format!("run {new} {ready} --decisions {decisions} --audit 9 --json");
    let found = dedup_json(&alone)["decisions"]["audit"].clone();
    assert_eq!(
        (&found["compared"], &found["below"]),
        (&json!(7), &json!(7))
    );
    dedup(&format!(
        "run {new} --base {archive} --audit 5 -o {}",
        dir.at("pairs.csv")
    ))
    .fails(64, &["--audit", "need decisions"]);
}

#[test]
fn a_run_that_drops_too_much_of_a_source_is_refused() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    write_lines(&new, &sites());
    let run = format!("run {new} --decisions {decisions} --max-dropped");
    dedup(&format!("{run} 0.8"))
        .fails(65, &["source \"b.example\", 10 of 12", "--max-dropped 0.8"]);
    assert!(!fs::exists(&decisions).unwrap());
    // One of two of c.example is more than that, and means nothing.
    dedup_ok(&format!("{run} 0.84"));
}

#[test]
fn empty_documents_are_dropped_if_asked() {
    let dir = Dir::new();
    let (new, decisions, kept) = (
        dir.at("d.jsonl"),
        dir.at("decisions.csv"),
        dir.at("kept.jsonl"),
    );
    write_lines(&new, &sites());
    let run = format!("run {new} --decisions {decisions} --kept {kept} --overwrite --json");
    let counts = |options: &str| {
        let summary = dedup_json(&format!("{run} {options}"));
        let kept = fs::read_to_string(&kept).unwrap();
        let of_kept = kept.lines().count();
        assert_eq!(summary["decisions"]["kept"], of_kept);
        let rows = fs::read_to_string(&decisions).unwrap();
        assert_eq!(rows.matches(",true,").count(), of_kept);
        (
            summary["decisions"]["empty"].clone(),
            kept.contains("\"e0\""),
            rows,
        )
    };
    let (empty, is_kept, rows) = counts("");
    assert_eq!((empty, is_kept), (json!(0), true));
    assert!(rows.contains("\ne0,true,,,,,1\n"), "{rows}");
    let (empty, is_kept, rows) = counts("--drop-empty");
    assert_eq!((empty, is_kept), (json!(2), false));
    assert!(rows.contains("\ne0,false,,,,,0\n"), "{rows}");
    // Empty documents are in no group.
    let groups = dedup_json(&format!("groups {decisions} --json"));
    assert_eq!(groups["documents"], 27);
    // A rerun of a day decides as its first run did.
    let archive = dir.archive("archive", "");
    let append =
        format!("run {new} --base {archive} --append --day 2026-01-01 --decisions {decisions}");
    dedup_ok(&append);
    dedup(&format!("{append} --drop-empty")).fails(65, &["drop-empty"]);
    dedup(&format!("{run} --drop-empty --profile paper")).fails(64, &["--drop-empty", "too short"]);
}

#[test]
fn of_equal_pages_the_one_with_the_longer_text_is_kept() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    let article = text("a", 200);
    let page = |script: usize, body: &str| {
        format!(
            "<html><script>{}</script><p>{body}</p></html>",
            "x = 1; ".repeat(script)
        )
    };
    write_lines(
        &new,
        &[
            json!({ "id": "a", "text": page(4000, &article) }),
            json!({ "id": "b", "text": page(0, &format!("{article} one two")) }),
            // White space and invisible characters are not text.
            json!({ "id": "c", "text": page(0, &article.replace(' ', " \u{200b} \n ")) }),
        ],
    );
    dedup_ok(&format!("run {new} --decisions {decisions} --markup text"));
    let rows = fs::read_to_string(&decisions).unwrap();
    let kept: Vec<&str> = rows.lines().filter(|row| row.contains(",true,")).collect();
    assert_eq!(kept.len(), 1, "{rows}");
    assert!(kept[0].starts_with("b,"), "{rows}");
}

/// Megabytes of one kind have near fingerprints, because the same words are common in all of them.
#[test]
fn long_texts_of_one_kind_are_kept() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    let random = &mut ChaCha8Rng::seed_from_u64(5);
    let mut documents = Vec::new();
    for book in 0..12 {
        // Words of Zipf's law.
        let word = |random: &mut ChaCha8Rng| {
            let rank = (20_000_f64.ln() * random.random::<f64>()).exp() as u32;
            format!("w{rank}")
        };
        let words: Vec<String> = (0..150_000).map(|_| word(random)).collect();
        documents.push((format!("book{book}"), words.join(" ")));
        let numbers: Vec<String> = (0..20_000)
            .map(|_| random.random_range(0..1_000).to_string())
            .collect();
        documents.push((format!("numbers{book}"), numbers.join("\n")));
        let bytes: Vec<String> = (0..40_000)
            .map(|_| format!("{:02x}", random.random::<u8>()))
            .collect();
        documents.push((format!("dump{book}"), bytes.join(" ")));
    }
    let lines = |documents: &[(String, String)]| -> Vec<Value> {
        documents
            .iter()
            .map(|(id, text)| json!({ "id": id, "text": text }))
            .collect()
    };
    write_lines(&new, &lines(&documents));
    let dropped = |options: &str| {
        let summary = dedup_json(&format!(
            "run {new} --decisions {decisions} --json {options}"
        ));
        let found = &summary["decisions"];
        found["duplicates_of_archive"].as_u64().unwrap()
            + found["duplicates_within"].as_u64().unwrap()
    };
    assert!(dropped("--profile paper") > 5);
    assert_eq!(dropped(""), 0);
    let archive = dir.archive("archive", "");
    for (day, half) in [(1, &documents[..18]), (2, &documents[18..])] {
        write_lines(&new, &lines(half));
        assert_eq!(
            dropped(&format!("--base {archive} --append --day 2026-01-0{day}")),
            0
        );
    }
}

#[test]
fn documents_that_fingerprints_tell_apart_badly_are_counted() {
    let dir = Dir::new();
    let (new, decisions) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut documents: Vec<Value> = Vec::new();
    for id in 0..6 {
        let numbers: Vec<String> = (0..300)
            .map(|_| rng.random_range(0..1000).to_string())
            .collect();
        documents.push(json!({ "id": format!("n{id}"), "text": numbers.join(" ") }));
        documents
            .push(json!({ "id": format!("t{id}"), "text": text(&format!("letters{id}of"), 60) }));
    }
    documents.push(json!({ "id": "long", "text": text("word", 80_000) }));
    write_lines(&new, &documents);
    let run = format!("run {new} --decisions {decisions} --overwrite");
    let paper = dedup_ok(&format!("{run} --profile paper"));
    let said = "6 documents are mostly digits, 1 documents have more than 300 kB";
    assert!(paper.stdout.contains(said), "{}", paper.stdout);
    // Verified decisions need no hint.
    let sharp = dedup_ok(&run);
    assert!(!sharp.stdout.contains("mostly digits"), "{}", sharp.stdout);
    let json = dedup_json(&format!("{run} --json"));
    assert_eq!(
        (&json["new"]["number_texts"], &json["new"]["long_texts"]),
        (&6.into(), &1.into())
    );
}
