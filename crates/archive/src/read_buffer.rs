//! [`ReadBuffer`]: memory for parts of a local file that are read one after the other.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use parquet::errors::ParquetError;

/// Bytes to read from a local file at once: few enough to stay in the processor's cache until they are decoded.
pub(crate) const READ_BYTES: u64 = 256 << 10;

/// The bytes that were last read from a local file, and their offset in it.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    start: u64,
    bytes: Bytes,
    /// The bytes read before these. No page that is still in use is among them, so their memory can be reused.
    previous: Bytes,
}

impl ReadBuffer {
    /// Reads the bytes at `range` of `file`, in place of those it has.
    ///
    /// # Errors
    /// [`std::io::ErrorKind::UnexpectedEof`] when the file ends before.
    pub(crate) fn read(&mut self, file: &File, range: &Range<u64>) -> std::io::Result<()> {
        // Reused memory is already initialised: `resize` zeroes only what it adds.
        let mut bytes = std::mem::take(&mut self.previous)
            .try_into_mut()
            .unwrap_or_default();
        bytes.resize((range.end - range.start) as usize, 0);
        file.read_exact_at(&mut bytes, range.start)?;
        self.previous = std::mem::replace(&mut self.bytes, bytes.freeze());
        self.start = range.start;
        Ok(())
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its bytes from offset `start` of the file on; `None` if it has fewer than `least` of them.
    pub(crate) fn bytes_from(&self, start: u64, least: u64) -> Option<Bytes> {
        let skipped = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let left = self.bytes.len().checked_sub(skipped)?;
        (left as u64 >= least).then(|| self.bytes.slice(skipped..))
    }
}

/// The error of the Parquet library when [`ReadBuffer::read`] fails at `range`.
pub(crate) fn read_error(error: std::io::Error, range: &Range<u64>) -> ParquetError {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            ParquetError::EOF(format!("the file ends before byte {}", range.end))
        }
        _ => ParquetError::External(error.into()),
    }
}

/// Asks the system to read the bytes at `range` of `file` ahead. If it does not, reading takes longer, nothing else.
pub(crate) fn read_ahead(file: &File, range: &Range<u64>) {
    #[cfg(target_os = "linux")]
    {
        let length = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
        let _ = rustix::fs::fadvise(file, range.start, length, rustix::fs::Advice::WillNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, range);
}
