//! Tests of `run --verify` by texts.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write as _;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{Float64Type, Int32Type};

use crate::helpers::support::*;

/// Documents of random words: `base` for an archive, and `new`, copies of them with some words
/// replaced.
pub struct Documents {
    pub base: Vec<(String, String)>,
    pub new: Vec<(String, String)>,
}

impl Documents {
    pub fn make() -> Self {
        let mut random = numbers_below(7);
        let mut word = move || format!("Word{}", random(5000));
        let base: Vec<Vec<String>> = (0..60)
            .map(|_| (0..120).map(|_| word()).collect())
            .collect();
        let mut edited = Vec::new();
        for (at, words) in base.iter().enumerate() {
            let mut words = words.clone();
            // The copies range from no edit to every second word replaced.
            for place in (0..at).map(|edit| 2 * edit) {
                words[place] = word();
            }
            edited.push((format!("new/{at}"), words.join(" ")));
        }
        let base = base.iter().enumerate();
        Self {
            base: base
                .map(|(at, words)| (format!("old/{at}"), words.join(" ")))
                .collect(),
            new: edited,
        }
    }

    pub fn text(&self, id: &str) -> &str {
        let all = self.base.iter().chain(&self.new);
        &all.into_iter().find(|(own, _)| own == id).unwrap().1
    }
}

/// The Jaccard similarity of the sets of three consecutive words.
pub fn jaccard(a: &str, b: &str) -> f64 {
    let shingles = |text: &str| -> BTreeSet<Vec<String>> {
        let words: Vec<String> = text.split(' ').map(str::to_lowercase).collect();
        words.windows(3).map(<[String]>::to_vec).collect()
    };
    let (a, b) = (shingles(a), shingles(b));
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

pub fn write(path: &str, documents: &[(String, String)]) {
    write_texts(path, documents, 7);
}

pub type Similar = (String, String, i32, Option<f64>);

pub fn read_similar(path: &str) -> Vec<Similar> {
    let mut hits = Vec::new();
    for batch in read_parquet(path) {
        let (new, base) = (texts(batch.column(0)), texts(batch.column(1)));
        let distances = batch.column(2).as_primitive::<Int32Type>();
        assert_eq!(batch.schema().field(4).name(), "similarity");
        let similarities = batch.column(4).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let similarity = similarities.is_valid(row).then(|| similarities.value(row));
            hits.push((
                new[row].clone(),
                base[row].clone(),
                distances.value(row),
                similarity,
            ));
        }
    }
    hits
}

/// A directory with the archive, and the texts of both sides.
fn prepared(documents: &Documents) -> Dir {
    let dir = Dir::new();
    write(&dir.at("new.parquet"), &documents.new);
    write(&dir.at("old.parquet"), &documents.base);
    let archive = dir.archive("archive", "--profile paper");
    dedup_ok(&format!(
        "fingerprint --input {} --append {archive} --day 2026-01-01",
        dir.at("old.parquet")
    ));
    dir
}

