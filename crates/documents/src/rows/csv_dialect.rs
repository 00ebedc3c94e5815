//! The dialect of CSV: what separates the fields, and what quotes them, as the start of a file says it.
//!
//! A quote that opens where none is meant swallows the rows up to the next one, and no reader notices. So a quote counts only if
//! the start of the file is right with it: each record has as many fields as the header, and nothing follows a closing quote.

use csv_core::ReadRecordResult;

use super::csv_quotes::Quotes;
use super::dialect::{Dialect, Quote};
use super::format::MAX_FIELDS;

/// What may separate the fields; of two that a header has as often, the first.
pub(super) const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

impl Dialect {
    /// The dialect of a file that begins with `start`, and is longer unless `is_whole`. The delimiter and the quote are found unless
    /// they are given. Only fields that tabs separate may begin with quotes that are characters like others: programs that write
    /// commas quote the fields that need it.
    pub(super) fn find(
        start: &[u8],
        is_whole: bool,
        delimiter: Option<u8>,
        quote: Option<Quote>,
    ) -> Self {
        let (separator, start) = start.split_at(separator_line(start));
        let said = || Some(*without_line_end(separator).last()?);
        let delimiter = delimiter.or_else(said);
        let delimiter = delimiter.unwrap_or_else(|| delimiter_of(start));
        let plain = Self {
            quote: None,
            ..Self::quoted(delimiter)
        };
        let quoted = match quote {
            Some(Quote::None) => return plain,
            Some(Quote::Byte(quote)) => Self {
                quote: Some(quote),
                ..Self::quoted(delimiter)
            },
            None => Self::quoted(delimiter),
        };
        let escaped = Self {
            escape: Some(b'\\'),
            ..quoted
        };
        let records = quoted.records(start, is_whole);
        if records.is_none() && escaped.records(start, is_whole).is_some() {
            return escaped;
        }
        let may_be_plain = quote.is_none() && delimiter == b'\t';
        let lines = may_be_plain
            .then(|| plain.records(start, is_whole))
            .flatten();
        match lines {
            // Without quotes, each line is a right row: quotes would join some of them, or no field has one.
            Some(lines) if records.is_none_or(|records| lines > records) => plain,
            Some(_) if !has_quoted_field(start) => plain,
            _ => Self {
                lines_may_be_rows: lines.is_some(),
                ..quoted
            },
        }
    }

    /// The header of a file that begins with `start`, without its line end.
    pub(super) fn header(self, start: &[u8]) -> &[u8] {
        let start = behind_line_ends(&start[separator_line(start)..]);
        let (mut text, mut ends) = (vec![0; start.len() + 1], vec![0; MAX_FIELDS]);
        let (_, read, _, _) = self.parser().read_record(start, &mut text, &mut ends);
        without_line_end(&start[..read])
    }

    /// The number of records behind the header in the start of a file; `None` if one has another number of fields, or if a closing
    /// quote is followed by something.
    fn records(self, start: &[u8], is_whole: bool) -> Option<usize> {
        let mut parser = self.parser();
        let mut quotes = Quotes::new(self);
        let mut text = vec![0; start.len() + 1];
        let mut ends = vec![0; MAX_FIELDS];
        let (mut rest, mut fields, mut records) = (start, None, 0);
        loop {
            rest = behind_line_ends(rest);
            if rest.is_empty() {
                return Some(records);
            }
            let (mut result, mut read, _, mut found) =
                parser.read_record(rest, &mut text, &mut ends);
            if result == ReadRecordResult::InputEmpty {
                if !is_whole {
                    // The record goes on behind the start.
                    return Some(records);
                }
                let (end, _, _, more) = parser.read_record(b"\n", &mut text, &mut ends[found..]);
                (result, read, found) = (end, rest.len(), found + more);
            }
            if result != ReadRecordResult::Record || !quotes.are_right(&rest[..read]) {
                return None;
            }
            match fields {
                None => fields = Some(found),
                Some(fields) if fields == found => records += 1,
                Some(_) => return None,
            }
            rest = &rest[read..];
        }
    }
}

