//! [`Bodies`]: decodes the bodies of responses.
//!
//! A header says how a body is encoded, but not always the truth: crawlers decode bodies and keep the header, and servers
//! send bodies as they are. So a coding counts only where the bytes begin as it says. A body that is cut off or damaged gives what
//! can be decoded of it, as in a browser, and that is said.

use std::io::{self, Read as _};

use brotli_decompressor::Decompressor;
use sirocco::Format;

use super::{Extent, Response, chunked};
use crate::fault::Fault;
use crate::form::is_like_text;
use crate::headers::Headers;
use crate::input::Input;
use crate::members::{Decoded, GZIP_MAGIC, Gzip, Inflate, InflateState, ZSTD_MAGIC, Zstandard};
use crate::reason::Reason;

/// The most codings of a body, one in the other.
const MAX_CODINGS: usize = 4;
/// Bytes to decode at a time.
const PIECE: usize = 64 << 10;
/// The largest window of zstd in HTTP, as a power of two (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;
/// Bytes of the buffer before the decoder of brotli.
const BROTLI_INPUT: usize = 4 << 10;
/// Bytes that tell text from a compressed body.
const TEXT_SAMPLE: usize = 16;
/// Bytes of a body that is too short to tell compressed bytes from a text by their kinds.
const SHORT: usize = 256;
/// Larger buffers are freed before the next body.
const KEPT_SIZE: usize = 4 << 20;

/// A content coding that is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    /// `None` for `identity`, `chunked`, and what is no coding, of which there is much.
    fn from_name(name: &[u8]) -> Option<Self> {
        const CODINGS: [(&str, Coding); 5] = [
            ("gzip", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("deflate", Coding::Deflate),
            ("br", Coding::Brotli),
            ("zstd", Coding::Zstd),
        ];
        let is_name = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let found = CODINGS.iter().find(|(known, _)| is_name(known));
        found.map(|(_, coding)| *coding)
    }
}

/// A decoder of bodies. It keeps its buffers from one to the next.
pub(crate) struct Bodies {
    limit: usize,
    codings: Vec<Coding>,
    decoders: Decoders,
    /// The body as far as it is decoded.
    decoded: Vec<u8>,
    /// Where its next coding is decoded to.
    next: Vec<u8>,
}

