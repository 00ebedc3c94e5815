//! Tests of fingerprint specs: options, what an archive keeps of them, and contradictions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::helpers::support::*;

/// Documents of a few words each: word `n` is in every n-th document.
fn documents() -> Vec<(String, String)> {
    (1..=60)
        .map(|number| {
            let words: Vec<String> = (1..=12)
                .filter(|of| number % of == 0)
                .map(|of| format!("Word{of} word{of}"))
                .collect();
            (
                format!("d{number}"),
                format!("{}. own{number} a b c", words.join(", ")),
            )
        })
        .collect()
}

/// The table in a file of document frequencies: features with their frequencies, in order.
fn read_frequencies(path: &str) -> Vec<(String, i64)> {
    let mut rows = Vec::new();
    for batch in read_parquet(path) {
        let counts = batch.column(1).as_primitive::<Int64Type>();
        rows.extend(
            texts(batch.column(0))
                .into_iter()
                .zip(counts.values().to_vec()),
        );
    }
    rows
}

/// `archive create --learn` makes the same spec as `archive create --idf` with a table of the same
/// documents.
#[test]
fn an_archive_learns_document_frequencies() {
    let dir = Dir::new();
    let documents = documents();
    let input = dir.at("documents.parquet");
    write_texts(&input, &documents, 11);
    let idf = dir.at("idf.parquet");
    dedup_ok(&format!("idf {input} -o {idf}"));
    let create = |name: &str, options: &str| {
        let archive = dir.at(name);
        let created = dedup(&format!("archive create {archive} {options} --json"));
        created.ok().json()["spec"].clone()
    };
    let given = create("given", &format!("--idf {idf} --sketch 256"));
    let learnt = create("learnt", &format!("--learn {input}"));
    assert_eq!(learnt, given);
    assert_eq!(learnt["idf_power"], "1/2");
    let whole = create("whole", &format!("--learn {input} --idf-power 1"));
    assert_eq!(whole["idf"], learnt["idf"]);
    assert!(whole.get("idf_power").is_none());
    // Runs take the table and --idf-power from the archive; an option must agree with it.
    let run = |archive: &str, options: &str| {
        let (archive, output) = (dir.at(archive), dir.at("hits.parquet"));
        dedup(&format!(
            "run --new {input} --base {archive} --output {output} {options}"
        ))
    };
    run("learnt", "").ok();
    run("learnt", &format!("--idf {idf}")).ok();
    run("whole", "--idf-power 1").ok();
    run("learnt", "--idf-power 1").fails(78, &["idf_power"]);
    create("plain", "");
    run("plain", "--idf-power 1/4").fails(64, &["--idf-power", "--learn"]);
    let both = format!(
        "archive create --profile paper {} --learn {input} --idf {idf}",
        dir.at("x")
    );
    dedup(&both).fails(64, &["--learn", "--idf"]);
    // A document with too few features for a fingerprint still counts.
    create(
        "sentences",
        &format!("--learn {input} --tokenizer longest-sentences-2 --min-features 2"),
    );
    // If there is an archive already, `create` fails before it reads any document.
    let again = format!(
        "archive create --profile paper {} --learn nowhere.parquet",
        dir.at("plain")
    );
    dedup(&again).fails(64, &["plain"]);
}

