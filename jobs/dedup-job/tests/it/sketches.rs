//! Tests of archives with sketches: similarities and verification without texts.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray};
use arrow::datatypes::Int64Type;

use crate::helpers::servers::seaweed;
use crate::helpers::support::*;
use crate::verify::{Documents, Similar, jaccard, read_similar, write};

/// A document as a file of fingerprints has it: id, fingerprint, sketch.
type Row = (String, u64, Vec<u8>);

/// The rows, of a file of fingerprints, that have a fingerprint.
fn rows(path: impl AsRef<Path>) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in read_parquet(path) {
        let fingerprints = batch.column_by_name("fp").unwrap();
        let fingerprints = fingerprints.as_primitive::<Int64Type>();
        let ids = texts(batch.column_by_name("id").unwrap());
        let sketches = batch.column_by_name("sketch").unwrap().as_binary::<i32>();
        for (row, id) in ids.into_iter().enumerate() {
            assert_eq!(fingerprints.is_null(row), sketches.is_null(row));
            if fingerprints.is_valid(row) {
                let fingerprint = fingerprints.value(row).cast_unsigned();
                rows.push((id, fingerprint, sketches.value(row).to_vec()));
            }
        }
    }
    rows
}

/// The pairs of two days and their estimates by the definition: a double loop that compares bit by
/// bit.
fn by_definition(new: &[Row], base: &[Row], k: u32, least: f64) -> Vec<Similar> {
    let mut pairs = Vec::new();
    for (new_id, a, new_sketch) in new {
        for (base_id, b, base_sketch) in base {
            let distance = (a ^ b).count_ones();
            if distance > k {
                continue;
            }
            let bits = 8 * new_sketch.len();
            let bit = |sketch: &[u8], at: usize| sketch[at / 8] >> (at % 8) & 1;
            let equal = (0..bits).filter(|&at| bit(new_sketch, at) == bit(base_sketch, at));
            let estimate = (2.0 * equal.count() as f64 / bits as f64 - 1.0).max(0.0);
            if estimate >= least {
                let ids = (new_id.clone(), base_id.clone());
                pairs.push((ids.0, ids.1, distance.cast_signed(), Some(estimate)));
            }
        }
    }
    pairs.sort_by(|a, b| (&a.0, a.2, &a.1).cmp(&(&b.0, b.2, &b.1)));
    pairs
}

/// Makes a directory with the old and the new documents, a file of fingerprints of each, and an
/// archive of the old ones. Both files and the archive have sketches of `bits` bits.
fn prepared(documents: &Documents, bits: u32) -> Dir {
    let dir = Dir::new();
    write(&dir.at("new.parquet"), &documents.new);
    write(&dir.at("old.parquet"), &documents.base);
    let archive = dir.at("archive");
    dedup_ok(&format!(
        "archive create --profile paper {archive} --sketch {bits}"
    ));
    for side in ["new", "old"] {
        let (input, output) = (
            dir.at(&format!("{side}.parquet")),
            dir.at(&format!("{side}-fp.parquet")),
        );
        dedup_ok(&format!(
            "fingerprint --input {input} --sketch {bits} --output {output}"
        ));
    }
    let old = dir.at("old.parquet");
    dedup_ok(&format!(
        "fingerprint --input {old} --append {archive} --day 2026-01-01"
    ));
    dir
}

