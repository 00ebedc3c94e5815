//! Compresses records by pieces, on several threads: the same records give the same bytes, however many threads there are.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use flate2::write::GzEncoder;
use rayon::ThreadPool;

use super::Copiers;
use crate::rows::compression::Compression;

/// The compression level of zstd: the default of the `zstd` program.
pub(super) const ZSTD_LEVEL: i32 = 3;
/// A piece ends behind the record with which it has at least this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Compresses records; each piece is one gzip member or zstd frame, unless each record is one.
pub(super) struct Pieces<W: Write> {
    out: W,
    compression: Compression,
    piece: Piece,
    threads: Arc<ThreadPool>,
    /// The most pieces that are compressed at once.
    most: usize,
    /// The pieces that are being compressed, in order.
    compressing: VecDeque<Receiver<io::Result<Vec<u8>>>>,
}

/// Records, one behind the other.
#[derive(Default)]
struct Piece {
    bytes: Vec<u8>,
    /// Where members end, but for the last.
    ends: Vec<usize>,
}

impl Piece {
    fn compress(&self, compression: Compression) -> io::Result<Vec<u8>> {
        let (mut compressed, mut start) = (Vec::new(), 0);
        for end in self.ends.iter().copied().chain([self.bytes.len()]) {
            let member = &self.bytes[start..end];
            compressed = match compression {
                Compression::Zstd => {
                    let mut encoder = zstd::stream::write::Encoder::new(compressed, ZSTD_LEVEL)?;
                    encoder.write_all(member)?;
                    encoder.finish()?
                }
                Compression::None | Compression::Gzip => {
                    let level = flate2::Compression::default();
                    let mut encoder = GzEncoder::new(compressed, level);
                    encoder.write_all(member)?;
                    encoder.finish()?
                }
            };
            start = end;
        }
        Ok(compressed)
    }
}

impl<W: Write> Pieces<W> {
    pub(super) fn new(out: W, compression: Compression, copiers: &Copiers) -> Self {
        Self {
            out,
            compression,
            piece: Piece::default(),
            threads: Arc::clone(&copiers.threads),
            most: copiers.pieces,
            compressing: VecDeque::new(),
        }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.piece.bytes.extend_from_slice(bytes);
    }

    /// Ends a record behind which another follows; `is_member` says whether it is compressed on its own.
    pub(super) fn end_record(&mut self, is_member: bool) -> io::Result<()> {
        if self.piece.bytes.len() < PIECE_BYTES {
            if is_member {
                self.piece.ends.push(self.piece.bytes.len());
            }
            return Ok(());
        }
        let (piece, compression) = (std::mem::take(&mut self.piece), self.compression);
        let (sender, compressed) = sync_channel(1);
        // If nobody waits for it, the copy failed.
        self.threads
            .spawn(move || drop(sender.send(piece.compress(compression))));
        self.compressing.push_back(compressed);
        if self.compressing.len() > self.most {
            self.write_oldest()
        } else {
            Ok(())
        }
    }

    fn write_oldest(&mut self) -> io::Result<()> {
        match self.compressing.pop_front() {
            Some(compressed) => {
                let compressed = compressed.recv().map_err(io::Error::other)?;
                self.out.write_all(&compressed?)
            }
            None => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        while !self.compressing.is_empty() {
            self.write_oldest()?;
        }
        self.out
            .write_all(&self.piece.compress(self.compression)?)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::rows::limit::Limit;

    #[test]
    fn threads_do_not_change_the_bytes() {
        let records: Vec<Vec<u8>> = (0..2000u32)
            .map(|record| {
                record
                    .to_string()
                    .repeat(1 + record as usize % 700)
                    .into_bytes()
            })
            .collect();
        for compression in [Compression::Gzip, Compression::Zstd] {
            for is_member in [false, true] {
                let copy = |threads| {
                    let mut written = Vec::new();
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    let copiers = Copiers {
                        limit: Limit::from_memory(1 << 30, threads),
                        threads: Arc::new(pool.unwrap()),
                        pieces: threads,
                    };
                    let mut pieces = Pieces::new(&mut written, compression, &copiers);
                    for (at, record) in records.iter().enumerate() {
                        if at > 0 {
                            pieces.end_record(is_member).unwrap();
                        }
                        pieces.add(record);
                    }
                    pieces.finish().unwrap();
                    written
                };
                let one = copy(1);
                assert_eq!(copy(3), one);
                if compression == Compression::Zstd {
                    assert_eq!(zstd::stream::decode_all(&*one).unwrap(), records.concat());
                    continue;
                }
                let mut read = Vec::new();
                let mut decoder = flate2::read::MultiGzDecoder::new(&*one);
                decoder.read_to_end(&mut read).unwrap();
                assert_eq!(read, records.concat());
                let starts = one.windows(4).filter(|bytes| *bytes == [0x1f, 0x8b, 8, 0]);
                let members = starts.count();
                assert_eq!(members == records.len(), is_member, "{members}");
                assert!(members > 1);
            }
        }
    }
}
