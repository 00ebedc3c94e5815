//! Fuzzes the reader of WARC files with arbitrary bytes: plain, as one gzip member, and as a gzip member for each part.
//!
//! Every file comes to an end without a panic. The events of a file that is not damaged below its records are the same whatever
//! the size of the source's buffer, and wherever it is cut; and the records of a plain file are parts of it.
#![no_main]

use std::io::{BufReader, Cursor, Write as _};
use std::ops::Range;

use documents::crawl_counts::CrawlRecordCounts;
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use warc::{Broken, Choice, Cuts, Documents, Event, Limits, Place, Reader, RecordStarts};

/// A small one, so that the fuzzer makes records above it.
const LIMITS: Limits = Limits {
    record: 1_000,
    window_log: 20,
};

#[derive(Debug, PartialEq)]
enum Found {
    Record {
        offset: u64,
        block: Vec<u8>,
        raw: Vec<u8>,
    },
    Broken(Broken),
}

/// The events of a file, read in pieces of at most `step` bytes.
fn read(file: &[u8], step: usize) -> Vec<Found> {
    read_part(file, 0..u64::MAX, step)
}

/// The events of a part of a file, read in pieces of at most `step` bytes.
fn read_part(file: &[u8], part: Range<u64>, step: usize) -> Vec<Found> {
    let input = BufReader::with_capacity(step, &file[part.start as usize..]);
    let mut reader = Reader::of_part(input, LIMITS, part);
    let choice = Choice {
        statuses: vec![0..=999],
        check_digests: true,
        ..Choice::default()
    };
    let mut documents = Documents::new(choice, LIMITS.record);
    let mut counts = CrawlRecordCounts::default();
    let mut all = Vec::new();
    while let Some(event) = reader.next_event().expect("a slice has no errors") {
        all.push(match event {
            Event::Record(record) => {
                counts.count(&documents.read(&record));
                let (block, raw) = (record.block.to_vec(), record.raw.to_vec());
                Found::Record {
                    offset: record.place.offset,
                    block,
                    raw,
                }
            }
            Event::Broken(broken) => {
                counts.count_broken(broken);
                Found::Broken(broken)
            }
        });
        assert!(all.len() <= file.len(), "no end");
    }
    let skipped: u64 = counts.skipped.values().sum();
    assert_eq!(counts.documents + skipped, all.len() as u64);
    all
}

/// Where the file can be cut, at `from` or behind.
fn find_cut(file: &[u8], from: usize) -> Option<u64> {
    match Cuts::of_file(file, LIMITS.window_log)? {
        Cuts::Members(cuts) => Some((from + cuts.find(&file[from..], true)?) as u64),
        Cuts::Records => {
            let mut starts = RecordStarts::new(Cursor::new(file), file.len() as u64);
            let mut starts =
                std::iter::from_fn(|| starts.next_start().expect("a slice has no errors"));
            starts.find(|start| *start >= from as u64)
        }
    }
}

/// The events without the offsets of broken parts: a few bytes that are no record may be reported at the member before.
fn without_broken_offsets(mut events: Vec<Found>) -> Vec<Found> {
    for event in &mut events {
        if let Found::Broken(broken) = event {
            broken.place = Place { offset: 0, decompressed: 0 };
        }
    }
    events
}

fn member(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("a vector has no errors");
    encoder.finish().expect("a vector has no errors")
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&layout, bytes)) = bytes.split_first() else {
        return;
    };
    let is_plain = bytes.starts_with(b"WARC/1.");
    let file = match layout % 3 {
        0 => bytes.to_vec(),
        1 => member(bytes),
        _ => bytes.split(|byte| *byte == 0).flat_map(member).collect(),
    };
    let events = read(&file, 1 << 20);
    let pieces = read(&file, 1 + usize::from(layout) / 3);
    if layout % 3 > 0 || is_plain {
        assert_eq!(events, pieces);
    }
    let from = usize::from(layout) * file.len() / 256;
    if (layout % 3 > 0 || is_plain)
        && let Some(cut) = find_cut(&file, from)
    {
        let mut parts = read_part(&file, 0..cut, 1 << 20);
        parts.extend(read_part(&file, cut..file.len() as u64, 1 << 20));
        let whole = read(&file, 1 << 20);
        assert_eq!(without_broken_offsets(parts), without_broken_offsets(whole));
    }
    if layout % 3 == 0 && is_plain {
        for event in &events {
            if let Found::Record { offset, block, raw } = event {
                let rest = &file[*offset as usize..];
                assert!(rest.starts_with(raw) && raw.len() >= block.len());
            }
        }
    }
});