impl Bodies {
    /// Decodes bodies to at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            codings: Vec::new(),
            decoders: Decoders {
                gzip: Gzip::new(),
                inflate: Inflate::new(),
                zstd: Zstandard::new(ZSTD_WINDOW_LOG),
            },
            decoded: Vec::new(),
            next: Vec::new(),
        }
    }

    pub(crate) fn free(&mut self) {
        for buffer in [&mut self.decoded, &mut self.next] {
            if buffer.capacity() > KEPT_SIZE {
                *buffer = Vec::new();
            }
        }
    }

    /// The body of a response, decoded.
    ///
    /// # Errors
    /// [`Reason::Broken`] when it has more bytes than the limit; [`Reason::Encoding`] when not one byte of it can be decoded, or it
    /// has too many codings, or an unknown one.
    pub(crate) fn decode<'a>(
        &'a mut self,
        response: &Response<'a>,
    ) -> Result<(&'a [u8], Extent), Reason<'static>> {
        self.free();
        // Of what is in `decoded`.
        let mut extent = None;
        self.decoded.clear();
        if is_chunked(&response.headers) {
            extent = chunked::decode(response.body, &mut self.decoded)
                .or_else(|| chunked::decode_leniently(response.body, &mut self.decoded))
                .or_else(|| chunked::decode_behind_damage(response.body, &mut self.decoded));
        } else if chunked::decode(response.body, &mut self.decoded) == Some(Extent::Whole)
            && !self.decoded.is_empty()
        {
            // No text has all of the sizes.
            extent = Some(Extent::Whole);
        }
        self.codings.clear();
        for field in ["Content-Encoding", "Transfer-Encoding"] {
            let names = tokens(&response.headers, field);
            self.codings.extend(names.filter_map(Coding::from_name));
        }
        if self.codings.len() > MAX_CODINGS {
            return Err(Reason::Encoding);
        }
        let mut has_decoded = false;
        let mut tried = 0;
        loop {
            let body = match extent {
                Some(_) => self.decoded.as_slice(),
                None => response.body,
            };
            // The last one was applied last. No text begins as gzip and zstd do.
            let coding = match self.codings.pop() {
                Some(coding) => coding,
                None if tried == MAX_CODINGS => break,
                None if body.starts_with(GZIP_MAGIC) => Coding::Gzip,
                None if body.starts_with(ZSTD_MAGIC) => Coding::Zstd,
                None => break,
            };
            tried += 1;
            self.next.clear();
            let decoded = self
                .decoders
                .decode(coding, body, &mut self.next, self.limit)?;
            if let Some(decoded) = decoded {
                has_decoded = true;
                std::mem::swap(&mut self.decoded, &mut self.next);
                if extent != Some(Extent::Start) {
                    extent = Some(decoded);
                }
            }
        }
        // Some are chunked within another coding, or twice.
        if extent.is_some() {
            self.next.clear();
            let within = chunked::decode(&self.decoded, &mut self.next);
            if within == Some(Extent::Whole) && !self.next.is_empty() {
                std::mem::swap(&mut self.decoded, &mut self.next);
            }
        }
        let (body, extent) = match extent {
            Some(extent) => (self.decoded.as_slice(), extent),
            None => (response.body, Extent::Whole),
        };
        let mut names = tokens(&response.headers, "Content-Encoding");
        let is_encoded =
            names.any(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"));
        if is_encoded && !has_decoded && !is_like_text(body) {
            Err(Reason::Encoding)
        } else {
            Ok((body, extent))
        }
    }

    /// The body of a response without its chunks; `None` if it has none.
    pub(crate) fn without_chunks(&mut self, response: &Response<'_>) -> Option<&[u8]> {
        self.decoded.clear();
        if !is_chunked(&response.headers) {
            return None;
        }
        chunked::decode(response.body, &mut self.decoded)?;
        Some(self.decoded.as_slice())
    }
}

fn is_chunked(headers: &Headers<'_>) -> bool {
    tokens(headers, "Transfer-Encoding").any(|token| token.eq_ignore_ascii_case(b"chunked"))
}

/// The parts between commas of all fields of a name.
fn tokens<'a>(
    headers: &Headers<'a>,
    field: &'static str,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let values = headers.values(field);
    values.flat_map(|value| value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii))
}

struct Decoders {
    gzip: Gzip,
    inflate: Inflate,
    zstd: Zstandard,
}

impl Decoders {
    /// Decodes `body` to the end of `output`; `None` if it does not begin as the coding says.
    fn decode(
        &mut self,
        coding: Coding,
        body: &[u8],
        output: &mut Vec<u8>,
        limit: usize,
    ) -> Result<Option<Extent>, Reason<'static>> {
        let is_whole = match coding {
            Coding::Gzip if body.starts_with(GZIP_MAGIC) => {
                each_member(body, GZIP_MAGIC, |input| {
                    self.gzip.start();
                    append(output, limit, |room| self.gzip.read(input, room))
                })?
            }
            Coding::Zstd if body.starts_with(ZSTD_MAGIC) => {
                each_member(body, ZSTD_MAGIC, |input| {
                    if self.zstd.start().is_err() {
                        return Ok(false);
                    }
                    append(output, limit, |room| self.zstd.read(input, room))
                })?
            }
            Coding::Deflate if !is_other(body) => self.inflate(body, output, limit)?,
            Coding::Brotli if !is_other(body) => unbrotli(body, output, limit)?,
            _ => return Ok(None),
        };
        // Deflate and Brotli have no magic number. If the body is a text all the same, it seldom decodes, and then to few bytes.
        let may_be_text =
            matches!(coding, Coding::Deflate | Coding::Brotli) && is_surely_text(body);
        // A stream of zlib has a checksum.
        let is_sure = is_whole && (output.len() >= body.len() || body.starts_with(b"\x78"));
        match is_whole {
            _ if may_be_text && !is_sure => Ok(None),
            true => Ok(Some(Extent::Whole)),
            false if output.is_empty() => Err(Reason::Encoding),
            false => Ok(Some(Extent::Start)),
        }
    }

    /// Decodes zlib's format, which `deflate` stands for, or the bare deflate format, which some servers send.
    fn inflate(
        &mut self,
        body: &[u8],
        output: &mut Vec<u8>,
        limit: usize,
    ) -> Result<bool, Reason<'static>> {
        let is_zlib = matches!(body, [method, flags, ..]
            if method & 15 == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0);
        let format = if is_zlib {
            Format::Zlib
        } else {
            Format::Deflate
        };
        self.inflate.start(format);
        let (mut left, mut state) = (body, InflateState::Open);
        append(output, limit, |room| {
            if state == InflateState::Open {
                let inflated = self.inflate.read(left, true, room);
                left = &left[inflated.read..];
                state = inflated.state;
                if inflated.written > 0 {
                    return Ok(Decoded::Bytes(inflated.written));
                }
            }
            Ok(match state {
                InflateState::Broken(fault) => Decoded::Broken(fault),
                // With nothing written, it cannot be open.
                InflateState::Ended | InflateState::Open => Decoded::End,
            })
        })
    }
}

