//! Finds where a member starts among bytes that are none.

use memchr::memmem;

use super::{Dictionary, Format, gzip, zstd_frame};
use crate::headers::{START_LENGTH, is_record_start};

/// The most bytes that [`find_member_or_dictionary`] must see to recognise a start.
pub(super) const LONGEST_START: usize = Dictionary::FRAME_START_LENGTH;
const _: () = assert!(LONGEST_START >= gzip::HEADER_LENGTH && LONGEST_START > START_LENGTH);

/// Where the first member in `bytes` starts: of this format, or of any.
pub(crate) fn find_member(bytes: &[u8], format: Option<Format>) -> Option<usize> {
    match format {
        Some(Format::Gzip) => find_gzip(bytes),
        Some(Format::Zstd) => find_zstd(bytes),
        Some(Format::Plain) => find_plain(bytes),
        None => {
            let all = [find_gzip(bytes), find_zstd(bytes), find_plain(bytes)];
            all.into_iter().flatten().min()
        }
    }
}

fn find_gzip(bytes: &[u8]) -> Option<usize> {
    memmem::find_iter(bytes, &gzip::MAGIC).find(|at| gzip::is_usual_header(&bytes[*at..]))
}

fn find_zstd(bytes: &[u8]) -> Option<usize> {
    // The byte after the magic number has a bit that must be zero.
    let is_frame = |at: &usize| matches!(bytes.get(at + 4), Some(flags) if flags & 0x08 == 0);
    memmem::find_iter(bytes, &zstd_frame::MAGIC).find(is_frame)
}

/// Where a line starts that is the start of a record. A record's start within a line does not count: compressed data may have one, as
/// literal bytes.
fn find_plain(bytes: &[u8]) -> Option<usize> {
    let mut starts = memmem::find_iter(bytes, b"\nWARC/").map(|at| at + 1);
    starts.find(|at| is_record_start(&bytes[*at..]))
}

/// Where the first member in `bytes` starts, or a dictionary that members behind it need.
pub(super) fn find_member_or_dictionary(bytes: &[u8], format: Option<Format>) -> Option<usize> {
    let member = find_member(bytes, format);
    if let Some(Format::Gzip | Format::Plain) = format {
        return member;
    }
    let before = &bytes[..member.unwrap_or(bytes.len())];
    let marks = memmem::find_iter(before, &zstd_frame::SKIPPABLE);
    let mut starts = marks.filter_map(|at| at.checked_sub(1));
    let dictionary = starts.find(|&at| Dictionary::is_frame_start(&bytes[at..]));
    dictionary.or(member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{DICTIONARY_BYTES, gzip_member, skippable_frame, zstd_frame};

    #[test]
    fn members_are_found_among_other_bytes() {
        let (gzip, zstd) = (gzip_member(b"x"), zstd_frame(b"x", None));
        let plain = b"\nWARC/1.1\r\n".to_vec();
        for (format, member, at) in [
            (Format::Gzip, &gzip, 0),
            (Format::Zstd, &zstd, 0),
            (Format::Plain, &plain, 1),
        ] {
            let mut bytes = b"WARC/1.0 \x1f\x8b\x08 \x28\xb5\x2f\xfd\x08".to_vec();
            let length = bytes.len();
            bytes.extend_from_slice(member);
            for expected in [Some(format), None] {
                assert_eq!(find_member(&bytes, expected), Some(length + at));
            }
            for other in [Format::Gzip, Format::Zstd, Format::Plain] {
                if other != format {
                    assert_eq!(find_member(&bytes, Some(other)), None);
                }
            }
            assert_eq!(find_member(&bytes[..length], None), None);
        }
    }

    #[test]
    fn the_start_of_a_member_is_recognised_by_its_first_bytes() {
        for member in [
            gzip_member(b"x"),
            zstd_frame(b"x", None),
            b"\nWARC/1.1\r\n".to_vec(),
            skippable_frame(0x5d, DICTIONARY_BYTES),
        ] {
            let start = &member[..member.len().min(LONGEST_START)];
            assert!(find_member_or_dictionary(start, None).is_some());
        }
    }
}
