//! The text of a file of records, in UTF-8 whatever its encoding.
//!
//! ASCII is the same in nearly all encodings, so the reader passes it on. At the first other byte it looks at [`SAMPLE`] bytes: if
//! [`FEW`] of them or more are not ASCII, they decide the encoding of the rest of the file, but for lines in UTF-8; if not, only these
//! bytes are decoded, and the search goes on. A file in UTF-8 passes unchanged, with its invalid bytes. In other files, the reader writes one invalid byte
//! for each malformed sequence, so that later stages count and replace both alike.

use std::io::{self, BufRead, Read};

use encoding_rs::{
    BIG5, Decoder, DecoderResult, GB18030, GBK, ISO_2022_JP, SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE,
};
use memchr::{memchr, memrchr};
use warc::charset::{self, Encoding, FEW, Hints, SAMPLE};

use super::encoded_bytes::read_buffered;

/// Encodings in which bytes of ASCII's punctuation are parts of other characters.
const LOOK_LIKE_ASCII: [&Encoding; 7] = [
    UTF_16LE,
    UTF_16BE,
    ISO_2022_JP,
    SHIFT_JIS,
    BIG5,
    GBK,
    GB18030,
];
/// Bytes of the start of a file in which UTF-16 is found.
const START: usize = 4 << 10;
/// Stands for bytes of no character.
const WRONG: &[u8] = b"\xff";
/// Stands for them in a copy.
const WRONG_IN_COPY: &[u8] = "\u{fffd}".as_bytes();
/// Bytes that are decoded at a time.
const PIECE: usize = 64 << 10;
/// The most bytes of a line that is judged by itself.
const LONG_LINE: usize = 256 << 10;
/// Bytes of text that are decoded at a time.
const DECODED: usize = 16 << 10;

/// How the bytes that come next are read.
enum State {
    Start,
    /// It is not known yet.
    Ascii,
    /// As they are.
    Utf8,
    Other(Decoder),
}

/// How a copy of a file is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    InUtf8,
    /// As the file is; in UTF-8 if bytes of its encoding look like ASCII and are not: [`LOOK_LIKE_ASCII`].
    AsItIs,
}

pub(super) struct Decoded {
    bytes: Box<dyn BufRead + Send>,
    charset: Option<&'static Encoding>,
    copied: Option<Copied>,
    state: State,
    /// How many of the bytes that come next are known to be ASCII.
    plain: usize,
    /// The last of these.
    before: u8,
    /// Bytes that were read ahead, from `read` on. They come before those of `bytes`.
    ahead: Vec<u8>,
    read: usize,
    /// Whether the bytes that come next are the rest of a longer line.
    is_within_line: bool,
    /// Text that was decoded, from `given` on.
    text: Vec<u8>,
    given: usize,
    /// Called once, with the encoding of a file that is not UTF-8 and has no byte order mark.
    found: Option<Box<dyn FnOnce(&'static Encoding) + Send>>,
}

impl Decoded {
    /// The text of `bytes`, in `charset` if it is known, or as a copy has it. Calls `found` if it is another than UTF-8, and not said
    /// by the file.
    pub(super) fn new(
        bytes: Box<dyn BufRead + Send>,
        charset: Option<&'static Encoding>,
        copied: Option<Copied>,
        found: impl FnOnce(&'static Encoding) + Send + 'static,
    ) -> Self {
        Self {
            bytes,
            charset,
            copied,
            state: State::Start,
            plain: 0,
            before: b' ',
            ahead: Vec::new(),
            read: 0,
            is_within_line: false,
            text: Vec::new(),
            given: 0,
            found: Some(Box::new(found)),
        }
    }

    /// Whether bytes of an encoding are given as they are.
    fn keeps(&self, encoding: &'static Encoding) -> bool {
        encoding == UTF_8
            || (self.copied == Some(Copied::AsItIs) && !LOOK_LIKE_ASCII.contains(&encoding))
    }

    /// Reads ahead until `length` bytes are there, or all.
    fn read_ahead(&mut self, length: usize) -> io::Result<()> {
        if self.read > 0 {
            self.ahead.drain(..self.read);
            self.read = 0;
        }
        while self.ahead.len() < length {
            let bytes = self.bytes.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let taken = bytes.len().min(length - self.ahead.len());
            self.ahead.extend_from_slice(&bytes[..taken]);
            self.bytes.consume(taken);
        }
        Ok(())
    }

    /// The bytes that come next, not decoded.
    fn next_bytes(&mut self) -> io::Result<&[u8]> {
        if self.read < self.ahead.len() {
            Ok(&self.ahead[self.read..])
        } else {
            self.bytes.fill_buf()
        }
    }

    /// Decides how the file is read that begins here.
    fn start(&mut self) -> io::Result<()> {
        self.read_ahead(START)?;
        let hints = Hints {
            charset: self.charset,
            ..Hints::default()
        };
        let mark = Encoding::for_bom(&self.ahead);
        // Only UTF-16 has zeros.
        if self.charset.is_none() && mark.is_none() && memchr(0, &self.ahead).is_none() {
            self.state = State::Ascii;
            return Ok(());
        }
        let choice = charset::choose(&self.ahead, &hints);
        if mark.is_some() {
            self.found = None;
        }
        if !(self.copied == Some(Copied::AsItIs) && self.keeps(choice.encoding)) {
            self.read = choice.mark;
        }
        self.read_as(choice.encoding);
        Ok(())
    }

    fn read_as(&mut self, encoding: &'static Encoding) {
        self.state = if self.keeps(encoding) {
            State::Utf8
        } else {
            self.tell(encoding);
            State::Other(encoding.new_decoder_without_bom_handling())
        };
    }

    /// What stands for bytes of no character.
    fn wrong(&self) -> &'static [u8] {
        match self.copied {
            Some(_) => WRONG_IN_COPY,
            None => WRONG,
        }
    }