#[test]
fn document_frequencies_are_counted_exactly() {
    let dir = Dir::new();
    let documents = documents();
    write_texts(&dir.at("documents.parquet"), &documents, 11);
    let mut counts = BTreeMap::<String, i64>::new();
    for (_, text) in &documents {
        let words: BTreeSet<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut expected: Vec<(String, i64)> = counts.into_iter().collect();
    expected.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let idf = dir.at("idf.parquet");
    let ran = dedup_ok(&format!(
        "idf {} -o {idf} --json",
        dir.at("documents.parquet")
    ));
    assert_eq!(read_frequencies(&idf), expected);
    assert_eq!(ran.json()["documents"], 60);
    assert_eq!(ran.json()["terms"], expected.len());
    // So small a sample counts as a part of a larger collection.
    let file = SerializedFileReader::try_from(Path::new(&idf)).unwrap();
    let footer = file.metadata().file_metadata().key_value_metadata();
    let documents = KeyValue::new("dedup-job.documents".to_owned(), "20000".to_owned());
    assert!(footer.unwrap().contains(&documents));
    // --terms keeps the most frequent features, the same for any number of threads.
    let few = dir.at("few.parquet");
    for threads in [1, 3] {
        let ran = dedup_ok(&format!(
            "idf {} --output {few} --terms 7 --threads {threads} --json",
            dir.at("documents.parquet")
        ));
        assert_eq!(read_frequencies(&few), expected[..7]);
        let rest = &expected[7..];
        let mean = rest.iter().map(|(_, count)| count).sum::<i64>() / rest.len() as i64;
        assert_eq!(ran.json()["rest"], mean.max(1));
    }
}

/// The archive keeps copies of the files that its spec names; the originals may be deleted.
#[test]
fn an_archive_keeps_its_tables() {
    let dir = Dir::new();
    let documents = documents();
    write_texts(&dir.at("documents.parquet"), &documents, 11);
    let (input, archive, idf) = (
        dir.at("documents.parquet"),
        dir.at("archive"),
        dir.at("idf.parquet"),
    );
    let list = dir.at("stop.txt");
    fs::write(&list, "# not this\nA\n").unwrap();
    dedup_ok(&format!("idf {input} -o {idf} --stop-words {list}"));
    dedup_ok(&format!(
        "archive create --profile paper {archive} --idf {idf} --stop-words {list} --weight log-tf"
    ));
    let with = dir.at("with.parquet");
    dedup_ok(&format!(
        "fingerprint --input {input} --output {with} --idf {idf} --stop-words {list} --weight log-tf"
    ));
    fs::remove_file(&idf).unwrap();
    fs::remove_file(&list).unwrap();
    dedup_ok(&format!(
        "fingerprint --input {input} --append {archive} --day 2026-01-01"
    ));
    // Another day of the same documents finds each of them at distance 0, and the same fingerprints
    // are in the file.
    let kept = dir.at("kept.parquet");
    let hits = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {input} --base {archive} --day 2026-02-01 -k 0 --no-within --output {hits} --fingerprints {kept}"
    ));
    assert_eq!(fs::read(&kept).unwrap(), fs::read(&with).unwrap());
    let own: BTreeSet<String> = read_hits(&hits)
        .into_iter()
        .filter(|(new, base, ..)| new == base)
        .map(|(new, ..)| new)
        .collect();
    assert_eq!(own.len(), documents.len());

    let spec = dedup_json(&format!("archive info {archive} --json"))["spec"].clone();
    assert!(spec["idf"].is_string() && spec["stop_words"].is_string());
    // Ready fingerprints need no tables; texts do.
    let tables = dir.join("archive/_dedup-job");
    for entry in fs::read_dir(&tables).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[1..]).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let kind = name.split('-').next().unwrap();
        let run = format!("run --new {input} --base {archive} --output {hits}");
        dedup(&run).fails(65, &[kind]);
        fs::remove_file(&path).unwrap();
        dedup(&run).fails(65, &[name]);
        dedup_ok(&format!(
            "run --new {with} --base {archive} --output {hits}"
        ));
        fs::write(&path, &bytes).unwrap();
        dedup_ok(&run);
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let dir = Dir::new();
    write_texts(&dir.at("documents.parquet"), &documents(), 11);
    let (input, archive, idf) = (
        dir.at("documents.parquet"),
        dir.at("archive"),
        dir.at("idf.parquet"),
    );
    let (output, made) = (dir.at("out.parquet"), dir.at("made.parquet"));
    dedup_ok(&format!("idf {input} -o {idf}"));
    dedup_ok(&format!("archive create --profile paper {archive}"));
    // Options that contradict the archive's spec are an error.
    for (option, field) in [
        ("--weight log-tf", "weight"),
        ("--tokenizer shingles-2", "tokenizer"),
        ("--hash-seed 5", "seed"),
        ("--min-features 1", "min_features"),
        ("--normalize as-is", "normalize"),
        ("--markup text", "markup"),
        ("--markup main", "markup_version"),
        (&format!("--idf {idf}"), "idf"),
    ] {
        dedup(&format!(
            "run --new {input} --base {archive} --output {output} {option}"
        ))
        .fails(78, &[&archive, "the options", field]);
    }
    dedup_ok(&format!(
        "run --new {input} --base {archive} --output {output} --weight sqrt-tf --hash-seed 0"
    ));
    // A table counts the features of one tokenizer.
    dedup(&format!(
        "fingerprint --input {input} --output {made} --idf {idf} --tokenizer chars-3"
    ))
    .fails(
        78,
        &["idf.parquet", "tokenizer", "words+cjk-grams", "chars-3"],
    );
    dedup(&format!(
        "fingerprint --input {input} --output {made} --idf {input}"
    ))
    .fails(65, &["documents.parquet", "dedup-job idf"]);
    dedup(&format!(
        "fingerprint --input {input} --output {made} --idf {}",
        dir.at("none")
    ))
    .fails(64, &["none"]);
    let list = dir.at("stop.txt");
    fs::write(&list, "a\n").unwrap();
    dedup(&format!(
        "fingerprint --input {input} --output {made} --stop-words {list} --tokenizer chars-3"
    ))
    .fails(78, &["stop words", "chars-3"]);
    dedup(&format!(
        "fingerprint --input {input} --output {made} --tokenizer shingles-1"
    ))
    .fails(64, &["shingles-N"]);
    // Plain files of fingerprints name their table but do not contain it.
    let plain = dir.at("plain.parquet");
    dedup_ok(&format!(
        "fingerprint --input {input} --output {plain} --idf {idf}"
    ));
    let run = format!("run --new {input} --base {plain} --output {output}");
    dedup(&run).fails(78, &["--idf", "document frequencies"]);
    dedup_ok(&format!("{run} --idf {idf}"));
    dedup(&format!(
        "run --new {plain} --base {archive} --output {output}"
    ))
    .fails(78, &["idf", "null"]);
    dedup(&format!("idf {plain} -o {made}")).fails(65, &["plain.parquet", "no text column"]);
    dedup(&format!("idf {plain} -o {made} --fingerprint-column fp"))
        .fails(64, &["ready fingerprints"]);
    dedup(&format!("idf {input}")).fails(64, &["--output"]);
}

