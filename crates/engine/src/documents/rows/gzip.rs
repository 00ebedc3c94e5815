//! The content of a gzip file of rows: that of all its members, one after the other.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use sirocco::Format;
use sirocco::inflate::Decoder;

/// Bytes of the buffer: the 32 KiB that a member can refer back to, and what is decompressed at a time.
const BUFFER: usize = 256 << 10;

/// Decompresses the members of `source`.
pub(super) struct GzipMembers<R> {
    source: R,
    decoder: Box<Decoder>,
    /// What the decoder wrote last. It looks for what a member repeats there.
    buffer: Vec<u8>,
    /// The part of the buffer that is not read yet; the decoder writes on behind it.
    unread: Range<usize>,
    /// Whether a member begins next, or the file ends.
    is_between: bool,
}

impl<R: BufRead> GzipMembers<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            decoder: Box::new(Decoder::new(Format::Gzip)),
            buffer: vec![0; BUFFER],
            unread: 0..0,
            is_between: true,
        }
    }

    /// Decompresses what comes next into the buffer; nothing at the end of the file.
    fn decompress(&mut self) -> io::Result<()> {
        while self.unread.is_empty() {
            let input = self.source.fill_buf()?;
            let is_end = input.is_empty();
            if self.is_between {
                if is_end {
                    return Ok(());
                }
                self.is_between = false;
                self.unread = 0..0;
            } else if self.unread.end == self.buffer.len() {
                let end = self.unread.end - self.decoder.make_room(&mut self.buffer);
                self.unread = end..end;
            }
            let progress = self.decoder.decompress(input, &mut self.buffer, is_end)?;
            let (read, written) = (progress.consumed, progress.output.len());
            self.is_between = progress.done;
            self.source.consume(read);
            let begin = self.unread.end;
            self.unread = begin..begin + written;
        }
        Ok(())
    }
}

impl<R: BufRead> BufRead for GzipMembers<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.decompress()?;
        Ok(&self.buffer[self.unread.clone()])
    }

    fn consume(&mut self, count: usize) {
        self.unread.start = self.unread.end.min(self.unread.start + count);
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(output)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write as _};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn read(encoded: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        let source = BufReader::with_capacity(step, encoded);
        GzipMembers::new(source).read_to_end(&mut all)?;
        Ok(all)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn members_are_read_one_after_the_other(
            // Members of up to a megabyte, which repeat what is up to 32 KiB before.
            members in proptest::collection::vec(("[a-c]{0,40000}", 0..25_usize), 0..4), step in 1..200_000_usize,
        ) {
            let (mut encoded, mut content) = (Vec::new(), Vec::new());
            for (text, times) in members {
                let member = text.repeat(times);
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(member.as_bytes()).unwrap();
                encoded.extend(encoder.finish().unwrap());
                content.extend_from_slice(member.as_bytes());
            }
            prop_assert!(read(&encoded, step).unwrap() == content);
            if !encoded.is_empty() {
                prop_assert!(read(&encoded[..encoded.len() - 1], step).is_err());
                encoded.push(b'x');
                prop_assert!(read(&encoded, step).is_err());
            }
        }
    }
}
