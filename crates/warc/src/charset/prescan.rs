//! The encoding that a document declares in its first bytes: "prescan a byte stream to determine its encoding" and "get an XML
//! encoding" of the HTML Standard.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::{memchr, memchr_iter, memmem};

use super::{find_charset, is_utf_16};

/// Bytes that are searched for a declaration: more than the standard's 1,024, because browsers also use one that they meet later.
const LENGTH: usize = 64 << 10;

/// The encoding that the document declares.
pub(super) fn prescan(bytes: &[u8]) -> Option<&'static Encoding> {
    let bytes = &bytes[..bytes.len().min(LENGTH)];
    match bytes {
        [b'<', 0, b'?', 0, b'x', 0, ..] => Some(UTF_16LE),
        [0, b'<', 0, b'?', 0, b'x', ..] => Some(UTF_16BE),
        _ => find_meta(bytes).or_else(|| find_xml(bytes)),
    }
}

/// The encoding of the first `meta` element that declares one.
fn find_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut rest = bytes;
    loop {
        rest = &rest[memchr(b'<', rest)?..];
        if rest.starts_with(b"<!--") {
            // The end of the comment may share hyphens with its start.
            let hyphens = &rest[2..];
            rest = &hyphens[memmem::find(hyphens, b"-->")? + 3..];
            continue;
        }
        if let Some(name) = rest.get(1..6)
            && name[..4].eq_ignore_ascii_case(b"meta")
            && (name[4].is_ascii_whitespace() || name[4] == b'/')
        {
            let mut attributes = Attributes { rest: &rest[5..] };
            if let Some(encoding) = read_meta(&mut attributes) {
                return Some(encoding);
            }
            rest = attributes.rest;
            continue;
        }
        rest = match rest {
            // A declaration is in the head.
            [b'<', name @ ..] if is_body(name) => return None,
            [b'<', b'/', letter, ..] | [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                let mut attributes = Attributes {
                    rest: &rest[rest.iter().position(is_end)?..],
                };
                while attributes.next().is_some() {}
                attributes.rest
            }
            [b'<', b'!' | b'/' | b'?', ..] => &rest[memchr(b'>', rest)?..],
            _ => &rest[1..],
        };
    }
}

/// The language that the `html` element says the page is in.
pub(super) fn language(bytes: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"<html";
    let bytes = &bytes[..bytes.len().min(LENGTH)];
    let is_tag = |start: &[u8]| {
        start
            .first_chunk::<5>()
            .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
            && start.get(5).is_some_and(u8::is_ascii_whitespace)
    };
    let tag = memchr_iter(b'<', bytes).find(|&at| is_tag(&bytes[at..]))?;
    let mut attributes = Attributes {
        rest: &bytes[tag + NAME.len()..],
    };
    let is_language =
        |name: &[u8]| name.eq_ignore_ascii_case(b"lang") || name.eq_ignore_ascii_case(b"xml:lang");
    attributes.find_map(|(name, value)| is_language(name).then_some(value))
}

fn is_body(text: &[u8]) -> bool {
    text.first_chunk::<5>().is_some_and(|[name @ .., next]| {
        name.eq_ignore_ascii_case(b"body") && (next.is_ascii_whitespace() || *next == b'>')
    })
}

/// The encoding that a `meta` element declares: by `charset`, or by `content` together with `http-equiv`.
fn read_meta(attributes: &mut Attributes<'_>) -> Option<&'static Encoding> {
    let (mut http_equiv, mut content, mut charset) = (None, None, None);
    // Of several attributes of one name, the first counts.
    for (name, value) in attributes {
        let slot = if name.eq_ignore_ascii_case(b"http-equiv") {
            &mut http_equiv
        } else if name.eq_ignore_ascii_case(b"content") {
            &mut content
        } else if name.eq_ignore_ascii_case(b"charset") {
            &mut charset
        } else {
            continue;
        };
        slot.get_or_insert(value);
    }
    let is_pragma = http_equiv.is_some_and(|value| value.eq_ignore_ascii_case(b"content-type"));
    let label = match charset {
        Some(label) => label,
        None => content.filter(|_| is_pragma).and_then(find_charset)?,
    };
    let encoding = Encoding::for_label_no_replacement(label)?;
    Some(if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        without_utf_16(encoding)
    })
}

fn find_xml(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr(b'>', declaration)?];
    let after_name = memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration[after_name..].trim_ascii_start();
    let value = value.strip_prefix(b"=")?.trim_ascii_start();
    let [quote @ (b'"' | b'\''), label @ ..] = value else {
        return None;
    };
    let label = &label[..memchr(*quote, label)?];
    Encoding::for_label_no_replacement(label).map(without_utf_16)
}