/// The names of the columns, from a header without its line end; none if a quote is open at its end.
pub(super) fn names(header: &[u8], dialect: Dialect) -> Vec<String> {
    // The parser removes a byte order mark only if it gets all of it at once.
    let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
    let line = [header, b"\n"].concat();
    let (mut text, mut ends) = (vec![0; line.len()], vec![0; line.len()]);
    let (result, _, _, fields) = dialect.parser().read_record(&line, &mut text, &mut ends);
    if result != ReadRecordResult::Record {
        return Vec::new();
    }
    let starts = std::iter::once(&0).chain(&ends);
    let fields = starts.zip(&ends).take(fields);
    fields
        .map(|(&start, &end)| String::from_utf8_lossy(&text[start..end]).into_owned())
        .collect()
}

/// Whether a field that tabs separate begins with a quote.
fn has_quoted_field(start: &[u8]) -> bool {
    let is_begin = |pair: &[u8]| matches!(pair, [b'\t' | b'\r' | b'\n', b'"']);
    start.first() == Some(&b'"') || start.windows(2).any(is_begin)
}

pub(super) fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// `bytes` without blank lines at their start.
fn behind_line_ends(bytes: &[u8]) -> &[u8] {
    let ends = bytes.iter().take_while(|byte| is_line_end(byte)).count();
    &bytes[ends..]
}

