use super::*;
use crate::reader::{Event, Limits, Reader};
use crate::test_files::{gzip_member, record};

const HTTP: &str = "application/http; msgtype=response";
const PAGE: &str = "<html><p>Grüße</p></html>";

/// A chunked response.
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntext\r\n0\r\n\r\n";
/// The digest of [`CHUNKED`], that of its body, and that of its body without chunks.
const BLOCK_SHA1: &str = "sha1:JJO4YDHPB2ZZA6PAAXHUGBTQR4PLC4MR";
const CHUNKS_SHA1: &str = "sha1:CD3BSNND7CJSBCFQRCEGXO264HKIA4GU";
const TEXT_SHA1: &str = "sha1:G4XKBDFLGPTRYAWGKHN4QOSHJUZMM5XK";
/// The digest of nothing.
const OTHER_SHA1: &str = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

fn documents(choice: Choice) -> Documents {
    Documents::new(choice, 100_000)
}

/// What `check` says of the outcome of a file's only record.
fn with_outcome<T>(
    documents: &mut Documents,
    raw: &[u8],
    check: impl FnOnce(Result<Document<'_>, Reason<'_>>) -> T,
) -> T {
    let limits = Limits {
        record: 1 << 20,
        window_log: 23,
    };
    let mut reader = Reader::new(raw, limits);
    let Some(Event::Record(record)) = reader.next_event().unwrap() else {
        panic!("no record");
    };
    check(documents.read(&record))
}

/// The reason why a record is no document, as text, or its text.
fn outcome_of(documents: &mut Documents, raw: &[u8]) -> Result<String, String> {
    with_outcome(documents, raw, |outcome| match outcome {
        Ok(document) => Ok(document.text.to_owned()),
        Err(reason) => Err(reason.to_string()),
    })
}

fn outcome(choice: &Choice, raw: &[u8]) -> Result<String, String> {
    outcome_of(&mut documents(choice.clone()), raw)
}

/// The outcome of a response with this status and these fields.
fn response_outcome(url: &str, status: &str, fields: &str, body: &[u8]) -> Result<String, String> {
    let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n");
    let block = [head.as_bytes(), body].concat();
    let warc = [("WARC-Target-URI", url), ("Content-Type", HTTP)];
    outcome(&Choice::default(), &record("response", &warc, &block))
}

fn page_outcome(fields: &str, body: &[u8]) -> Result<String, String> {
    response_outcome("http://a.example/", "200 OK", fields, body)
}

#[test]
fn a_document_has_what_its_record_says() {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n\r\n{PAGE}");
    let fields = [
        ("WARC-Record-ID", "<urn:uuid:7>"),
        ("WARC-Target-URI", "http://a.example/x"),
        ("WARC-Date", "2026-01-31T10:00:00Z"),
        ("Content-Type", HTTP),
    ];
    let raw = record("response", &fields, block.as_bytes());
    let file = gzip_member(&raw);
    with_outcome(&mut documents(Choice::default()), &file, |outcome| {
        let Ok(document) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(document.id.as_deref(), Some("urn:uuid:7"));
        assert_eq!(document.url.as_deref(), Some("http://a.example/x"));
        assert_eq!(document.date.as_deref(), Some("2026-01-31T10:00:00Z"));
        assert_eq!(document.status, Some(200));
        assert_eq!(document.content_type, "Text/HTML");
        assert_eq!((document.form, document.text), (Form::Html, PAGE));
        assert_eq!((document.place.offset, document.raw), (0, &raw[..]));
        assert!(!document.is_incomplete && !document.is_malformed);
    });
}

#[test]
fn text_of_a_wet_file_is_a_document() {
    let fields = [
        ("WARC-Target-URI", "http://a.example/"),
        ("Content-Type", "text/plain"),
    ];
    let raw = record("conversion", &fields, "Grüße".as_bytes());
    with_outcome(&mut documents(Choice::default()), &raw, |outcome| {
        let Ok(document) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((document.form, document.text), (Form::Text, "Grüße"));
        assert_eq!((document.status, document.id), (None, None));
    });
}

