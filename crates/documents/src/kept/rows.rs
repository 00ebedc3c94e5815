//! Copies the records of a row file as they are.

use std::io::{BufWriter, Write};

use super::pieces::Pieces;
use super::writer::Writer;

use super::{Copiers, Output};
use crate::error::Result;
use crate::file::{InputFile, RowSource};
use crate::rows;
use crate::rows::compression::Compression;

/// Copies the header of a file, and the records that `is_kept` accepts by the number of their part of the file, and their own in
/// the part.
pub(super) fn copy(
    file: &InputFile,
    source: &RowSource,
    copiers: &Copiers,
    out: Output,
    is_kept: &dyn Fn(usize, u64) -> bool,
) -> Result<()> {
    // A file in a store must be read on a blocking thread.
    let work = || copy_blocking(file, source, copiers, out, is_kept);
    match tokio::runtime::Handle::current().runtime_flavor() {
        tokio::runtime::RuntimeFlavor::CurrentThread => work(),
        _ => tokio::task::block_in_place(work),
    }
}

fn copy_blocking(
    file: &InputFile,
    source: &RowSource,
    copiers: &Copiers,
    out: Output,
    is_kept: &dyn Fn(usize, u64) -> bool,
) -> Result<()> {
    let Output { file: target, name } = out;
    let failed = |source| Output::failed(&name, source);
    let compression = source.compression;
    let compresses_each = source.format.compresses_each_record();
    let target = BufWriter::new(target);
    let mut writer = match compression {
        // Compression takes longer than all else. One frame of zstd, since some readers take the first of several for all.
        Compression::Gzip => RecordWriter::Pieces(Pieces::new(target, compression, copiers)),
        Compression::Zstd if compresses_each => {
            RecordWriter::Pieces(Pieces::new(target, compression, copiers))
        }
        _ => RecordWriter::Direct(Writer::new(target, compression).map_err(failed)?),
    };
    let (mut copied, mut footer) = (0, &b""[..]);
    // Only files without header, separator and footer are cut into several parts.
    for (part, bytes) in file.parts().into_iter().enumerate() {
        let mut records = rows::raw_records(file, bytes, copiers.limit)?;
        writer.write_all(records.header()).map_err(failed)?;
        let separator = records.separator();
        let mut row = 0;
        while let Some(record) = records.next_record()? {
            if is_kept(part, row) {
                if copied > 0 {
                    writer.write_all(separator).map_err(failed)?;
                    writer.end_record(compresses_each).map_err(failed)?;
                }
                writer.write_all(record).map_err(failed)?;
                copied += 1;
            }
            row += 1;
        }
        footer = records.footer();
    }
    writer.write_all(footer).map_err(failed)?;
    writer.finish().map_err(failed)
}

/// Writes records to the copy.
enum RecordWriter<W: Write> {
    Direct(Writer<W>),
    Pieces(Pieces<W>),
}

impl<W: Write> RecordWriter<W> {
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Direct(writer) => writer.write_all(bytes),
            Self::Pieces(pieces) => {
                pieces.add(bytes);
                Ok(())
            }
        }
    }

    /// Ends a record behind which another follows; `is_member` says whether it is compressed on its own.
    fn end_record(&mut self, is_member: bool) -> std::io::Result<()> {
        match self {
            Self::Direct(_) => Ok(()),
            Self::Pieces(pieces) => pieces.end_record(is_member),
        }
    }

    fn finish(self) -> std::io::Result<()> {
        match self {
            Self::Direct(writer) => writer.end()?.flush(),
            Self::Pieces(pieces) => pieces.finish(),
        }
    }
}