    fn tell(&mut self, encoding: &'static Encoding) {
        if let Some(found) = self.found.take() {
            found(encoding);
        }
    }

    /// Chooses the encoding at a byte that is not ASCII: of the rest of the file, or, with too few such bytes, of a sample, which it
    /// decodes.
    fn decide(&mut self) -> io::Result<()> {
        self.read_ahead(SAMPLE)?;
        let with_before = [&[self.before], &self.ahead[..]].concat();
        let encoding = charset::choose_within(&with_before);
        let others = self.ahead.iter().filter(|byte| !byte.is_ascii());
        let is_whole = self.ahead.len() < SAMPLE;
        // Its bytes are those of ASCII.
        if is_whole || encoding == ISO_2022_JP || others.take(FEW).count() == FEW {
            self.read_as(encoding);
            return Ok(());
        }
        // Up to where a character ends in any encoding.
        let end = self.ahead.iter().rposition(u8::is_ascii);
        let end = end.map_or(self.ahead.len(), |end| end + 1);
        if self.keeps(encoding) {
            self.text.extend_from_slice(&self.ahead[..end]);
        } else {
            self.tell(encoding);
            let mut decoder = encoding.new_decoder_without_bom_handling();
            let (bytes, wrong) = (&self.ahead[..end], self.wrong());
            decode(&mut decoder, bytes, true, wrong, &mut self.text);
        }
        self.read = end;
        Ok(())
    }

