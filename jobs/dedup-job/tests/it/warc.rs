//! WARC files, which an independent writer made, and files of HTML and plain text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use flate2::read::MultiGzDecoder;

use crate::helpers::crawl_files::{
    write_crawl, write_crawl_with_skipped_frames, write_joined_crawls, write_large_crawl,
    write_large_crawl_with_dictionary,
};
use crate::helpers::support::*;
use crate::verify::read_similar;

pub fn python() -> Option<String> {
    python_with("warcio")
}

/// A directory with the files that a script in `tests` writes.
fn files_of(script: &str) -> Option<Dir> {
    let python = python()?;
    let dir = Dir::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(script);
    let output = Command::new(&python)
        .arg(script)
        .arg(dir.at(""))
        .output()
        .unwrap();
    Ran::of(output).ok();
    Some(dir)
}

/// A directory with the files of `tests/warc_files.py`.
fn files() -> Option<Dir> {
    files_of("warc_files.py")
}

/// The pairs of a run over `new` alone, with `options`.
fn pairs(dir: &Dir, new: &str, options: &str) -> Vec<Hit> {
    let hits = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {} --output {hits} --overwrite --verify none {options}",
        dir.at(new)
    ));
    read_hits(&hits)
}

fn gunzip(path: impl AsRef<Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap();
    MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_crawl_has_the_pairs_of_its_pages() {
    let Some(dir) = files() else { return };
    for markup in ["text", "main", "none"] {
        let options = format!("--markup {markup} -k 8");
        let expected = pairs(
            &dir,
            "pages.jsonl",
            &format!("{options} --text-column text"),
        );
        assert_eq!(pairs(&dir, "pages.warc.gz", &options), expected, "{markup}");
    }
    let of_default = pairs(&dir, "pages.warc.gz", "-k 8");
    assert_eq!(
        of_default,
        pairs(&dir, "pages.warc.gz", "-k 8 --markup text")
    );
    // The main text of two pages is the same, whatever stands around it.
    let main = pairs(
        &dir,
        "pages.warc",
        "--markup main --id-from url --template off",
    );
    let ids: Vec<_> = main
        .iter()
        .map(|hit| (hit.0.as_str(), hit.1.as_str(), hit.2))
        .collect();
    assert_eq!(ids, [("https://b.example/1", "https://a.example/1", 0)]);
}

#[test]
fn records_that_are_no_documents_are_counted() {
    let Some(dir) = files() else { return };
    let fingerprints = dir.at("fp.parquet");
    let fingerprint = |options: &str| {
        dedup_json(&format!(
            "fingerprint --input {} --output {fingerprints} --overwrite --json {options}",
            dir.at("pages.warc.gz")
        ))
    };
    let summary = fingerprint("");
    assert_eq!(summary["spec"]["markup"], "text");
    assert_eq!(summary["crawl_records"]["documents"], 4);
    let skipped = &summary["crawl_records"]["skipped"];
    let expected = serde_json::json!({
        "DNS or whois": 1, "not text": 1, "other status": 1, "redirect": 1, "request": 4, "revisit": 1, "robots.txt": 1,
        "warcinfo": 1,
    });
    assert_eq!(*skipped, expected);
    assert_eq!(summary["crawl_records"]["media_types"]["image/png"], 1);
    assert_eq!(summary["crawl_records"]["statuses"]["404"], 1);
    assert_eq!(
        fingerprint("--status 200,404 --check-digests")["documents"],
        5
    );
}

#[test]
fn crawlers_write_the_same_pages_in_their_ways() {
    let Some(dir) = files_of("crawler_files.py") else {
        return;
    };
    let expected = fs::read_to_string(dir.at("expected.json")).unwrap();
    let expected: BTreeMap<String, serde_json::Value> = serde_json::from_str(&expected).unwrap();
    assert_eq!(expected.len(), 9);
    let fingerprints = dir.at("fp.parquet");
    let mut pages = BTreeSet::new();
    for (name, skipped) in expected {
        let file = dir.at(&name);
        let summary = dedup(&format!(
            "fingerprint --input {file} --output {fingerprints} --overwrite --json"
        ));
        let records = &summary.ok().json()["crawl_records"];
        assert_eq!(records["documents"], 2, "{name}");
        assert_eq!(records["skipped"], skipped, "{name}");
        for fault in ["malformed", "incomplete"] {
            assert_eq!(records[fault], 0, "{name}: {fault}");
        }
        if !name.contains(".wet.") {
            let table = format!("pages={file}");
            let query = "select url, text, status from pages order by url";
            let rows = dedup_job(["sql", query, "--table", &table, "--json"]);
            pages.insert(rows.ok().stdout);
        }
    }
    let pages: Vec<String> = pages.into_iter().collect();
    let [pages] = &pages[..] else {
        panic!("crawlers differ: {pages:?}")
    };
    assert!(pages.contains("Füchse: word0 of the article"), "{pages}");

    // Each page is a duplicate of that of every other crawler.
    for name in ["expected.json", "fp.parquet"] {
        fs::remove_file(dir.at(name)).unwrap();
    }
    let summary = dedup(&format!("run --new {} --decisions - --json", dir.at("")));
    let summary = summary.ok();
    let kept = summary.stdout.matches("\"kept\":true").count();
    assert_eq!(kept, 2, "{}", summary.stdout);
}

#[test]
fn kept_records_are_written_as_they_were() {
    let Some(dir) = files() else { return };
    let kept = dir.at("kept.warc.gz");
    dedup_ok(&format!(
        "run --new {} --markup main --kept {kept} --decisions {}",
        dir.at("pages.warc.gz"),
        dir.at("decisions.parquet")
    ));
    let (all, copied) = (gunzip(dir.join("pages.warc.gz")), gunzip(&kept));
    let all = String::from_utf8_lossy(&all).into_owned();
    let copied = String::from_utf8_lossy(&copied).into_owned();
    let records: Vec<&str> = copied.split_inclusive("\r\n\r\nWARC/1.0").collect();
    assert_eq!(copied.matches("WARC-Type: response").count(), 3);
    assert!(copied.starts_with("WARC/1.0\r\n"));
    for record in records {
        assert!(
            all.contains(record.trim_end_matches("WARC/1.0")),
            "{record}"
        );
    }
    // A member for each record, so that readers find them.
    let bytes = fs::read(&kept).unwrap();
    let starts = bytes.windows(3).filter(|start| *start == [0x1f, 0x8b, 8]);
    assert_eq!(starts.count(), 3);
    assert!(pairs(&dir, "kept.warc.gz", "--markup main").is_empty());
}

#[test]
fn damage_is_counted_and_the_rest_is_read() {
    let Some(dir) = files() else { return };
    let file = fs::read(dir.join("pages.warc.gz")).unwrap();
    fs::write(dir.join("cut.warc.gz"), &file[..file.len() / 2]).unwrap();
    let output = dir.at("fp.parquet");
    let ran = dedup(&format!(
        "fingerprint --input {} --output {output} --json",
        dir.at("cut.warc.gz")
    ));
    let ran = ran.ok();
    assert!(ran.stderr.contains("cut.warc.gz, byte"), "{}", ran.stderr);
    let summary = ran.json();
    assert_eq!(summary["crawl_records"]["skipped"]["truncated"], 1);
    assert!(summary["documents"].as_u64().unwrap() >= 1);
    fs::write(dir.join("no.warc"), "no WARC file at all\n").unwrap();
    dedup(&format!(
        "fingerprint --input {} --output {output} --overwrite",
        dir.at("no.warc")
    ))
    .fails(65, &["no.warc", "no WARC record"]);
}

/// Fault 112: whoever makes a file can make it look as if it could be cut where it cannot. It is read as a whole then, and the
/// results are those of one thread, which cuts no files.
#[test]
fn a_file_that_is_cut_within_a_member_is_read_as_a_whole() {
    let dir = Dir::new();
    write_crawl(&dir.join("in"), 100..400);
    // The files behind this one have other numbers when it is whole.
    write_crawl_with_skipped_frames(&dir.join("in/a.warc.zst"), false);
    let (new, archive, resume) = (dir.at("in/"), dir.at("archive"), dir.at("resume"));
    dedup_ok(&format!(
        "archive create --profile paper {archive} --markup text"
    ));
    // The warnings that name the file.
    let warnings = |ran: &Ran| {
        let parts = ["a.warc.zst, byte", "this file as a whole"];
        let is_warning = |line: &&str| parts.iter().all(|part| line.contains(part));
        ran.stderr.lines().filter(is_warning).count()
    };
    let mut all = Vec::new();
    for (place, options) in [
        ("one", "--threads 1 --day 2026-01-30".to_owned()),
        ("several", "--threads 3 --day 2026-01-30".to_owned()),
        (
            "chunks",
            format!("--threads 3 --day 2026-01-30 --resume {resume}"),
        ),
        ("days", "--threads 3 --day from-records".to_owned()),
    ] {
        let at = |name: &str| dir.at(&format!("{place}-{name}"));
        let (pairs, decisions) = (at("pairs.parquet"), at("decisions.parquet"));
        let ran = dedup_ok(&format!(
            "run --new {new} --base {archive} -k 8 --verify jaccard --output {pairs} --decisions {decisions} --columns url \
             --kept {}/ --json {options}",
            at("kept")
        ));
        let expected = usize::from(place != "one");
        assert_eq!(warnings(&ran), expected, "{place}: {}", ran.stderr);
        let summary = ran.json();
        assert_eq!(summary["new"]["crawl_records"]["documents"], 272);
        let copies = contents_below(dir.join(&format!("{place}-kept")));
        assert_eq!(copies.len(), 6);
        assert!(!read_similar(&pairs).is_empty());
        let outputs = [pairs, decisions].map(|path| fs::read(path).unwrap());
        all.push((summary["new"].clone(), outputs, copies));
    }
    assert!(all[1..].iter().all(|other| *other == all[0]));
    assert!(!dir.join("resume").exists());
    // The warning shows that a file with a dictionary is cut, too.
    let output = dir.at("fp.parquet");
    for needs_dictionary in [false, true] {
        write_crawl_with_skipped_frames(&dir.join("a.warc.zst"), needs_dictionary);
        let fingerprint = |threads: usize| {
            let ran = dedup_ok(&format!(
                "fingerprint --input {} --output {output} --overwrite --threads {threads} --json",
                dir.at("a.warc.zst")
            ));
            assert_eq!(warnings(&ran), usize::from(threads > 1), "{}", ran.stderr);
            let summary = ran.json();
            assert_eq!(summary["documents"], 3);
            assert_eq!(summary["crawl_records"]["documents"], 3);
            fs::read(&output).unwrap()
        };
        assert!(fingerprint(1) == fingerprint(2));
    }
}

/// A large WARC file is cut where members start, and several threads read it. The results are those of one thread.
#[test]
fn a_large_crawl_is_read_in_parts() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper --markup text");
    type Write = fn(&Path);
    let crawls: [(&str, Write); 2] = [
        ("gz", write_large_crawl),
        ("zst", write_large_crawl_with_dictionary),
    ];
    for (ending, write) in crawls {
        let crawl = dir.at(&format!("crawl.warc.{ending}"));
        write(Path::new(&crawl));
        // Files of less than 8 MiB are not cut.
        assert!(fs::metadata(&crawl).unwrap().len() > 10 << 20);
        let run = |threads: usize| {
            let at = |name: &str| dir.at(&format!("{ending}-{threads}-{name}"));
            let kept = format!("kept.warc.{ending}");
            let paths = ["pairs.parquet", "decisions.parquet", &kept].map(at);
            let [pairs, decisions, kept] = &paths;
            let ran = dedup_ok(&format!(
                "run --new {crawl} --base {archive} --output {pairs} --decisions {decisions} --kept {kept} -k 6 --json -vv \
                 --threads {threads}"
            ));
            assert_eq!(ran.stderr.contains("a file is cut"), threads > 1);
            let summary = ran.json();
            assert_eq!(summary["new"]["crawl_records"]["documents"], 3_000);
            assert!(read_hits(pairs).len() > 1_400);
            let bytes = paths.map(|path| fs::read(path).unwrap());
            let kept = summary["decisions"]["kept"].clone();
            (summary["new"].clone(), kept, bytes)
        };
        assert!(run(1) == run(2), "{ending}");
    }
}

