//! HTTP/1.1 messages: reading and rewriting heads, and copying bodies with each kind of framing.

use std::io::{self, BufRead as _, ErrorKind};

use super::{Headers, Incoming, MAX_HEADERS, Reader, Request, Sink};

/// What marks the end of a body.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Framing {
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    /// Copies at most `limit` bytes of a body's content; returns whether the body ended within them.
    ///
    /// Copies the size lines and trailers of a chunked body only if `framed`; otherwise drops them.
    pub(super) fn copy(
        self,
        from: &mut Reader,
        limit: u64,
        framed: bool,
        to: Sink<'_>,
    ) -> io::Result<bool> {
        match self {
            Self::Empty => Ok(true),
            Self::Length(length) => {
                copy_exactly(from, length.min(limit), to)?;
                Ok(length <= limit)
            }
            Self::Chunked => copy_chunks(from, limit, framed, to),
            Self::UntilClose => Ok(copy(from, limit, to)? < limit),
        }
    }
}

/// Copies a chunked body, as [`Framing::copy`] does.
pub(super) fn copy_chunks(
    from: &mut Reader,
    limit: u64,
    framed: bool,
    to: Sink<'_>,
) -> io::Result<bool> {
    let mut left = limit;
    while left > 0 {
        let mut line = copy_line(from, framed, to)?;
        let digits = String::from_utf8_lossy(&line);
        let digits = digits.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| malformed())?;
        if size == 0 {
            // Trailers, up to an empty line.
            while !is_blank(&line) {
                line = copy_line(from, framed, to)?;
            }
            return Ok(true);
        }
        copy_exactly(from, size.min(left), to)?;
        if size > left {
            break;
        }
        copy_line(from, framed, to)?;
        left -= size;
    }
    Ok(false)
}

/// Reads a line, copies it if `framed`, and returns it.
pub(super) fn copy_line(from: &mut Reader, framed: bool, to: Sink<'_>) -> io::Result<Vec<u8>> {
    let line = read_line(from)?;
    if framed {
        to.write_all(&line)?;
    }
    Ok(line)
}

/// Copies `count` bytes; an error if the stream ends before.
pub(super) fn copy_exactly(from: &mut Reader, count: u64, to: Sink<'_>) -> io::Result<()> {
    let is_whole = copy(from, count, to)? == count;
    is_whole.then_some(()).ok_or_else(malformed)
}

/// Copies until `limit` bytes or the end of the stream; returns the number of bytes.
pub(super) fn copy(from: &mut Reader, limit: u64, to: Sink<'_>) -> io::Result<u64> {
    let mut copied = 0;
    while copied < limit {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        let count = (limit - copied).min(bytes.len() as u64) as usize;
        to.write_all(&bytes[..count])?;
        from.consume(count);
        copied += count as u64;
    }
    Ok(copied)
}

/// Reads a head including the empty line at its end; `None` if the connection ends before the head begins.
pub(super) fn read_head(from: &mut Reader) -> io::Result<Option<Vec<u8>>> {
    if from.fill_buf().map_or(true, <[u8]>::is_empty) {
        return Ok(None);
    }
    let mut head = Vec::new();
    loop {
        let line = read_line(from)?;
        head.extend_from_slice(&line);
        if is_blank(&line) {
            return Ok(Some(head));
        }
    }
}

/// Reads a line with the line feed at its end.
pub(super) fn read_line(from: &mut Reader) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let is_whole = line.ends_with(b"\n");
    is_whole.then_some(line).ok_or_else(malformed)
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    matches!(line, b"\r\n" | b"\n")
}

pub(super) fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "malformed or unfinished message")
}

/// Returns whether responses with this status code have no body.
pub(super) fn forbids_body(code: u16) -> bool {
    matches!(code, 204 | 304)
}

/// Parses the head of a request; its number is not set yet.
pub(super) fn parse_request(raw: Vec<u8>) -> io::Result<Incoming> {
    let mut space = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut space);
    parsed.parse(&raw).map_err(|_| malformed())?;
    let headers = to_owned_headers(parsed.headers);
    let range = ["range", "x-ms-range"]
        .iter()
        .find_map(|name| header(&headers, name));
    let request = Request {
        number: 0,
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        range: range.map(str::to_owned),
        headers,
    };
    let framing = framing(&request.headers, Framing::Empty)?;
    let keep_alive = is_keep_alive(parsed.version, &request.headers);
    Ok(Incoming {
        request,
        raw,
        framing,
        keep_alive,
    })
}

/// Copies parsed headers; bytes that are not UTF-8 are replaced.
pub(super) fn to_owned_headers(headers: &[httparse::Header<'_>]) -> Headers {
    let text = |value| String::from_utf8_lossy(value).into_owned();
    headers
        .iter()
        .map(|header| (header.name.to_owned(), text(header.value)))
        .collect()
}

/// Returns the first value of a header; the case of its name is ignored.
pub(super) fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    let mut all = headers.iter();
    let found = all.find(|(given, _)| given.eq_ignore_ascii_case(name))?;
    Some(&found.1)
}

/// Returns whether the sender of these headers keeps the connection open; `version` is the minor version of HTTP/1.
pub(super) fn is_keep_alive(version: Option<u8>, headers: &Headers) -> bool {
    let mut words = header(headers, "connection")
        .unwrap_or_default()
        .split(',')
        .map(str::trim);
    match version {
        Some(0) => words.any(|word| word.eq_ignore_ascii_case("keep-alive")),
        _ => !words.any(|word| word.eq_ignore_ascii_case("close")),
    }
}

/// Returns the framing that the headers state, or `default` if they state none.
pub(super) fn framing(headers: &Headers, default: Framing) -> io::Result<Framing> {
    if header(headers, "transfer-encoding").is_some() {
        return Ok(Framing::Chunked);
    }
    let Some(length) = header(headers, "content-length") else {
        return Ok(default);
    };
    length.parse().map(Framing::Length).map_err(|_| malformed())
}

/// Returns the head with its framing headers replaced by a `Content-Length` of `length`.
pub(super) fn with_length(raw: &[u8], length: u64) -> Vec<u8> {
    let mut head = Vec::new();
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        match &*name.to_ascii_lowercase() {
            b"content-length" | b"transfer-encoding" | b"trailer" | b"\r\n" | b"\n" => {}
            _ => head.extend_from_slice(line),
        }
    }
    head.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
    head
}