#[test]
fn records_of_other_types_are_no_documents() {
    for (record_type, reason) in [
        ("warcinfo", "warcinfo"),
        ("request", "request"),
        ("metadata", "metadata"),
        ("revisit", "revisit"),
        ("continuation", "continuation"),
        ("x", "other record type"),
    ] {
        let raw = record(record_type, &[], b"text");
        assert_eq!(outcome(&Choice::default(), &raw), Err(reason.to_owned()));
    }
}

#[test]
fn a_first_segment_is_no_document() {
    let found = |fields: &[(&str, &str)], media_type: &str, text: &[u8]| {
        let fields = [&[("Content-Type", media_type)][..], fields].concat();
        outcome(&Choice::default(), &record("resource", &fields, text))
    };
    let first = ("WARC-Segment-Number", "1");
    let segment = || Err("first segment".to_owned());
    assert_eq!(found(&[first], "text/plain", b"text"), segment());
    let total = |length| [first, ("WARC-Segment-Total-Length", length)];
    assert_eq!(found(&total("9"), "text/plain", b"text"), segment());
    // It is the last segment, too.
    assert_eq!(found(&total("4"), "text/plain", b"text"), Ok("text".into()));
    // No segment of it would be a text.
    let video = found(&[first], "video/mp4", b"text");
    assert_eq!(video, Err("video/mp4".to_owned()));
}

#[test]
fn responses_are_chosen_by_status_and_url() {
    let html = "Content-Type: text/html\r\n";
    for (url, status, reason) in [
        ("http://a/", "301 Moved", "redirect"),
        ("http://a/", "404 Not Found", "status 404"),
        ("http://a/robots.txt", "200 OK", "robots.txt"),
        ("https://a:8/robots.txt?x", "404 Not Found", "robots.txt"),
        ("dns:a", "200 OK", "DNS or whois"),
        ("WHOIS://a/", "200 OK", "DNS or whois"),
        ("http://a/", "OK", "not HTTP"),
    ] {
        let found = response_outcome(url, status, html, PAGE.as_bytes());
        assert_eq!(found, Err(reason.to_owned()), "{url} {status}");
    }
    for url in ["http://a/b/robots.txt", "http://a?next=/robots.txt"] {
        let found = response_outcome(url, "200 OK", html, PAGE.as_bytes());
        assert_eq!(found, Ok(PAGE.to_owned()), "{url}");
    }
    let choice = Choice {
        statuses: vec![200..=200, 400..=499],
        ..Choice::default()
    };
    let block = format!("HTTP/1.1 404 Not Found\r\n{html}\r\n{PAGE}");
    let raw = record("response", &[], block.as_bytes());
    assert_eq!(outcome(&choice, &raw), Ok(PAGE.to_owned()));
}

#[test]
fn text_is_told_from_other_content() {
    let of = |content_type: &str, body: &[u8]| {
        page_outcome(&format!("Content-Type: {content_type}\r\n"), body)
    };
    let text = || Ok("text".to_owned());
    for content_type in [
        "text/html",
        "text/html;charset=utf-8",
        "TEXT/plain",
        "application/json",
        "application/xhtml+xml",
        "text/css, text/css",
    ] {
        assert_eq!(of(content_type, b"text"), text(), "{content_type}");
    }
    for content_type in [
        "image/png",
        "application/pdf",
        "application/octet-stream",
        "x",
    ] {
        assert_eq!(of(content_type, b"text"), Err(content_type.to_owned()));
    }
    // Without a type.
    let page = || Ok(PAGE.to_owned());
    assert_eq!(page_outcome("", PAGE.as_bytes()), page());
    assert_eq!(of("", b"text"), text());
    for body in [&b"\x89PNG\r\n"[..], b"a\0b"] {
        assert_eq!(of("", body), Err("not text".to_owned()));
    }
    let block = b"HTTP/1.1 200 OK\r\n\r\ntext";
    let fields = [("WARC-Identified-Payload-Type", "image/png")];
    let raw = record("response", &fields, block);
    assert_eq!(
        outcome(&Choice::default(), &raw),
        Err("image/png".to_owned())
    );
    for body in [&b""[..], b" \r\n\t"] {
        assert_eq!(of("text/html", body), Err("empty".to_owned()));
        assert_eq!(of("", body), Err("empty".to_owned()));
    }
}