/// Two files that were joined need two dictionaries. The file is cut in the first, where the frames need the dictionary that it
/// starts with.
#[test]
fn joined_files_with_two_dictionaries_are_read() {
    let dir = Dir::new();
    let (crawl, output) = (dir.at("joined.warc.zst"), dir.at("fp.parquet"));
    write_joined_crawls(&dir.join("joined.warc.zst"));
    let fingerprint = |threads: usize| {
        let ran = dedup_ok(&format!(
            "fingerprint --input {crawl} --output {output} --overwrite --threads {threads} --json -vv"
        ));
        assert_eq!(ran.json()["crawl_records"]["documents"], 3_000);
        assert_eq!(ran.stderr.contains("a file is cut"), threads > 1);
        fs::read(&output).unwrap()
    };
    assert!(fingerprint(1) == fingerprint(3));
}

#[test]
fn the_spec_of_an_archive_says_how_pages_are_read() {
    let Some(dir) = files() else { return };
    let (plain, visible) = (dir.at("plain"), dir.at("visible"));
    dedup_ok(&format!("archive create --profile paper {plain}"));
    dedup_ok(&format!(
        "archive create --profile paper {visible} --markup text"
    ));
    let append = |archive: &str, file: &str| {
        dedup(&format!(
            "archive append {archive} --input {} --day 2026-01-30",
            dir.at(file)
        ))
    };
    append(&plain, "pages.warc.gz").fails(64, &["pages", "--markup text"]);
    append(&visible, "pages.warc.gz").ok();
    // A plain text is compared with the visible texts of pages, whatever stands in it.
    let hits = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {} --base {visible} --output {hits} -k 16 --id-from url",
        dir.at("pages.wet.gz")
    ));
    let with_archive = read_hits(&hits);
    assert!(
        with_archive
            .iter()
            .any(|hit| hit.0 == "https://a.example/0")
    );
    append(&plain, "pages.wet.gz").ok();
    // Learning from pages counts the words of their visible texts.
    let learnt = dir.at("learnt");
    dedup_ok(&format!(
        "archive create --profile paper {learnt} --learn {}",
        dir.at("pages.warc.gz")
    ));
    append(&learnt, "pages.warc.gz").ok();
}

