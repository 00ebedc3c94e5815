//! WARC files with damage, wrong lengths and hostile content: what is lost is counted, and nothing wrong is read.

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;

use crate::helpers::crawl_files::{gzip, record, response};
use crate::helpers::support::*;

/// A page whose words hardly compress.
fn page(number: usize, words: usize) -> Vec<u8> {
    let mut state = number as u64 + 1;
    let mut word = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:x}", state >> 24)
    };
    let text: Vec<String> = (0..words).map(&mut word).collect();
    let body = format!("<html><body><p>{}</p></body></html>", text.join(" "));
    response(number, "200 OK", &body)
}

/// The summary of a run over these files, and what it logged.
fn run(dir: &Dir, new: &str, options: &str) -> (serde_json::Value, String) {
    let decisions = dir.at("decisions.jsonl");
    let ran = dedup_ok(&format!(
        "run --new {} --decisions {decisions} --overwrite --json {options}",
        dir.at(new)
    ));
    (ran.json()["new"].clone(), ran.stderr)
}

/// Fault 113: a damaged member may still be decompressed, but to wrong bytes.
#[test]
fn no_wrong_byte_of_a_damaged_member_is_read_or_kept() {
    let dir = Dir::new();
    let pages: Vec<Vec<u8>> = (0..120).map(|number| page(number, 1_500)).collect();
    let mut file = Vec::new();
    for (number, page) in pages.iter().enumerate() {
        let mut member = gzip(page);
        let at = 200 + number * 7_919 % (member.len() - 500);
        match number % 4 {
            0 => {}
            1 => member[at] ^= 0xff,
            2 => member[at] ^= 1 << (number % 8),
            _ => member[at..at + 200].fill(0),
        }
        file.extend(member);
    }
    fs::write(dir.join("crawl.warc.gz"), file).unwrap();
    let kept = dir.at("kept.warc.gz");
    let (new, _) = run(&dir, "crawl.warc.gz", &format!("--kept {kept}"));
    let mut copied = Vec::new();
    let mut decoder = MultiGzDecoder::new(fs::File::open(&kept).unwrap());
    decoder.read_to_end(&mut copied).unwrap();
    let right: HashSet<&[u8]> = pages.iter().map(Vec::as_slice).collect();
    const BETWEEN: &[u8] = b"\r\n\r\nWARC/1.0";
    let windows = copied.windows(BETWEEN.len()).enumerate();
    let ends = windows.filter_map(|(at, bytes)| (bytes == BETWEEN).then_some(at + 4));
    let ends: Vec<usize> = ends.chain([copied.len()]).collect();
    let starts = [0].into_iter().chain(ends.iter().copied());
    for (start, end) in starts.zip(&ends) {
        assert!(right.contains(&copied[start..*end]), "{start}");
    }
    // All that are whole, and nothing else; damaged data may take the member behind it along.
    let documents = new["documents"].as_u64().unwrap();
    assert_eq!(documents, ends.len() as u64);
    assert!((20..=30).contains(&documents), "{documents}");
    let skipped = new["crawl_records"]["skipped"]["damaged compression"].as_u64();
    assert!(skipped.unwrap() >= 80, "{new}");
}

/// Fault 113: the length of a record may be wrong.
#[test]
fn a_wrong_length_costs_one_record() {
    let dir = Dir::new();
    let mut pages: Vec<Vec<u8>> = (0..30).map(|number| page(number, 100)).collect();
    let text = String::from_utf8(pages[7].clone()).unwrap();
    pages[7] = text
        .replace("Content-Length: ", "Content-Length: 9")
        .into_bytes();
    fs::write(dir.join("plain.warc"), pages.concat()).unwrap();
    fs::write(dir.join("one.warc.gz"), gzip(&pages.concat())).unwrap();
    let members: Vec<Vec<u8>> = pages.iter().map(|page| gzip(page)).collect();
    fs::write(dir.join("members.warc.gz"), members.concat()).unwrap();
    for file in ["plain.warc", "one.warc.gz", "members.warc.gz"] {
        let (new, log) = run(&dir, file, "");
        assert_eq!(new["documents"], 29, "{file}");
        assert_eq!(new["crawl_records"]["skipped"]["truncated"], 1, "{file}");
        let place = match file {
            "one.warc.gz" => "byte 0, decompressed byte ",
            _ => "byte ",
        };
        assert!(log.contains(&format!("{file}, {place}")), "{log}");
    }
    // Beyond the file, and above the limit of a record.
    pages[7] = text
        .replace("Content-Length: ", "Content-Length: 99999999")
        .into_bytes();
    fs::write(dir.join("huge.warc"), pages.concat()).unwrap();
    let (new, log) = run(&dir, "huge.warc", "");
    assert_eq!(new["documents"], 7);
    let skipped = &new["crawl_records"]["skipped"];
    assert_eq!(skipped["longer than the file"], 1);
    assert!(log.contains("no more of the file is read"), "{log}");
}

