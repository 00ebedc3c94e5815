//! [`Reason`]: why a record is no document.

use std::fmt;

use crate::fault::Fault;

/// Why a record is no document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason<'a> {
    /// It says how the file was made.
    Warcinfo,
    /// It is a request of the crawler.
    Request,
    /// It has notes on another record.
    Metadata,
    /// The page was as at an earlier visit, and is not stored again.
    Revisit,
    /// It is a further part of a record that was split.
    Continuation,
    /// It is the first part of a record that was split: `continuation` records have the rest.
    Segment,
    /// Its type is unknown.
    OtherType,
    /// The server pointed to another URL: a status from 300 to 399 that is not chosen.
    Redirect,
    /// The response has this status, which is not chosen.
    Status(u16),
    /// It is a `robots.txt`.
    Robots,
    /// It is an answer of the DNS or of whois.
    Dns,
    /// The crawler wrote it about its crawl: the text or a picture of a page as it saw it, a log.
    Crawler,
    /// It should be a response of a web server, but is none.
    Http,
    /// It has this media type, which is no text; or none, and bytes that are no text.
    NotText(&'a str),
    /// Its `Content-Encoding` cannot be decoded.
    Encoding,
    /// It has no text but white space.
    Empty,
    Digest,
    /// It cannot be read.
    Broken(Fault),
}

impl Reason<'_> {
    /// A name for counters: a few words in lower case.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Request => "request",
            Self::Metadata => "metadata",
            Self::Revisit => "revisit",
            Self::Continuation => "continuation",
            Self::Segment => "first segment",
            Self::OtherType => "other record type",
            Self::Redirect => "redirect",
            Self::Status(_) => "other status",
            Self::Robots => "robots.txt",
            Self::Dns => "DNS or whois",
            Self::Crawler => "of the crawler",
            Self::Http => "not HTTP",
            Self::NotText(_) => "not text",
            Self::Encoding => "damaged content encoding",
            Self::Empty => "empty",
            Self::Digest => "wrong digest",
            Self::Broken(fault) => fault.name(),
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::NotText(media_type) if !media_type.is_empty() => f.write_str(media_type),
            _ => f.write_str(self.name()),
        }
    }
}