/// Decodes one member of `body` after the other, as long as `magic` comes next; `false` if one of them is broken.
fn each_member(
    body: &[u8],
    magic: &[u8],
    mut decode: impl FnMut(&mut Input<&[u8]>) -> Result<bool, Reason<'static>>,
) -> Result<bool, Reason<'static>> {
    let mut input = Input::new(body);
    loop {
        let is_whole = decode(&mut input)?;
        let next = input.peek(magic.len());
        if !is_whole || !next.is_ok_and(|bytes| bytes.starts_with(magic)) {
            return Ok(is_whole);
        }
    }
}

fn unbrotli(body: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<bool, Reason<'static>> {
    let mut decoder = Decompressor::new(body, BROTLI_INPUT);
    append(output, limit, |room| {
        Ok(match decoder.read(room) {
            Ok(0) => Decoded::End,
            Ok(count) => Decoded::Bytes(count),
            Err(_) => Decoded::Broken(Fault::Damaged),
        })
    })
}

/// Appends what `read` decodes, up to its end; `false` if it is broken before.
fn append(
    output: &mut Vec<u8>,
    limit: usize,
    mut read: impl FnMut(&mut [u8]) -> io::Result<Decoded>,
) -> Result<bool, Reason<'static>> {
    loop {
        let start = output.len();
        if start > limit {
            return Err(Reason::Broken(Fault::TooLong));
        }
        output.resize(start + PIECE, 0);
        let decoded = read(&mut output[start..]);
        let Ok(Decoded::Bytes(count)) = decoded else {
            output.truncate(start);
            return Ok(matches!(decoded, Ok(Decoded::End)));
        };
        output.truncate(start + count);
    }
}

/// Whether a body that may be compressed is a text. Of a short one, too few bytes tell it, so it must be in UTF-8.
fn is_surely_text(body: &[u8]) -> bool {
    is_like_text(body) && (body.len() >= SHORT || simdutf8::basic::from_utf8(body).is_ok())
}

