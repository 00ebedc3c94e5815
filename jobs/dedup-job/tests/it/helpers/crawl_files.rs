//! Writes small crawls: WARC files of pages with near-duplicates, and of records that are no documents.

use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Pages whose numbers have the same remainder are near-duplicates.
const FAMILIES: usize = 230;
/// Words of a page.
const WORDS: usize = 150;

/// A dictionary of zstd, for records of crawls.
const DICTIONARY: &[u8] = include_bytes!("../../../../../crates/warc/tests/crawl.dict");

/// A record.
pub fn record(kind: &str, id: &str, uri: &str, content_type: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:test:{id}>\r\nWARC-Target-URI: {uri}\r\n\
         WARC-Date: 2026-01-30T10:00:00Z\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// The response with a page.
pub fn response(number: usize, status: &str, body: &str) -> Vec<u8> {
    let block =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{body}");
    let (id, uri) = (
        format!("response-{number}"),
        format!("https://crawl.example/{number}"),
    );
    let content_type = "application/http; msgtype=response";
    record("response", &id, &uri, content_type, block.as_bytes())
}

/// A page that differs in a word from the others of its family.
fn page(number: usize) -> String {
    let family = number % FAMILIES;
    let word = |at: usize| {
        if at == number % WORDS {
            format!("edit{number}")
        } else {
            format!("word{}", (family * 7919 + at * 104_729) % 65_537)
        }
    };
    let words: Vec<String> = (0..WORDS).map(word).collect();
    format!(
        "<html><body><nav>Home</nav><p>{}</p></body></html>",
        words.join(" ")
    )
}

/// The records of some pages: a request and a response each, 1 in 10 with status 404.
fn records(numbers: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    let mut records = vec![record(
        "warcinfo",
        "info",
        "",
        "application/warc-fields",
        b"a: b",
    )];
    for number in numbers {
        let (id, uri) = (
            format!("request-{number}"),
            format!("https://crawl.example/{number}"),
        );
        let request = b"GET / HTTP/1.1\r\n\r\n";
        records.push(record("request", &id, &uri, "application/http", request));
        let status = match number % 10 {
            8 => "404 Not Found",
            _ => "200 OK",
        };
        records.push(response(number, status, &page(number)));
    }
    records
}

/// The response with a page of some 10 KB that hardly compresses; pages of one family differ in two words.
fn large_page(number: usize, family: usize) -> Vec<u8> {
    let mut state = family as u64;
    let mut letter = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 33) as u8 % 26)
    };
    let mut words: Vec<String> = (0..1_100)
        .map(|_| (0..8).map(&mut letter).collect())
        .collect();
    words[number % 1_000] = format!("edit{number}");
    let body = format!("<html><body><p>{}</p></body></html>", words.join(" "));
    response(number, "200 OK", &body)
}

/// Writes a file of some 18 MB, with a gzip member for each of 3,000 pages. Two pages each are near-duplicates.
pub fn write_large_crawl(path: &Path) {
    let pages = (0..3_000).flat_map(|number| gzip(&large_page(number, number % 1_500)));
    std::fs::write(path, pages.collect::<Vec<u8>>()).unwrap();
}

/// As [`write_large_crawl`], with a zstd frame for each page, which needs the dictionary that the file starts with.
pub fn write_large_crawl_with_dictionary(path: &Path) {
    std::fs::write(path, large_crawl_part(DICTIONARY, 0..3_000)).unwrap();
}

/// Writes two files of the pages of [`write_large_crawl`], one behind the other. Each needs another dictionary.
pub fn write_joined_crawls(path: &Path) {
    let mut other = DICTIONARY.to_vec();
    // Behind the tables. The id stays the same.
    other[200..].rotate_left(37);
    let parts = [(DICTIONARY, 0..2_000), (&other[..], 2_000..3_000)];
    let parts = parts.map(|(dictionary, numbers)| large_crawl_part(dictionary, numbers));
    std::fs::write(path, parts.concat()).unwrap();
}

/// A compressed dictionary, and a frame with it for each page.
fn large_crawl_part(dictionary: &[u8], numbers: Range<usize>) -> Vec<u8> {
    let mut file = skippable_frame(0x184D_2A5D, &frame(dictionary));
    let mut compressor = compressor(dictionary);
    for number in numbers {
        let page = large_page(number, number % 1_500);
        file.extend(compressor.compress(&page).unwrap());
    }
    file
}

/// Writes a file of three pages, and of 12 MB of pages in a frame that readers skip. With a dictionary, if its frames need one.
pub fn write_crawl_with_skipped_frames(path: &Path, needs_dictionary: bool) {
    let dictionary: &[u8] = if needs_dictionary { DICTIONARY } else { &[] };
    let mut compressor = compressor(dictionary);
    let mut page = |number: usize| compressor.compress(&large_page(number, number)).unwrap();
    let first = [page(0), page(1)].concat();
    let skipped: Vec<u8> = (3..2_003).flat_map(&mut page).collect();
    let start = if needs_dictionary {
        skippable_frame(0x184D_2A5D, dictionary)
    } else {
        Vec::new()
    };
    let file = [
        start,
        first,
        skippable_frame(0x184D_2A50, &skipped),
        page(2),
    ];
    std::fs::write(path, file.concat()).unwrap();
}

fn compressor(dictionary: &[u8]) -> zstd::bulk::Compressor<'static> {
    zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap()
}

/// A frame of zstd that readers skip.
pub fn skippable_frame(magic: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    [&magic.to_le_bytes()[..], &length, content].concat()
}

/// A gzip member.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A zstd frame.
pub fn frame(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

/// Writes the pages to five files: compressed record by record or at once, plain, and cut off within the last record.
pub fn write_crawl(directory: &Path, numbers: Range<usize>) {
    std::fs::create_dir(directory).unwrap();
    let of_file = |file: usize| records(numbers.clone().filter(|number| number % 5 == file));
    let each = |file: usize, compress: fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
        let records = of_file(file);
        records.iter().flat_map(|record| compress(record)).collect()
    };
    let mut cut_off = each(4, gzip);
    cut_off.truncate(cut_off.len() - 20);
    for (name, bytes) in [
        ("members.warc.gz", each(0, gzip)),
        ("whole.warc.gz", gzip(&of_file(1).concat())),
        ("plain.warc", of_file(2).concat()),
        ("frames.warc.zst", each(3, frame)),
        ("cut-off.warc.gz", cut_off),
    ] {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}