    /// Decodes more, unless the file ends.
    fn decode_more(&mut self) -> io::Result<()> {
        let mut length = PIECE;
        self.read_ahead(length)?;
        if self.ahead.len() == length && !self.ahead.contains(&b'\n') {
            length = LONG_LINE;
            self.read_ahead(length)?;
        }
        let is_end = self.ahead.len() < length;
        let wrong = self.wrong();
        // Whole lines, if there are any.
        let end = memrchr(b'\n', &self.ahead).filter(|_| !is_end);
        let end = end.map_or(self.ahead.len(), |end| end + 1);
        let is_named = self.charset.is_some();
        if let State::Other(decoder) = &mut self.state {
            let other = decoder.encoding();
            let mut decoded = 0;
            let mut at = 0;
            for line in self.ahead[..end].split_inclusive(|byte| *byte == b'\n') {
                let is_whole = !self.is_within_line && (is_end || line.ends_with(b"\n"));
                if is_whole && !is_named && charset::is_line_of_utf_8(line, other) {
                    let before = &self.ahead[decoded..at];
                    decode(decoder, before, false, wrong, &mut self.text);
                    self.text.extend_from_slice(line);
                    decoded = at + line.len();
                }
                at += line.len();
                self.is_within_line = !line.ends_with(b"\n");
            }
            let rest = &self.ahead[decoded..end];
            decode(decoder, rest, is_end, wrong, &mut self.text);
            if is_end {
                // What follows is nothing.
                self.state = State::Utf8;
            }
        }
        self.read = end;
        Ok(())
    }
}

/// Appends the text of bytes, with `wrong` for those of no character.
fn decode(decoder: &mut Decoder, mut bytes: &[u8], is_end: bool, wrong: &[u8], text: &mut Vec<u8>) {
    let mut room = [0; DECODED];
    loop {
        let (result, read, written) =
            decoder.decode_to_utf8_without_replacement(bytes, &mut room, is_end);
        text.extend_from_slice(&room[..written]);
        bytes = &bytes[read..];
        match result {
            DecoderResult::InputEmpty => return,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => text.extend_from_slice(wrong),
        }
    }
}

impl BufRead for Decoded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        loop {
            if self.given < self.text.len() {
                return Ok(&self.text[self.given..]);
            }
            self.text.clear();
            self.given = 0;
            match self.state {
                State::Start => self.start()?,
                State::Ascii if self.plain > 0 => {
                    let plain = self.plain;
                    return Ok(&self.next_bytes()?[..plain]);
                }
                State::Ascii => {
                    let bytes = self.next_bytes()?;
                    let is_plain = |byte: &u8| byte.is_ascii() && *byte != 0x1b;
                    let plain = if bytes.is_ascii() && memchr(0x1b, bytes).is_none() {
                        bytes.len()
                    } else {
                        bytes.iter().take_while(|byte| is_plain(byte)).count()
                    };
                    match plain.checked_sub(1).map(|last| bytes[last]) {
                        Some(before) => (self.plain, self.before) = (plain, before),
                        None if bytes.is_empty() => return Ok(&[]),
                        None => self.decide()?,
                    }
                }
                State::Utf8 => return self.next_bytes(),
                State::Other(_) => {
                    self.decode_more()?;
                    if self.text.is_empty() && matches!(self.state, State::Utf8) {
                        return Ok(&[]);
                    }
                }
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        if self.given < self.text.len() {
            self.given += bytes;
            return;
        }
        self.plain = self.plain.saturating_sub(bytes);
        if self.read < self.ahead.len() {
            self.read += bytes;
        } else {
            self.bytes.consume(bytes);
        }
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;
    use std::sync::{Arc, Mutex};

    use encoding_rs::{WINDOWS_1251, WINDOWS_1252};

    use super::*;

    const RUSSIAN: &str =
        "Вчера вечером мы долго сидели на берегу реки и говорили о том, как изменился город.\n";
    const JAPANESE: &str =
        "昨日の夕方、私たちは川岸に長いあいだ座って、町がどのように変わったかを話しました。\n";

    /// The text of bytes that come in parts, and the encoding that was found.
    fn read(bytes: &[u8], part: usize) -> (Vec<u8>, Option<&'static str>) {
        let told = Arc::new(Mutex::new(None));
        let teller = Arc::clone(&told);
        let source = Box::new(BufReader::with_capacity(
            part,
            io::Cursor::new(bytes.to_vec()),
        ));
        let mut decoded = Decoded::new(source, None, None, move |found| {
            *teller.lock().unwrap() = Some(found.name());
        });
        let mut text = Vec::new();
        decoded.read_to_end(&mut text).unwrap();
        let found = *told.lock().unwrap();
        (text, found)
    }

    fn check(bytes: &[u8], text: &[u8], encoding: Option<&'static str>) {
        for part in [1, 7, 4096, 1 << 20] {
            let (found, told) = read(bytes, part);
            assert!(found == text, "{part}: {}", String::from_utf8_lossy(&found));
            assert_eq!(told, encoding);
        }
    }

    #[test]
    fn text_is_decoded_whatever_the_parts() {
        let ascii = "id,text\n".repeat(2_000);
        for text in ["", "a", &ascii] {
            check(text.as_bytes(), text.as_bytes(), None);
        }
        let russian = RUSSIAN.repeat(20);
        let text = format!("{ascii}{russian}{ascii}{russian}");
        check(text.as_bytes(), text.as_bytes(), None);
        let bytes = WINDOWS_1251.encode(&text).0;
        check(&bytes, text.as_bytes(), Some("windows-1251"));
        let text = JAPANESE.repeat(4_000);
        check(
            &SHIFT_JIS.encode(&text).0,
            text.as_bytes(),
            Some("Shift_JIS"),
        );
    }

    #[test]
    fn utf_16_is_decoded() {
        let text = format!("id,text\n1,{RUSSIAN}");
        let encoded: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&encoded, text.as_bytes(), Some("UTF-16LE"));
        let marked = [b"\xff\xfe", &encoded[..]].concat();
        check(&marked, text.as_bytes(), None);
    }

