//! [`Documents`]: which records of a crawl are documents, and their texts.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::charset::{self, Decoded, Encoding, Hints};
use crate::digests::is_digest_of;
use crate::fault::Place;
use crate::form::{Form, is_no_text};
use crate::headers::{FieldTable, starts_with};
use crate::http::{self, Bodies, Extent, Response};
use crate::reader::Record;
use crate::reason::Reason;

/// A larger buffer of a text is freed before the next document.
const KEPT_SIZE: usize = 4 << 20;

/// Which records are documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The statuses of responses that are documents.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Whether a record is skipped if its digest is wrong. This reads all bytes of each document once more.
    pub check_digests: bool,
    /// The encoding of all texts; found if it is `None`.
    pub charset: Option<&'static Encoding>,
}

impl Default for Choice {
    /// Responses with status 200, with any digest.
    fn default() -> Self {
        Self {
            statuses: vec![200..=200],
            check_digests: false,
            charset: None,
        }
    }
}

/// A document of a crawl.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    /// Where its record starts.
    pub place: Place,
    /// The id of its record, without angle brackets: `urn:uuid:…` as a rule.
    pub id: Option<Cow<'a, str>>,
    pub url: Option<Cow<'a, str>>,
    /// When it was fetched, as the file says it: `2026-01-31T10:00:00Z`.
    pub date: Option<Cow<'a, str>>,
    /// The status of the response; `None` if the record has no response of a web server.
    pub status: Option<u16>,
    /// Its media type as the crawler found it, or else as the server gave it, without parameters; empty if there is none.
    pub content_type: &'a str,
    pub form: Form,
    /// Its text, decoded.
    pub text: &'a str,
    /// Whether its text is incomplete: the crawler cut it off, its record is cut short, or its body is cut off or damaged within its
    /// encoding.
    pub is_incomplete: bool,
    /// Whether bytes of its text that its charset does not have became U+FFFD.
    pub is_malformed: bool,
    /// The whole record, as [`Record::raw`].
    pub raw: &'a [u8],
}

/// Reads the documents in records. It keeps its buffers from one to the next.
pub struct Documents {
    choice: Choice,
    fields: FieldTable,
    bodies: Bodies,
    buffer: String,
}

impl Documents {
    /// Reads documents whose bodies have at most `limit` bytes when decoded. The text of a body can have three times as many.
    pub fn new(choice: Choice, limit: usize) -> Self {
        Self {
            choice,
            fields: FieldTable::default(),
            bodies: Bodies::new(limit),
            buffer: String::new(),
        }
    }

