//! [`Gzip`]: one gzip member after the other (RFC 1952).
//!
//! Readers of gzip files do not say where a member starts, nor go on after a damaged one. So this parses the header,
//! inflates the deflate stream from the buffer of the input into the buffer of the caller, and checks the trailer.

use std::io::{self, BufRead};

use flate2::Crc;
use sirocco::Format;

use super::decoded::Decoded;
use super::inflate::{Inflate, State};
use crate::fault::Fault;
use crate::input::Input;

/// How a member starts: the magic number, and deflate, the only method.
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Bytes of a header without optional fields.
pub(crate) const HEADER_LENGTH: usize = 10;

mod flag {
    pub(super) const HEADER_CHECKSUM: u8 = 1 << 1;
    pub(super) const EXTRA: u8 = 1 << 2;
    pub(super) const NAME: u8 = 1 << 3;
    pub(super) const COMMENT: u8 = 1 << 4;
    pub(super) const RESERVED: u8 = 0b1110_0000;
}

/// Whether `bytes` start with the header of a member as the usual programs write it. Stricter than the decoder: used to find
/// a member among other bytes.
pub(crate) fn is_usual_header(bytes: &[u8]) -> bool {
    let Some(header) = bytes.first_chunk::<HEADER_LENGTH>() else {
        return false;
    };
    let [_, _, _, flags, .., level, system] = *header;
    header.starts_with(&MAGIC)
        && flags & flag::RESERVED == 0
        // Of deflate: neither the best nor the fastest, the best, the fastest.
        && matches!(level, 0 | 2 | 4)
        // RFC 1952 has 0 to 13; zlib has up to 19.
        && matches!(system, 0..=19 | 255)
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Header,
    Deflate,
    Trailer,
    /// Nothing more: the trailer was compared.
    Checked,
    /// Nothing more: the deflate stream is broken here.
    Fault(Fault),
}

pub(crate) struct Gzip {
    inflate: Inflate,
    crc: Crc,
    next: Part,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Self {
            inflate: Inflate::new(),
            crc: Crc::new(),
            next: Part::Header,
        }
    }

    /// Prepares for a member, whose header comes next.
    pub(crate) fn start(&mut self) {
        self.inflate.start(Format::Deflate);
        self.crc.reset();
        self.next = Part::Header;
    }

    /// Decodes the next bytes of the member into `output`, which must not be empty.
    pub(crate) fn read<R: BufRead>(
        &mut self,
        input: &mut Input<R>,
        output: &mut [u8],
    ) -> io::Result<Decoded> {
        loop {
            match self.next {
                Part::Header => {
                    if let Some(fault) = skip_header(input)? {
                        return Ok(Decoded::Broken(fault));
                    }
                    self.next = Part::Deflate;
                }
                Part::Deflate => {
                    if let Some(decoded) = self.inflate(input, output)? {
                        return Ok(decoded);
                    }
                }
                Part::Trailer => return self.check_trailer(input),
                Part::Checked => return Ok(Decoded::End),
                Part::Fault(fault) => return Ok(Decoded::Broken(fault)),
            }
        }
    }

    /// Whether the deflate stream has ended, and what should be the trailer behind it was read.
    pub(crate) fn has_read_trailer(&self) -> bool {
        matches!(self.next, Part::Checked)
    }

    /// Inflates once; `None` if that gave no byte, but more may come.
    fn inflate<R: BufRead>(
        &mut self,
        input: &mut Input<R>,
        output: &mut [u8],
    ) -> io::Result<Option<Decoded>> {
        let bytes = input.fill()?;
        let inflated = self.inflate.read(bytes, bytes.is_empty(), output);
        input.consume(inflated.read);
        let output = &output[..inflated.written];
        self.crc.update(output);
        match inflated.state {
            State::Open => {}
            State::Ended => self.next = Part::Trailer,
            // Whole records may come before the damage.
            State::Broken(fault) => self.next = Part::Fault(fault),
        }
        Ok((!output.is_empty()).then_some(Decoded::Bytes(output.len())))
    }

    fn check_trailer<R: BufRead>(&mut self, input: &mut Input<R>) -> io::Result<Decoded> {
        let Some([a, b, c, d, size @ ..]) = input.take::<8>()? else {
            return Ok(Decoded::Broken(Fault::Truncated));
        };
        self.next = Part::Checked;
        let is_right = u32::from_le_bytes([a, b, c, d]) == self.crc.sum()
            && u32::from_le_bytes(size) == self.crc.amount();
        Ok(if is_right {
            Decoded::End
        } else {
            Decoded::Broken(Fault::Damaged)
        })
    }
}

