//! Which files of a directory are read, and what is said of the others.

use std::fs;
use std::process::Command;

use crate::helpers::crawl_files::response;
use crate::helpers::support::*;

/// Ten words, and a number that tells texts apart.
fn text(number: usize) -> String {
    let words = (0..10).map(|at| format!("word{} ", number * 100 + at));
    words.collect()
}

/// The decisions of a run over `new`, as JSON, and what it logged.
fn run(dir: &Dir, new: &str, options: &str) -> (Vec<serde_json::Value>, String) {
    let decisions = dir.at("decisions.jsonl");
    let ran = dedup(&format!(
        "run --new {} --decisions {decisions} --overwrite {options}",
        dir.at(new)
    ))
    .ok();
    let rows = fs::read_to_string(&decisions).unwrap();
    let rows = rows.lines().map(|row| serde_json::from_str(row).unwrap());
    (rows.collect(), ran.stderr)
}

fn ids(rows: &[serde_json::Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

#[test]
fn endings_are_in_any_case_and_others_are_named() {
    let dir = Dir::new();
    let site = dir.join("site");
    fs::create_dir(&site).unwrap();
    for (number, name) in [
        "a.html",
        "b.HTML",
        "c.Txt",
        "d.pdf",
        "e.warc.gz.part",
        ".hidden",
    ]
    .iter()
    .enumerate()
    {
        fs::write(site.join(name), text(number)).unwrap();
    }
    // It is a document without a word.
    fs::write(site.join("empty.html"), "").unwrap();
    let (rows, log) = run(&dir, "site", "");
    assert_eq!(ids(&rows), ["a.html", "b.HTML", "c.Txt", "empty.html"]);
    assert!(
        log.contains("2 files are not read") && log.contains("d.pdf"),
        "{log}"
    );
}

#[test]
fn files_about_a_data_set_are_not_read() {
    let dir = Dir::new();
    let data = dir.join("data");
    fs::create_dir(&data).unwrap();
    for shard in 0..3 {
        let (id, text) = (format!("doc{shard}"), text(shard));
        let name = format!("train-0000{shard}-of-00003.parquet");
        write_documents(data.join(name), &[(&id, &text)]);
    }
    fs::write(
        data.join("dataset_infos.json"),
        "{\"default\": {\"splits\": {}}}",
    )
    .unwrap();
    fs::write(data.join("README.md"), "# A data set\n").unwrap();
    let (rows, log) = run(&dir, "data", "");
    assert_eq!(ids(&rows), ["doc0", "doc1", "doc2"]);
    for name in ["dataset_infos.json", "README.md"] {
        assert_eq!(log.matches(name).count(), 1, "{log}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let dir = Dir::new();
    let pipe = dir.at("pipe.jsonl");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let output = dir.at("o.parquet");
    dedup(&format!("run --new {pipe} --output {output}"))
        .fails(64, &["pipe.jsonl", "pipe", "save it"]);
    dedup(&format!("run --new - --output {output}")).fails(64, &["standard input"]);
}

#[test]
fn an_empty_crawl_has_no_records() {
    let dir = Dir::new();
    let crawl = dir.join("crawl");
    fs::create_dir(&crawl).unwrap();
    for name in ["a.warc", "b.warc.gz", "c.warc.zst"] {
        fs::write(crawl.join(name), "").unwrap();
    }
    assert!(run(&dir, "crawl", "").0.is_empty());
    let output = dir.at("o.parquet");
    let day = format!(
        "run --new {} --day from-records --output {output}",
        dir.at("crawl")
    );
    dedup(&day).fails(65, &["no records with a date", "--day YYYY-MM-DD"]);
    fs::write(crawl.join("d.warc"), response(1, "200 OK", &text(1))).unwrap();
    assert_eq!(run(&dir, "crawl", "").0.len(), 1);
}

#[test]
fn copies_of_pages_that_are_not_kept_any_more_are_removed() {
    let dir = Dir::new();
    let (site, kept) = (dir.join("site"), dir.join("kept"));
    fs::create_dir(&site).unwrap();
    fs::write(site.join("a.html"), text(1)).unwrap();
    fs::write(site.join("b.html"), text(2)).unwrap();
    let options = format!("--kept {}/", dir.at("kept"));
    run(&dir, "site", &options);
    let names = || {
        let files = contents(&kept).into_iter();
        let names = files.map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["a.html", "b.html"]);
    // A copy of another run stays.
    fs::write(kept.join("c.html"), text(3)).unwrap();
    fs::write(site.join("b.html"), text(1)).unwrap();
    run(&dir, "site", &options);
    assert_eq!(names(), ["a.html", "c.html"]);
}

#[test]
fn messages_name_what_is_wrong_and_the_option() {
    let dir = Dir::new();
    let output = dir.at("o.jsonl");
    let run = |new: &str, options: &str| {
        dedup(&format!(
            "run --new {} --decisions {output} --overwrite {options}",
            dir.at(new)
        ))
    };
    fs::write(
        dir.join("a.csv"),
        format!("\"id\";\"text\";\"a,b,c\"\n1;{};2\n", text(1)),
    )
    .unwrap();
    run("a.csv", "").ok();
    run("a.csv", "--columns nope").fails(65, &["no column \"nope\"", "--columns"]);
    fs::write(dir.join("b.csv"), "key:words\n1:a\n").unwrap();
    run("b.csv", "").fails(65, &["b.csv", "--delimiter"]);
    fs::write(
        dir.join("pretty.json"),
        "{\n  \"id\": 1,\n  \"text\": \"a\"\n}\n",
    )
    .unwrap();
    run("pretty.json", "").fails(65, &["pretty.json, line 1", "must be one line"]);
    let log = run("a.csv", "--status 404").ok().stderr;
    assert!(log.contains("--status") && log.contains("WARC"), "{log}");
}
