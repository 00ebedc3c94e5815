mod damage;

use memchr::memmem;
use proptest::prelude::*;

use super::*;
use crate::test_files::{Layout, Trickle, damaged_member, gzip_member, noise, record};

const LIMITS: Limits = Limits {
    record: 1 << 20,
    window_log: 23,
};

/// An event, without its borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Record { block: Vec<u8>, raw: Vec<u8> },
    Broken(Fault),
}

/// The events of a file, and their places.
fn read(file: &[u8], step: usize, limits: Limits) -> (Vec<Owned>, Vec<Place>) {
    let mut reader = Reader::new(Trickle::new(file, step), limits);
    let (mut events, mut places) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().unwrap() {
        let (owned, place) = match event {
            Event::Record(record) => {
                let (block, raw) = (record.block.to_vec(), record.raw.to_vec());
                (Owned::Record { block, raw }, record.place)
            }
            Event::Broken(broken) => (Owned::Broken(broken.fault), broken.place),
        };
        events.push(owned);
        places.push(place);
        // Each event takes a decompressed byte at least, and a byte of the file is never more than 1,032 of those.
        assert!(events.len() <= 1_032 * file.len(), "no end");
    }
    assert!(reader.next_event().unwrap().is_none());
    (events, places)
}

/// The events of a file, which are the same whatever the size of the source's buffer.
fn events(file: &[u8]) -> Vec<Owned> {
    let (events, places) = read(file, 1 << 20, LIMITS);
    for step in [1, 11, 500] {
        assert_eq!(read(file, step, LIMITS), (events.clone(), places.clone()));
    }
    events
}

/// The record that [`record`] wrote.
fn owned(raw: &[u8]) -> Owned {
    let head = memmem::find(raw, b"\r\n\r\n").unwrap() + 4;
    Owned::Record {
        block: raw[head..raw.len() - 4].to_vec(),
        raw: raw.to_vec(),
    }
}

fn response(block: &[u8]) -> Vec<u8> {
    record("response", &[("WARC-Target-URI", "http://a/")], block)
}

#[test]
fn every_layout_has_the_same_records() {
    let blocks = [0, 1, 100, 5_000, 300_000, 7, 0].map(|length| vec![b'x'; length]);
    let records: Vec<Vec<u8>> = blocks.iter().map(|block| response(block)).collect();
    let expected: Vec<Owned> = records.iter().map(|raw| owned(raw)).collect();
    for layout in Layout::ALL {
        let file = layout.file(&records);
        for step in [1, 17, 1_000, 1 << 20] {
            let (found, _) = read(&file, step, LIMITS);
            let blocks = |events: &[Owned]| -> Vec<Vec<u8>> {
                events
                    .iter()
                    .map(|event| match event {
                        Owned::Record { block, .. } => block.clone(),
                        Owned::Broken(fault) => panic!("{layout:?}: {fault:?}"),
                    })
                    .collect()
            };
            assert!(blocks(&found) == blocks(&expected), "{layout:?}");
            // A record has no line ends of the next member.
            if layout != Layout::GzipBlocks {
                assert!(found == expected, "{layout:?}");
            }
        }
    }
}

#[test]
fn places_are_those_of_records_and_members() {
    let records: Vec<Vec<u8>> = (0..5)
        .map(|n| response(&[b'x'; 2_000][..n * 400]))
        .collect();
    let starts = |sizes: &mut dyn Iterator<Item = usize>| -> Vec<Place> {
        let mut next = 0;
        let mut start = |size| {
            next += size as u64;
            Place::at(next - size as u64)
        };
        sizes.map(&mut start).collect()
    };
    let of_records = starts(&mut records.iter().map(Vec::len));
    for step in [1, 100, 1 << 20] {
        let (_, places) = read(&records.concat(), step, LIMITS);
        assert_eq!(places, of_records);
        let file = Layout::GzipMembers.file(&records);
        let (_, places) = read(&file, step, LIMITS);
        let mut sizes = records.iter().map(|record| gzip_member(record).len());
        assert_eq!(places, starts(&mut sizes));
        let (_, places) = read(&Layout::GzipWhole.file(&records), step, LIMITS);
        for (place, of_record) in places.iter().zip(&of_records) {
            assert_eq!((place.offset, place.decompressed), (0, of_record.offset));
        }
        assert_eq!(
            places[1].to_string(),
            format!("byte 0, decompressed byte {}", records[0].len())
        );
    }
}

