//! [`Form`]: what the text of a document is, by what the crawler found, by its bytes, and by what the server said.

use encoding_rs::Encoding;
use memchr::{memchr, memmem};

use crate::charset::{self, Hints};
use crate::headers::starts_with;

/// What the text of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTML, with its markup.
    Html,
    /// XHTML that is said to be XML, with its markup.
    Xhtml,
    Text,
}

/// How files begin that are no text. The first number is the offset of the bytes.
const BINARY: [(usize, &[u8]); 29] = [
    (0, b"\x89PNG\r\n"),
    (0, b"\xff\xd8\xff"),
    (0, b"GIF87a"),
    (0, b"GIF89a"),
    (0, b"PK\x03\x04"),
    (0, b"PK\x05\x06"),
    (0, b"Rar!\x1a\x07"),
    (0, b"7z\xbc\xaf\x27\x1c"),
    (0, b"\x1f\x8b\x08"),
    (0, b"\x28\xb5\x2f\xfd"),
    (0, b"BZh"),
    (0, b"\xfd7zXZ\0"),
    (0, b"RIFF"),
    (0, b"OggS"),
    (0, b"ID3"),
    (0, b"fLaC"),
    (4, b"ftyp"),
    (0, b"\x1aE\xdf\xa3"),
    (0, b"FLV\x01"),
    (0, b"CWS"),
    (0, b"wOFF"),
    (0, b"wOF2"),
    (0, b"\0\x01\0\0\0"),
    (0, b"OTTO\0"),
    (0, b"\0asm"),
    (0, b"\x7fELF"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    (0, b"\0\0\x01\0"),
    (0, b"II*\0"),
];

/// A document without a media type is HTML if it begins with one of these elements: those of the MIME Sniffing Standard (7.1), `meta`,
/// `link` and `frameset`.
const TAGS: [&str; 18] = [
    "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b",
    "body", "br", "p", "meta", "link", "frameset",
];

/// Bytes that tell text from what is none.
const SAMPLE: usize = 512;

/// Whether a document is no text, by how it begins: a picture, an archive, a program. Bytes that are binary elsewhere are usual in
/// UTF-16, so a document that its bytes or `hints` say to be in UTF-16 is a text.
pub fn is_no_text(body: &[u8], hints: &Hints<'_>) -> bool {
    let begins = |(at, magic): &(usize, &[u8])| {
        let found = body.get(*at..);
        found.is_some_and(|found| found.starts_with(magic))
    };
    let sample = &body[..body.len().min(SAMPLE)];
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0e..=0x1a);
    // A text may begin with the letters, too.
    let has_control = || sample.iter().any(is_control);
    body.starts_with(b"%PDF-")
        || (has_control() && BINARY.iter().any(begins))
        || (has_binary_bytes(body) && !charset::is_utf_16(charset::choose(body, hints).encoding))
}

/// Whether a body starts as no text does, in any encoding but UTF-16 without a byte order mark: more than one byte in 32 is a binary
/// data byte of the MIME Sniffing Standard. Of compressed data, one in ten is.
fn has_binary_bytes(body: &[u8]) -> bool {
    let has_mark = Encoding::for_bom(body).is_some();
    let sample = &body[..body.len().min(SAMPLE)];
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    !has_mark && 32 * sample.iter().filter(|byte| is_binary(byte)).count() > sample.len()
}

/// Whether a body starts as a text does, in any encoding.
pub(crate) fn is_like_text(body: &[u8]) -> bool {
    !has_binary_bytes(body) || charset::is_utf_16(charset::choose(body, &Hints::default()).encoding)
}

impl Form {
    /// What a document of this media type is; `None` if it is no text: scripts are none.
    pub(crate) fn of_media_type(media_type: &str) -> Option<Self> {
        let is = |name: &str| media_type.eq_ignore_ascii_case(name);
        if is("text/html") {
            Some(Self::Html)
        } else if is("application/xhtml+xml") {
            Some(Self::Xhtml)
        } else if is("application/json") {
            Some(Self::Text)
        } else {
            let (kind, subtype) = media_type.split_once('/')?;
            let is_text = kind.eq_ignore_ascii_case("text") && !is_program(subtype);
            is_text.then_some(Self::Text)
        }
    }

    /// What a document without a media type is; `None` if it is no text.
    pub(crate) fn of_bytes(body: &[u8]) -> Option<Self> {
        let mut buffer = String::new();
        let sample = &body[..body.len().min(SAMPLE)];
        let is_utf_16 = charset::is_utf_16(charset::choose(sample, &Hints::default()).encoding);
        let sample = if is_utf_16 {
            let text = charset::decode(sample, &Hints::default(), &mut buffer).text;
            text.as_bytes()
        } else {
            sample.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sample)
        };
        let start = sample.trim_ascii_start();
        let begins_with = |text: &str| starts_with(start, text.as_bytes());
        let begins_with_tag = |tag: &&str| {
            let next = start.get(tag.len() + 1);
            let name = start.strip_prefix(b"<");
            name.is_some_and(|name| starts_with(name, tag.as_bytes()))
                && next.is_some_and(|next| b" \t\n\r\x0c>/".contains(next))
        };
        if begins_with("<!doctype html") || begins_with("<!--") || TAGS.iter().any(begins_with_tag)
        {
            Some(Self::Html)
        } else if begins_with("<?xml") {
            let is_xhtml = memmem::find(start, b"http://www.w3.org/1999/xhtml").is_some();
            Some(if is_xhtml { Self::Xhtml } else { Self::Text })
        } else if is_utf_16
            || (memchr(0, body).is_none() && simdutf8::basic::from_utf8(body).is_ok())
        {
            Some(Self::Text)
        } else {
            None
        }
    }
}

/// Whether the subtype of a text is that of a script (RFC 9239).
fn is_program(subtype: &str) -> bool {
    let subtype = subtype.to_ascii_lowercase();
    let name = subtype.strip_prefix("x-").unwrap_or(&subtype);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(name, "javascript" | "ecmascript" | "jscript" | "livescript")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_texts() {
        for (media_type, form) in [
            ("text/html", Some(Form::Html)),
            ("Application/XHTML+xml", Some(Form::Xhtml)),
            ("TEXT/plain", Some(Form::Text)),
            ("text/x-rst", Some(Form::Text)),
            ("text/vnd.example", Some(Form::Text)),
            ("application/json", Some(Form::Text)),
            ("text/javascript", None),
            ("text/JavaScript1.5", None),
            ("text/x-ecmascript", None),
            ("text/css", Some(Form::Text)),
            ("application/pdf", None),
            ("image/png", None),
            ("text", None),
        ] {
            assert_eq!(Form::of_media_type(media_type), form, "{media_type}");
        }
    }

    #[test]
    fn files_of_no_text_are_known_by_their_first_bytes() {
        for binary in [
            &b"%PDF-1.7\n"[..],
            b"\x89PNG\r\n\x1a\n",
            b"\0\0\0 ftypisom",
            b"PK\x03\x04x",
            &[b"text", &[3; 40][..]].concat(),
        ] {
            assert!(is_no_text(binary, &Hints::default()), "{binary:?}");
        }
        for text in [
            &b""[..],
            b"<html>",
            b"PK",
            b"A PDF is not %PDF-",
            b"ID3 is a tag, RIFF a container.",
            b"RIFF, OggS and CWS",
            b"t\0e\0x\0t\0",
        ] {
            assert!(!is_no_text(text, &Hints::default()), "{text:?}");
        }
    }
}
