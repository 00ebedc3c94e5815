//! Named fields, as in the headers of WARC records and HTTP responses.
//!
//! [`FieldTable`] finds the fields of a header and is reused for the next one; [`Headers`] is a header and its fields.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use memchr::{memchr, memmem};

/// How a record starts, before a `0` or a `1` and a point.
pub(crate) const PREFIX: &[u8] = b"WARC/";
/// The bytes that [`is_record_start`] looks at.
pub(crate) const START_LENGTH: usize = PREFIX.len() + 2;
/// What [`is_record_start`] accepts.
pub(crate) const STARTS: [&[u8; START_LENGTH]; 2] = [b"WARC/0.", b"WARC/1."];
/// The most fields of a header; the reader ignores those after them.
const MAX_FIELDS: usize = 4096;

/// Whether `bytes` start with the version of a record: `WARC/1.0`, `WARC/1.1`, or one before 1.0, as in the ClueWeb crawls.
pub(crate) fn is_record_start(bytes: &[u8]) -> bool {
    STARTS.iter().any(|start| bytes.starts_with(*start))
}

/// The bytes that [`is_record_start_in_line`] looks at.
pub(crate) const LINE_START_LENGTH: usize = START_LENGTH + 1 + 2 + FIELD_NAMES[1].len();
/// How the names of a record's first fields begin.
const FIELD_NAMES: [&[u8]; 2] = [b"WARC-", b"Content-"];

/// Whether `bytes` start with the version of a record, the end of the line, and a field of a record. Such bytes may be the start of
/// a record even within a line: behind a record that is cut off.
pub(crate) fn is_record_start_in_line(bytes: &[u8]) -> bool {
    let is_name = |rest: &[u8]| FIELD_NAMES.iter().any(|name| starts_with(rest, name));
    is_record_start(bytes)
        && match &bytes[START_LENGTH..] {
            [b'0'..=b'9', b'\r', b'\n', rest @ ..] | [b'0'..=b'9', b'\n', rest @ ..] => {
                is_name(rest)
            }
            _ => false,
        }
}

/// Whether `bytes` start with `start`, in either case.
pub(crate) fn starts_with(bytes: &[u8], start: &[u8]) -> bool {
    let found = bytes.get(..start.len());
    found.is_some_and(|found| found.eq_ignore_ascii_case(start))
}

/// Whether a byte may stand between records: white space, or the zeros of padding.
pub(crate) fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

/// Where the name and the value of a field are in the header. The value has all its lines, and white space around it.
#[derive(Debug)]
struct Field {
    name: Range<usize>,
    value: Range<usize>,
}

/// The fields of a header, and how far it is scanned.
#[derive(Debug, Default)]
pub(crate) struct FieldTable {
    fields: Vec<Field>,
    next_line: usize,
}

/// What [`FieldTable::scan`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The header is whole, and this long, with the empty line.
    Whole(usize),
    /// The bytes end within the header.
    Partial,
    /// Another record starts within the header.
    Cut,
}

impl FieldTable {
    /// Forgets the last header.
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.next_line = 0;
    }

    /// Scans the header that `bytes` start with. After `Partial`, call it with the same bytes and more.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Scan {
        while let Some(length) = memchr(b'\n', &bytes[self.next_line..]) {
            let start = self.next_line;
            self.next_line += length + 1;
            let line = &bytes[start..start + length];
            // Files that were converted twice have several carriage returns.
            let end = line.iter().rposition(|byte| *byte != b'\r');
            let line = &line[..end.map_or(0, |at| at + 1)];
            match line.first() {
                None => return Scan::Whole(self.next_line),
                // The first line is the version of the record, or the status of the response.
                Some(_) if start == 0 => {}
                Some(b' ' | b'\t') => {
                    if let Some(field) = self.fields.last_mut() {
                        field.value.end = start + line.len();
                    }
                }
                Some(_) if is_record_start(line) => return Scan::Cut,
                Some(_) => {
                    if let Some(colon) = memchr(b':', line)
                        && self.fields.len() < MAX_FIELDS
                    {
                        self.fields.push(Field {
                            name: start..start + colon,
                            value: start + colon + 1..start + line.len(),
                        });
                    }
                }
            }
        }
        Scan::Partial
    }

    /// The fields of the last header, whose bytes are the start of `bytes`.
    pub(crate) fn headers<'a>(&'a self, bytes: &'a [u8]) -> Headers<'a> {
        Headers {
            bytes,
            fields: &self.fields,
        }
    }
}

/// A header, and where its fields are. Names are compared without case; of several fields of one name, the first counts.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    fields: &'a [Field],
}

impl<'a> Headers<'a> {
    /// Where another record starts within a line of this header, which is cut off there: fields that a record has once are repeated.
    pub(crate) fn cut_off_at(&self) -> Option<usize> {
        let once = ["WARC-Type", "WARC-Record-ID", "WARC-Date", "Content-Length"];
        if !once.iter().any(|name| self.values(name).nth(1).is_some()) {
            return None;
        }
        let behind_start = memmem::find_iter(self.bytes, PREFIX).skip(1);
        let starts = behind_start.filter(|&at| is_record_start_in_line(&self.bytes[at..]));
        starts.last()
    }

