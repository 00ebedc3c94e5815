use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

use super::*;
use crate::test_files::{
    DICTIONARY_BYTES, Layout, Trickle, gzip_member, noise, other_dictionary, record,
    skippable_frame, zstd_frame,
};

/// The decompressed bytes, the offsets of the members, and what is broken.
fn read(file: &[u8], step: usize) -> (Vec<u8>, Vec<u64>, Vec<Broken>) {
    let mut members = Members::new(Trickle::new(file, step), 23);
    let (mut bytes, mut offsets, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let mut output = [0; 700];
    loop {
        match members.read(&mut output).unwrap() {
            Step::Member { offset, .. } => offsets.push(offset),
            Step::Bytes(count) => bytes.extend_from_slice(&output[..count]),
            Step::MemberEnd => {}
            Step::Broken(part) => broken.push(part),
            Step::End => return (bytes, offsets, broken),
        }
    }
}

fn records() -> Vec<Vec<u8>> {
    let record = |n: usize| record("response", &[], &vec![b'a' + n as u8; n * n * 100]);
    (0..20).map(record).collect()
}

#[test]
fn every_layout_is_decompressed() {
    let records = records();
    for layout in Layout::ALL {
        let file = layout.file(&records);
        for step in [1, 10, 999, 1 << 20] {
            let (bytes, offsets, broken) = read(&file, step);
            assert!(bytes == records.concat(), "{layout:?}");
            assert!(broken.is_empty(), "{broken:?}");
            let expected = match layout {
                Layout::Plain | Layout::GzipWhole => 1,
                Layout::GzipBlocks => bytes.len().div_ceil(1_000),
                _ => 20,
            };
            assert_eq!(offsets.len(), expected, "{layout:?}");
        }
    }
}

#[test]
fn members_of_several_kinds_may_follow_each_other() {
    let (gzip, zstd) = (gzip_member(b"one"), zstd_frame(b"two", None));
    let file = [
        &b"\n"[..],
        &gzip,
        &gzip_member(b""),
        &zstd,
        &skippable_frame(0x51, &[7; 9_000]),
        &[0; 100],
    ]
    .concat();
    let (bytes, offsets, broken) = read(&file, 13);
    assert_eq!(bytes, b"onetwo");
    assert_eq!(
        (offsets.len(), offsets[0], offsets[1]),
        (3, 1, 1 + gzip.len() as u64)
    );
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(read(b"", 1), (vec![], vec![], vec![]));
}

#[test]
fn dictionaries_that_decompress_to_much_are_refused() {
    // Two frames in turns, so that neither is the current one.
    let frames = [b'1', b'2'].map(|byte| {
        let large = [
            &vec![byte; dictionary::MAX_LENGTH - 100][..],
            DICTIONARY_BYTES,
        ]
        .concat();
        skippable_frame(0x5d, &zstd_frame(&large[..dictionary::MAX_LENGTH], None))
    });
    let file = frames.concat().repeat(20);
    let mut members = Members::new(file.as_slice(), 23);
    let mut broken = 0;
    while let Step::Broken(_) = members.read(&mut [0; 10]).unwrap() {
        broken += 1;
    }
    assert_eq!(broken, 40);
    // Eight of them are decompressed, and some more because the file grows.
    let room = room_at(file.len() as u64);
    assert!(members.dictionary_bytes <= room + dictionary::MAX_LENGTH as u64);
}

#[test]
fn after_a_damaged_member_the_next_one_is_read() {
    type Compress = fn(&[u8]) -> Vec<u8>;
    let kinds: [Compress; 2] = [gzip_member, |content| zstd_frame(content, None)];
    for member in kinds {
        let content: Vec<u8> = (0..9_000_u32).map(|n| (n * n % 251) as u8).collect();
        let (first, second) = (member(b"first"), member(&content));
        // A damaged member may be decoded into the next one before that is noticed, and take it along.
        let last = member(b"last").repeat(50);
        for at in [0, 1, second.len() / 2, second.len() - 1] {
            let mut damaged = second.clone();
            damaged[at] ^= 0x55;
            let file = [&first[..], &damaged, &last].concat();
            for step in [1, 100, 1 << 20] {
                let (bytes, _, broken) = read(&file, step);
                assert!(bytes.starts_with(b"first") && bytes.ends_with(b"last"));
                let [part] = broken[..] else {
                    panic!("{broken:?}");
                };
                assert_eq!(part.place, Place::at(first.len() as u64));
            }
        }
        let (bytes, _, broken) = read(&[&first[..], &second[..50]].concat(), 7);
        assert!(bytes.starts_with(b"first"));
        let (place, fault) = (Place::at(first.len() as u64), Fault::Truncated);
        assert_eq!(broken, [Broken { place, fault }]);
    }
}

#[test]
fn a_gzip_member_without_its_end_costs_no_other_member() {
    let content = |n: u64| [b"WARC/1.0 ", &noise(n, 3_000)[..]].concat();
    let member = |n| gzip_member(&content(n));
    let second = member(2);
    for missing in [1, 4, 8, 9, 12, 20, 100, 2_000] {
        let cut = &second[..second.len() - missing];
        let file = [&member(1)[..], cut, &member(3), &member(4)].concat();
        for step in [1, 300, 1 << 20] {
            let (bytes, _, broken) = read(&file, step);
            assert!(bytes.starts_with(&content(1)), "{missing}");
            assert!(
                bytes.ends_with(&[content(3), content(4)].concat()),
                "{missing}"
            );
            let [part] = broken[..] else {
                panic!("{missing}: {broken:?}");
            };
            assert_eq!(part.place, Place::at(member(1).len() as u64));
        }
    }
}

/// Each member is broken, and has the start of the next one in its data.
#[test]
fn members_within_each_other_are_not_read_again_and_again() {
    // A header, and a block of 65,535 bytes as they are.
    let start = [GZIP_MAGIC, &[0, 0, 0, 0, 0, 0, 3], &[0, 0xff, 0xff, 0, 0]].concat();
    let file = start.repeat(300_000);
    let mut members = Members::new(&file[..], 23);
    let (mut output, mut steps) = (vec![0; 1 << 16], 0);
    while members.read(&mut output).unwrap() != Step::End {
        steps += 1;
    }
    assert!(members.read_again <= room_at(file.len() as u64) + (1 << 21));
    assert!(steps > 100);
}

#[test]
fn what_is_no_member_is_skipped_up_to_the_first_one() {
    let fault = Fault::Unknown;
    for file in [
        [&b"<html>"[..], &gzip_member(b"WARC/1.0")[..]].concat(),
        [&b"<html>"[..], &zstd_frame(b"WARC/1.0", None)[..]].concat(),
    ] {
        for step in [1, 5_000] {
            let place = Place::at(0);
            let broken = vec![Broken { place, fault }];
            assert_eq!(read(&file, step), (b"WARC/1.0".to_vec(), vec![6], broken));
        }
    }
    let plain = [&[b'x'; 10_000][..], b"\nWARC/1.0\r\n"].concat();
    let (bytes, offsets, broken) = read(&plain, 3_000);
    assert_eq!((bytes, offsets), (b"WARC/1.0\r\n".to_vec(), vec![10_001]));
    assert_eq!(broken.len(), 1);
    let (bytes, offsets, broken) = read(&[b'x'; 10_000], 3_000);
    assert_eq!((bytes.len(), offsets.len(), broken.len()), (0, 0, 1));
}

#[test]
fn a_broken_dictionary_is_reported() {
    let frame = zstd_frame(b"text", None);
    for dictionary in [&b"no dictionary"[..], &DICTIONARY_BYTES[..100]] {
        let file = [skippable_frame(0x5d, dictionary), frame.clone()].concat();
        let (bytes, _, broken) = read(&file, 10);
        assert_eq!(bytes, b"text");
        let (place, fault) = (Place::at(0), Fault::Damaged);
        assert_eq!(broken, [Broken { place, fault }]);
    }
    let (_, _, broken) = read(&skippable_frame(0x5d, DICTIONARY_BYTES)[..500], 10);
    let (place, fault) = (Place::at(0), Fault::Truncated);
    assert_eq!(broken, [Broken { place, fault }]);
}

/// The damage of one member does not make members of what its record holds.
#[test]
fn members_within_a_damaged_member_are_none() {
    let inner: Vec<u8> = (0..12)
        .flat_map(|n| gzip_member(&record("response", &[], &noise(n, 900))))
        .collect();
    // The outer member stores its content uncompressed, so the inner members are found among its bytes.
    let outer = record("response", &[], &[&noise(99, 500), &inner[..]].concat());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(&outer).unwrap();
    let member = encoder.finish().unwrap();
    assert!(memchr::memmem::find(&member, &inner[..2_000]).is_some());
    let content = |n| record("response", &[], &noise(n, 700));
    let next = [gzip_member(&content(50)), gzip_member(&content(51))].concat();
    let after = [content(50), content(51)].concat();
    let mut wrong_checksum = member.clone();
    let at = wrong_checksum.len() - 6;
    wrong_checksum[at] ^= 1;
    for damaged in [wrong_checksum, member[..member.len() - 3].to_vec()] {
        let file = [&gzip_member(b"WARC/1.0")[..], &damaged, &next].concat();
        for step in [1, 999, 1 << 20] {
            let (bytes, offsets, broken) = read(&file, step);
            assert!(bytes == [&b"WARC/1.0"[..], &outer, &after].concat());
            assert_eq!((offsets.len(), broken.len()), (4, 1));
        }
    }
}

#[test]
fn a_zstd_frame_without_its_end_costs_no_other_frame() {
    let content = |n: u64| [b"WARC/1.0 ", &noise(n, 3_000)[..]].concat();
    let frame = |n| zstd_frame(&content(n), None);
    let second = frame(2);
    for missing in [1, 4, 8, 100, 2_000] {
        let cut = &second[..second.len() - missing];
        let file = [&frame(1)[..], cut, &frame(3), &frame(4)].concat();
        for step in [1, 300, 1 << 20] {
            let (bytes, _, broken) = read(&file, step);
            assert!(bytes.starts_with(&content(1)), "{missing}");
            let rest = [content(3), content(4)].concat();
            assert!(bytes.ends_with(&rest), "{missing} {step}");
            assert_eq!(broken.len(), 1, "{missing}: {broken:?}");
        }
    }
}

#[test]
fn all_blocks_before_damage_in_a_zstd_frame_are_read() {
    // Hexadecimal digits: blocks of 128 KiB that are compressed to half.
    let digits = |byte: u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[digit as usize]);
    let content: Vec<u8> = noise(1, 600_000).into_iter().flat_map(digits).collect();
    let frame = zstd_frame(&content, None);
    let mut damaged = frame.clone();
    let at = frame.len() * 4 / 5;
    // With headers of blocks: what they say does not exist.
    damaged[at..at + 100_000].fill(0xff);
    for step in [999, 100_000, 1 << 20] {
        let file = [&damaged[..], &zstd_frame(b"last", None)].concat();
        let (bytes, _, broken) = read(&file, step);
        let start = bytes.strip_suffix(b"last").unwrap();
        assert!(content.starts_with(start), "{step}");
        assert!(
            start.len() > content.len() * 4 / 5 - (256 << 10),
            "{step}: {}",
            start.len()
        );
        assert_eq!(broken.len(), 1);
    }
}

