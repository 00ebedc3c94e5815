//! Which files of a directory are read, and what is said of the others.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

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
    let ran = dedup_ok(&format!(
        "run --new {} --decisions {decisions} --overwrite {options}",
        dir.at(new)
    ));
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
    let output = dir.at("o.parquet");
    dedup(&format!("run --new /dev/null --output {output}"))
        .fails(64, &["/dev/null", "device", "save it"]);
    // Parts of a job on other machines have no standard input.
    let job = dir.at("job");
    dedup(&format!("split {job} - --output {output}")).fails(64, &["standard input"]);
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

/// A copy has the place and the name of its input, also on a day on which that has no document.
#[test]
fn inputs_without_documents_have_copies_without_documents() {
    let dir = Dir::new();
    for (name, content) in [
        ("in/a/day.jsonl", ""),
        ("in/b/day.jsonl", "{\"id\": 1, \"text\": \"a b c d e f\"}\n"),
    ] {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let (input, copies) = (dir.at("in"), dir.at("copies"));
    for _ in 0..2 {
        fs::create_dir_all(dir.join("copies/a")).unwrap();
        fs::write(dir.join("copies/a/day.jsonl"), "{\"id\": 7}\n").unwrap();
        dedup_ok(&format!("run {input} --kept {copies} --overwrite"));
        assert_eq!(fs::read(dir.join("copies/a/day.jsonl")).unwrap(), b"");
        let copy = fs::read(dir.join("copies/b/day.jsonl")).unwrap();
        assert_eq!(copy, fs::read(dir.join("in/b/day.jsonl")).unwrap());
    }
    let (input, copy) = (dir.at("in/a/day.jsonl"), dir.at("copy.jsonl"));
    fs::write(&copy, "{\"id\": 7}\n").unwrap();
    dedup(&format!("run {input} --kept {copy}")).fails(64, &["copy.jsonl", "--overwrite"]);
    dedup_ok(&format!("run {input} --kept {copy} --overwrite"));
    assert_eq!(fs::read(&copy).unwrap(), b"");
}

#[test]
fn a_directory_without_documents_is_named() {
    let dir = Dir::new();
    fs::create_dir(dir.join("mount")).unwrap();
    let (rows, log) = run(&dir, "mount", "");
    assert!(rows.is_empty());
    assert!(
        log.contains("mount: there is no file of documents"),
        "{log}"
    );
}

#[test]
fn a_preference_that_no_document_has_is_named() {
    let dir = Dir::new();
    let documents =
        "{\"id\": 1, \"text\": \"a b c d e f\", \"rank\": 2, \"none\": null}\n".repeat(2);
    fs::write(dir.join("day.jsonl"), documents).unwrap();
    let (_, log) = run(&dir, "day.jsonl", "--prefer none");
    assert!(log.contains("no document has a value"), "{log}");
    let (_, log) = run(&dir, "day.jsonl", "--prefer rank");
    assert!(!log.contains("no document has a value"), "{log}");
    // One file of several may lack the column, and many documents at the start of a long one.
    fs::create_dir(dir.join("days")).unwrap();
    let without: String = (0..2_000)
        .map(|id| format!("{{\"id\": {id}, \"text\": \"{}\"}}\n", text(id)))
        .collect();
    fs::write(dir.join("days/1.jsonl"), &without).unwrap();
    let (_, log) = run(&dir, "days", "--prefer rank");
    assert!(log.contains("no document has the column \"rank\""), "{log}");
    fs::copy(dir.join("day.jsonl"), dir.join("days/2.jsonl")).unwrap();
    let (_, log) = run(&dir, "days", "--prefer rank");
    assert!(!log.contains("no document has"), "{log}");
}

/// Fault 35: also while copies of the kept documents are written.
#[test]
fn a_signal_leaves_no_copy_behind() {
    let dir = Dir::new();
    let document = |number: usize| {
        format!(
            "{{\"id\": {number}, \"text\": \"{}\"}}\n",
            text(number).repeat(30)
        )
    };
    let documents: String = (0..12_000).map(document).collect();
    fs::write(
        dir.join("day.jsonl.gz"),
        crate::helpers::crawl_files::gzip(documents.as_bytes()),
    )
    .unwrap();
    fs::create_dir(dir.join("copies")).unwrap();
    let line = format!("run {} --kept {}", dir.at("day.jsonl.gz"), dir.at("copies"));
    let child = command()
        .args(line.split_whitespace())
        .current_dir(dir.at(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_empty = || fs::read_dir(dir.join("copies")).unwrap().next().is_none();
    while is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = Command::new("kill").arg(child.id().to_string()).status();
    assert!(kill.unwrap().success());
    Ran::of(child.wait_with_output().unwrap()).fails(143, &["TERM"]);
    assert!(is_empty());
}

#[test]
fn kept_documents_of_many_files_of_lines_are_one_file() {
    let dir = Dir::new();
    fs::create_dir(dir.join("day")).unwrap();
    let line = |id: usize, of: usize| format!("{{\"id\": {id}, \"text\": \"{}\"}}", text(of));
    // The last line of a file may have no end.
    fs::write(
        dir.join("day/a.jsonl"),
        format!("{}\n{}", line(1, 1), line(2, 2)),
    )
    .unwrap();
    fs::write(dir.join("day/b.jsonl"), format!("{}\n", line(3, 1))).unwrap();
    fs::write(dir.join("day/c.jsonl"), "").unwrap();
    fs::write(
        dir.join("day/d.jsonl"),
        format!("{}\n{}\n", line(4, 4), line(5, 2)),
    )
    .unwrap();
    let kept = dir.at("kept.jsonl");
    let run = |options: &str| dedup(&format!("run {} {options}", dir.at("day")));
    let expected = [line(1, 1), line(2, 2), line(4, 4), String::new()].join("\n");
    run(&format!("--kept {kept}")).ok();
    assert_eq!(fs::read_to_string(&kept).unwrap(), expected);
    run(&format!("--kept {kept}")).fails(64, &["kept.jsonl exists"]);
    // Parts make the same file.
    let job = dir.at("job");
    let split = |options: &str| dedup_json(&format!("split {job} {options} --json"));
    let options = format!("{} --kept {kept} --overwrite --parts 2", dir.at("day"));
    let mut planned = split(&options);
    while planned["ready"] == false {
        let last = planned["parts"].as_u64().unwrap() - 1;
        dedup_ok(&format!("map {job} --part 0..{last}"));
        planned = split("");
    }
    fs::write(&kept, "").unwrap();
    dedup_ok(&format!("reduce {job}"));
    assert_eq!(fs::read_to_string(&kept).unwrap(), expected);
    run(&format!("--kept {}", dir.at("kept.jsonl.gz"))).fails(64, &["a.jsonl", "in .jsonl.gz"]);
    fs::write(dir.join("day/e.jsonl"), format!("[{}]", line(6, 6))).unwrap();
    run(&format!("--kept {kept} --overwrite")).fails(64, &["e.jsonl", "name a directory"]);
    let other = dir.at("other-job");
    dedup(&format!(
        "split {other} {} --kept {kept} --overwrite",
        dir.at("day")
    ))
    .fails(64, &["e.jsonl"]);
    assert_eq!(fs::read_to_string(&kept).unwrap(), expected);
    run("--kept kept-{date}.jsonl").fails(64, &["{date} in --kept", "{day}"]);
}