/// UTF-8 instead of UTF-16: the declaration could not be read if it were true.
fn without_utf_16(encoding: &'static Encoding) -> &'static Encoding {
    if is_utf_16(encoding) { UTF_8 } else { encoding }
}

/// The attributes of a tag: names and values ("get an attribute").
struct Attributes<'a> {
    /// What comes after the last attribute; in the end, the end of the tag and what follows, or nothing.
    rest: &'a [u8],
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    /// The next attribute, unless the tag ends before, or the bytes end within it.
    fn next(&mut self) -> Option<Self::Item> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
        self.advance_while(is_between);
        if self.rest.first() == Some(&b'>') {
            return None;
        }
        // A name may begin with an equals sign.
        let rest = self.rest.get(1..)?;
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"=/>".contains(byte);
        let end = 1 + rest.iter().position(is_end).unwrap_or(rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.advance_while(u8::is_ascii_whitespace);
        let Some(value) = self.rest.strip_prefix(b"=") else {
            return (!self.rest.is_empty()).then_some((name, b"".as_slice()));
        };
        self.rest = value;
        self.advance_while(u8::is_ascii_whitespace);
        let (value, rest) = match self.rest {
            [quote @ (b'"' | b'\''), inner @ ..] => {
                let Some(end) = memchr(*quote, inner) else {
                    self.rest = &[];
                    return None;
                };
                (&inner[..end], &inner[end + 1..])
            }
            unquoted => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                let Some(end) = unquoted.iter().position(is_end) else {
                    self.rest = &[];
                    return None;
                };
                unquoted.split_at(end)
            }
        };
        self.rest = rest;
        Some((name, value))
    }
}

impl Attributes<'_> {
    fn advance_while(&mut self, is_skipped: impl Fn(&u8) -> bool) {
        let skipped = self.rest.iter().take_while(|byte| is_skipped(byte)).count();
        self.rest = &self.rest[skipped..];
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, KOI8_R, SHIFT_JIS};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn declarations_are_found_as_in_browsers() {
        for (text, encoding) in [
            ("<meta charset=koi8-r>", Some(KOI8_R)),
            (
                "<!doctype html><html lang=ru><head><META CharSet = 'KOI8-R' />",
                Some(KOI8_R),
            ),
            ("<meta/charset=\"koi8-r\"/>", Some(KOI8_R)),
            (
                "<meta name=a content='charset=big5'><meta charset=koi8-r>",
                Some(KOI8_R),
            ),
            (
                "<meta http-equiv=Content-Type content='text/html; charset=Big5'>",
                Some(BIG5),
            ),
            (
                "<meta content=text/html;charset=big5 http-equiv=content-type>",
                Some(BIG5),
            ),
            ("<meta charset=koi8-r charset=big5>", Some(KOI8_R)),
            ("<meta charset=none><meta charset=big5>", Some(BIG5)),
            ("<meta charset=utf-16>", Some(UTF_8)),
            ("<meta charset=x-user-defined>", Some(WINDOWS_1252)),
            (
                "<!-- <meta charset=big5> --><meta charset=koi8-r>",
                Some(KOI8_R),
            ),
            ("<!--><meta charset=koi8-r>", Some(KOI8_R)),
            (
                "<p title='<meta charset=big5>'><meta charset=koi8-r>",
                Some(KOI8_R),
            ),
            ("</p title='>'><? > <!x><meta charset=koi8-r>", Some(KOI8_R)),
            ("a < b <1 <meta =x charset=koi8-r>", Some(KOI8_R)),
            (
                "<?xml version='1.0' encoding=\"Shift_JIS\"?><html>",
                Some(SHIFT_JIS),
            ),
            ("<?xml encoding = 'utf-16'?>", Some(UTF_8)),
            ("<?xml version='1.0'?><meta charset=big5>", Some(BIG5)),
            ("<metacharset=big5>", None),
            ("<meta http-equiv=refresh content='charset=big5'>", None),
            ("<meta charset='big5", None),
            ("<!-- <meta charset=big5>", None),
            ("<?xml encoding=big5?>", None),
            ("charset=big5", None),
            ("", None),
        ] {
            assert_eq!(prescan(text.as_bytes()), encoding, "{text}");
        }
        assert_eq!(prescan(b"<\0?\0x\0m\0"), Some(UTF_16LE));
        assert_eq!(prescan(b"\0<\0?\0x\0m"), Some(UTF_16BE));
    }

    #[test]
    fn only_the_first_bytes_are_searched() {
        let declaration = "<meta charset=big5>";
        let padding = " ".repeat(LENGTH - declaration.len());
        assert_eq!(
            prescan(format!("{padding}{declaration}").as_bytes()),
            Some(BIG5)
        );
        assert_eq!(
            prescan(format!("{padding} <meta charset='big5'>").as_bytes()),
            None
        );
    }

    proptest! {
        #[test]
        fn any_markup_comes_to_an_end(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "<", ">", "<meta ", "<!--", "-->", "</", "<!", "<?xml ", "=", "\"", "'", "/", " ", "charset", "content",
                    "http-equiv", "encoding", "big5", "a",
                ]),
                0..40,
            ),
        ) {
            let _ = prescan(parts.concat().as_bytes());
        }
    }
}
