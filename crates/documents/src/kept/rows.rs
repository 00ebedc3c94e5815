//! Copies the records of a row file as they are.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use super::pieces::{Pieces, ZSTD_LEVEL};
use super::{Copiers, Output};
use crate::error::Result;
use crate::file::{InputFile, RowSource};
use crate::rows;
use crate::rows::compression::Compression;

/// Copies the header of a file, and the records that `is_kept` accepts by the number of their part of the file, and their own in
/// the part. A file in a store must be read on a blocking thread.
pub(super) fn copy(
    file: &InputFile,
    source: &RowSource,
    copiers: &Copiers,
    out: Output,
    is_kept: &dyn Fn(usize, u64) -> bool,
) -> Result<()> {
    let Output { file: target, name } = out;
    let failed = |source| Output::failed(&name, source);
    let compression = source.compression;
    let compresses_each = source.format.has_members();
    let target = BufWriter::new(target);
    let mut writer = match compression {
        Compression::None => RecordWriter::Plain(target),
        // One frame, since some readers take the first of several for all.
        Compression::Zstd if !compresses_each => {
            let frame = zstd::stream::write::Encoder::new(target, ZSTD_LEVEL);
            RecordWriter::Frame(frame.map_err(failed)?)
        }
        // Compression takes longer than all else.
        _ => RecordWriter::Pieces(Pieces::new(target, compression, copiers)),
    };
    let (mut copied, mut footer) = (0, &b""[..]);
    // Only files without header, separator and footer are cut into several parts.
    for (part, bytes) in file.parts().into_iter().enumerate() {
        let mut records = rows::raw_records(file, bytes, copiers.limit)?;
        writer.write_all(&records.header).map_err(failed)?;
        let (mut row, mut record) = (0, Vec::new());
        while (records.next)(&mut record)? {
            if is_kept(part, row) {
                if copied > 0 {
                    writer.write_all(records.separator).map_err(failed)?;
                    writer.end_record(compresses_each).map_err(failed)?;
                }
                writer.write_all(&record).map_err(failed)?;
                copied += 1;
            }
            record.clear();
            row += 1;
        }
        footer = records.footer;
    }
    writer.write_all(footer).map_err(failed)?;
    writer.finish().map_err(failed)
}

enum RecordWriter {
    Plain(BufWriter<File>),
    Frame(zstd::stream::write::Encoder<'static, BufWriter<File>>),
    Pieces(Pieces<BufWriter<File>>),
}

impl RecordWriter {
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Frame(frame) => frame.write_all(bytes),
            Self::Pieces(pieces) => {
                pieces.add(bytes);
                Ok(())
            }
        }
    }

    /// Ends a record behind which another follows; `is_member` says whether it is compressed on its own.
    fn end_record(&mut self, is_member: bool) -> std::io::Result<()> {
        match self {
            Self::Plain(_) | Self::Frame(_) => Ok(()),
            Self::Pieces(pieces) => pieces.end_record(is_member),
        }
    }

    fn finish(self) -> std::io::Result<()> {
        match self {
            Self::Plain(mut file) => file.flush(),
            Self::Frame(frame) => frame.finish()?.flush(),
            Self::Pieces(pieces) => pieces.finish(),
        }
    }
}