    #[test]
    fn a_wrong_byte_is_one_in_any_encoding() {
        let text = RUSSIAN.repeat(3);
        let broken = [text.as_bytes(), b"\xff", text.as_bytes()].concat();
        check(&broken, &broken, None);
        let text = JAPANESE.repeat(3);
        let encoded = SHIFT_JIS.encode(&text).0;
        let broken = [&encoded[..], b"\xff\n", &encoded[..]].concat();
        let expected = [text.as_bytes(), b"\xff\n", text.as_bytes()].concat();
        check(&broken, &expected, Some("Shift_JIS"));
    }

    #[test]
    fn bytes_that_look_like_a_mark_are_wrong_within_a_text() {
        let text = b"{\"text\":\"\xff\xfe\"}\n";
        check(text, text, None);
    }

    #[test]
    fn a_few_bytes_do_not_decide_for_all_that_follows() {
        let name = WINDOWS_1252.encode("José\n").0;
        let ascii = "a,b\n".repeat(100_000);
        let bytes = [&name[..], ascii.as_bytes(), RUSSIAN.as_bytes()].concat();
        let text = format!("José\n{ascii}{RUSSIAN}");
        check(&bytes, text.as_bytes(), Some("windows-1252"));
    }

    #[test]
    fn lines_in_utf_8_are_read_as_that_behind_others() {
        let bad = WINDOWS_1252
            .encode("José é à ç ô ü ñ ï â è ê ë î ö ä û ù\n")
            .0;
        let ascii = "a,b\n".repeat(100_000);
        let long = RUSSIAN.trim_end().repeat(1000) + "\n";
        let lines = [RUSSIAN.as_bytes(), &bad[..], long.as_bytes(), &bad[..]].concat();
        let both = [&bad[..], ascii.as_bytes(), &lines].concat();
        let text = WINDOWS_1252.decode(&bad).0;
        let text = format!("{text}{ascii}{RUSSIAN}{text}{long}{text}");
        check(&both, text.as_bytes(), Some("windows-1252"));
        // Some letters of Thai look like UTF-8.
        let thai = "รถ ลด\n".repeat(3) + &"สวัสดีครับ ผมมาจากกรุงเทพมหานคร\n".repeat(40);
        let encoded = encoding_rs::WINDOWS_874.encode(&thai).0;
        check(&encoded, thai.as_bytes(), Some("windows-874"));
    }

    #[test]
    fn a_charset_that_is_named_counts() {
        let bytes = GBK.encode("我们").0.into_owned();
        let bytes = Box::new(io::Cursor::new(bytes));
        let mut decoded = Decoded::new(bytes, Some(GBK), None, |_| {});
        let mut text = String::new();
        decoded.read_to_string(&mut text).unwrap();
        assert_eq!(text, "我们");
    }
}