/// Whether a body begins like text or as another coding. Deflate and Brotli have no magic number, but hardly ever begin so.
fn is_other(body: &[u8]) -> bool {
    let mut sample = body.iter().take(TEXT_SAMPLE);
    body.starts_with(GZIP_MAGIC)
        || body.starts_with(ZSTD_MAGIC)
        || sample.all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;
    use crate::headers::FieldTable;
    use crate::test_files::{gzip_member, zstd_frame};

    /// `brotli --quality 11` of [`page`].
    const BROTLI: &[u8] =
        b"\x1b\x45\x01\xe0\xa5\xc3\xca\xdc\xe4\xc0\x06\x1c\xb8\x14\x71\xe2\x0b\xeb\xb0\x31\x06\
        \xbe\xad\xa3\x97\xdf\x33\xd4\x52\xf2\x36\xfc\x95\xe1\x0f";

    fn page() -> Vec<u8> {
        let text = "near duplicate ".repeat(20);
        format!("<html><body>{text}</body></html>").into_bytes()
    }

    fn deflate(content: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn decode_to(
        limit: usize,
        fields: &str,
        body: &[u8],
    ) -> Result<(Vec<u8>, Extent), Reason<'static>> {
        let block = [
            &b"HTTP/1.1 200 OK\r\n"[..],
            fields.as_bytes(),
            b"\r\n",
            body,
        ]
        .concat();
        let mut table = FieldTable::default();
        let response = crate::http::parse(&block, &mut table).unwrap();
        let mut bodies = Bodies::new(limit);
        let owned = |(body, extent): (&[u8], Extent)| (body.to_vec(), extent);
        let first = bodies.decode(&response).map(owned);
        // The same again, from used buffers.
        assert_eq!(bodies.decode(&response).map(owned), first);
        first
    }

    /// The whole body, decoded.
    fn decode(fields: &str, body: &[u8]) -> Result<Vec<u8>, Reason<'static>> {
        decode_to(1 << 20, fields, body).map(|(body, extent)| {
            assert_eq!(extent, Extent::Whole);
            body
        })
    }

    #[test]
    fn a_text_in_any_encoding_may_have_kept_its_coding() {
        let word = |at: u32| format!("слово{} ", at.wrapping_mul(2_654_435_761) >> 20);
        for first in 0..200 {
            let text: String = (1000 * first..1000 * first + 60).map(word).collect();
            let utf_16 = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let koi = encoding_rs::KOI8_R.encode(&text).0.into_owned();
            let windows = encoding_rs::WINDOWS_1251.encode(&text).0.into_owned();
            for encoded in [koi, windows, utf_16] {
                for coding in ["deflate", "br", "none"] {
                    let fields = format!("Content-Encoding: {coding}\r\n");
                    assert_eq!(decode(&fields, &encoded), Ok(encoded.clone()));
                }
            }
        }
    }

    #[test]
    fn every_coding_is_decoded() {
        let page = page();
        let two = [gzip_member(&page[..100]), gzip_member(&page[100..])].concat();
        for (coding, body) in [
            ("gzip", gzip_member(&page)),
            ("x-GZIP", two),
            ("deflate", zlib(&page)),
            ("deflate", deflate(&page)),
            ("br", BROTLI.to_vec()),
            ("zstd", zstd_frame(&page, None)),
            ("identity", page.clone()),
            ("utf-8", page.clone()),
            ("gzip, br", gzip_member(&page)),
            ("deflate, gzip", gzip_member(&zlib(&page))),
            (
                "gzip\r\nContent-Encoding: zstd",
                zstd_frame(&gzip_member(&page), None),
            ),
        ] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            assert_eq!(decode(&fields, &body), Ok(page.clone()), "{coding}");
            let chunked = format!("{fields}Transfer-Encoding: chunked\r\n");
            assert_eq!(decode(&chunked, &body), Ok(page.clone()), "{coding}");
            let (first, second) = body.split_at(body.len() / 2);
            let mut chunks = format!("{:x}\r\n", first.len()).into_bytes();
            chunks.extend_from_slice(first);
            chunks.extend_from_slice(format!("\r\n{:X}\r\n", second.len()).as_bytes());
            chunks.extend_from_slice(second);
            chunks.extend_from_slice(b"\r\n0\r\n\r\n");
            assert_eq!(decode(&chunked, &chunks), Ok(page.clone()), "{coding}");
        }
        let fields = "Transfer-Encoding: gzip, chunked\r\n";
        assert_eq!(decode(fields, &gzip_member(&page)), Ok(page));
    }

    #[test]
    fn a_body_that_is_not_encoded_is_taken_as_it_is() {
        for coding in ["gzip", "deflate", "br", "zstd", "gzip, br", "x", ""] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            for body in [&page()[..], b"", b"f", b"<", b"{\"a\": 1}"] {
                assert_eq!(decode(&fields, body), Ok(body.to_vec()), "{coding}");
            }
        }
    }

    #[test]
    fn a_body_is_decoded_by_its_first_bytes_or_is_damaged() {
        let page = page();
        let gzip = gzip_member(&page);
        for (coding, body) in [
            ("deflate", gzip.clone()),
            ("br", gzip.clone()),
            ("zstd", gzip.clone()),
            ("gzip", zstd_frame(&page, None)),
            ("gzip", gzip_member(&gzip)),
            ("identity", gzip.clone()),
            ("dcb", gzip),
        ] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            assert_eq!(decode(&fields, &body).as_ref(), Ok(&page), "{coding}");
        }
        for (coding, body) in [
            ("gzip", zlib(&page)),
            ("gzip", BROTLI.to_vec()),
            ("compress", BROTLI.to_vec()),
        ] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            assert_eq!(decode(&fields, &body), Err(Reason::Encoding), "{coding}");
        }
        // Chunks of which no field tells.
        assert_eq!(decode("", b"4\r\ntext\r\n0\r\n\r\n"), Ok(b"text".to_vec()));
        assert_eq!(decode("", b"4\r\ntext\r\n"), Ok(b"4\r\ntext\r\n".to_vec()));
        // Texts, decoded by the crawler, that begin beyond ASCII.
        for coding in ["br", "deflate", "gzip", "zstd"] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            for text in ["\u{feff}<p>text", "\u{65b0}\u{95fb}", "\u{e9}t\u{e9}"] {
                let body = text.repeat(200).into_bytes();
                assert_eq!(
                    decode(&fields, &body).as_ref(),
                    Ok(&body),
                    "{coding}, {text}"
                );
            }
        }
        // A text, decoded by the crawler.
        let text = [&b"\xff\xfe"[..], b"a\0b\0"].concat();
        assert_eq!(decode("Content-Encoding: gzip\r\n", &text), Ok(text));
    }

    #[test]
    fn a_body_that_is_cut_off_gives_its_start() {
        let content: Vec<u8> = (0..50_000_u32).map(|n| (n * n / 7 % 251) as u8).collect();
        for (coding, body) in [
            ("gzip", gzip_member(&content)),
            ("deflate", zlib(&content)),
            ("deflate", deflate(&content)),
            ("br", BROTLI.to_vec()),
        ] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            let body = &body[..body.len() - 5];
            let (start, extent) = decode_to(1 << 20, &fields, body).unwrap();
            assert_eq!(extent, Extent::Start, "{coding}");
            let is_start = match coding {
                "br" => page().starts_with(&start),
                _ => content.starts_with(&start),
            };
            assert!(is_start && !start.is_empty(), "{coding}");
        }
        let bare = b"\x1f\x8b\x08\0\0\0\0\0\0\xff";
        assert_eq!(
            decode("Content-Encoding: gzip\r\n", bare),
            Err(Reason::Encoding)
        );
    }

    #[test]
    fn bombs_are_too_long() {
        let zeros = vec![0; 300_000];
        for (coding, body) in [
            ("gzip", gzip_member(&zeros)),
            ("deflate", zlib(&zeros)),
            ("zstd", zstd_frame(&zeros, None)),
            ("gzip, gzip", gzip_member(&gzip_member(&zeros))),
        ] {
            let fields = format!("Content-Encoding: {coding}\r\n");
            assert_eq!(
                decode_to(200_000, &fields, &body),
                Err(Reason::Broken(Fault::TooLong)),
                "{coding}"
            );
            let whole = Ok((zeros.clone(), Extent::Whole));
            assert_eq!(decode_to(300_000, &fields, &body), whole, "{coding}");
        }
        let fields = "Content-Encoding: gzip, gzip, gzip, gzip, gzip\r\n";
        assert_eq!(decode(fields, b""), Err(Reason::Encoding));
    }

    proptest! {
        #[test]
        fn any_body_is_decoded_without_a_panic(
            coding in proptest::sample::select(vec!["gzip", "deflate", "br", "zstd", "gzip, br, deflate"]),
            start in proptest::sample::select(vec![&b""[..], GZIP_MAGIC, ZSTD_MAGIC, b"\x78\x9c", &BROTLI[..20]]),
            rest in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let fields = format!("Content-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n");
            let body = [start, &rest].concat();
            if let Ok((body, _)) = decode_to(10_000, &fields, &body) {
                prop_assert!(body.len() <= 10_000);
            }
        }
    }
}