/// Skips the header of a member, whose magic number was seen already.
fn skip_header<R: BufRead>(input: &mut Input<R>) -> io::Result<Option<Fault>> {
    let Some(header) = input.take::<HEADER_LENGTH>()? else {
        return Ok(Some(Fault::Truncated));
    };
    let flags = header[3];
    if flags & flag::RESERVED != 0 {
        return Ok(Some(Fault::Damaged));
    }
    let has = |flag: u8| flags & flag != 0;
    let is_whole = (!has(flag::EXTRA) || skip_extra(input)?)
        && (!has(flag::NAME) || input.skip_past(0)?)
        && (!has(flag::COMMENT) || input.skip_past(0)?)
        && (!has(flag::HEADER_CHECKSUM) || input.skip(2)?);
    Ok((!is_whole).then_some(Fault::Truncated))
}

/// Skips the extra field; `false` if the file ends before.
fn skip_extra<R: BufRead>(input: &mut Input<R>) -> io::Result<bool> {
    match input.take::<2>()? {
        Some(length) => input.skip(usize::from(u16::from_le_bytes(length))),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_files::{Trickle, gzip_member};

    fn decode(encoded: &[u8], step: usize) -> (Vec<u8>, Decoded) {
        let mut input = Input::new(Trickle::new(encoded, step));
        let mut gzip = Gzip::new();
        gzip.start();
        let mut all = Vec::new();
        let mut output = [0; 1_000];
        loop {
            match gzip.read(&mut input, &mut output).unwrap() {
                Decoded::Bytes(count) => all.extend_from_slice(&output[..count]),
                last => return (all, last),
            }
        }
    }

    #[test]
    fn optional_fields_of_the_header_are_skipped() {
        let content = vec![b'x'; 5_000];
        let plain = gzip_member(&content);
        let mut full = plain[..3].to_vec();
        full.push(flag::HEADER_CHECKSUM | flag::EXTRA | flag::NAME | flag::COMMENT);
        full.extend_from_slice(&plain[4..10]);
        full.extend_from_slice(b"\x03\0abcname\0comment\0cc");
        full.extend_from_slice(&plain[10..]);
        for encoded in [&plain, &full] {
            for step in [1, 9, 100_000] {
                let (all, last) = decode(encoded, step);
                assert_eq!(last, Decoded::End);
                assert!(all == content);
            }
        }
    }

    #[test]
    fn members_that_are_cut_off_or_damaged_are_noticed() {
        let content: Vec<u8> = (0..4_000_u32).map(|n| (n * n % 251) as u8).collect();
        let encoded = gzip_member(&content);
        for length in 3..encoded.len() {
            let (_, last) = decode(&encoded[..length], 50);
            assert_eq!(last, Decoded::Broken(Fault::Truncated), "{length}");
        }
        for at in encoded.len() - 8..encoded.len() {
            let mut damaged = encoded.clone();
            damaged[at] ^= 1;
            let (all, last) = decode(&damaged, 50);
            assert_eq!(last, Decoded::Broken(Fault::Damaged));
            assert!(all == content);
        }
    }

    #[test]
    fn usual_headers_are_recognised() {
        let member = gzip_member(b"");
        assert!(is_usual_header(&member));
        assert!(!is_usual_header(&member[..9]));
        for at in 0..4 {
            let mut other = member.clone();
            other[at] ^= 0x80;
            assert!(!is_usual_header(&other));
        }
    }
}