#[test]
fn incomplete_and_malformed_pages_are_counted_and_those_left_out_are_named() {
    let dir = Dir::new();
    let body = format!("<p>{}</p>", "several words of a page ".repeat(100));
    let coded = |number: usize, fields: &str, body: &[u8]| {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n{fields}\r\n");
        let block = [head.as_bytes(), body].concat();
        let (id, uri) = (
            format!("coded-{number}"),
            format!("https://a.example/{number}"),
        );
        record("response", &id, &uri, "application/http", &block)
    };
    let zipped = gzip(body.as_bytes());
    let records = [
        coded(0, "", body.as_bytes()),
        coded(
            1,
            "Content-Encoding: gzip\r\n",
            &zipped[..zipped.len() - 12],
        ),
        coded(
            2,
            "Transfer-Encoding: chunked\r\n",
            format!("fff\r\n{body}").as_bytes(),
        ),
        coded(3, "", &[body.as_bytes(), b"<p>\xff\xfe</p>"].concat()),
        coded(
            4,
            "Content-Encoding: gzip\r\n",
            b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
        ),
    ];
    let with_digest = |number: usize, digest: &str| {
        let text = String::from_utf8(coded(number, "", body.as_bytes())).unwrap();
        let field = format!("WARC-Block-Digest: {digest}\r\nContent-Length");
        text.replace("Content-Length", &field).into_bytes()
    };
    let wrong = with_digest(5, "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let file = [records.concat(), wrong].concat();
    fs::write(dir.join("crawl.warc"), file).unwrap();
    let (new, log) = run(&dir, "crawl.warc", "--check-digests");
    let records = &new["crawl_records"];
    assert_eq!(records["documents"], 4, "{new}");
    assert_eq!(
        (&records["incomplete"], &records["malformed"]),
        (&2.into(), &1.into())
    );
    assert_eq!(records["skipped"]["damaged content encoding"], 1);
    assert_eq!(records["skipped"]["wrong digest"], 1);
    for fault in [
        "damaged content encoding; the record is left out",
        "wrong digest; the record is left out",
    ] {
        assert_eq!(log.matches(fault).count(), 1, "{log}");
    }
    // The log of a run that reads the file several times.
    let options = format!(
        "--check-digests --columns url --kept {}",
        dir.at("kept.warc")
    );
    let (_, log) = run(&dir, "crawl.warc", &options);
    assert_eq!(log.matches("wrong digest").count(), 1, "{log}");
}

/// A text of words of one letter has as many features as it has words, and each takes memory.
#[test]
fn the_features_of_long_texts_do_not_exceed_the_memory_limit() {
    let dir = Dir::new();
    let limit: u64 = 512 << 20;
    for (name, text) in [
        ("letters", "a b c d e f g h ".repeat(3 << 20)),
        (
            "rare",
            (0..4_500_000_u32)
                .map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761)))
                .collect(),
        ),
    ] {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}");
        let number = |number: usize| {
            let (id, uri) = (format!("{number}"), format!("https://a.example/{number}"));
            gzip(&record(
                "response",
                &id,
                &uri,
                "application/http",
                block.as_bytes(),
            ))
        };
        let file = [number(0), number(1)].concat();
        fs::write(dir.join("crawl.warc.gz"), file).unwrap();
        let decisions = dir.at("decisions.jsonl");
        let ran = dedup_ok(&format!(
            "run --new {} --decisions {decisions} --overwrite --json --threads 2 --memory-limit 512MiB",
            dir.at("crawl.warc.gz")
        ));
        let summary = ran.json();
        assert_eq!(summary["new"]["documents"], 2);
        assert_eq!(summary["new"]["distinct_fingerprints"], 1);
        let peak = summary["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak < limit, "{name}: {peak}");
    }
}