#[test]
fn pairs_have_their_exact_similarity_and_unlike_ones_go() {
    let documents = Documents::make();
    let dir = prepared(&documents);
    let (new, archive, old) = (
        dir.at("new.parquet"),
        dir.at("archive"),
        dir.at("old.parquet"),
    );
    let run = format!("run --new {new} --base {archive} --day 2026-01-02 -k 16");
    let plain = dir.at("plain.parquet");
    dedup_ok(&format!("{run} --output {plain}"));
    let expected: Vec<Similar> = read_hits(&plain)
        .into_iter()
        .map(|(new, base, distance, _)| {
            let similarity = jaccard(documents.text(&new), documents.text(&base));
            (new, base, distance, Some(similarity))
        })
        .filter(|hit| hit.3 >= Some(0.5))
        .collect();
    assert!(expected.len() > 10 && read_hits(&plain).len() > expected.len() + 10);

    let json = dir.at("old.jsonl");
    let mut lines = fs::File::create(&json).unwrap();
    for (id, text) in &documents.base {
        writeln!(lines, "{}", serde_json::json!({ "id": id, "text": text })).unwrap();
    }
    let mut outputs = Vec::new();
    for (at, options) in [
        format!("--base-text {old}"),
        format!("--base-text {old} --threads 1"),
        format!("--base-text {json} --threads 7"),
        format!("--base-text {old} --memory-limit 100MB"),
    ]
    .iter()
    .enumerate()
    {
        let output = dir.at(&format!("verified-{at}.parquet"));
        let ran = dedup_ok(&format!(
            "{run} --verify jaccard --min-similarity 0.5 {options} --output {output} --json"
        ));
        assert_eq!(read_similar(&output), expected, "{options}");
        let verified = &ran.json()["verified"];
        assert_eq!(verified["checked"], read_hits(&plain).len());
        assert_eq!(
            verified["dropped"],
            read_hits(&plain).len() - expected.len()
        );
        assert_eq!(verified["without_text"], 0);
        assert_eq!(ran.json()["hits"], expected.len());
        outputs.push(fs::read(&output).unwrap());
    }
    assert!(outputs.windows(2).all(|two| two[0] == two[1]));

    // The other measures agree with jaccard on equal texts, and on the order of similarities.
    for measure in ["cosine", "edit"] {
        let output = dir.at(&format!("{measure}.parquet"));
        dedup_ok(&format!(
            "{run} --verify {measure} --min-similarity 0.5 --base-text {old} --output {output}"
        ));
        let found: HashMap<(String, String), Option<f64>> = read_similar(&output)
            .into_iter()
            .map(|(new, base, _, similarity)| ((new, base), similarity))
            .collect();
        assert_eq!(found[&("new/0".into(), "old/0".into())], Some(1.0));
        let of = |at: usize| found[&(format!("new/{at}"), format!("old/{at}"))];
        assert!(of(3) < Some(1.0) && of(3) > of(9), "{measure}");
    }
}

#[test]
fn pairs_without_a_text_are_kept_and_counted() {
    let documents = Documents::make();
    let dir = prepared(&documents);
    let (new, archive) = (dir.at("new.parquet"), dir.at("archive"));
    // --base-text has every second text of the archive, and one of them is null.
    let some = documents.base.iter().step_by(2);
    let ids: Vec<&String> = some.clone().map(|(id, _)| id).collect();
    let texts: arrow::array::StringArray = some
        .map(|(id, text)| (id != "old/4").then_some(text))
        .collect();
    write_parquet(
        dir.at("some.parquet"),
        vec![("id", strings(ids)), ("text", std::sync::Arc::new(texts))],
    );
    let output = dir.at("hits.parquet");
    let ran = dedup_ok(&format!(
        "run --new {new} --base {archive} -k 8 --verify jaccard --base-text {} --output {output} --json",
        dir.at("some.parquet")
    ));
    let found = read_similar(&output);
    for (new, base, _, similarity) in &found {
        let at: usize = base.split('/').nth(1).unwrap().parse().unwrap();
        let expected = if base.starts_with("old/") && (at % 2 == 1 || at == 4) {
            None
        } else {
            Some(jaccard(documents.text(new), documents.text(base)))
        };
        assert_eq!(*similarity, expected, "{new} {base}");
    }
    let without = found.iter().filter(|hit| hit.3.is_none()).count();
    assert!(without > 3 && without < found.len());
    assert_eq!(ran.json()["verified"]["without_text"], without);
    assert!(
        dedup_ok(&format!(
            "run --new {new} --base {archive} -k 8 --verify jaccard --output {output}"
        ))
        .stdout
        .contains("pairs not verified, because a text was not found: they drop no document")
    );
}

