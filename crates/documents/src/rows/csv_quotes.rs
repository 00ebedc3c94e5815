//! Whether the quotes of CSV are where they may be, and where lines end.

use memchr::{memchr2, memchr2_iter, memchr3, memchr3_iter};

use super::dialect::Dialect;

/// Where the bytes of a record end that were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a field.
    Start,
    /// In a field without quotes.
    Plain,
    Quoted,
    /// Behind the character within quotes that takes its meaning from the next one.
    Escaped,
    /// Behind a quote within quotes: the end of the field, or the first of two.
    Closed,
}

/// Checks the quotes of records, whose bytes come in parts.
#[derive(Debug)]
pub(super) struct Quotes {
    pub(super) dialect: Dialect,
    state: State,
}

impl Quotes {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            state: State::Start,
        }
    }

    pub(super) fn start(&mut self) {
        self.state = State::Start;
    }

    /// Whether nothing follows a closing quote in the bytes that come next but a delimiter, a line end or another quote.
    pub(super) fn are_right(&mut self, bytes: &[u8]) -> bool {
        let Dialect {
            delimiter,
            quote: Some(quote),
            escape,
            ..
        } = self.dialect
        else {
            return true;
        };
        let mut rest = bytes;
        loop {
            // Most bytes are within a field.
            let next = match self.state {
                State::Quoted => memchr2(quote, escape.unwrap_or(quote), rest),
                State::Plain => memchr3(delimiter, b'\r', b'\n', rest),
                _ => Some(0).filter(|_| !rest.is_empty()),
            };
            let Some(next) = next else {
                return true;
            };
            let byte = rest[next];
            rest = &rest[next + 1..];
            self.state = match self.state {
                State::Quoted if Some(byte) == escape => State::Escaped,
                State::Quoted => State::Closed,
                State::Escaped => State::Quoted,
                State::Start if byte == quote => State::Quoted,
                State::Closed if byte == quote && escape.is_none() => State::Quoted,
                _ if byte == delimiter || matches!(byte, b'\r' | b'\n') => State::Start,
                // A space behind a quote is nothing.
                State::Closed if byte == b' ' => State::Closed,
                State::Closed => return false,
                State::Start | State::Plain => State::Plain,
            };
        }
    }
}

/// Whether each line of a record is a row, if quotes are characters like others: it has as many fields as the record. Those of one
/// field say nothing.
pub(super) fn are_rows(fields: &[&[u8]], delimiter: u8) -> bool {
    let expected = fields.len().saturating_sub(1);
    // In the line so far.
    let mut delimiters = 0;
    for (number, field) in fields.iter().enumerate() {
        delimiters += usize::from(number > 0);
        let mut line = 0;
        for at in memchr3_iter(delimiter, b'\r', b'\n', field) {
            if field[at] == delimiter {
                delimiters += 1;
                continue;
            }
            let is_blank = delimiters == 0 && at == line;
            if !is_blank && delimiters != expected {
                return false;
            }
            (delimiters, line) = (0, at + 1);
        }
    }
    expected > 0 && delimiters == expected
}

/// Counts lines, whose ends are a line feed, a carriage return, or both, in bytes that come in parts.
#[derive(Debug, Default)]
pub(super) struct Lines {
    is_after_return: bool,
}

impl Lines {
    /// The number of line ends in the bytes that come next.
    pub(super) fn ends(&mut self, bytes: &[u8]) -> u64 {
        let mut ends = 0;
        for at in memchr2_iter(b'\r', b'\n', bytes) {
            let before = match at {
                0 => self.is_after_return,
                _ => bytes[at - 1] == b'\r',
            };
            ends += u64::from(bytes[at] == b'\r' || !before);
        }
        if let Some(last) = bytes.last() {
            self.is_after_return = *last == b'\r';
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_a_closing_quote() {
        for (record, is_right) in [
            ("a,\"b\",c\n", true),
            ("a,\"b\"\"c\",d\n", true),
            ("a,\"b,\nc\"\r\n", true),
            ("a,b \"c\" d\n", true),
            ("a,\"b\" ,c\n", true),
            ("a,\"b\" c\n", false),
            ("a,\"b\"c\n", false),
        ] {
            for cut in 0..record.len() {
                let mut quotes = Quotes::new(Dialect::quoted(b','));
                let (start, end) = record.as_bytes().split_at(cut);
                let found = quotes.are_right(start) && quotes.are_right(end);
                assert_eq!(found, is_right, "{record:?}, {cut}");
            }
        }
    }

    #[test]
    fn lines_of_a_record_may_be_rows() {
        for (fields, expected) in [
            ("1|one\n2,two", true),
            ("1|one\r\n2,two\r\n3,three", true),
            ("1|one\n\n2,two", true),
            ("one\ntwo|2", false),
            ("one,1\ntwo|2", true),
            ("1|a\n2,b,c|d", false),
            ("1|a,b\n2,c|d", true),
            ("1|one\ntwo", false),
            ("1|one\n2,two\n", false),
            ("1|one, two\n2,two", false),
            ("1|one\n2,two, three", false),
            ("one\ntwo", false),
        ] {
            let bytes: Vec<&[u8]> = fields.split('|').map(str::as_bytes).collect();
            assert_eq!(are_rows(&bytes, b','), expected, "{fields:?}");
        }
    }

    #[test]
    fn lines_end_in_any_way() {
        for (text, ends) in [("a\nb\r\nc\rd", 3), ("\r\r\n\n", 3), ("", 0), ("\n\r", 2)] {
            for cut in 0..=text.len() {
                let mut lines = Lines::default();
                let (start, end) = text.as_bytes().split_at(cut);
                let found = lines.ends(start) + lines.ends(end);
                assert_eq!(found, ends, "{text:?}, {cut}");
            }
        }
    }
}