#[test]
fn html_without_a_type_is_recognised() {
    for body in [
        "<!DOCTYPE HTML>",
        "\u{feff}\n <Html lang=de>",
        "<!-- x --><p>",
        "<body>",
        "<p>",
        "<DIV\nclass=x>",
        "<br/>",
    ] {
        assert_eq!(Form::of_bytes(body.as_bytes()), Some(Form::Html), "{body}");
        let body = body.trim_start_matches('\u{feff}');
        let units: Vec<u8> = body.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let form = Form::of_bytes(&[b"\xff\xfe", &units[..]].concat());
        assert_eq!(form, Some(Form::Html), "{body}");
    }
    for body in ["", "< html", "<px>", "<p", "{}", "<ht", "<?xml?><feed>"] {
        assert_eq!(Form::of_bytes(body.as_bytes()), Some(Form::Text), "{body}");
    }
    let xhtml = "<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\">";
    assert_eq!(Form::of_bytes(xhtml.as_bytes()), Some(Form::Xhtml));
    assert_eq!(Form::of_bytes(b"\xff\xff"), None);
}

#[test]
fn bodies_and_charsets_are_decoded() {
    let fields =
        "Content-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n";
    let page = "<meta charset=windows-1251>\u{ef}\u{f0}";
    // Latin-1 has the bytes of these characters.
    let bytes: Vec<u8> = page.chars().map(|character| character as u8).collect();
    let body = gzip_member(&bytes);
    let chunked = [
        format!("{:x}\r\n", body.len()).as_bytes(),
        &body,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let found = page_outcome(fields, &chunked);
    assert_eq!(found, Ok("<meta charset=windows-1251>пр".to_owned()));
    let bomb = gzip_member(&vec![b'x'; 200_000]);
    assert_eq!(page_outcome(fields, &bomb), Err("too long".to_owned()));
    let bare = b"\x1f\x8b\x08\0\0\0\0\0\0\xff";
    assert_eq!(
        page_outcome(fields, bare),
        Err("damaged content encoding".to_owned())
    );
}

#[test]
fn digests_are_checked_if_chosen() {
    let choice = Choice {
        check_digests: true,
        ..Choice::default()
    };
    for (field, digest, is_right) in [
        ("WARC-Block-Digest", BLOCK_SHA1, true),
        ("WARC-Block-Digest", OTHER_SHA1, false),
        ("WARC-Payload-Digest", CHUNKS_SHA1, true),
        ("WARC-Payload-Digest", TEXT_SHA1, true),
        ("WARC-Payload-Digest", BLOCK_SHA1, false),
        ("WARC-Payload-Digest", "unknown:1", true),
        ("X", "sha1:x", true),
    ] {
        let raw = record("response", &[(field, digest)], CHUNKED);
        let expected = if is_right {
            Ok("text".to_owned())
        } else {
            Err("wrong digest".to_owned())
        };
        assert_eq!(outcome(&choice, &raw), expected, "{field} {digest}");
        let truncated = record(
            "response",
            &[(field, digest), ("WARC-Truncated", "length")],
            CHUNKED,
        );
        let is_checked = field == "WARC-Block-Digest";
        assert_eq!(
            outcome(&choice, &truncated).is_ok(),
            is_right || !is_checked
        );
        assert_eq!(outcome(&Choice::default(), &raw), Ok("text".to_owned()));
    }
}

#[test]
fn buffers_are_used_again() {
    let html = "Content-Type: text/html; charset=windows-1252\r\n";
    let image = "Content-Type: image/png\r\n";
    let mut documents = documents(Choice::default());
    for (fields, body, expected) in [
        (html, &b"gr\xfcn"[..], Ok("grün")),
        (image, &b"x"[..], Err("image/png")),
        (html, &b"plain"[..], Ok("plain")),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let raw = record("response", &[], &[head.as_bytes(), body].concat());
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(outcome_of(&mut documents, &raw), expected);
    }
}

#[test]
fn what_the_crawler_found_counts_before_what_the_server_said() {
    let raw = |identified: &str, said: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {said}\r\n\r\n");
        let fields = [
            ("Content-Type", HTTP),
            ("WARC-Identified-Payload-Type", identified),
        ];
        record("response", &fields, &[head.as_bytes(), body].concat())
    };
    let found = |identified: &str, said: &str, body: &[u8]| {
        outcome(&Choice::default(), &raw(identified, said, body))
    };
    let text = || Ok("text".to_owned());
    assert_eq!(found("text/html", "image/png", b"text"), text());
    assert_eq!(
        found("application/octet-stream", "text/html", b"text"),
        text()
    );
    // A page that is served as HTML stays one, whatever text the crawler takes it for.
    let form = |identified: &str, said: &str| {
        let raw = raw(identified, said, b"<p>text</p>");
        with_outcome(
            &mut documents(Choice::default()),
            &raw,
            |outcome| match outcome {
                Ok(document) => document.form,
                Err(reason) => panic!("{reason:?}"),
            },
        )
    };
    for identified in ["text/x-php", "text/plain", "application/xhtml+xml"] {
        assert_eq!(form(identified, "text/html; charset=utf-8"), Form::Html);
    }
    assert_eq!(form("text/x-php", "text/plain"), Form::Text);
    assert_eq!(form("application/xhtml+xml", "text/plain"), Form::Xhtml);
    assert_eq!(
        found("text/javascript", "text/html", b"callback({})"),
        Err("text/javascript".into())
    );
    let pdf = b"%PDF-1.7\n1 0 obj";
    assert_eq!(
        found("application/pdf", "text/html", pdf),
        Err("application/pdf".into())
    );
    // Nobody says it but the bytes.
    assert_eq!(
        page_outcome("Content-Type: text/html\r\n", pdf),
        Err("not text".into())
    );
    let script = page_outcome("Content-Type: text/javascript\r\n", b"var a;");
    assert_eq!(script, Err("text/javascript".into()));
}