#[test]
fn a_long_member_without_its_end_costs_no_other_member() {
    let content = |n: u64, length| [b"WARC/1.0 ", &noise(n, length)[..]].concat();
    let last: Vec<Vec<u8>> = (10..14).map(|n| content(n, 2_000)).collect();
    let members: Vec<u8> = last
        .iter()
        .flat_map(|content| gzip_member(content))
        .collect();
    for length in [1_500_000, 5_000_000] {
        let long = gzip_member(&content(1, length));
        for missing in [4, 20, 100_000] {
            let file = [&long[..long.len() - missing], &members].concat();
            let (bytes, _, broken) = read(&file, 128 << 10);
            assert!(bytes.ends_with(&last.concat()), "{length} {missing}");
            assert_eq!(broken.len(), 1);
        }
    }
}

/// Joined files, each with its dictionary; the last frame of the first one is damaged.
#[test]
fn a_dictionary_behind_a_damaged_frame_is_used() {
    let other = other_dictionary();
    let content = |n: u64| record("response", &[], &noise(n, 600));
    for is_compressed in [false, true] {
        let mut file = Vec::new();
        let mut end_of_first = 0;
        let parts = [
            (0, DICTIONARY_BYTES),
            (10, &other[..]),
            (20, DICTIONARY_BYTES),
        ];
        for (first, dictionary) in parts {
            if first == 10 {
                end_of_first = file.len();
            }
            let stored = if is_compressed {
                zstd_frame(dictionary, None)
            } else {
                dictionary.to_vec()
            };
            file.extend(skippable_frame(0x5d, &stored));
            for n in first..first + 10 {
                file.extend(zstd_frame(&content(n), Some(dictionary)));
            }
        }
        let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut start = file[..end_of_first].to_vec();
            change(&mut start);
            [&start, &file[end_of_first..]].concat()
        };
        let flipped = damaged(&|start| start[end_of_first - 2] ^= 1);
        let cut = damaged(&|start| start.truncate(end_of_first - 10));
        for file in [flipped, cut] {
            let (bytes, _, broken) = read(&file, 1 << 17);
            let others: Vec<u8> = (10..30).flat_map(content).collect();
            assert!(bytes.ends_with(&others), "{is_compressed} {broken:?}");
            assert_eq!(broken.len(), 1, "{broken:?}");
        }
        // The magic number of the first frame behind the first dictionary.
        let stored = Dictionary::frame_length(&file).unwrap();
        let mut damaged = file.clone();
        damaged[stored..stored + 4].fill(0);
        let (bytes, _, broken) = read(&damaged, 1 << 17);
        let others: Vec<u8> = (1..30).flat_map(content).collect();
        assert!(bytes == others, "{is_compressed} {broken:?}");
        assert_eq!(broken.len(), 1, "{broken:?}");
    }
}