/// The same article stands between different navigation: its pages are pairs only with `--markup main`.
#[test]
fn markup_is_taken_out_when_asked() {
    let dir = Dir::new();
    let article = "The quick brown fox jumps over the lazy dog again and again until it rains, and \
        then once more when the sun is back";
    let page = |menu: &str| {
        format!(
            "<html><head><title>{menu}</title></head><body><nav>{menu}</nav><p>{article}</p></body></html>"
        )
    };
    let (one, other) = (
        page("Home News Sports Weather Travel Food Contact Imprint"),
        page("Start Shop Cart Login Register Help Terms Privacy Careers"),
    );
    write_documents(
        dir.join("day.parquet"),
        &[("a", &one), ("b", &other), ("c", article)],
    );
    let pairs = |markup: &str| {
        let archive = dir.at(&format!("archive{markup}"));
        let output = dir.at("hits.parquet");
        let option = match markup {
            "" => String::new(),
            markup => format!("--markup {markup}"),
        };
        dedup_ok(&format!(
            "archive create --profile paper {archive} {option}"
        ));
        dedup_ok(&format!(
            "run --new {} --base {archive} -k 0 --output {output}",
            dir.at("day.parquet")
        ));
        read_hits(&output).len()
    };
    assert_eq!([pairs(""), pairs("text"), pairs("main")], [0, 0, 3]);
    // The spec says which version of the code took the markup out.
    let spec = |markup: &str| {
        let archive = dir.at(&format!("archive{markup}"));
        dedup_json(&format!("archive info {archive} --json"))["spec"].clone()
    };
    assert_eq!(spec("main")["markup_version"], 2);
    assert!(spec("").get("markup_version").is_none());
}