#[test]
fn columns_of_records_go_along_to_decisions() {
    let Some(dir) = files() else { return };
    let (decisions, warc) = (dir.at("d.jsonl"), dir.at("pages.warc.gz"));
    let columns = "url,host,date,status,content_type";
    let run = format!("run {warc} --markup main -k 8 --decisions {decisions} --columns {columns}");
    dedup_ok(&run);
    let text = fs::read_to_string(&decisions).unwrap();
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut pages: Vec<_> = rows
        .iter()
        .map(|row| (row["url"].as_str().unwrap(), row["host"].as_str().unwrap()))
        .collect();
    pages.sort_unstable();
    let expected = [
        ("https://a.example/1", "a.example"),
        ("https://a.example/2", "a.example"),
        ("https://b.example/1", "b.example"),
    ];
    assert_eq!(pages[..3], expected);
    assert_eq!((pages.len(), pages[3].1), (4, "c.example"));
    for row in &rows {
        assert!(row["id"].as_str().unwrap().starts_with("urn:uuid:"));
        assert_eq!(row["date"], "2026-01-30T10:00:00Z");
        assert_eq!(row["status"], 200);
        assert_eq!(row["content_type"], "text/html");
    }
    // The ids of records name no sites; the column of hosts does.
    let page = dir.at("report.html");
    dedup_ok(&format!("report {decisions} -o {page}"));
    let html = fs::read_to_string(&page).unwrap();
    for host in ["a.example", "b.example"] {
        let header = format!("<th scope=\"col\">{host}</th>");
        assert!(html.contains(&header), "{html}");
    }
    // A text has no status, and the column is a number for all files.
    let (wet, output) = (dir.at("pages.wet.gz"), dir.at("o.parquet"));
    let run = format!("run {warc} {wet} --decisions {output} --id-from url --columns status");
    dedup_ok(&run);
    let statuses: Vec<Option<i64>> = read_parquet(&output)
        .iter()
        .flat_map(|batch| {
            let statuses = batch.column_by_name("status").unwrap();
            let statuses = statuses.as_primitive::<Int64Type>();
            statuses.iter().collect::<Vec<_>>()
        })
        .collect();
    let known = statuses.iter().filter(|status| **status == Some(200));
    assert_eq!((known.count(), statuses.len()), (4, 7));
}