#[test]
fn pairs_have_the_estimate_of_their_sketches() {
    let documents = Documents::make();
    for bits in [64, 128, 256] {
        let dir = prepared(&documents, bits);
        let (new, old) = (
            rows(dir.at("new-fp.parquet")),
            rows(dir.at("old-fp.parquet")),
        );
        assert_eq!(new[0].2.len(), bits as usize / 8);
        let (archive, output) = (dir.at("archive"), dir.at("pairs.parquet"));
        let run = |input: &str, base: &str, options: &str| {
            let input = dir.at(input);
            let line = format!(
                "run --new {input} --base {base} -k 16 --no-within --output {output} --json {options}"
            );
            let summary = dedup_json(&line);
            (read_similar(&output), fs::read(&output).unwrap(), summary)
        };
        let expected = by_definition(&new, &old, 16, 0.0);
        assert!(expected.len() > 30, "{}", expected.len());
        let (found, bytes, summary) = run("new.parquet", &archive, "--day 2026-01-02");
        assert_eq!(found, expected, "{bits}");
        assert!(summary["verified"].is_null());
        // The estimate is within five standard errors of the similarity of the texts.
        let error = (1.0 / f64::from(bits)).sqrt();
        for (new, base, _, estimate) in &found {
            let exact = jaccard(documents.text(new), documents.text(base));
            let off = estimate.unwrap() - exact;
            assert!(
                off.abs() < 5.0 * error,
                "{new} {base}: {estimate:?}, {exact}"
            );
        }
        // Files of ready fingerprints bring their sketches, as a batch and as --base.
        let (_, ready, _) = run("new-fp.parquet", &archive, "--day 2026-01-02");
        assert!(ready == bytes);
        let (plain, ..) = run("new-fp.parquet", &dir.at("old-fp.parquet"), "");
        assert_eq!(plain, expected);
        // Verification drops the pairs below --min-similarity, and counts them.
        for least in [0.5, 0.75, 1.0] {
            let options = format!("--day 2026-01-02 --verify sketch --min-similarity {least}");
            let (found, _, summary) = run("new.parquet", &archive, &options);
            let similar = by_definition(&new, &old, 16, least);
            assert!(!similar.is_empty() && similar.len() < expected.len());
            assert_eq!(found, similar, "{bits}, {least}");
            let verified = &summary["verified"];
            assert_eq!(verified["measure"], "sketch");
            assert_eq!(verified["checked"], expected.len());
            assert_eq!(verified["dropped"], expected.len() - similar.len());
            assert_eq!(verified["without_text"], 0);
        }
        let (found, ..) = run("new.parquet", &archive, "--day 2026-01-02 --verify sketch");
        assert_eq!(found, by_definition(&new, &old, 16, 0.755));
    }
}

/// --max-hits-per-document keeps the nearest of the verified pairs; verification covers pairs
/// within the batch, too.
#[test]
fn limits_and_pairs_within_the_batch() {
    let documents = Documents::make();
    let dir = Dir::new();
    // The batch has the old and the new documents, so that all pairs are within it.
    let all = [documents.base.clone(), documents.new.clone()].concat();
    write(&dir.at("all.parquet"), &all);
    let (archive, output) = (dir.at("archive"), dir.at("pairs.parquet"));
    dedup_ok(&format!(
        "archive create --profile paper {archive} --sketch 128"
    ));
    let ready = dir.at("fp.parquet");
    let input = dir.at("all.parquet");
    dedup_ok(&format!(
        "fingerprint --input {input} --sketch 128 --output {ready}"
    ));
    let rows = rows(&ready);
    let larger = |pair: &Similar| pair.0 > pair.1;
    let mut expected = by_definition(&rows, &rows, 12, 0.6);
    expected.retain(larger);
    let run = format!("run --new {input} --base {archive} -k 12 --output {output}");
    let verify = "--verify sketch --min-similarity 0.6";
    dedup_ok(&format!("{run} {verify}"));
    assert_eq!(read_similar(&output), expected);
    for limit in [1, 2] {
        dedup_ok(&format!("{run} {verify} --max-hits-per-document {limit}"));
        let nearest: Vec<Similar> = expected
            .chunk_by(|a, b| a.0 == b.0)
            .flat_map(|same| same.iter().take(limit).cloned())
            .collect();
        assert_eq!(read_similar(&output), nearest, "{limit}");
    }
    // The nearest documents of the archive, held in memory until the end, keep their estimates.
    let base = dir.archive("base", "--profile paper --sketch 128");
    let append = format!("fingerprint --input {input} --append {base} --day 2026-01-01");
    dedup_ok(&append);
    let new = dir.at("new.parquet");
    write(&new, &documents.new);
    dedup_ok(&format!(
        "run --new {new} --base {base} -k 12 --no-within --output {output} --max-hits-per-document 2"
    ));
    let of_new = rows.iter().filter(|row| row.0.starts_with("new/"));
    let of_new: Vec<Row> = of_new.cloned().collect();
    let pairs = by_definition(&of_new, &rows, 12, 0.0);
    let nearest: Vec<Similar> = pairs
        .chunk_by(|a, b| a.0 == b.0)
        .flat_map(|same| same.iter().take(2).cloned())
        .collect();
    assert_eq!(read_similar(&output), nearest);
}