/// The same article stands between different menus and sidebars.
#[test]
fn articles_are_found() {
    let dir = Dir::new();
    let paragraph = "<p>The quick brown fox jumps over the lazy dog, again and again, until it rains, and then \
        once more when the sun is back, because the dog is asleep</p>";
    let article = paragraph.repeat(5);
    let page = |menu: &str| {
        format!(
            "<html><head><title>{menu}</title></head><body><ul class=menu><li><a href=/>{menu}</a></ul>\
            <div class=content>{article}</div><div class=sidebar><p>{menu}</p></div></body></html>"
        )
    };
    let (one, other) = (
        page("Home News Sports Weather Travel Food Contact Imprint"),
        page("Start Shop Cart Login Register Help Terms Privacy Careers"),
    );
    write_documents(
        dir.join("day.parquet"),
        &[("a", &one), ("b", &other), ("c", &article)],
    );
    let (input, output) = (dir.at("day.parquet"), dir.at("hits.parquet"));
    let archive = dir.archive("archive", "--profile paper --markup article");
    let run = format!("run --new {input} --base {archive} -k 0 --output {output}");
    dedup_ok(&run);
    assert_eq!(read_hits(&output).len(), 3);
    let info = dedup_json(&format!("archive info {archive} --json"));
    assert_eq!(info["spec"]["markup"], "article");
    assert_eq!(info["spec"]["markup_version"], 2);
    dedup(&format!("{run} --markup main")).fails(78, &["markup", "article", "main"]);
}

/// An archive keeps stop words that folding changes; a --min-features that the tokenizer cannot
/// reach is refused; the configuration file accepts numbers.
#[test]
fn odd_lists_and_bars() {
    let dir = Dir::new();
    write_texts(&dir.at("documents.parquet"), &documents(), 11);
    let (input, archive, list) = (
        dir.at("documents.parquet"),
        dir.at("archive"),
        dir.at("stop.txt"),
    );
    fs::write(&list, "\u{ff03}hash\n\u{b4}\n  A \n").unwrap();
    dedup_ok(&format!(
        "archive create --profile paper {archive} --stop-words {list}"
    ));
    let output = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {input} --base {archive} --output {output}"
    ));
    dedup_ok(&format!("archive info {archive} --verify"));
    let tables = fs::read_dir(dir.join("archive/_dedup-job")).unwrap();
    fs::remove_file(tables.last().unwrap().unwrap().path()).unwrap();
    dedup(&format!("archive info {archive} --verify"))
        .fails(65, &["archive/_dedup-job/stop-words-"]);
    dedup(&format!(
        "archive create --profile paper {archive}-2 --tokenizer longest-sentences-3"
    ))
    .fails(78, &["longest-sentences-3", "--min-features 3"]);
    dedup(&format!(
        "archive create --profile paper {archive}-2 --stop-words {}",
        dir.at("none")
    ))
    .fails(64, &["none"]);
    let config = dir.at("job.toml");
    fs::write(
        &config,
        "[run]\nverify = \"jaccard\"\nmin-similarity = 0.25\n",
    )
    .unwrap();
    let plain = dir.archive("plain", "--profile paper");
    let ran = dedup_ok(&format!(
        "run --config {config} --new {input} --base {plain} --output {output} --json"
    ));
    assert_eq!(ran.json()["verified"]["min_similarity"], 0.25);
    fs::write(dir.join("none.jsonl"), "").unwrap();
    let line = format!("idf {} -o {output} --overwrite", dir.at("none.jsonl"));
    dedup(&line).fails(65, &["no documents"]);
}