#[test]
fn crawls_are_tables_with_the_columns_of_their_records() {
    let Some(dir) = files() else { return };
    let sql = |query: &str, path: &str| {
        let table = format!("pages={}", dir.at(path));
        dedup_job(["sql", query, "--table", table.as_str(), "--json"])
    };
    let by_host = "select host, count(*) as pages, min(status) as status, min(substr(date, 1, 10)) as day from pages \
                   where content_type = 'text/html' and text like '%News%' group by host order by host";
    let rows = sql(by_host, "pages.warc.gz").ok().stdout;
    let row = |host: &str, pages: u32| {
        format!("{{\"host\":\"{host}\",\"pages\":{pages},\"status\":200,\"day\":\"2026-01-30\"}}\n")
    };
    let expected = [
        row("a.example", 2),
        row("b.example", 1),
        row("c.example", 1),
    ];
    assert_eq!(rows, expected.concat());
    let of_texts = "select url, status from pages where id like 'urn:%' order by url limit 1";
    let rows = sql(of_texts, "pages.wet.gz").ok().stdout;
    assert_eq!(rows, "{\"url\":\"https://a.example/0\"}\n");
}

#[test]
fn records_say_the_day_of_their_batch() {
    let Some(dir) = files() else { return };
    let (archive, other) = (dir.at("archive"), dir.at("other"));
    let (pages, next) = (dir.at("pages.warc.gz"), dir.at("next.warc.gz"));
    for archive in [&archive, &other] {
        dedup_ok(&format!(
            "archive create --profile paper {archive} --markup text"
        ));
    }
    let output = dir.at("o.parquet");
    let run = |new: &str| {
        dedup(&format!(
            "run {new} --base {archive} --append --day from-records --output {output} --json"
        ))
    };
    let first = run(&pages).ok().json();
    assert_eq!(first["day"], "2026-01-30");
    assert_eq!(first["commit"]["committed"], 1);
    // The day decides what the batch is compared with, and the same day is not committed twice.
    let again = run(&pages).ok().json();
    assert_eq!(again["commit"], "already_there");
    assert_eq!(again["hits"], first["hits"]);
    let second = run(&next).ok().json();
    assert_eq!(second["day"], "2026-01-31");
    assert!(second["hits"].as_u64() > first["hits"].as_u64());
    let several = "of 2 days, from 2026-01-30 (4 records) to 2026-01-31 (4 records)";
    let both = format!("{pages} {next}");
    run(&both).fails(65, &["pages.warc.gz", several, "--day YYYY-MM-DD"]);
    let append = |new: &str| {
        dedup(&format!(
            "archive append {other} --input {new} --day from-records"
        ))
    };
    assert!(append(&next).ok().stdout.contains("day 2026-01-31"));
    append(&both).fails(65, &[several]);
    let fingerprint = format!("fingerprint --input {pages} --append {other} --day from-records");
    let shown = dedup_ok(&fingerprint).stdout;
    assert!(shown.contains("day 2026-01-30"), "{shown}");
    // Other formats have no records, and paths are needed before the records are read.
    let jsonl = dir.at("pages.jsonl");
    run(&jsonl).fails(64, &["pages.jsonl", "WARC", "--day YYYY-MM-DD"]);
    append(&format!("{pages} {jsonl}")).fails(64, &["WARC"]);
    let dated = dir.at("{day}.parquet");
    let run = format!("run {pages} --day from-records --output {dated}");
    dedup(&run).fails(64, &["{day} in --output"]);
    dedup(&format!("run {pages} --day from-record")).fails(64, &["from-records"]);
}