/// Commits, compaction and removal keep each row's sketch.
#[test]
fn sketches_stay_with_their_rows() {
    let documents = Documents::make();
    let dir = prepared(&documents, 64);
    let (archive, output) = (dir.at("archive"), dir.at("pairs.parquet"));
    let (new, old) = (dir.at("new.parquet"), dir.at("old.parquet"));
    // The same documents again, in several files of the next day.
    let again = dir.at("again.parquet");
    let renamed = documents.base.iter();
    let renamed: Vec<_> = renamed
        .map(|(id, text)| (format!("again/{id}"), text.clone()))
        .collect();
    write(&again, &renamed);
    let append = format!("run --new {again} --base {archive} --append --day 2026-01-02");
    dedup_ok(&format!("{append} --rows-per-file 7 --output {output}"));
    let run = || {
        let line = format!("run --new {new} --base {archive} --day 2026-01-03 -k 16");
        dedup_ok(&format!("{line} --no-within --output {output}"));
        read_similar(&output)
    };
    let pairs = run();
    let of_old = |pairs: &[Similar]| -> Vec<Similar> {
        let pairs = pairs.iter().filter(|pair| pair.1.starts_with("old/"));
        pairs.cloned().collect()
    };
    assert_eq!(pairs.len(), 2 * of_old(&pairs).len());
    let compacted = dedup_ok(&format!("archive compact {archive} --json"));
    assert_eq!(compacted.json()["merged_files"], 9);
    assert_eq!(run(), pairs);
    let ids = dir.at("ids.txt");
    fs::write(&ids, "again/old/3\n").unwrap();
    let removed = dedup_ok(&format!("archive remove {archive} --ids {ids} --json"));
    assert_eq!(removed.json()["removed_fingerprints"], 1);
    let rest = pairs.iter().filter(|pair| pair.1 != "again/old/3");
    let rest: Vec<Similar> = rest.cloned().collect();
    assert!(rest.len() < pairs.len());
    assert_eq!(run(), rest);
    dedup_ok(&format!("archive remove {archive} --day 2026-01-02"));
    assert_eq!(run(), of_old(&pairs));
    // A rerun of a committed day is compared with what came before the day, and gives the same
    // bytes.
    let commit = format!("run --new {old} --base {archive} --append --day 2026-01-04 -k 16");
    dedup_ok(&format!("{commit} --output {output}"));
    let first = fs::read(&output).unwrap();
    dedup_ok(&format!("{commit} --output {output}"));
    assert!(fs::read(&output).unwrap() == first);
    dedup_ok(&format!("archive info {archive} --verify"));
}