    /// The document in a record, or why there is none.
    pub fn read<'a>(&'a mut self, record: &Record<'a>) -> Result<Document<'a>, Reason<'a>> {
        self.free();
        let Self {
            choice,
            fields,
            bodies,
            buffer,
        } = self;
        check_type(record.headers.record_type())?;
        let url = record.headers.target_uri();
        let url_text = url.as_deref().unwrap_or_default();
        check_url(url_text)?;
        let response = if may_be_http(record) {
            Some(http::parse(record.block, fields).ok_or(Reason::Http)?)
        } else {
            None
        };
        let status = response.map(|response| response.status);
        if let Some(status) = status {
            check_status(&choice.statuses, status)?;
        }
        let headers = response.map_or(record.headers, |response| response.headers);
        // Of several, the last that names a type and a subtype counts, as in a browser.
        let types = headers.values("Content-Type");
        let types = types.filter(|given| {
            let name = media_type(given);
            name.contains('/') && name != "*/*"
        });
        let first = || {
            headers
                .get_bytes("Content-Type")
                .filter(|given| !given.is_empty())
        };
        let full_type = types.last().or_else(first);
        let identified = record.headers.get_bytes("WARC-Identified-Payload-Type");
        let identified = identified.map_or("", media_type);
        let served = match full_type.map_or("", media_type) {
            // What crawlers write where no server named a type.
            "application/octet-stream" | "application/warc-record" if response.is_none() => "",
            served => served,
        };
        let content_type = match identified {
            // The crawler looked at the bytes. This is what it says of those that it does not know.
            "" | "application/octet-stream" => served,
            // A page that begins late looks like a program, and XHTML that is served as HTML is read as HTML.
            identified if served.eq_ignore_ascii_case("text/html") && is_like_html(identified) => {
                served
            }
            identified => identified,
        };
        // Before the body is decoded: much of a crawl is images.
        let declared = match content_type {
            "" => None,
            _ => Some(Form::of_media_type(content_type).ok_or(Reason::NotText(content_type))?),
        };
        if is_first_segment(record) {
            return Err(Reason::Segment);
        }
        if choice.check_digests && !has_right_digest(record, response.as_ref(), bodies) {
            return Err(Reason::Digest);
        }
        let (body, extent) = match &response {
            Some(response) => bodies.decode(response)?,
            None => (record.block, Extent::Whole),
        };
        let mut hints = Hints {
            content_type: full_type,
            is_markup: false,
            url: url_text,
            charset: choice.charset,
        };
        if is_no_text(body, &hints) {
            return Err(Reason::NotText(""));
        }
        let form = match declared {
            Some(form) => form,
            None if body.is_empty() => return Err(Reason::Empty),
            None => Form::of_bytes(body).ok_or(Reason::NotText(""))?,
        };
        let ending = content_type.as_bytes().last_chunk::<3>();
        let is_xml = ending.is_some_and(|ending| ending.eq_ignore_ascii_case(b"xml"));
        hints.is_markup = form != Form::Text || is_xml;
        let Decoded { text, is_malformed } = charset::decode(body, &hints, buffer);
        if text.bytes().all(|byte| byte.is_ascii_whitespace()) {
            return Err(Reason::Empty);
        }
        Ok(Document {
            place: record.place,
            id: record.headers.record_id(),
            date: record.headers.get("WARC-Date"),
            status,
            content_type,
            form,
            text,
            is_incomplete: extent == Extent::Start || record.is_cut_short || is_truncated(record),
            is_malformed,
            raw: record.raw,
            url,
        })
    }

    /// Frees the memory of a long document. For a caller who does something else before reading on.
    pub fn free(&mut self) {
        if self.buffer.capacity() > KEPT_SIZE {
            self.buffer = String::new();
        }
        self.bodies.free();
    }
}

/// Refuses records of types that hold no document.
fn check_type(record_type: &[u8]) -> Result<(), Reason<'static>> {
    const TYPES: [(&[u8], Result<(), Reason<'static>>); 8] = [
        (b"response", Ok(())),
        (b"resource", Ok(())),
        (b"conversion", Ok(())),
        (b"warcinfo", Err(Reason::Warcinfo)),
        (b"request", Err(Reason::Request)),
        (b"metadata", Err(Reason::Metadata)),
        (b"revisit", Err(Reason::Revisit)),
        (b"continuation", Err(Reason::Continuation)),
    ];
    let mut types = TYPES.iter();
    let known = types.find(|(name, _)| record_type.eq_ignore_ascii_case(name));
    known.map_or(Err(Reason::OtherType), |(_, checked)| *checked)
}

/// Refuses URLs that are no document's.
fn check_url(url: &str) -> Result<(), Reason<'static>> {
    let is_of = |scheme: &[u8]| starts_with(url.as_bytes(), scheme);
    if is_of(b"dns:") || is_of(b"whois:") {
        return Err(Reason::Dns);
    }
    if is_of_crawler(url) {
        return Err(Reason::Crawler);
    }
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let after_scheme = url.split_once("://").map_or("", |(_, after)| after);
    let path = after_scheme.find('/').map_or("", |at| &after_scheme[at..]);
    match path {
        "/robots.txt" => Err(Reason::Robots),
        _ => Ok(()),
    }
}

