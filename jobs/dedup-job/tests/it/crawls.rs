//! WARC files that several crawlers wrote, read as warcio reads them.
//!
//! The files are those of pywb's tests. `DEDUP_JOB_TEST_CRAWLS` names their directory, which `.ci/run` makes. Without it, the
//! tests print that and pass; under `CI` they fail.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::warc::{Choice, Documents, Event, Fault, Limits, Reader, Record};
use serde_json::{Value, json};

use crate::helpers::support::*;
use crate::warc::python;

const LIMITS: Limits = Limits {
    record: 8 << 20,
    window_log: 23,
};

/// A file, and what is in it.
struct Expected {
    name: &'static str,
    /// Records that are read.
    records: usize,
    /// Offset and fault of each part that is not read.
    broken: &'static [(u64, Fault)],
    documents: u64,
    /// Records that are no documents, and parts that are not read, by reason.
    skipped: &'static [(&'static str, u64)],
}

const FILES: [Expected; 17] = [
    // Files of the format before WARC.
    Expected {
        name: "bad.arc",
        records: 0,
        broken: &[(0, Fault::Unknown)],
        documents: 0,
        skipped: &[("not WARC", 1)],
    },
    Expected {
        name: "example.arc",
        records: 0,
        broken: &[(0, Fault::Unknown)],
        documents: 0,
        skipped: &[("not WARC", 1)],
    },
    Expected {
        name: "example.arc.gz",
        records: 0,
        broken: &[(0, Fault::Header)],
        documents: 0,
        skipped: &[("broken header", 1)],
    },
    Expected {
        name: "dupes.warc.gz",
        records: 25,
        broken: &[],
        documents: 1,
        skipped: &[
            ("not text", 1),
            ("redirect", 1),
            ("request", 12),
            ("revisit", 9),
            ("warcinfo", 1),
        ],
    },
    // One gzip member, which warcio refuses.
    Expected {
        name: "example-bad.warc.gz.bad",
        records: 6,
        broken: &[],
        documents: 1,
        skipped: &[
            ("redirect", 1),
            ("request", 2),
            ("revisit", 1),
            ("warcinfo", 1),
        ],
    },
    // A response says HTTPX.
    Expected {
        name: "example-extra.warc",
        records: 6,
        broken: &[],
        documents: 1,
        skipped: &[("not HTTP", 1), ("request", 2), ("revisit", 2)],
    },
    Expected {
        name: "example-url-agnostic-orig.warc.gz",
        records: 2,
        broken: &[],
        documents: 1,
        skipped: &[("warcinfo", 1)],
    },
    Expected {
        name: "example-url-agnostic-revisit.warc.gz",
        records: 2,
        broken: &[],
        documents: 0,
        skipped: &[("revisit", 1), ("warcinfo", 1)],
    },
    Expected {
        name: "example-wget-1-14.warc.gz",
        records: 6,
        broken: &[],
        documents: 1,
        skipped: &[("of the crawler", 3), ("request", 1), ("warcinfo", 1)],
    },
    Expected {
        name: "example-wpull.warc.gz",
        records: 4,
        broken: &[],
        documents: 1,
        skipped: &[("of the crawler", 1), ("request", 1), ("warcinfo", 1)],
    },
    // The length of a request is wrong by three bytes; warcio warns of the same offset.
    Expected {
        name: "example.warc",
        records: 6,
        broken: &[(4764, Fault::Header)],
        documents: 1,
        skipped: &[
            ("broken header", 1),
            ("redirect", 1),
            ("request", 2),
            ("revisit", 1),
            ("warcinfo", 1),
        ],
    },
    Expected {
        name: "example.warc.gz",
        records: 6,
        broken: &[],
        documents: 1,
        skipped: &[
            ("redirect", 1),
            ("request", 2),
            ("revisit", 1),
            ("warcinfo", 1),
        ],
    },
    Expected {
        name: "example2.warc.gz",
        records: 3,
        broken: &[],
        documents: 1,
        skipped: &[("request", 1), ("warcinfo", 1)],
    },
    Expected {
        name: "httpbin-resource.warc.gz",
        records: 1,
        broken: &[],
        documents: 1,
        skipped: &[],
    },
    // Many responses say that they are chunked, and are not.
    Expected {
        name: "iana.warc.gz",
        records: 343,
        broken: &[],
        documents: 18,
        skipped: &[
            ("not text", 26),
            ("redirect", 4),
            ("request", 171),
            ("revisit", 123),
            ("warcinfo", 1),
        ],
    },
    // Lines end with two carriage returns.
    Expected {
        name: "missing-status-text.warc",
        records: 1,
        broken: &[],
        documents: 0,
        skipped: &[("redirect", 1)],
    },
    Expected {
        name: "post-test.warc.gz",
        records: 6,
        broken: &[],
        documents: 3,
        skipped: &[("request", 3)],
    },
];