#[test]
fn a_type_that_no_server_named_is_none() {
    let found = |content_type: &str, body: &[u8]| {
        let url = ("WARC-Target-URI", "ftp://a.example/readme");
        let raw = record("resource", &[url, ("Content-Type", content_type)], body);
        outcome(&Choice::default(), &raw)
    };
    for content_type in ["application/octet-stream", "application/warc-record"] {
        assert_eq!(found(content_type, b"text"), Ok("text".to_owned()));
        let binary = found(content_type, b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        assert_eq!(binary, Err("not text".to_owned()));
    }
    // A server says that a browser is to save it.
    let served = page_outcome("Content-Type: application/octet-stream\r\n", b"text");
    assert_eq!(served, Err("application/octet-stream".to_owned()));
}

#[test]
fn records_about_the_crawl_are_no_documents() {
    for (url, is_own) in [
        ("urn:text:http://a.example/", true),
        ("urn:pageinfo:http://a.example/", true),
        ("URN:X-wpull:log", true),
        ("metadata://gnu.org/software/wget/warc/wget.log", true),
        ("screenshot:http://a.example/", true),
        ("urn:uuid:7c4a8d09", false),
        ("http://a.example/urn:text:", false),
        ("file:///home/a.txt", false),
        ("file:///index.html", false),
        ("file:///dom-snapshot.html", true),
        ("", false),
    ] {
        let fields = [("WARC-Target-URI", url), ("Content-Type", "text/plain")];
        let raw = record("resource", &fields, b"text");
        let expected = if is_own {
            Err("of the crawler".to_owned())
        } else {
            Ok("text".to_owned())
        };
        assert_eq!(outcome(&Choice::default(), &raw), expected, "{url}");
    }
}