/// Whether a record with this URL is about the crawl: Browsertrix writes `urn:text:` and `urn:pageinfo:` beside a page, wpull
/// `urn:X-wpull:`, wget `metadata://`, Brozzler `screenshot:`, Scoop `file:///dom-snapshot.html`.
fn is_of_crawler(url: &str) -> bool {
    // Names that publications have.
    const PUBLISHED: [&str; 7] = ["uuid:", "isbn:", "issn:", "nbn:", "doi:", "lex:", "ietf:"];
    const STARTS: [&str; 11] = [
        "metadata:",
        "screenshot:",
        "thumbnail:",
        "youtube-dl:",
        "ytdl:",
        "warcinfo:",
        "file:///dom-snapshot.html",
        "file:///pdf-snapshot.pdf",
        "file:///provenance-summary.html",
        "file:///screenshot.png",
        "file:///video-extracted-",
    ];
    let url = url.as_bytes();
    if starts_with(url, b"urn:") {
        let name = &url[4..];
        let published = |known: &&str| starts_with(name, known.as_bytes());
        !PUBLISHED.iter().any(published)
    } else {
        STARTS
            .iter()
            .any(|start| starts_with(url, start.as_bytes()))
    }
}

/// Whether bytes of HTML may look like this media type: a text but a script, or XHTML.
fn is_like_html(media_type: &str) -> bool {
    media_type.eq_ignore_ascii_case("application/xhtml+xml")
        || starts_with(media_type.as_bytes(), b"text/") && Form::of_media_type(media_type).is_some()
}

/// Refuses responses whose status is not chosen.
fn check_status(chosen: &[RangeInclusive<u16>], status: u16) -> Result<(), Reason<'static>> {
    if chosen.iter().any(|range| range.contains(&status)) {
        return Ok(());
    }
    Err(match status {
        300..=399 => Reason::Redirect,
        _ => Reason::Status(status),
    })
}

/// Whether the block of a record is, or should be, a response of a web server.
fn may_be_http(record: &Record<'_>) -> bool {
    let content_type = record
        .headers
        .get_bytes("Content-Type")
        .map_or("", media_type);
    let record_type = record.headers.record_type();
    record_type.eq_ignore_ascii_case(b"response")
        && (content_type.eq_ignore_ascii_case("application/http")
            || http::is_response(record.block))
}

/// Whether the crawler says that it cut the record off.
fn is_truncated(record: &Record<'_>) -> bool {
    record.headers.get_bytes("WARC-Truncated").is_some()
}

/// Whether a record goes on in `continuation` records, which may be in other files (ISO 28500, 7). The last segment has the total
/// length.
fn is_first_segment(record: &Record<'_>) -> bool {
    let field = |name| record.headers.get_bytes(name);
    field("WARC-Segment-Number").is_some()
        && field("WARC-Segment-Total-Length") != field("Content-Length")
}

/// Whether the digest of the block is right, or if it has none, that of its payload. Digests of unknown algorithms are, too.
fn has_right_digest(
    record: &Record<'_>,
    response: Option<&Response<'_>>,
    bodies: &mut Bodies,
) -> bool {
    let digest = record.headers.get_bytes("WARC-Block-Digest");
    if let Some(is_right) = digest.and_then(|digest| is_digest_of(digest, record.block)) {
        return is_right;
    }
    let Some(digest) = record.headers.get_bytes("WARC-Payload-Digest") else {
        return true;
    };
    // The digest may be that of the whole payload.
    if is_truncated(record) {
        return true;
    }
    let payload = response.map_or(record.block, |response| response.body);
    if is_digest_of(digest, payload) != Some(false) {
        return true;
    }
    // Some writers take the payload with its chunks, some without.
    let without_chunks = response.and_then(|response| bodies.without_chunks(response));
    without_chunks.is_some_and(|payload| is_digest_of(digest, payload) == Some(true))
}

/// The type and subtype of a content type, without parameters; empty if they are no text.
fn media_type(content_type: &[u8]) -> &str {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b',');
    let end = content_type.iter().position(is_end);
    std::str::from_utf8(&content_type[..end.unwrap_or(content_type.len())]).unwrap_or_default()
}

#[cfg(test)]
mod tests;