#[test]
fn headers_are_lent_with_the_record() {
    let file = gzip_member(&response(b"body"));
    let mut reader = Reader::new(&file[..], LIMITS);
    let Some(Event::Record(record)) = reader.next_event().unwrap() else {
        panic!("no record");
    };
    assert_eq!(record.headers.record_type(), b"response");
    assert_eq!(record.headers.target_uri().as_deref(), Some("http://a/"));
    assert_eq!((record.place, record.block), (Place::at(0), &b"body"[..]));
}

#[test]
fn line_ends_and_blank_lines_may_be_missing() {
    let block = |text: &str| text.as_bytes().to_vec();
    let bare = |block: &str| format!("WARC/1.1\nContent-Length: {}\n\n{block}", block.len());
    for between in ["", "\n", "\r\n", "\n\n", "\r\n\r\n", "\r\n\r\n\r\n \n\0"] {
        let file = ["\r\n", &bare("one"), between, &bare(""), between].concat();
        let found = events(file.as_bytes());
        let blocks: Vec<Vec<u8>> = found
            .into_iter()
            .map(|event| match event {
                Owned::Record { block, raw } => {
                    let head = raw.windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
                    assert!(raw[head + block.len()..].trim_ascii().is_empty());
                    assert!(raw.len() - head - block.len() <= 4);
                    block
                }
                Owned::Broken(fault) => panic!("{between:?}: {fault:?}"),
            })
            .collect();
        assert_eq!(blocks, [block("one"), block("")], "{between:?}");
    }
}