#[test]
fn what_lacks_sketches_is_refused() {
    let documents = Documents::make();
    let dir = prepared(&documents, 128);
    let (archive, new) = (dir.at("archive"), dir.at("new.parquet"));
    let output = dir.at("pairs.parquet");
    let run = |line: &str| dedup(&format!("run --output {output} {line}"));
    let plain = dir.archive("plain", "--profile paper");
    run(&format!("--new {new} --base {plain} --verify sketch")).fails(64, &["plain", "--sketch"]);
    let texts = format!("--new {new} --base {archive} --verify sketch --base-text {new}");
    run(&texts).fails(64, &["--base-text"]);
    // Fingerprints of another spec, or without a spec, are refused.
    let other = dir.at("other.parquet");
    dedup_ok(&format!("fingerprint --input {new} --output {other}"));
    run(&format!("--new {other} --base {archive}")).fails(78, &["sketch"]);
    let undeclared = dir.at("undeclared.parquet");
    write_fingerprints(&undeclared, &[("a".into(), 7)]);
    run(&format!("--new {undeclared} --base {archive}")).fails(65, &["undeclared", "sketches"]);
    let lines = dir.at("ready.jsonl");
    fs::write(&lines, "{\"id\": \"a\", \"fp\": 7}\n").unwrap();
    run(&format!("--new {lines} --base {archive}")).fails(65, &["ready.jsonl", "sketches"]);
    run(&format!("--new {new} --base {archive} --sketch 64")).fails(78, &["sketch", "128"]);
    dedup(&format!(
        "archive create --profile paper {} --sketch 100",
        dir.at("x")
    ))
    .fails(64, &["100", "128"]);
    let pages = format!("generate pages --output {} --sketch 64", dir.at("pages"));
    dedup(&format!("{pages} --new 10 --base 10")).fails(64, &["--sketch"]);
    assert!(!Path::new(&output).exists());
}

/// `--learn` makes the recommended archive, whose runs need no texts.
#[test]
fn a_learnt_archive_has_sketches() {
    let documents = Documents::make();
    let dir = Dir::new();
    let old = dir.at("old.parquet");
    write(&old, &documents.base);
    let create = |name: &str, options: &str| {
        let archive = dir.at(name);
        let line = format!("archive create {archive} --learn {old} {options} --json");
        dedup_json(&line)["spec"]["sketch"].clone()
    };
    assert_eq!(create("archive", ""), 256);
    assert_eq!(create("small", "--sketch 64"), 64);
    assert!(create("none", "--sketch 0").is_null());
    // `explain` shows the estimate beside the exact similarity.
    let [a, b] = [dir.at("a.txt"), dir.at("b.txt")];
    for (path, text) in [(&a, &documents.base[9].1), (&b, &documents.new[9].1)] {
        fs::write(path, text).unwrap();
    }
    let explain = |archive: &str| {
        let line = format!("explain {a} {b} --base {} --json", dir.at(archive));
        dedup_json(&line)["similarity"].clone()
    };
    let similarity = explain("archive");
    let [exact, estimate] =
        ["jaccard", "sketch"].map(|measure| similarity[measure].as_f64().unwrap());
    assert!(
        (exact - estimate).abs() < 0.25 && exact < 1.0,
        "{similarity}"
    );
    assert!(explain("none").get("sketch").is_none());
}

