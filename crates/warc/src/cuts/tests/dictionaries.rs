//! Files with a dictionary, and such files that were joined.

use super::*;
use crate::test_files::{DICTIONARY_BYTES, other_dictionary};

/// Writes a frame with a dictionary.
type WriteFrame = fn(&[u8], &[u8]) -> Vec<u8>;

fn checked_frame(content: &[u8], dictionary: &[u8]) -> Vec<u8> {
    zstd_frame(content, Some(dictionary))
}

fn unchecked_frame(content: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    compressor.compress(content).unwrap()
}

/// A file that starts with this dictionary.
fn file_with(dictionary: &[u8], write: WriteFrame) -> Vec<u8> {
    let records = small_records().into_iter();
    let frames = records.flat_map(|record| write(&record, dictionary));
    let start = skippable_frame(0x5d, dictionary).into_iter();
    start.chain(frames).collect()
}

#[test]
fn the_whole_dictionary_is_needed_to_cut_a_file() {
    let file = file_with(DICTIONARY_BYTES, checked_frame);
    let length = Dictionary::frame_length(&file).unwrap();
    let first = checked_frame(&small_records()[0], DICTIONARY_BYTES).len();
    for (seen, is_cut) in [
        (length - 1, false),
        (length, false),
        (length + first, false),
        (length + first + 10, true),
    ] {
        assert_eq!(Cuts::of_file(&file[..seen], 23).is_some(), is_cut, "{seen}");
    }
    let frames = &file[length..];
    let members = gzip_member(&response(b"one")).repeat(3);
    for (content, rest) in [
        (&b"no dictionary"[..], frames),
        (DICTIONARY_BYTES, &members[..]),
    ] {
        let file = [&skippable_frame(0x5d, content)[..], rest].concat();
        assert_eq!(Cuts::of_file(&file, 23), None);
    }
}

#[test]
fn a_compressed_dictionary_is_used_in_chains() {
    let content = zstd_frame(DICTIONARY_BYTES, None);
    let frames = file_with(DICTIONARY_BYTES, checked_frame).split_off(DICTIONARY_BYTES.len() + 8);
    let file = [skippable_frame(0x5d, &content), frames].concat();
    let found = find_all(&file, &member_cuts(&file), 1);
    assert_eq!(found, offsets(&file));
    assert_eq!(found.len(), small_records().len());
    check_parts(&file, &found);
}

#[test]
fn joined_files_with_the_same_dictionary_are_cut_at_each_record() {
    let file = file_with(DICTIONARY_BYTES, checked_frame).repeat(3);
    let found = find_all(&file, &member_cuts(&file), 5);
    assert_eq!(found, offsets(&file));
    assert_eq!(found.len(), 3 * small_records().len());
    check_parts(&file, &found);
}

/// The dictionaries have the same id, so that a decoder takes the wrong one.
#[test]
fn a_part_must_not_end_with_another_dictionary() {
    let writes: [WriteFrame; 2] = [checked_frame, unchecked_frame];
    for write in writes {
        let first = file_with(DICTIONARY_BYTES, write);
        let other = file_with(&other_dictionary(), write);
        let none = Layout::ZstdFrames.file(&small_records());
        // Which of the joined files need the dictionary that the whole file starts with.
        for (files, need_first) in [
            (vec![&first, &other], vec![true, false]),
            (vec![&first, &other, &first], vec![true, false, true]),
            (vec![&none, &first], vec![true, false]),
        ] {
            let file: Vec<u8> = files.into_iter().flatten().copied().collect();
            let (whole, end) = (read_all(&file), file.len() as u64);
            let cuts: Vec<u64> = offsets(&file).into_iter().collect();
            assert_eq!(whole.len(), need_first.len() * small_records().len());
            assert_eq!(whole.len(), cuts.len());
            let needs_first = |number: usize| need_first[number / small_records().len()];
            for (number, &at) in cuts.iter().enumerate() {
                let (before, behind) = (read(&file, 0..at), read(&file, at..end).unwrap());
                if needs_first(number) {
                    assert!([before.unwrap(), behind].concat() == whole, "{at}")
                } else {
                    assert!(!whole.ends_with(&behind), "{at}");
                    let error = before.unwrap_err().downcast::<WrongCut>().unwrap();
                    assert_eq!(error, WrongCut { offset: at });
                }
            }
            // A part may have all of a file with another dictionary.
            let places = (1..cuts.len()).filter(|number| needs_first(*number));
            let places: BTreeSet<u64> = places.map(|number| cuts[number]).collect();
            check_parts(&file, &places);
        }
    }
}

#[test]
fn a_checksum_breaks_a_chain_behind_another_dictionary() {
    let first = file_with(DICTIONARY_BYTES, checked_frame);
    let other = file_with(&other_dictionary(), checked_frame);
    let file = [&first[..], &other, &first].concat();
    let found = find_all(&file, &member_cuts(&file), 5);
    // Chains of the first file break at the other dictionary, too.
    let expected = offsets(&file).split_off(&((first.len() + other.len()) as u64));
    assert_eq!(expected.len(), small_records().len());
    assert_eq!(found, expected);
    check_parts(&file, &found);
}