#[test]
fn after_a_broken_header_the_next_record_is_found() {
    let good = response(b"good");
    let long = format!("WARC/1.0\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEADER));
    let broken = Owned::Broken(Fault::Header);
    for bad in [
        "WARC/1.0\r\nWARC-Type: response\r\n\r\nnot WARC/1.0, no length\r\n\r\n",
        "WARC/1.0\r\nContent-Length: many\r\n\r\n\r\n\r\n",
        "WARC/1.0\r\nWARC-Type: response\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "WARC/2.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
        &long,
    ] {
        let plain = [&good[..], bad.as_bytes(), &good].concat();
        let expected = [owned(&good), broken.clone(), owned(&good)];
        assert_eq!(events(&plain), expected, "{bad}");
        let whole = gzip_member(&plain);
        assert_eq!(events(&whole), expected, "{bad}");
        // Also where the last line has no end.
        let cut = bad.trim_end().as_bytes();
        let members = [&good[..], cut, &good].map(gzip_member).concat();
        let found = events(&members);
        assert_eq!(
            (found.len(), &found[0], &found[2]),
            (3, &expected[0], &expected[2])
        );
    }
    assert_eq!(events(b"WARC"), [Owned::Broken(Fault::Unknown)]);
    assert_eq!(events(&gzip_member(b"WARC")), [broken]);
}

#[test]
fn a_file_that_is_cut_off_is_truncated() {
    let block: Vec<u8> = (0..5_000_u32).map(|n| (n * n % 251) as u8).collect();
    let records = [response(b"one"), response(&block)];
    for layout in Layout::ALL {
        let file = layout.file(&records);
        let first = layout.file(&records[..1]).len();
        for length in [file.len() - 20, (first + 60).min(file.len() - 20)] {
            let mut found = events(&file[..length]);
            assert_eq!(
                found.pop(),
                Some(Owned::Broken(Fault::Truncated)),
                "{layout:?}"
            );
            // Of the last one, only line ends or the checksum may be missing.
            for (found, block) in found.iter().zip([b"one", &block[..]]) {
                assert!(matches!(found, Owned::Record { block: read, .. } if read == block));
            }
        }
    }
    // Only a part of the last checksum is missing.
    let whole = Layout::GzipMembers.file(&records);
    let found = events(&whole[..whole.len() - 3]);
    let expected = [
        owned(&records[0]),
        owned(&records[1]),
        Owned::Broken(Fault::Truncated),
    ];
    assert_eq!(found, expected);
    // Only the line ends are missing.
    let plain = records.concat();
    assert!(matches!(
        events(&plain[..plain.len() - 4])[..],
        [_, Owned::Record { .. }]
    ));
}

#[test]
fn a_member_that_starts_with_a_record_ends_the_one_before() {
    let good = response(b"good");
    let longer = record("response", &[], &[b'x'; 1_000]);
    for cut in [30, 200, 1_000] {
        let members = [&good[..], &longer[..cut], &good].map(gzip_member).concat();
        let truncated = Owned::Broken(Fault::Truncated);
        assert_eq!(events(&members), [owned(&good), truncated, owned(&good)]);
    }
}

#[test]
fn records_above_the_limit_are_skipped() {
    let good = response(b"good");
    let long = response(&[b'x'; 100_000]);
    let limits = Limits {
        record: 50_000,
        ..LIMITS
    };
    let too_long = Owned::Broken(Fault::TooLong);
    for layout in Layout::ALL {
        let file = layout.file(&[good.clone(), long.clone(), good.clone(), long.clone()]);
        for step in [1, 300, 1 << 20] {
            let (found, _) = read(&file, step, limits);
            assert_eq!(found.len(), 4, "{layout:?}");
            assert_eq!((&found[1], &found[3]), (&too_long, &too_long));
            assert!(matches!(found[2], Owned::Record { .. }));
        }
    }
    // A length that is a lie, cut off by the next member, or by the end.
    let lie = b"WARC/1.0\r\nContent-Length: 18446744073709551615\r\n\r\nblock";
    let members = [&lie[..], &good, lie].map(gzip_member).concat();
    let endless = Owned::Broken(Fault::Endless);
    assert_eq!(events(&members), [too_long, owned(&good), endless]);
    let exact = Limits {
        record: good.len() - 4,
        ..LIMITS
    };
    assert_eq!(read(&good, 100, exact).0, [owned(&good)]);
}

#[test]
fn a_record_in_a_damaged_member_is_broken_and_those_around_it_are_read() {
    let block: Vec<u8> = (0..3_000_u32).map(|n| (n * n % 251) as u8).collect();
    let record = response(&block);
    let member = gzip_member(&record);
    // The whole record is decompressed before its checksum turns out to be wrong.
    let file = [&member[..], &damaged_member(&record), &member].concat();
    let expected = [
        owned(&record),
        Owned::Broken(Fault::Damaged),
        owned(&record),
    ];
    assert_eq!(events(&file), expected);
    let (_, places) = read(&file, 100, LIMITS);
    assert_eq!(places[1], Place::at(member.len() as u64));
}

#[test]
fn a_damaged_record_that_seems_to_be_followed_by_more_is_broken() {
    let record = response(&[b'x'; 300]);
    let with_more = [&record[..], &[b'y'; 100_000]].concat();
    let member = gzip_member(&record);
    let file = [&member[..], &damaged_member(&with_more), &member].concat();
    let broken = Owned::Broken(Fault::Damaged);
    assert_eq!(events(&file), [owned(&record), broken, owned(&record)]);
    // With a right one, the record is as its member says.
    let header = Owned::Broken(Fault::Header);
    let file = [gzip_member(&with_more), member].concat();
    assert_eq!(events(&file), [owned(&record), header, owned(&record)]);
}

#[test]
fn no_record_of_a_damaged_member_is_read_but_all_before_the_end_of_a_file_that_is_cut_off() {
    let records: Vec<Vec<u8>> = (0..9).map(|n| response(&noise(n, 3_000))).collect();
    let whole = gzip_member(&records.concat());
    let file = [damaged_member(&records.concat()), gzip_member(&records[0])].concat();
    assert_eq!(
        events(&file),
        [Owned::Broken(Fault::Damaged), owned(&records[0])]
    );
    // Within the last record.
    let mut expected: Vec<Owned> = records[..8].iter().map(|record| owned(record)).collect();
    expected.push(Owned::Broken(Fault::Truncated));
    assert_eq!(events(&whole[..whole.len() - 300]), expected);
}

#[test]
fn a_member_that_goes_on_is_held_up_to_the_limit() {
    let record = response(b"good");
    let limits = Limits {
        record: 10_000,
        ..LIMITS
    };
    for rest in [b'y', 0] {
        let damaged = damaged_member(&[&record[..], &vec![rest; 4 << 20]].concat());
        let (found, _) = read(&damaged, 1 << 20, limits);
        assert_eq!(found[0], owned(&record));
        assert!(matches!(found[1..], [Owned::Broken(_), ..]), "{found:?}");
    }
}

/// Six records. The header of the third says `length`, but its block has 700 bytes.
fn records_with_length(length: &str) -> Vec<Vec<u8>> {
    let mut records: Vec<Vec<u8>> = (0..6)
        .map(|n| response(format!("block {n}").repeat(100).as_bytes()))
        .collect();
    let text = String::from_utf8(records[2].clone()).unwrap();
    records[2] = text.replace("Content-Length: 700", length).into_bytes();
    records
}

#[test]
fn a_wrong_length_loses_no_other_record() {
    // From within the start of the record behind to beyond the file.
    for length in (705..=730).chain([1_000, 2_000, 100_000]) {
        let records = records_with_length(&format!("Content-Length: {length}"));
        let mut expected: Vec<Owned> = records.iter().map(|raw| owned(raw)).collect();
        expected[2] = Owned::Broken(Fault::Truncated);
        for layout in Layout::ALL {
            if layout != Layout::GzipBlocks {
                let found = events(&layout.file(&records));
                assert_eq!(found, expected, "{layout:?}, {length}");
            }
        }
        // Several members with several records.
        let joined = [&records[..], &records[3..]].map(|half| gzip_member(&half.concat()));
        expected.extend_from_within(3..);
        assert_eq!(events(&joined.concat()), expected);
    }
    // Too short: the rest of the block is no record.
    let records = records_with_length("Content-Length: 50");
    for layout in [Layout::Plain, Layout::GzipMembers, Layout::GzipWhole] {
        let found = events(&layout.file(&records));
        assert_eq!(found.len(), 7, "{layout:?}");
        assert!(matches!(&found[2], Owned::Record { block, .. } if block.len() == 50));
        assert_eq!(found[3], Owned::Broken(Fault::Header));
        let file = layout.file(&records);
        let mut reader = Reader::new(&file[..], LIMITS);
        for number in 0..3 {
            let Some(Event::Record(record)) = reader.next_event().unwrap() else {
                panic!("no record");
            };
            assert_eq!(record.is_cut_short, number == 2);
        }
    }
    // Cut off in the block or in the header, and followed by the next record without a line end.
    let is_lost = |records: &[Vec<u8>]| {
        let each = records
            .iter()
            .enumerate()
            .map(|(number, raw)| match number {
                2 => Owned::Broken(Fault::Truncated),
                _ => owned(raw),
            });
        let expected: Vec<Owned> = each.collect();
        for layout in [Layout::Plain, Layout::GzipMembers, Layout::GzipWhole] {
            let mut found = events(&layout.file(records));
            if found[2] == Owned::Broken(Fault::Header) {
                found[2] = Owned::Broken(Fault::Truncated);
            }
            assert_eq!(found, expected, "{layout:?}");
        }
    };
    for cut in [5, 50, 300, 720, 750] {
        let mut records = records_with_length("Content-Length: 700");
        let left = records[2].len() - cut;
        records[2].truncate(left);
        is_lost(&records);
    }
    // A valid header whose line ends as another record starts.
    let valid = record(
        "response",
        &[
            ("WARC-Target-URI", "http://a/WARC/1.0"),
            ("WARC-Date", "2026"),
        ],
        b"x",
    );
    let file = [&valid[..], &valid].concat();
    assert_eq!(events(&file), [owned(&valid), owned(&valid)]);
    // A member behind it that is damaged.
    let records = records_with_length("Content-Length: 100000");
    for rest in [damaged_member(&records[0]), b"garbage".to_vec()] {
        let last = gzip_member(&records[0]);
        let file = [gzip_member(&records.concat()), rest.clone(), last].concat();
        let found = events(&file);
        let mut expected: Vec<Owned> = records.iter().map(|raw| owned(raw)).collect();
        expected[2] = Owned::Broken(Fault::Truncated);
        assert_eq!(found[..6], expected);
        assert!(matches!(
            found[6],
            Owned::Broken(Fault::Damaged | Fault::Unknown)
        ));
        assert_eq!(found[7..], expected[..1]);
    }
    // A page that quotes a record has the right length if an empty line follows it.
    let quote = response(b"<pre>\r\nWARC/1.0\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n</pre>");
    let file = [
        &quote[..],
        b"XARC/1.0\r\nContent-Length: 1\r\n\r\nx\r\n\r\n",
        &quote,
    ]
    .concat();
    let header = Owned::Broken(Fault::Header);
    assert_eq!(events(&file), [owned(&quote), header, owned(&quote)]);
    // Above the limit, and beyond the file: what was skipped is not kept.
    let records = records_with_length("Content-Length: 70000000000");
    let found = events(&records.concat());
    assert_eq!(found[2..], [Owned::Broken(Fault::Endless)]);
}

/// Files that are made so that the same bytes are looked at again and again. They end in time.
#[test]
fn hostile_files_are_read_in_time() {
    let limits = Limits {
        record: 8 << 20,
        ..LIMITS
    };
    let megabyte = " ".repeat(1 << 20);
    let same_end: String = (0..20_000)
        .map(|n| format!("WARC/1.0\nContent-Length:{:9}\n\n", 35 * (20_000 - n) - 35))
        .collect();
    for file in [
        format!("WARC/1.0\nX:\n{}", " WARC/1.0\nWARC-:\n".repeat(100_000)),
        format!(
            "WARC/1.0\nX:\n{}",
            "x WARC/1.0\nContent-Length: 1\n".repeat(50_000)
        ),
        format!(
            "WARC/1.0\nX:\n{}\n",
            "x WARC/1.0\nWARC-Type: a\n".repeat(2_000)
        )
        .repeat(40),
        format!("{same_end}{megabyte}x"),
        "WARC/1.0\nContent-Length: 8000000\n\n".repeat(50_000),
    ] {
        let (found, _) = read(file.as_bytes(), 1 << 17, limits);
        assert!(!found.is_empty());
    }
}

#[test]
fn readers_can_move_to_another_thread() {
    fn check(_: impl Send) {}
    check(Reader::new(&b""[..], LIMITS));
    check(crate::Documents::new(crate::Choice::default(), 1));
}

#[test]
fn errors_of_the_input_are_passed_on() {
    struct Failing;
    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("disk"))
        }
    }
    let start = response(b"x");
    let input = io::BufReader::new(io::Read::chain(&start[..50], Failing));
    let error = Reader::new(input, LIMITS).next_event().unwrap_err();
    assert_eq!(error.to_string(), "disk");
}

