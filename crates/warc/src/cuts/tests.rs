mod dictionaries;

use std::collections::BTreeSet;
use std::io::{Cursor, Write as _};
use std::ops::Range;

use flate2::Compression;
use flate2::write::GzEncoder;
use memchr::memmem;
use proptest::prelude::*;

use super::*;
use crate::fault::{Broken, WrongCut};
use crate::reader::{Event, Limits, Reader};
use crate::test_files::{Layout, Trickle, gzip_member, noise, record, skippable_frame, zstd_frame};

const LIMITS: Limits = Limits {
    record: 4 << 20,
    window_log: 23,
};

/// An event, without its borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Record { offset: u64, raw: Vec<u8> },
    Broken(Broken),
}

fn read(file: &[u8], part: Range<u64>) -> io::Result<Vec<Owned>> {
    let input = Trickle::new(&file[part.start as usize..], 1_000);
    let dictionary = Dictionary::from_start(file).filter(|_| part.start > 0);
    let mut reader = Reader::of_part(input, LIMITS, part);
    if let Some(dictionary) = dictionary {
        reader.use_dictionary(dictionary);
    }
    let mut events = Vec::new();
    while let Some(event) = reader.next_event()? {
        events.push(match event {
            Event::Record(record) => Owned::Record {
                offset: record.place.offset,
                raw: record.raw.to_vec(),
            },
            Event::Broken(broken) => Owned::Broken(broken),
        });
    }
    Ok(events)
}

fn read_all(file: &[u8]) -> Vec<Owned> {
    read(file, 0..u64::MAX).unwrap()
}

fn offsets(file: &[u8]) -> BTreeSet<u64> {
    let events = read_all(file).into_iter();
    events
        .filter_map(|event| match event {
            Owned::Record { offset, .. } => Some(offset),
            Owned::Broken(_) => None,
        })
        .collect()
}

/// The cuts that are found from every `step`th byte of a file on.
fn find_all(file: &[u8], cuts: &MemberCuts, step: usize) -> BTreeSet<u64> {
    let from = (0..file.len()).step_by(step);
    let found = from.filter_map(|from| Some(from + cuts.find(&file[from..], true)?));
    found.map(|at| at as u64).collect()
}

/// Asserts that the parts of a file have its records, wherever it is cut once, and when it is cut everywhere.
fn check_parts(file: &[u8], cuts: &BTreeSet<u64>) {
    let whole = read_all(file);
    let end = file.len() as u64;
    for &at in cuts {
        let parts = [0..at, at..end].map(|part| read(file, part).unwrap());
        assert!(parts.concat() == whole, "{at}");
        // No byte behind a part is needed.
        let alone = read(&file[..at as usize], 0..at).unwrap();
        assert!(alone == parts[0], "{at}");
    }
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([end]);
    let parts = starts.zip(ends).map(|(start, end)| read(file, start..end));
    let parts: io::Result<Vec<Vec<Owned>>> = parts.collect();
    assert!(parts.unwrap().concat() == whole);
}

fn member_cuts(file: &[u8]) -> MemberCuts {
    match Cuts::of_file(file, 23) {
        Some(Cuts::Members(cuts)) => cuts,
        other => panic!("{other:?}"),
    }
}

