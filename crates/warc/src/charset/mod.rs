//! Text of documents in any encoding of the [Encoding Standard](https://encoding.spec.whatwg.org/).
//!
//! The encoding is found by a byte order mark, by the `charset` of the content type, by a declaration in the first bytes of the
//! document; and where none of these says it, or the bytes contradict it, by the bytes.

mod choose;
#[cfg(test)]
#[path = "tests.rs"]
mod encodings;
mod language;
mod prescan;

pub use choose::{Choice, FEW, SAMPLE, choose, choose_within, is_line_of_utf_8};
pub use encoding_rs::Encoding;

use encoding_rs::{CoderResult, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memchr;

/// What is known of a document's encoding.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// The document's content type, with its parameters.
    pub content_type: Option<&'a [u8]>,
    /// Whether the document is HTML or XML, so that it may declare its encoding.
    pub is_markup: bool,
    /// The URL, whose top-level domain says which languages are likely, unless a page does by its `lang`.
    pub url: &'a str,
    /// The encoding that the user names; it counts more than the others, but for a byte order mark.
    pub charset: Option<&'static Encoding>,
}

/// The text of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded<'a> {
    pub text: &'a str,
    /// Whether bytes that its encoding does not have became U+FFFD, or it declares UTF-8 and is not.
    pub is_malformed: bool,
}

/// The text of a document: borrowed from `bytes` if these are UTF-8 or ASCII, or else decoded into `buffer`.
pub fn decode<'a>(bytes: &'a [u8], hints: &Hints<'_>, buffer: &'a mut String) -> Decoded<'a> {
    let choice = choose(bytes, hints);
    let mut decoded = decode_as(choice.encoding, &bytes[choice.mark..], buffer);
    decoded.is_malformed |= choice.is_other_than_declared;
    decoded
}

pub(crate) fn is_utf_16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// The value of `charset` in a content type such as `text/html; charset=utf-8`: how the HTML Standard extracts an encoding from
/// a `meta` element, except that a comma ends it, too.
fn find_charset(content_type: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"charset";
    let mut rest = content_type;
    loop {
        let at = rest
            .windows(NAME.len())
            .position(|name| name.eq_ignore_ascii_case(NAME))?;
        rest = rest[at + NAME.len()..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            let value = value.trim_ascii_start();
            return match value {
                [quote @ (b'"' | b'\''), inner @ ..] => {
                    memchr(*quote, inner).map(|end| &inner[..end])
                }
                _ => {
                    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b";,".contains(byte);
                    let end = value.iter().position(is_end).unwrap_or(value.len());
                    Some(&value[..end])
                }
            };
        }
    }
}

