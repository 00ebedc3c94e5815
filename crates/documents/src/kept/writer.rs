//! Writes bytes, plain or compressed.

use std::io::Write;

use flate2::write::GzEncoder;

use crate::rows::compression::Compression;

/// The compression level of zstd: the default of the `zstd` program.
const ZSTD_LEVEL: i32 = 3;

/// Writes with one of the compressions.
pub(super) enum Writer<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W, compression: Compression) -> std::io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::Plain(out),
            Compression::Gzip => Self::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?),
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(bytes),
            Self::Gzip(out) => out.write_all(bytes),
            Self::Zstd(out) => out.write_all(bytes),
        }
    }

    /// Ends the compressed data.
    pub(super) fn end(self) -> std::io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(out) => out.finish(),
            Self::Zstd(out) => out.finish(),
        }
    }
}
