//! HTTP responses, as the blocks of `response` records hold them.

mod body;
mod chunked;

pub(crate) use body::Bodies;

use memchr::memchr;

use crate::headers::{FieldTable, Headers, Scan, number};

/// A response whose body is still encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: &'a [u8],
}

/// Parses a response, of any version of HTTP; `None` if it does not start with a status line. Interim responses before it, such as
/// `100 Continue`, are skipped.
///
/// This is not `httparse`, because crawls hold what servers sent and browsers accept: `HTTP/2 200`, names with spaces, lines
/// without a colon, hundreds of fields.
pub(crate) fn parse<'a>(block: &'a [u8], fields: &'a mut FieldTable) -> Option<Response<'a>> {
    let mut rest = block;
    let (status, header, body) = loop {
        let status = parse_status(rest)?;
        fields.clear();
        let length = match fields.scan(rest) {
            Scan::Whole(length) => length,
            // A response without a body, cut off within its header.
            Scan::Partial => rest.len(),
            Scan::Cut => return None,
        };
        let (header, body) = rest.split_at(length);
        if !matches!(status, 100..=199) || !is_response(body) {
            break (status, header, body);
        }
        rest = body;
    };
    Some(Response {
        status,
        headers: fields.headers(header),
        body,
    })
}

/// How much of a body was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Its start: it is cut off, or damaged.
    Start,
}

pub(crate) fn is_response(block: &[u8]) -> bool {
    block.starts_with(b"HTTP/")
}

/// The code in a status line such as `HTTP/1.1 200 OK`.
fn parse_status(block: &[u8]) -> Option<u16> {
    if !is_response(block) {
        return None;
    }
    let line = &block[..memchr(b'\n', block).unwrap_or(block.len())];
    let after_version = &line[memchr(b' ', line)?..];
    let (code, after) = after_version.trim_ascii().split_at_checked(3)?;
    if after.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    number(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_of_any_version_are_read() {
        for (line, status) in [
            ("HTTP/1.1 200 OK\r\n", Some(200)),
            ("HTTP/1.0  404\n", Some(404)),
            ("HTTP/2 301", Some(301)),
            ("HTTP/2.0 200 \r\n\r\nx", Some(200)),
            ("HTTP/1.1 200OK\r\n", Some(200)),
            ("HTTP/1.1 2000 OK\r\n", None),
            ("HTTP/1.1 20\r\n", None),
            ("HTTP/1.1\r\n200", None),
            ("HTTP/1.1 OK 200\r\n", None),
            ("ICY 200 OK\r\n", None),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(parse_status(line.as_bytes()), status, "{line:?}");
        }
    }

    #[test]
    fn a_response_has_a_header_and_a_body() {
        let mut fields = FieldTable::default();
        let block = b"HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nno field\r\n\r\nbody\r\n\r\n";
        let response = parse(block, &mut fields).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.body, b"body\r\n\r\n");
        let content_type = response.headers.get_bytes("Content-Type");
        assert_eq!(content_type, Some(&b"text/html"[..]));
        let response = parse(b"HTTP/1.1 200 OK\nA: b\nC: d", &mut fields).unwrap();
        assert_eq!(response.body, b"");
        assert_eq!(response.headers.get("a").as_deref(), Some("b"));
        assert!(parse(b"body", &mut fields).is_none());
        let block = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nC: d\r\n\r\nbody";
        let response = parse(block, &mut fields).unwrap();
        assert_eq!((response.status, response.body), (200, &b"body"[..]));
        assert_eq!(response.headers.get("a"), None);
        let response = parse(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", &mut fields);
        assert_eq!(response.unwrap().status, 101);
    }
}