/// Records with blocks that look like headers and line ends.
fn any_records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let block = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(0)], 0..10),
        (1_usize..3_000).prop_map(|length| b"WARC/1.0\r\n\r\n\n".repeat(length / 10)),
    ];
    let records = proptest::collection::vec(block, 0..12);
    records.prop_map(|blocks| blocks.iter().map(|block| response(block)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_are_read_as_written(
        records in any_records(),
        layout in proptest::sample::select(Layout::ALL.to_vec()),
        step in 1_usize..5_000,
    ) {
        // Blocks of a fixed size may begin with what looks like a record.
        prop_assume!(layout != Layout::GzipBlocks);
        let (found, _) = read(&layout.file(&records), step, LIMITS);
        let expected: Vec<Owned> = records.iter().map(|raw| owned(raw)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn damage_is_noticed_and_bounded(
        records in any_records(),
        layout in proptest::sample::select(Layout::ALL.to_vec()),
        step in 1_usize..5_000,
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut file = layout.file(&records);
        for (at, byte) in damage {
            if !file.is_empty() {
                let at = at.index(file.len());
                file[at] = byte;
            }
        }
        // Ends, and does not panic.
        let (found, _) = read(&file, step, LIMITS);
        // A wrong byte changes no record of a member that has no other record.
        if layout == Layout::GzipMembers {
            let is_changed = |event: &&Owned| match event {
                Owned::Record { raw, .. } => !records.contains(raw),
                Owned::Broken(_) => false,
            };
            prop_assert_eq!(found.iter().find(is_changed), None);
        }
    }

    #[test]
    fn any_bytes_come_to_an_end(file in proptest::collection::vec(any::<u8>(), 0..2_000), step in 1_usize..100) {
        read(&file, step, LIMITS);
    }
}