#[test]
fn files_of_html_and_text_are_documents() {
    let Some(dir) = files() else { return };
    let pages = dir.join("site");
    fs::create_dir_all(pages.join("deep")).unwrap();
    let text = "one two three four five six seven eight nine ten, and so on";
    fs::write(
        pages.join("a.html"),
        format!("<title>x</title><p>{text}</p>"),
    )
    .unwrap();
    fs::write(pages.join("deep/b.htm"), format!("<body><div>{text}</div>")).unwrap();
    fs::write(pages.join("c.txt"), text).unwrap();
    fs::write(
        pages.join("d.txt"),
        "another text, about other things altogether, you see",
    )
    .unwrap();
    let found = pairs(&dir, "site", "");
    let ids: Vec<_> = found
        .iter()
        .map(|hit| (hit.0.as_str(), hit.1.as_str()))
        .collect();
    assert_eq!(
        ids,
        [
            ("c.txt", "a.html"),
            ("deep/b.htm", "a.html"),
            ("deep/b.htm", "c.txt")
        ]
    );
    dedup_ok(&format!(
        "run --new {} --kept {}",
        dir.at("site"),
        dir.at("kept/")
    ));
    let mut kept: Vec<_> = contents(dir.join("kept"))
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    kept.sort();
    let kept: Vec<_> = kept
        .iter()
        .map(|path| path.file_name().unwrap().to_owned())
        .collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    // A directory of records may have a licence beside them.
    fs::write(
        pages.join("docs.jsonl"),
        format!("{{\"id\":\"j\",\"text\":\"{text}\"}}\n"),
    )
    .unwrap();
    assert!(pairs(&dir, "site", "").is_empty());
}