/// A batch can have ready fingerprints and texts.
#[test]
fn ready_fingerprints_are_verified_by_the_texts_beside_them() {
    let documents = Documents::make();
    let dir = prepared(&documents);
    let (new, archive, old) = (
        dir.at("new.parquet"),
        dir.at("archive"),
        dir.at("old.parquet"),
    );
    let fingerprints = dir.at("fingerprints.parquet");
    let texts_only = dir.at("texts.parquet");
    dedup_ok(&format!(
        "run --new {new} --base {archive} -k 10 --verify edit --base-text {old} --output {texts_only} --fingerprints {fingerprints}"
    ));
    let rows: HashMap<String, i64> = read_parquet(&fingerprints)
        .iter()
        .flat_map(|batch| {
            let bits = batch
                .column(0)
                .as_primitive::<arrow::datatypes::Int64Type>();
            texts(batch.column(1))
                .into_iter()
                .zip(bits.values().to_vec())
        })
        .collect();
    let both = dir.at("both.parquet");
    write_parquet(
        &both,
        vec![
            ("id", strings(documents.new.iter().map(|d| &d.0))),
            ("fp", numbers(documents.new.iter().map(|d| rows[&d.0]))),
            ("text", strings(documents.new.iter().map(|d| &d.1))),
        ],
    );
    let output = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {both} --base {archive} -k 10 --verify edit --base-text {old} --output {output}"
    ));
    assert_eq!(fs::read(&output).unwrap(), fs::read(&texts_only).unwrap());
    // Verification needs texts.
    dedup(&format!(
        "run --new {fingerprints} --base {archive} --verify edit --output {output}"
    ))
    .fails(65, &["fingerprints.parquet", "no text", "fp, id"]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let documents = Documents::make();
    let dir = prepared(&documents);
    let run = format!(
        "run --new {} --base {} --output {}",
        dir.at("new.parquet"),
        dir.at("archive"),
        dir.at("hits.parquet")
    );
    dedup(&format!("{run} --min-similarity 0.9")).fails(64, &["--min-similarity", "--verify"]);
    dedup(&format!("{run} --base-text x")).fails(64, &["--base-text", "--verify"]);
    dedup(&format!("{run} --verify jaccard --min-similarity 1.5")).fails(64, &["1.5", "0 and 1"]);
    dedup(&format!("{run} --verify jaccard --min-similarity nan")).fails(64, &["0 and 1"]);
    dedup(&format!("{run} --verify euclid")).fails(64, &["jaccard, cosine, edit, sketch and none"]);
    dedup(&format!(
        "{run} --verify jaccard --base-text {}",
        dir.at("missing")
    ))
    .fails(64, &["missing"]);
    // The output must not lie among the inputs.
    let inside = dir.at("texts");
    fs::create_dir(&inside).unwrap();
    fs::copy(dir.at("old.parquet"), format!("{inside}/old.parquet")).unwrap();
    dedup(&format!(
        "run --new {} --base {} --verify jaccard --base-text {inside} --output {inside}/hits.parquet",
        dir.at("new.parquet"),
        dir.at("archive")
    ))
    .fails(64, &["hits.parquet", "which is read"]);
    // A run that fails late leaves no output.
    let damaged = dir.at("damaged.parquet");
    let mut bytes = fs::read(dir.at("old.parquet")).unwrap();
    for byte in &mut bytes[4..400] {
        *byte ^= 0x5a;
    }
    fs::write(&damaged, bytes).unwrap();
    dedup(&format!(
        "{run} -k 8 --verify jaccard --base-text {damaged}"
    ))
    .fails(65, &["damaged.parquet"]);
    assert!(!dir.names().iter().any(|name| name.contains("hits")));
}