/// A gzip member that has its content literally.
fn stored_member(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn response(block: &[u8]) -> Vec<u8> {
    record("response", &[("WARC-Target-URI", "http://a/")], block)
}

fn small_records() -> Vec<Vec<u8>> {
    let lengths = [0, 10, 300, 1, 900, 40, 2_000, 5];
    let numbers = (1..).zip(lengths);
    numbers
        .map(|(seed, length)| response(&noise(seed, length)))
        .collect()
}

#[test]
fn compressed_files_are_cut_at_each_record() {
    let records = small_records();
    for layout in [
        Layout::GzipMembers,
        Layout::ZstdFrames,
        Layout::ZstdDictionary,
    ] {
        let file = layout.file(&records);
        let found = find_all(&file, &member_cuts(&file), 1);
        assert_eq!(found, offsets(&file), "{layout:?}");
        check_parts(&file, &found);
        // The wanted place is itself one, or lies in the last member.
        let last = *found.last().unwrap() as usize;
        let cuts = member_cuts(&file);
        assert_eq!(cuts.find(&file[last..], true), Some(0));
        assert_eq!(cuts.find(&file[last + 1..], true), None);
        assert_eq!(cuts.find(&[], true), None);
    }
}

#[test]
fn other_files_are_not_cut() {
    let records = small_records();
    let whole = Layout::GzipWhole.file(&records);
    assert_eq!(Cuts::of_file(&whole, 23), None);
    let plain = Layout::Plain.file(&records);
    assert_eq!(Cuts::of_file(&plain, 23), Some(Cuts::Records));
    let members = Layout::GzipMembers.file(&records);
    let first = gzip_member(&records[0]).len();
    // The second member has to be seen.
    assert_eq!(Cuts::of_file(&members[..first], 23), None);
    assert!(Cuts::of_file(&members[..first + 10], 23).is_some());
    for other in [
        &b""[..],
        b"WARC",
        b"<html>",
        &gzip_member(b"text").repeat(2),
    ] {
        assert_eq!(Cuts::of_file(other, 23), None);
    }
    // Blocks of a fixed size begin with a record by chance only.
    let blocks = Layout::GzipBlocks.file(&records);
    let found = find_all(&blocks, &member_cuts(&blocks), 1);
    assert!(found.len() < records.len());
    check_parts(&blocks, &found);
}

#[test]
fn a_chain_is_longer_than_what_compressed_data_has_literally() {
    // A crawled WARC file, in the middle of one.
    let inner: Vec<Vec<u8>> = (0..150)
        .map(|seed| gzip_member(&response(&noise(seed, 400 + 40 * seed as usize))))
        .collect();
    let crawled = inner.concat();
    assert!(crawled.len() > 3 * CHAIN);
    let file = [
        gzip_member(&response(b"before")),
        stored_member(&response(&crawled)),
        gzip_member(&response(&noise(1_000, 2 * CHAIN))),
        gzip_member(&response(b"behind")),
    ]
    .concat();
    let is_literal = |member: &Vec<u8>| memmem::find(&file, member).is_some();
    assert!(inner.iter().any(is_literal));
    let cuts = member_cuts(&file);
    let expected = offsets(&file);
    let short = MemberCuts {
        chain: 1,
        ..cuts.clone()
    };
    let is_wrong = |at: &u64| !expected.contains(at);
    assert!(find_all(&file, &short, 5_003).iter().any(is_wrong));
    let found = find_all(&file, &cuts, 5_003);
    assert!(found.len() >= 3 && found.is_subset(&expected));
    check_parts(&file, &found);
}

#[test]
fn more_bytes_may_have_to_be_seen() {
    let records: Vec<Vec<u8>> = (0..100).map(|seed| response(&noise(seed, 5_000))).collect();
    let file = Layout::GzipMembers.file(&records);
    let cuts = member_cuts(&file[..50_000]);
    let starts = offsets(&file);
    for from in [1_u64, 7_000, 200_000] {
        let expected = starts.range(from..).next();
        let expected = expected.map(|start| (start - from) as usize);
        let from = from as usize;
        assert_eq!(cuts.find(&file[from..], true), expected);
        assert_eq!(
            cuts.find(&file[from..from + CHAIN + 20_000], false),
            expected
        );
        // Too few bytes for a chain, but not if the file ends with them.
        let end = starts.range(from as u64 + 90_000..).next();
        let few = &file[from..*end.unwrap() as usize];
        assert_eq!(cuts.find(few, false), None);
        assert_eq!(cuts.find(few, true), expected);
    }
}

#[test]
fn a_cut_within_a_member_is_noticed() {
    let frames: Vec<u8> = (0..60)
        .flat_map(|seed| zstd_frame(&response(&noise(seed, 4_000)), None))
        .collect();
    // Frames to skip, and what should be a dictionary.
    for skipped in [0x50, 0x5d] {
        let file = [
            zstd_frame(&response(b"first"), None),
            zstd_frame(&response(b"second"), None),
            skippable_frame(skipped, &frames),
            zstd_frame(&response(b"last"), None),
        ]
        .concat();
        assert_eq!(offsets(&file).len(), 3);
        let at = file.len() / 4;
        let cut = (at + member_cuts(&file).find(&file[at..], true).unwrap()) as u64;
        let error = read(&file, 0..cut).unwrap_err();
        assert_eq!(
            error.downcast::<WrongCut>().unwrap(),
            WrongCut { offset: cut }
        );
    }
    // The same in gzip, within a record.
    let file = Layout::GzipMembers.file(&small_records());
    let error = read(&file, 0..10).unwrap_err();
    assert_eq!(
        error.downcast::<WrongCut>().unwrap(),
        WrongCut { offset: 10 }
    );
}

#[test]
fn damage_before_a_cut_is_reported_once() {
    let records: Vec<Vec<u8>> = (0..30).map(|seed| response(&noise(seed, 1_000))).collect();
    let mut file = Layout::GzipMembers.file(&records);
    let cuts = member_cuts(&file);
    // The checksum of the tenth record.
    let behind = *offsets(&file).iter().nth(10).unwrap();
    file[behind as usize - 6] ^= 1;
    let whole = read_all(&file);
    let broken = whole
        .iter()
        .filter(|event| matches!(event, Owned::Broken(_)));
    assert_eq!((whole.len(), broken.count()), (30, 1));
    let found = find_all(&file, &cuts, 100);
    assert_eq!(found.first(), Some(&behind));
    check_parts(&file, &found);
}

#[test]
fn members_with_fields_of_any_bytes_are_no_cuts() {
    let plain = gzip_member(&response(b"one"));
    // The flag of an extra field, and the field: two bytes.
    let mut extra = plain.clone();
    extra[3] = 4;
    extra.splice(10..10, [2, 0, 7, 7]);
    assert!(Cuts::of_file(&plain.repeat(3), 23).is_some());
    for file in [[&extra[..], &plain].concat(), [&plain[..], &extra].concat()] {
        assert_eq!(read_all(&file).len(), 2);
        assert_eq!(Cuts::of_file(&file, 23), None);
    }
}

#[test]
fn skippable_frames_do_not_count_in_a_chain() {
    let frame = |seed: u64| zstd_frame(&response(&noise(seed, 1_000)), None);
    let skipped = skippable_frame(0x51, &noise(9, 2 * CHAIN));
    let file = [&skipped[..], &frame(1), &skipped, &frame(2), &frame(3)].concat();
    let cuts = member_cuts(&file);
    let members = &file[skipped.len()..];
    assert_eq!(cuts.find(members, false), None);
    assert_eq!(cuts.find(members, true), Some(0));
    let found = find_all(&file, &cuts, 501);
    assert_eq!(found, offsets(&file));
    check_parts(&file, &found);
    // A file of one member.
    let file = [&skipped[..], &frame(1), &skipped].concat();
    assert_eq!(Cuts::of_file(&file, 23), None);
}

#[test]
fn a_cut_is_sought_for_a_bounded_time() {
    let member = gzip_member(&response(b"one"));
    let cuts = MemberCuts {
        chain: 1,
        ..member_cuts(&member.repeat(3))
    };
    // Each is the start of a member that has 65,511 bytes of what follows literally, and no end.
    let mut hostile = Vec::new();
    for _ in 0..1_000 {
        hostile.extend_from_slice(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\0\xe7\xff\x18\0WARC/1.");
    }
    hostile.extend_from_slice(&[0xff; 70_000]);
    for (units, found) in [(10, true), (1_000, false)] {
        let from = hostile.len() - 70_000 - 22 * units;
        let file = [&hostile[from..], &member.repeat(3)].concat();
        assert_eq!(cuts.find(&file, true).is_some(), found, "{units}");
    }
}

fn starts(file: &[u8]) -> BTreeSet<u64> {
    let mut starts = RecordStarts::new(Cursor::new(file), file.len() as u64);
    std::iter::from_fn(|| starts.next_start().unwrap()).collect()
}

#[test]
fn plain_files_are_cut_at_each_record() {
    // A crawled WARC file, in the middle of one.
    let records = [
        response(b"one"),
        response(&small_records().concat()),
        response(b"three"),
    ];
    let file = records.concat();
    let found = starts(&file);
    assert_eq!(found, offsets(&file));
    check_parts(&file, &found);
    // Up to a record without a length, and up to one that is cut off.
    let good = response(b"good");
    for (bad, more) in [
        ("WARC/1.0\r\nA: b\r\n\r\nx", 0),
        (
            "WARC/1.0\r\nContent-Length: 18446744073709551615\r\n\r\nx",
            1,
        ),
        ("WARC/1.0\r\nContent-Length: 99999999999999\r\n\r\nx", 1),
        ("WARC/1.0\r\nContent-Length: 9000\r\n\r\nx", 1),
        ("garbage", 0),
        ("WARC/1.0\r\nContent", 0),
    ] {
        let file = [&good[..], b"\r\n", &good, bad.as_bytes()].concat();
        let found = starts(&file);
        assert_eq!(found.len(), 2 + more, "{bad:?}");
        check_parts(&file, &found);
    }
    assert!(starts(b"").is_empty());
}

/// Records with blocks that look like headers, of records and of members.
fn any_records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let header = |rest: Vec<u8>| [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], &rest].concat();
    let magic = |rest: Vec<u8>| [&b"\x28\xb5\x2f\xfd\0"[..], &rest].concat();
    let bytes = || proptest::collection::vec(any::<u8>(), 0..60);
    let block = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        proptest::collection::vec(bytes().prop_map(header), 0..8).prop_map(|all| all.concat()),
        proptest::collection::vec(bytes().prop_map(magic), 0..8).prop_map(|all| all.concat()),
        (1_usize..900).prop_map(|length| b"WARC/1.0\r\n\r\n\n".repeat(length / 10)),
    ];
    let records = proptest::collection::vec(block, 2..10);
    records.prop_map(|blocks| blocks.iter().map(|block| response(block)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn parts_have_the_records_of_the_file(
        records in any_records(),
        layout in proptest::sample::select(vec![Layout::GzipMembers, Layout::ZstdFrames, Layout::ZstdDictionary]),
        chain in 1_usize..3_000,
    ) {
        let file = layout.file(&records);
        let cuts = MemberCuts { chain, ..member_cuts(&file) };
        // Members have more bytes than that.
        let found = find_all(&file, &cuts, 7);
        prop_assert_eq!(&found, &offsets(&file));
        check_parts(&file, &found);
    }

    #[test]
    fn records_of_plain_files_are_found_by_their_lengths(records in any_records()) {
        let file = records.concat();
        let found = starts(&file);
        prop_assert_eq!(&found, &offsets(&file));
        check_parts(&file, &found);
    }

    #[test]
    fn any_bytes_are_searched_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        for format in [Format::Gzip, Format::Zstd] {
            let cuts = MemberCuts { format, window_log: 20, dictionary: None, chain: 100 };
            prop_assert!(cuts.find(&bytes, true).is_none_or(|at| at < bytes.len()));
        }
        starts(&bytes);
    }
}