    /// The value of a field as text: its lines joined by spaces, invalid UTF-8 replaced.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get_bytes(name).map(to_text)
    }

    /// The value of a field as it is in the header, without white space around it.
    pub fn get_bytes(&self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// The values of all fields of a name, in the header's order, without white space around them.
    pub(crate) fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let bytes = self.bytes;
        let is_name = move |field: &&Field| {
            let found = bytes[field.name.clone()].trim_ascii_end();
            found.eq_ignore_ascii_case(name.as_bytes())
        };
        let fields = self.fields.iter().filter(is_name);
        fields.map(move |field| bytes[field.value.clone()].trim_ascii())
    }

    /// The value of the field `WARC-Type`, such as `response`; empty if the record has no such field.
    pub fn record_type(&self) -> &'a [u8] {
        self.get_bytes("WARC-Type").unwrap_or_default()
    }

    /// The id of the record, by `WARC-Record-ID`, without angle brackets: `urn:uuid:…` as a rule.
    pub fn record_id(&self) -> Option<Cow<'a, str>> {
        self.get_bytes("WARC-Record-ID")
            .map(to_text_without_brackets)
    }

    /// The URI that the record is about, by `WARC-Target-URI`, without the angle brackets that some writers add.
    pub fn target_uri(&self) -> Option<Cow<'a, str>> {
        self.get_bytes("WARC-Target-URI")
            .map(to_text_without_brackets)
    }

    /// Bytes of the block, by `Content-Length`; `None` if it is no number.
    pub fn content_length(&self) -> Option<u64> {
        let digits = self.get_bytes("Content-Length")?;
        number(digits).filter(|_| !digits.is_empty())
    }
}

/// A value of a field as text, with its lines joined by spaces.
fn to_text(value: &[u8]) -> Cow<'_, str> {
    if memchr(b'\n', value).is_none() {
        return percent_encoded(value);
    }
    let lines = value.split(|byte| *byte == b'\n');
    let lines: Vec<Cow<'_, str>> = lines
        .map(|line| percent_encoded(line.trim_ascii()))
        .collect();
    Cow::Owned(lines.join(" "))
}

/// An id, or a URL, as text: bytes that are not UTF-8 are written as URLs write them, `%F1`, so that different ones stay different.
pub fn percent_encoded(value: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(value) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(value.len() + 16);
    for chunk in value.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Cow::Owned(text)
}

fn to_text_without_brackets(value: &[u8]) -> Cow<'_, str> {
    match value {
        [b'<', inner @ .., b'>'] => to_text(inner),
        _ => to_text(value),
    }
}

/// The number that these digits write; zero if there are none.
pub(crate) fn number<N: TryFrom<u64>>(digits: &[u8]) -> Option<N> {
    let number = digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    N::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_headers<T>(text: &str, read: impl FnOnce(Headers<'_>) -> T) -> T {
        let mut table = FieldTable::default();
        assert_eq!(table.scan(text.as_bytes()), Scan::Whole(text.len()));
        read(table.headers(text.as_bytes()))
    }

    #[test]
    fn fields_are_found_whatever_their_case_and_spaces() {
        let text = "WARC/1.1\r\nwarc-type: Response\r\nWARC-Record-ID:<urn:uuid:1>\r\n\
            WARC-Target-URI : <http://a/> \r\nnonsense\r\nContent-Length:\t12 \r\n\
            WARC-Date: 2026-01-31T10:00:00Z\r\ncontent-length: 13\r\nempty:\r\n\r\n";
        with_headers(text, |headers| {
            assert_eq!(headers.record_type(), b"Response");
            assert_eq!(headers.record_id().as_deref(), Some("urn:uuid:1"));
            assert_eq!(headers.target_uri().as_deref(), Some("http://a/"));
            assert_eq!(headers.content_length(), Some(12));
            assert_eq!(headers.values("Content-Length").count(), 2);
            assert_eq!(headers.get("Empty").as_deref(), Some(""));
            assert_eq!(headers.get("nonsense"), None);
        });
    }

    #[test]
    fn a_field_may_have_several_lines_and_lines_may_end_without_a_carriage_return() {
        let text = "WARC/1.0\nWARC-Record-ID: <urn:\n\tuuid:\r\n  1>\nA: b\n\n";
        with_headers(text, |headers| {
            assert_eq!(headers.record_id().as_deref(), Some("urn: uuid: 1"));
            assert_eq!(headers.get("a").as_deref(), Some("b"));
        });
    }

    #[test]
    fn a_line_may_end_with_several_carriage_returns() {
        let text = "WARC/1.0\r\r\nContent-Length: 3\r\r\nA: b\r\r\n\tc\r\r\n\r\r\n";
        with_headers(text, |headers| {
            assert_eq!(headers.content_length(), Some(3));
            assert_eq!(headers.get("A").as_deref(), Some("b c"));
        });
    }

    #[test]
    fn a_header_may_come_in_parts() {
        let text = b"WARC/1.0\r\nA: b\r\n c\r\nD: e\r\n\r\nblock";
        let end = text.len() - 5;
        let mut table = FieldTable::default();
        for length in 0..text.len() {
            let expected = if length < end {
                Scan::Partial
            } else {
                Scan::Whole(end)
            };
            assert_eq!(table.scan(&text[..length]), expected);
            if expected == Scan::Whole(end) {
                break;
            }
        }
        let headers = table.headers(&text[..end]);
        assert_eq!(headers.get("a").as_deref(), Some("b c"));
        assert_eq!(headers.get("D").as_deref(), Some("e"));
    }

    #[test]
    fn a_record_within_a_header_cuts_it() {
        let mut table = FieldTable::default();
        let text = b"WARC/1.0\r\nA: b\r\nWARC/1.0\r\nA: c\r\n\r\n";
        assert_eq!(table.scan(text), Scan::Cut);
    }

    #[test]
    fn lengths_are_numbers() {
        let length = |value: &str| {
            let text = format!("WARC/1.0\r\nContent-Length: {value}\r\n\r\n");
            with_headers(&text, |headers| headers.content_length())
        };
        assert_eq!(length("0"), Some(0));
        assert_eq!(length("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "-1", "+1", "1 2", "0x1", "18446744073709551616"] {
            assert_eq!(length(bad), None, "{bad}");
        }
    }
}