/// Several days have the same id: a run compares the text that the pair's fingerprint was made
/// from.
#[test]
fn recurring_ids_are_compared_by_the_right_text() {
    let dir = Dir::new();
    let documents = Documents::make();
    let text = |at: usize| documents.base[at].1.as_str();
    let edited = documents.new[8].1.as_str();
    let archive = dir.archive("archive", "--profile paper");
    // Yesterday's u is an edited copy of the text that u and n have today.
    write_documents(dir.join("day1.parquet"), &[("u", edited), ("d", text(3))]);
    write_documents(
        dir.join("day2.parquet"),
        &[("u", text(8)), ("n", text(8)), ("d", text(3))],
    );
    dedup_ok(&format!(
        "fingerprint --input {} --append {archive} --day 2026-01-01",
        dir.at("day1.parquet")
    ));
    fs::create_dir(dir.join("texts")).unwrap();
    for day in ["day1", "day2"] {
        fs::copy(
            dir.at(&format!("{day}.parquet")),
            dir.at(&format!("texts/{day}.parquet")),
        )
        .unwrap();
    }
    let output = dir.at("hits.parquet");
    for options in ["", "--no-within", "--day 2026-01-02"] {
        dedup_ok(&format!(
            "run --new {} --base {archive} -k 16 --verify jaccard --min-similarity 0 --base-text {} --output {output} {options}",
            dir.at("day2.parquet"),
            dir.at("texts")
        ));
        let exact = jaccard(text(8), edited);
        for (new, base, _, similarity) in read_similar(&output) {
            let expected = match (new.as_str(), base.as_str()) {
                ("u" | "n", "u") if new == base || options == "--no-within" => exact,
                // Today's n and u are equal; today's n and yesterday's u are not.
                ("u", "n") => 1.0,
                ("n", "u") => continue,
                _ => 1.0,
            };
            assert_eq!(similarity, Some(expected), "{new} {base} {options}");
        }
    }
}

/// --max-hits-per-document keeps the nearest of the verified pairs; a run reports a missing
/// --base-text file at once.
#[test]
fn the_limit_counts_verified_pairs() {
    let dir = Dir::new();
    let words: Vec<String> = (0..80).map(|n| format!("w{n}")).collect();
    let text = words.join(" ");
    let shuffled = words.iter().rev().cloned().collect::<Vec<_>>().join(" ");
    let edited = text.replace("w40", "other");
    let archive = dir.at("archive");
    write_documents(
        dir.join("old.parquet"),
        &[("shuffled", &shuffled), ("edited", &edited)],
    );
    write_documents(dir.join("new.parquet"), &[("n", &text)]);
    dedup_ok(&format!("archive create --profile paper {archive}"));
    dedup_ok(&format!(
        "fingerprint --input {} --append {archive} --day 2026-01-01",
        dir.at("old.parquet")
    ));
    let output = dir.at("hits.parquet");
    let run = format!(
        "run --new {} --base {archive} -k 16 --verify jaccard --output {output} --max-hits-per-document 1",
        dir.at("new.parquet")
    );
    dedup_ok(&format!("{run} --base-text {}", dir.at("old.parquet")));
    let found = read_similar(&output);
    assert_eq!((found.len(), found[0].1.as_str()), (1, "edited"));
    let ran = dedup(&format!("{run} --base-text {} -v", dir.at("missing"))).fails(64, &["missing"]);
    assert!(!ran.stderr.contains("building tables"), "{}", ran.stderr);
}

/// Fault 51: a run verifies two documents with one id by the texts of both.
#[test]
fn documents_with_one_id_are_compared_by_their_texts() {
    let dir = Dir::new();
    let words: Vec<String> = (0..80).map(|n| format!("w{n}")).collect();
    let text = words.join(" ");
    let edited = text.replace("w40", "other");
    write_documents(dir.join("new.parquet"), &[("a", &text), ("a", &edited)]);
    let archive = dir.archive("archive", "--profile paper");
    let output = dir.at("hits.parquet");
    for options in ["", "--day 2026-01-02"] {
        dedup_ok(&format!(
            "run --new {} --base {archive} -k 16 --verify jaccard --output {output} {options}",
            dir.at("new.parquet")
        ));
        let found = read_similar(&output);
        assert_eq!(found.len(), 1);
        let (new, base, distance, similarity) = &found[0];
        assert_eq!((new.as_str(), base.as_str()), ("a", "a"));
        assert!(*distance > 0);
        assert_eq!(*similarity, Some(jaccard(&text, &edited)));
    }
}