#[test]
fn a_skippable_frame_with_a_wrong_length_costs_no_other_frame() {
    let frames: Vec<u8> = (0..20)
        .flat_map(|n| zstd_frame(&record("response", &[], &noise(n, 2_000)), None))
        .collect();
    let good = read(&frames, 1 << 17).0;
    for length in [5_u32, 5_000, 1 << 20, u32::MAX] {
        let header = [&[0x51, 0x2a, 0x4d, 0x18][..], &length.to_le_bytes()].concat();
        let first = zstd_frame(b"WARC/1.0", None);
        let (bytes, _, broken) = read(&[&first[..], &header, &frames].concat(), 1 << 17);
        assert!(bytes == [b"WARC/1.0", &good[..]].concat(), "{length}");
        assert_eq!(broken.len(), 1);
    }
}

/// The middle of a file, or a byte order mark before it: the body of a response, which is compressed, does not make it a gzip file.
#[test]
fn a_plain_file_that_starts_with_something_else_stays_plain() {
    let body = gzip_member(&noise(1, 900));
    let records = [
        record("response", &[], &body),
        record("response", &[], b"x"),
    ]
    .concat();
    let faults = [("\u{feff}", 0), (" \t", 0), ("end of a record\r\n\r\n", 1)];
    for (start, faults) in faults {
        let (bytes, offsets, broken) = read(&[start.as_bytes(), &records].concat(), 5_000);
        assert!(bytes == records, "{start}");
        assert_eq!((offsets, broken.len()), (vec![start.len() as u64], faults));
    }
    // The start of the first record is missing, or within a line.
    for file in [records[150..].to_vec(), [b"x", &records[..]].concat()] {
        let (bytes, _, broken) = read(&file, 5_000);
        assert!(bytes == record("response", &[], b"x"));
        assert_eq!(broken.len(), 1);
    }
}

/// Members within each other, all with the same end of a few bytes, which decompresses to much: it is not decompressed for each.
#[test]
fn a_long_member_is_not_decompressed_again_and_again() {
    let (starts, length) = (2_000, 15);
    let mut file = Vec::new();
    for start in 0..starts {
        // A block with the bytes of the other starts as they are.
        let left = ((starts - start - 1) * length) as u16;
        file.extend([GZIP_MAGIC, &[0, 0, 0, 0, 0, 0, 3], &[0]].concat());
        file.extend([left.to_le_bytes(), (!left).to_le_bytes()].concat());
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&vec![0; 50 << 20]).unwrap();
    encoder.flush().unwrap();
    // And a block of a type that does not exist.
    file.extend([encoder.get_ref(), &[0xff; 20][..]].concat());
    let mut members = Members::new(&file[..], 23);
    let (mut output, mut decompressed) = (vec![0; 1 << 16], 0_u64);
    loop {
        match members.read(&mut output).unwrap() {
            Step::Bytes(count) => decompressed += count as u64,
            Step::End => break,
            _ => {}
        }
    }
    assert!(
        (50 << 20..400 << 20).contains(&decompressed),
        "{decompressed}"
    );
}
