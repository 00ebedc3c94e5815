//! Writers of small WARC files, and a source of few bytes at a time, for tests.

use std::io::{self, BufRead, Read, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

/// A dictionary of `zstd --train` over records like those of [`record`].
pub(crate) const DICTIONARY_BYTES: &[u8] = include_bytes!("../tests/crawl.dict");

/// A dictionary with the id of [`DICTIONARY_BYTES`], and the same text elsewhere in it.
pub(crate) fn other_dictionary() -> Vec<u8> {
    let mut bytes = DICTIONARY_BYTES.to_vec();
    // Behind the tables.
    bytes[200..].rotate_left(37);
    bytes
}

/// A source that gives at most `step` bytes at a time.
pub(crate) struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl<'a> Trickle<'a> {
    pub(crate) fn new(bytes: &'a [u8], step: usize) -> Self {
        Self { bytes, step }
    }
}

impl BufRead for Trickle<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.bytes[..self.bytes.len().min(self.step)])
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.step);
        self.bytes = &self.bytes[count..];
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// How the records of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Plain,
    /// A gzip member for each record.
    GzipMembers,
    /// One gzip member with all records.
    GzipWhole,
    /// Gzip members of a fixed size, whatever the records are.
    GzipBlocks,
    /// A zstd frame for each record.
    ZstdFrames,
    /// A dictionary, and a zstd frame for each record, with skippable frames between them.
    ZstdDictionary,
}

impl Layout {
    pub(crate) const ALL: [Self; 6] = [
        Self::Plain,
        Self::GzipMembers,
        Self::GzipWhole,
        Self::GzipBlocks,
        Self::ZstdFrames,
        Self::ZstdDictionary,
    ];

    pub(crate) fn file(self, records: &[Vec<u8>]) -> Vec<u8> {
        let each = |write: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<u8> {
            records.iter().flat_map(|record| write(record)).collect()
        };
        match self {
            Self::Plain => records.concat(),
            Self::GzipMembers => each(&gzip_member),
            Self::GzipWhole => gzip_member(&records.concat()),
            Self::GzipBlocks => records
                .concat()
                .chunks(1_000)
                .flat_map(gzip_member)
                .collect(),
            Self::ZstdFrames => each(&|record: &[u8]| zstd_frame(record, None)),
            Self::ZstdDictionary => {
                let frames = each(&|record: &[u8]| {
                    let frame = zstd_frame(record, Some(DICTIONARY_BYTES));
                    [frame, skippable_frame(0x50, b"an index")].concat()
                });
                [skippable_frame(0x5d, DICTIONARY_BYTES), frames].concat()
            }
        }
    }
}

pub(crate) fn gzip_member(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A gzip member whose checksum is wrong.
pub(crate) fn damaged_member(content: &[u8]) -> Vec<u8> {
    let mut member = gzip_member(content);
    let checksum = member.len() - 6;
    member[checksum] ^= 1;
    member
}

/// A zstd frame with a checksum.
pub(crate) fn zstd_frame(content: &[u8], dictionary: Option<&[u8]>) -> Vec<u8> {
    let dictionary = dictionary.unwrap_or_default();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    compressor.include_checksum(true).unwrap();
    compressor.compress(content).unwrap()
}

/// A skippable zstd frame; the first byte of its magic number is 0x50 to 0x5f.
pub(crate) fn skippable_frame(first: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    [&[first, 0x2a, 0x4d, 0x18][..], &length, content].concat()
}

/// A record of this type, with further fields.
pub(crate) fn record(record_type: &str, fields: &[(&str, &str)], block: &[u8]) -> Vec<u8> {
    let mut record = format!("WARC/1.0\r\nWARC-Type: {record_type}\r\n");
    for (name, value) in fields {
        record.push_str(&format!("{name}: {value}\r\n"));
    }
    record.push_str(&format!("Content-Length: {}\r\n\r\n", block.len()));
    [record.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Bytes that cannot be compressed, the same for a seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(next).collect()
}
