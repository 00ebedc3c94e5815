//! WARC files, which an independent writer made, and files of HTML and plain text.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use flate2::read::MultiGzDecoder;

use crate::helpers::crawl_files::write_crawl_with_skipped_frames;
use crate::helpers::support::*;

/// `PYTHON`, or `python3`, if it has the package warcio.
pub fn python() -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args(["-c", "import warcio"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has {
        assert!(std::env::var("CI").is_err(), "{python} lacks warcio");
        say(&format!("SKIPPED: {python} lacks warcio"));
        return None;
    }
    Some(python)
}

/// A directory with the files of `tests/warc_files.py`.
fn files() -> Option<Dir> {
    let python = python()?;
    let dir = Dir::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/warc_files.py");
    let output = Command::new(&python)
        .args([script, &dir.at("")])
        .output()
        .unwrap();
    Ran::of(output).ok();
    Some(dir)
}

/// The pairs of a run over `new` alone, with `options`.
fn pairs(dir: &Dir, new: &str, options: &str) -> Vec<Hit> {
    let hits = dir.at("hits.parquet");
    dedup(&format!(
        "run --new {} --output {hits} --overwrite {options}",
        dir.at(new)
    ))
    .ok();
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
    let main = pairs(&dir, "pages.warc", "--markup main --id-from url");
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
        dedup(&format!(
            "fingerprint --input {} --output {fingerprints} --overwrite --json {options}",
            dir.at("pages.warc.gz")
        ))
        .ok()
        .json()
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
fn kept_records_are_written_as_they_were() {
    let Some(dir) = files() else { return };
    let kept = dir.at("kept.warc.gz");
    dedup(&format!(
        "run --new {} --markup main --kept {kept} --decisions {}",
        dir.at("pages.warc.gz"),
        dir.at("decisions.parquet")
    ))
    .ok();
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

/// Fault 53: whoever makes a file can make it look as if it could be cut where it cannot.
#[test]
fn a_cut_within_a_member_is_an_error() {
    let dir = Dir::new();
    let crawl = dir.at("crawl.warc.zst");
    write_crawl_with_skipped_frames(&dir.join("crawl.warc.zst"));
    let output = dir.at("fp.parquet");
    let fingerprint = |threads: usize| {
        dedup(&format!(
            "fingerprint --input {crawl} --output {output} --threads {threads} --json"
        ))
    };
    fingerprint(2).fails(65, &["crawl.warc.zst, byte", "compress it again"]);
    assert!(!dir.join("fp.parquet").exists());
    assert_eq!(fingerprint(1).ok().json()["documents"], 3);
}

#[test]
fn the_spec_of_an_archive_says_how_pages_are_read() {
    let Some(dir) = files() else { return };
    let (plain, visible) = (dir.at("plain"), dir.at("visible"));
    dedup(&format!("archive create {plain}")).ok();
    dedup(&format!("archive create {visible} --markup text")).ok();
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
    dedup(&format!(
        "run --new {} --base {visible} --output {hits} -k 16 --id-from url",
        dir.at("pages.wet.gz")
    ))
    .ok();
    let with_archive = read_hits(&hits);
    assert!(
        with_archive
            .iter()
            .any(|hit| hit.0 == "https://a.example/0")
    );
    append(&plain, "pages.wet.gz").ok();
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
    dedup(&format!(
        "run --new {} --kept {}",
        dir.at("site"),
        dir.at("kept/")
    ))
    .ok();
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