/// The text of bytes in a known encoding, without a byte order mark.
fn decode_as<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    buffer: &'a mut String,
) -> Decoded<'a> {
    let is_borrowed = encoding == UTF_8 || (encoding.is_ascii_compatible() && bytes.is_ascii());
    if is_borrowed && let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Decoded {
            text,
            is_malformed: false,
        };
    }
    buffer.clear();
    buffer.reserve(bytes.len() + bytes.len() / 4);
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut rest = bytes;
    let mut is_malformed = false;
    loop {
        let (result, read, replaces) = decoder.decode_to_string(rest, buffer, true);
        rest = &rest[read..];
        is_malformed |= replaces;
        match result {
            CoderResult::InputEmpty => {
                let text = buffer;
                return Decoded { text, is_malformed };
            }
            // A byte becomes up to three; and a few more are needed to go on at all.
            CoderResult::OutputFull => buffer.reserve(rest.len() + 64),
        }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{
        BIG5, EUC_JP, EUC_KR, GBK, ISO_2022_JP, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252,
    };

    use super::*;

    fn decoded(bytes: &[u8], hints: &Hints<'_>) -> String {
        let mut buffer = "used before".to_owned();
        decode(bytes, hints, &mut buffer).text.to_owned()
    }

    fn html(content_type: &str) -> Hints<'_> {
        Hints {
            content_type: Some(content_type.as_bytes()),
            is_markup: true,
            url: "http://example.com/",
            charset: None,
        }
    }

    #[test]
    fn labels_are_found_in_content_types() {
        for (content_type, label) in [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;CharSet = \"Shift_JIS\" ; x", Some("Shift_JIS")),
            ("text/html; charset='koi8-r'", Some("koi8-r")),
            ("text/html; charset=utf-8, text/html", Some("utf-8")),
            ("text/html; charset charset=big5", Some("big5")),
            ("text/html; charset=\"big5", None),
            ("text/html; charset", None),
            ("text/html", None),
            ("", None),
        ] {
            let found = find_charset(content_type.as_bytes());
            assert_eq!(found, label.map(str::as_bytes), "{content_type}");
        }
    }

    #[test]
    fn the_encoding_is_found_in_the_order_of_browsers() {
        let meta = "<meta charset=windows-1251>";
        let text = "Привет";
        let body =
            |encoding: &'static Encoding| [meta.as_bytes(), &encoding.encode(text).0].concat();
        let expected = format!("{meta}{text}");
        // A byte order mark, before the header, before the declaration.
        let marked = [&b"\xef\xbb\xbf"[..], &body(UTF_8)].concat();
        assert_eq!(
            decoded(&marked, &html("text/html; charset=koi8-r")),
            expected
        );
        let found = decoded(&body(KOI8_R), &html("text/html; charset=koi8-r"));
        assert_eq!(found, expected);
        assert_eq!(decoded(&body(WINDOWS_1251), &html("text/html")), expected);
        // Unknown labels, and those of encodings that are no more.
        for label in ["none", "hz-gb-2312"] {
            let content_type = format!("text/html; charset={label}");
            assert_eq!(decoded(&body(WINDOWS_1251), &html(&content_type)), expected);
        }
        // Text has no declaration.
        let plain = Hints {
            is_markup: false,
            ..html("text/plain")
        };
        assert_eq!(decoded(&body(UTF_8), &plain), expected);
    }

    #[test]
    fn utf_16_is_decoded_with_a_byte_order_mark() {
        for (bytes, text) in [
            (&b"\xff\xfea\0\xac\x20"[..], "a€"),
            (&b"\xfe\xff\0a\x20\xac"[..], "a€"),
        ] {
            assert_eq!(decoded(bytes, &html("text/html; charset=utf-8")), text);
        }
    }

    #[test]
    fn encodings_without_a_label_are_detected() {
        for (encoding, text) in [
            (
                WINDOWS_1251,
                "Это простой текст на русском языке, написанный для проверки.",
            ),
            (
                KOI8_R,
                "Это простой текст на русском языке, написанный для проверки.",
            ),
            (
                SHIFT_JIS,
                "これは文字コードを判定するための日本語の文章です。",
            ),
            (EUC_JP, "これは文字コードを判定するための日本語の文章です。"),
            (
                ISO_2022_JP,
                "これは文字コードを判定するための日本語の文章です。",
            ),
            (GBK, "这是一个用来检测字符编码的中文句子，内容很简单。"),
            (BIG5, "這是一個用來檢測字元編碼的中文句子，內容很簡單。"),
            (
                EUC_KR,
                "이것은 문자 인코딩을 판별하기 위한 한국어 문장입니다.",
            ),
            (
                WINDOWS_1252,
                "Les élèves français étaient très fatigués après la fête.",
            ),
        ] {
            let (bytes, _, _) = encoding.encode(text);
            assert_eq!(
                decoded(&bytes, &html("text/html")),
                text,
                "{}",
                encoding.name()
            );
        }
    }

    #[test]
    fn utf_8_and_ascii_are_borrowed() {
        for (bytes, content_type) in [
            ("plain", "text/html; charset=windows-1251"),
            ("grün", "text/html; charset=utf-8"),
            ("grün", "text/html"),
        ] {
            let mut buffer = String::new();
            let decoded = decode(bytes.as_bytes(), &html(content_type), &mut buffer);
            assert_eq!(decoded.text.as_ptr(), bytes.as_ptr());
            assert!(!decoded.is_malformed);
        }
    }

    #[test]
    fn malformed_bytes_are_replaced() {
        let utf_8 = Hints {
            charset: Some(UTF_8),
            ..Hints::default()
        };
        assert_eq!(decoded(b"a\xffb\xe2\x82", &utf_8), "a\u{fffd}b\u{fffd}");
        assert!(decode(b"a\xff", &utf_8, &mut String::new()).is_malformed);
        let right = html("text/html; charset=windows-1252");
        assert!(!decode(b"a\xff", &right, &mut String::new()).is_malformed);
        // Three bytes of text for each byte: the buffer grows.
        let replaced = "\u{fffd}".repeat(10_000);
        assert_eq!(decoded(&[0xff; 10_000], &utf_8), replaced);
    }
}
