use proptest::prelude::*;

use super::*;
use crate::headers::RecordType;
use crate::test_files::{Layout, Trickle, gzip_member, record};

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

/// The events of a file, and their offsets.
fn read(file: &[u8], step: usize, limits: Limits) -> (Vec<Owned>, Vec<u64>) {
    let mut reader = Reader::new(Trickle::new(file, step), limits);
    let (mut events, mut offsets) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().unwrap() {
        let (owned, offset) = match event {
            Event::Record(record) => {
                let (block, raw) = (record.block.to_vec(), record.raw.to_vec());
                (Owned::Record { block, raw }, record.offset)
            }
            Event::Broken(broken) => (Owned::Broken(broken.fault), broken.offset),
        };
        events.push(owned);
        offsets.push(offset);
        // Each event takes a decompressed byte at least, and a byte of the file is never more than 1,032 of those.
        assert!(events.len() <= 1_032 * file.len(), "no end");
    }
    assert!(reader.next_event().unwrap().is_none());
    (events, offsets)
}

/// The events of a file, which are the same whatever the size of the source's buffer.
fn events(file: &[u8]) -> Vec<Owned> {
    let (events, offsets) = read(file, 1 << 20, LIMITS);
    for step in [1, 11, 500] {
        assert_eq!(read(file, step, LIMITS), (events.clone(), offsets.clone()));
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
                        Owned::Broken(fault) => panic!("{layout:?}: {fault}"),
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
fn offsets_are_those_of_records_and_members() {
    let records: Vec<Vec<u8>> = (0..5)
        .map(|n| response(&[b'x'; 2_000][..n * 400]))
        .collect();
    let starts = |sizes: &mut dyn Iterator<Item = usize>| -> Vec<u64> {
        let mut next = 0;
        sizes
            .map(|size| {
                next += size as u64;
                next - size as u64
            })
            .collect()
    };
    for step in [1, 100, 1 << 20] {
        let (_, offsets) = read(&records.concat(), step, LIMITS);
        assert_eq!(offsets, starts(&mut records.iter().map(Vec::len)));
        let file = Layout::GzipMembers.file(&records);
        let (_, offsets) = read(&file, step, LIMITS);
        let mut sizes = records.iter().map(|record| gzip_member(record).len());
        assert_eq!(offsets, starts(&mut sizes));
        let (_, offsets) = read(&Layout::GzipWhole.file(&records), step, LIMITS);
        assert_eq!(offsets, [0; 5]);
    }
}

#[test]
fn headers_are_lent_with_the_record() {
    let file = gzip_member(&response(b"body"));
    let mut reader = Reader::new(&file[..], LIMITS);
    let Some(Event::Record(record)) = reader.next_event().unwrap() else {
        panic!("no record");
    };
    assert_eq!(record.headers.record_type(), RecordType::Response);
    assert_eq!(record.headers.target_uri().as_deref(), Some("http://a/"));
    assert_eq!((record.offset, record.block), (0, &b"body"[..]));
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
                Owned::Broken(fault) => panic!("{between:?}: {fault}"),
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
            assert!(found.len() <= 1);
        }
    }
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
    assert_eq!(events(&members), [too_long.clone(), owned(&good), too_long]);
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
    let mut damaged = member.clone();
    damaged[member.len() - 6] ^= 1;
    let file = [&member[..], &damaged, &member].concat();
    let expected = [
        owned(&record),
        Owned::Broken(Fault::Damaged),
        owned(&record),
    ];
    assert_eq!(events(&file), expected);
    let (_, offsets) = read(&file, 100, LIMITS);
    assert_eq!(offsets[1], member.len() as u64);
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
        let damages = damage.len();
        for (at, byte) in damage {
            if !file.is_empty() {
                let at = at.index(file.len());
                file[at] = byte;
            }
        }
        // Ends, and does not panic.
        let (found, _) = read(&file, step, LIMITS);
        // In a compressed file, a wrong byte changes one record at most: that of a member that seems to go on after it, as
        // members of many records do, so that the record comes before the checksum.
        if !matches!(layout, Layout::Plain | Layout::GzipWhole | Layout::GzipBlocks) {
            let is_changed = |event: &&Owned| match event {
                Owned::Record { raw, .. } => !records.contains(raw),
                Owned::Broken(_) => false,
            };
            prop_assert!(found.iter().filter(is_changed).count() <= damages);
        }
    }

    #[test]
    fn any_bytes_come_to_an_end(file in proptest::collection::vec(any::<u8>(), 0..2_000), step in 1_usize..100) {
        read(&file, step, LIMITS);
    }
}