/// `record` without its line end. The parser may have read only the first byte of a line end, or nothing of it.
pub(super) fn without_line_end(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// Bytes of the first line if it says the delimiter, as Excel reads and writes it: `sep=;`; 0 for a file without one.
pub(super) fn separator_line(start: &[u8]) -> usize {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let name = text.get(..4).unwrap_or_default();
    let (separator, end) = match text.get(4..) {
        Some([separator, b'\r', b'\n', ..]) => (separator, 7),
        Some([separator, b'\r' | b'\n', ..]) => (separator, 6),
        _ => return 0,
    };
    let separates = *separator == b'\t' || separator.is_ascii_punctuation();
    let quotes = matches!(separator, b'"' | b'\'');
    if name.eq_ignore_ascii_case(b"sep=") && separates && !quotes {
        start.len() - text.len() + end
    } else {
        0
    }
}

/// Whether nothing separates names in the header of a file that begins with `start`.
pub(super) fn is_one_column(start: &[u8]) -> bool {
    let header = start.split(is_line_end).find(|line| !line.is_empty());
    header.is_some_and(|header| !header.iter().any(|byte| DELIMITERS.contains(byte)))
}

/// The delimiter that cuts the header of a file that begins with `start` into the most names; if there are several names, first one
/// that stands behind each closing quote, and before each quote that opens.
fn delimiter_of(start: &[u8]) -> u8 {
    // Of several equal ones, the last counts, so the order is reversed.
    let delimiters = DELIMITERS.into_iter().rev();
    let best = delimiters.max_by_key(|&delimiter| {
        let dialect = Dialect::quoted(delimiter);
        let header = dialect.header(start);
        let names = names(header, dialect);
        let line = [header, b"\n"].concat();
        let is_right = !names
            .iter()
            .any(|name| name.starts_with('"') || name.ends_with('"'))
            && Quotes::new(dialect).are_right(&line);
        (names.len() > 1 && is_right, names.len())
    });
    best.unwrap_or(DELIMITERS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_that_of_the_header() {
        for (header, expected, columns) in [
            ("id,text", b',', 2),
            ("id;text", b';', 2),
            ("id\ttext\tday", b'\t', 3),
            ("id|text", b'|', 2),
            ("\"a;b|c\",text", b',', 2),
            ("\"a,b,c\";text", b';', 2),
            ("\"id\";\"text\";\"a,b,c\"", b';', 3),
            ("id;text;\"a,b,c,d\"", b';', 3),
            ("id\ttext\t\"a,b,c,d\"\n1\tx\ty", b'\t', 3),
            ("\"a \"\"b\"\", c\"|d|e", b'|', 3),
            ("\u{feff}\"id\";text", b';', 2),
            ("text", b',', 1),
            ("", b',', 0),
        ] {
            let start = header.as_bytes();
            assert_eq!(delimiter_of(start), expected, "{header:?}");
            let dialect = Dialect::quoted(expected);
            let found = names(dialect.header(start), dialect).len();
            assert_eq!(found, columns, "{header:?}");
        }
    }

    #[test]
    fn quotes_count_where_the_file_is_right_with_them() {
        let plain = |delimiter| Dialect {
            quote: None,
            ..Dialect::quoted(delimiter)
        };
        let escaped = Dialect {
            escape: Some(b'\\'),
            ..Dialect::quoted(b',')
        };
        for (file, dialect) in [
            ("id,text\n1,one\n", Dialect::quoted(b',')),
            (
                "id,text\n1,\"one, \"\"two\"\"\nthree\"\n",
                Dialect::quoted(b','),
            ),
            ("id,text\n1,\"one \\\"two\\\" three\"\n2,x\n", escaped),
            ("id\ttext\n1\t\"one\" she said\n2\ttwo\n", plain(b'\t')),
            ("id\ttext\n1\t\"one\n2\ttwo\"\n3\tx\n", plain(b'\t')),
            ("id\ttext\n1\t\"one\ttwo\"\n", Dialect::quoted(b'\t')),
            ("id\ttext\n1\t\"one\"\n", Dialect::quoted(b'\t')),
            ("id\ttext\n1\tone\n", plain(b'\t')),
            ("text\n\"one\ntwo\"\n", Dialect::quoted(b',')),
            (
                "\u{feff}sep=|\r\nid|text,more\r\n1|x\r\n",
                Dialect::quoted(b'|'),
            ),
            ("sep=\"\nid;text\n1;x\n", Dialect::quoted(b',')),
            ("sep=\r\n\n1;x\n", Dialect::quoted(b',')),
            ("id;text;\"note\nmore\"\n1;x;y\n", Dialect::quoted(b';')),
            ("id;text\r1;5\" pipe\r2;x", Dialect::quoted(b';')),
            // Wrong in any way: the error names the line.
            ("id,text\n1,\"one\" two, three\n", Dialect::quoted(b',')),
        ] {
            let found = Dialect::find(file.as_bytes(), true, None, None);
            let lines_may_be_rows = found.lines_may_be_rows;
            let expected = Dialect {
                lines_may_be_rows,
                ..dialect
            };
            assert_eq!(found, expected, "{file:?}");
        }
        let given = Dialect::find(b"id,text\n1,'a,b'\n", true, None, Some(Quote::Byte(b'\'')));
        assert_eq!(given.quote, Some(b'\''));
        let given = Dialect::find(b"id,text\n1,\"a\"\n", true, None, Some(Quote::None));
        assert_eq!(given, plain(b','));
    }

    #[test]
    fn lines_may_be_rows_where_no_field_needs_its_quotes() {
        for (file, expected) in [
            ("id\ttext\n1\t\"one\"\n2\ttwo\n", true),
            // An address has a comma in each line, too.
            ("id,text\n1,\"one\n2,two\"\n3,x\n", false),
            ("id\ttext\n1\t\"one\ntwo\"\n2\ttwo\n", false),
        ] {
            let found = Dialect::find(file.as_bytes(), true, None, None);
            assert_eq!(found.lines_may_be_rows, expected, "{file:?}");
            let said = Dialect::find(file.as_bytes(), true, None, Some(Quote::Byte(b'"')));
            assert!(!said.lines_may_be_rows, "{file:?}");
        }
    }
}