/// The directory of the files.
fn crawls() -> Option<PathBuf> {
    let found = std::env::var_os("DEDUP_JOB_TEST_CRAWLS").map(PathBuf::from);
    if found.is_none() {
        let reason = "DEDUP_JOB_TEST_CRAWLS does not name a directory of WARC files";
        assert!(std::env::var("CI").is_err(), "{reason}");
        say(&format!("SKIPPED: {reason}"));
    }
    found
}

/// The records of the files as warcio reads them, by file.
fn read_by_warcio(python: &str, directory: &Path) -> HashMap<String, Vec<Value>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/warcio_records.py");
    let files = FILES.iter().filter(|file| file.name.contains(".warc"));
    let files = files.map(|file| directory.join(file.name));
    let output = Command::new(python).arg(script).args(files).output();
    let mut by_file: HashMap<String, Vec<Value>> = HashMap::new();
    for line in Ran::of(output.unwrap()).ok().stdout.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let file = record["file"].as_str().unwrap().to_owned();
        by_file.entry(file).or_default().push(record);
    }
    by_file
}

/// Asserts that warcio reads the same record.
fn check_record(name: &str, record: &Record<'_>, theirs: &Value) {
    let headers = &record.headers;
    let record_type = String::from_utf8_lossy(headers.record_type()).to_lowercase();
    let ours = json!([record_type, headers.record_id(), headers.target_uri()]);
    let expected = json!([theirs["type"], theirs["id"], theirs["uri"]]);
    assert_eq!(ours, expected, "{name}, byte {}", record.place.offset);
    if !theirs["offset"].is_null() {
        assert_eq!(theirs["offset"], record.place.offset, "{name}");
    }
    let is_same = theirs["block"] == storage::hex(record.block);
    assert!(is_same, "{name}, byte {}: the block", record.place.offset);
}

#[test]
fn records_and_contents_are_those_that_warcio_reads() {
    let (Some(directory), Some(python)) = (crawls(), python()) else {
        return;
    };
    let by_warcio = read_by_warcio(&python, &directory);
    let all_statuses = Choice {
        statuses: vec![0..=999],
        ..Choice::default()
    };
    let mut texts = 0;
    for expected in &FILES {
        let name = expected.name;
        let theirs = by_warcio.get(name).map_or(&[][..], Vec::as_slice);
        let file = File::open(directory.join(name)).unwrap();
        let mut reader = Reader::new(BufReader::with_capacity(128 << 10, file), LIMITS);
        let mut documents = Documents::new(Choice::default(), LIMITS.record);
        let mut of_any_status = Documents::new(all_statuses.clone(), LIMITS.record);
        let (mut found, mut records, mut broken) = (0, 0, Vec::new());
        let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
        while let Some(event) = reader.next_event().unwrap() {
            let record = match event {
                Event::Broken(part) => {
                    *skipped.entry(part.fault.name()).or_default() += 1;
                    broken.push((part.place.offset, part.fault));
                    continue;
                }
                Event::Record(record) => record,
            };
            assert!(records < theirs.len(), "{name}: warcio reads fewer records");
            let theirs = &theirs[records];
            records += 1;
            check_record(name, &record, theirs);
            match documents.read(&record) {
                Ok(_) => found += 1,
                Err(reason) => *skipped.entry(reason.name()).or_default() += 1,
            }
            if let Ok(document) = of_any_status.read(&record) {
                // What is no response is its block.
                let content = match &theirs["content"] {
                    Value::Null => &theirs["block"],
                    content => content,
                };
                let is_same = *content == storage::hex(document.text.as_bytes());
                assert!(is_same, "{name}, byte {}: the text", record.place.offset);
                texts += 1;
            }
        }
        assert_eq!(broken, expected.broken, "{name}");
        assert_eq!(
            (records, theirs.len()),
            (expected.records, expected.records)
        );
        assert_eq!(found, expected.documents, "{name}");
        let expected: BTreeMap<&str, u64> = expected.skipped.iter().copied().collect();
        assert_eq!(skipped, expected, "{name}");
    }
    // The documents, and redirects that have a text.
    assert!(texts >= 32, "{texts}");
}

#[test]
fn a_directory_of_crawls_is_a_batch() {
    let Some(directory) = crawls() else { return };
    let dir = Dir::new();
    let ran = dedup_job([
        "fingerprint",
        "--input",
        directory.to_str().unwrap(),
        "--output",
        &dir.at("fp.parquet"),
        "--json",
    ]);
    let summary = ran.ok().json();
    let is_read =
        |file: &&Expected| file.name.ends_with(".warc") || file.name.ends_with(".warc.gz");
    let mut documents = 0;
    let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
    for file in FILES.iter().filter(is_read) {
        documents += file.documents;
        for (reason, records) in file.skipped {
            *skipped.entry(*reason).or_insert(0) += records;
        }
    }
    assert_eq!(summary["documents"], documents);
    let records = &summary["crawl_records"];
    assert_eq!(records["documents"], documents);
    assert_eq!(records["skipped"], json!(skipped));
    let media_types = json!({
        "application/octet-stream": 5, "application/x-javascript": 18, "image/png": 1, "image/svg+xml": 3,
    });
    assert_eq!(records["media_types"], media_types);
}