/// Empty texts are texts, and equal.
#[test]
fn empty_texts_are_alike() {
    let dir = Dir::new();
    write_documents(dir.join("new.parquet"), &[("a", ""), ("b", "")]);
    let archive = dir.archive("archive", "--profile paper --min-features 0");
    let output = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {} --base {archive} --verify edit --output {output}",
        dir.at("new.parquet")
    ));
    assert_eq!(
        read_similar(&output),
        [("b".into(), "a".into(), 0, Some(1.0))]
    );
}

/// A text of --base-text that is of another document with the id: the pair is written, and drops no document.
#[test]
fn a_text_of_another_document_with_the_id_is_not_compared() {
    let dir = Dir::new();
    let documents = Documents::make();
    let (text, other) = (documents.base[0].1.as_str(), documents.base[1].1.as_str());
    let archive = dir.archive("archive", "--profile paper");
    for (day, text) in [("2026-01-01", text), ("2026-01-02", other)] {
        write_documents(dir.join(&format!("{day}.parquet")), &[("a", text)]);
        let file = dir.at(&format!("{day}.parquet"));
        dedup_ok(&format!(
            "fingerprint {file} --append {archive} --day {day}"
        ));
    }
    write_documents(dir.join("new.parquet"), &[("n", text)]);
    let (new, hits, decisions) = (dir.at("new.parquet"), dir.at("hits.csv"), dir.at("d.csv"));
    let run = |texts: &str, expected: &str| {
        let line = format!(
            "run {new} --base {archive} --verify jaccard {texts} --output {hits} --decisions {decisions} --json"
        );
        let ran = dedup_ok(&line);
        let pairs = fs::read_to_string(&hits).unwrap();
        let decided = fs::read_to_string(&decisions).unwrap();
        assert!(decided.contains(expected), "{decided}");
        (
            pairs,
            ran.stderr.clone(),
            ran.json()["verified"]["without_text"].clone(),
        )
    };
    let header = "new_id,base_id,distance,base_day,similarity\n";
    let other_day = format!("--base-text {}", dir.at("2026-01-02.parquet"));
    let (pairs, said, without) = run(&other_day, "n,true,,");
    assert_eq!(pairs, format!("{header}n,a,0,2026-01-01,\n"));
    assert!(
        said.contains("1 of 1 pairs could not be verified"),
        "{said}"
    );
    assert_eq!(without, 1);
    let (pairs, said, without) = run("", "n,true,,");
    assert_eq!(pairs, format!("{header}n,a,0,2026-01-01,\n"));
    assert!(said.contains("--base-text"), "{said}");
    assert_eq!(without, 1);
    let both = format!("{other_day} {}", dir.at("2026-01-01.parquet"));
    let (pairs, said, without) = run(&both, "n,false,a,2026-01-01,0,1.0");
    assert_eq!(pairs, format!("{header}n,a,0,2026-01-01,1.0\n"));
    assert_eq!((said.contains("verified"), without), (false, 0.into()));
}

/// Pages that differ in their markup alone are one class: not all pairs of them are compared.
#[test]
fn pages_that_differ_in_their_markup_alone_are_decided_together() {
    let dir = Dir::new();
    let text = Documents::make().base[0].1.clone();
    let pages = dir.join("pages");
    fs::create_dir(&pages).unwrap();
    for n in 0..300 {
        let page = format!("<html><head><meta name=csrf content={n}></head><p>{text}</p></html>");
        fs::write(pages.join(format!("{n:03}.html")), page).unwrap();
    }
    let decisions = dir.at("d.csv");
    let line = format!(
        "run {} --verify jaccard --decisions {decisions} --json",
        pages.display()
    );
    let summary = dedup_json(&line);
    assert_eq!(summary["decisions"]["kept"], 1);
    assert_eq!(summary["verified"]["checked"], 0);
}