/// Other programs read sketches as bytes. If one adds a row without a sketch, its pairs have no
/// similarity.
#[test]
fn other_programs_read_sketches() {
    let Some(python) = crate::interop::python() else {
        return;
    };
    let documents = Documents::make();
    let dir = prepared(&documents, 128);
    let (archive, fingerprints) = (dir.at("archive"), dir.at("old-fp.parquet"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sketches.py");
    let mut command = std::process::Command::new(python);
    let ran = command.arg(script).args([&archive, &fingerprints]).output();
    let ran = Ran::of(ran.unwrap()).ok();
    let copied = ran.stdout.trim();
    // The same texts, but not the day that the archive has.
    let renamed = documents.base.iter();
    let renamed = renamed.map(|(id, text)| (format!("again/{id}"), text.clone()));
    let again = dir.at("again.parquet");
    write(&again, &renamed.collect::<Vec<_>>());
    let output = dir.at("pairs.parquet");
    let run =
        format!("run --new {again} --base {archive} --no-within -k 0 --output {output} --json");
    for options in ["", "--verify sketch --min-similarity 1"] {
        let summary = dedup_json(&format!("{run} {options}"));
        let pairs = read_similar(&output);
        let foreign = pairs.iter().filter(|pair| pair.1 == "foreign");
        let foreign: Vec<_> = foreign.collect();
        let expected = (format!("again/{copied}"), "foreign".to_owned(), 0, None);
        assert_eq!(foreign, [&expected], "{options}");
        let others = pairs.iter().filter(|pair| pair.1 != "foreign");
        assert!(others.clone().all(|pair| pair.3 == Some(1.0)));
        assert_eq!(others.count(), documents.base.len());
        if !options.is_empty() {
            assert_eq!(summary["verified"]["without_text"], 1);
        }
    }
}

/// A run reads only the pages of ids and sketches that have rows of pairs.
#[test]
fn rows_of_pairs_take_few_bytes_from_a_store() {
    let Some(storage) = seaweed() else { return };
    let dir = Dir::new();
    // Words that no other text has, and ids like UUIDs.
    let document = |number: u64| {
        let mix = |at: u64| (8 * number + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let words: Vec<String> = (0..8).map(|at| format!("{:x}", mix(at))).collect();
        let (high, low) = (mix(0), mix(1));
        let id = format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        );
        (id, words.join(" "))
    };
    let write = |name: &str, numbers: &mut dyn Iterator<Item = u64>| {
        let documents: Vec<(String, String)> = numbers.map(document).collect();
        let path = dir.at(name);
        write_texts(&path, &documents, 1 << 20);
        path
    };
    let archive = storage.unique("archive");
    storage.dedup_ok(&format!(
        "archive create --profile paper {archive} --sketch 256"
    ));
    let old = write("old.parquet", &mut (0..400_000));
    storage.dedup_ok(&format!(
        "fingerprint --input {old} --append {archive} --day 2026-01-01"
    ));
    let received = |input: &str, pairs: u64| {
        let output = dir.at("pairs.parquet");
        let summary = storage
            .dedup_ok(&format!(
                "run --new {input} --base {archive} --day 2026-01-02 --output {output} --json"
            ))
            .json();
        assert_eq!(summary["hits"], pairs);
        summary["network"]["bytes_received"].as_u64().unwrap()
    };
    let without = write("without.parquet", &mut (500_000..500_120));
    let with = write("with.parquet", &mut (0..400_000).step_by(3_334));
    let bytes = received(&with, 120) - received(&without, 0);
    assert!(bytes / 120 <= 32 << 10, "{bytes} bytes of 120 rows");
}

/// A run reads each text once, though it makes two columns of it; and it may replace a file of
/// fingerprints with sketches.
#[test]
fn texts_are_read_once() {
    let dir = Dir::new();
    let text = b"a text of some words that ends in a byte \xff";
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", strings(["a"])),
        ("text", Arc::new(BinaryArray::from_vec(vec![text]))),
    ];
    let (input, output) = (dir.at("a.parquet"), dir.at("fp.parquet"));
    write_parquet(&input, columns);
    for bits in [0, 64, 256] {
        let line = format!("fingerprint --input {input} --output {output} --sketch {bits} --json");
        assert_eq!(dedup_json(&line)["invalid_utf8"], 1, "{bits}");
    }
}

/// Documents with one id and one fingerprint can have different sketches: fingerprints do not depend on the order of words.
#[test]
fn copies_with_other_sketches_are_compared_each() {
    let dir = Dir::new();
    let words: Vec<String> = (0..200).map(|n| format!("w{n}")).collect();
    let text = words.join(" ");
    let reversed: Vec<&str> = words.iter().rev().map(String::as_str).collect();
    let reversed = reversed.join(" ");
    let archive = dir.archive("archive", "--profile paper --sketch 128");
    let (new, output) = (dir.at("new.parquet"), dir.at("hits.csv"));
    for copies in [[&reversed, &text], [&text, &reversed]] {
        write_documents(
            dir.join("new.parquet"),
            &[("a", copies[0]), ("a", copies[1]), ("b", text.as_str())],
        );
        dedup_ok(&format!(
            "run {new} --base {archive} --verify sketch --min-similarity 0.9 --output {output} --overwrite"
        ));
        let pairs = fs::read_to_string(&output).unwrap();
        let expected = "new_id,base_id,distance,base_day,similarity\nb,a,0,,1.0\n";
        assert_eq!(pairs, expected);
    }
}
