//! The encoded fingerprints of a row group. From a store, or past the system's cache, they are
//! fetched whole; otherwise they are read from a local file while they are decoded.
//!
//! Pages of a local file go through one small buffer: they are decoded while they are in the processor's cache, and do
//! not evict the probe's tables from it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use storage::{StorageError, UnchangedFile};

use crate::page_header::HeaderReader;

/// Bytes read from a local file at once.
const READ_BYTES: u64 = 256 << 10;
/// An upper bound for the bytes of a page header of fingerprints; `page_header` has that of texts.
const MAX_HEADER_BYTES: u64 = 16 << 10;

/// A column chunk that is not decoded yet.
#[derive(Debug, Clone)]
pub enum Encoded {
    /// Its bytes, fetched from a store, or read from a local file past the system's cache.
    Fetched(Bytes),
    /// The local file that has its bytes, which are read while they are decoded.
    Local(Arc<File>),
}

impl Encoded {
    /// The column chunk at `range` of a local file. Asks the system to read it ahead.
    pub(crate) fn local(file: &UnchangedFile, range: &Range<u64>) -> Result<Self, StorageError> {
        let file = file.open()?;
        #[cfg(target_os = "linux")]
        {
            let length = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
            // If the advice fails, reading takes longer, nothing else.
            let _ = rustix::fs::fadvise(&file, range.start, length, rustix::fs::Advice::WillNeed);
        }
        Ok(Self::Local(Arc::new(file)))
    }
}

/// The pages of a column chunk, addressed by offsets in its file.
pub(crate) struct Pages {
    range: Range<u64>,
    source: Source,
}

enum Source {
    Fetched(Bytes),
    Local {
        file: Arc<File>,
        buffer: Mutex<ReadBuffer>,
        spent: Arc<Mutex<Duration>>,
    },
}

/// The bytes that were last read from a local file, and their offset in it.
#[derive(Default)]
struct ReadBuffer {
    start: u64,
    bytes: Bytes,
    /// The bytes read before these. Pages in use no longer refer to them, so their memory can be reused.
    previous: Bytes,
}

impl ReadBuffer {
    /// Reads `length` bytes from offset `start` on.
    fn read(&mut self, file: &File, start: u64, length: usize) -> std::io::Result<()> {
        // Reused memory is already initialised: `resize` zeroes only what it adds.
        let mut bytes = std::mem::take(&mut self.previous)
            .try_into_mut()
            .unwrap_or_default();
        bytes.resize(length, 0);
        file.read_exact_at(&mut bytes, start)?;
        self.previous = std::mem::replace(&mut self.bytes, bytes.freeze());
        self.start = start;
        Ok(())
    }
}

impl Pages {
    /// The pages at `range` of the file. The time spent reading a local file is added to `spent`.
    pub(crate) fn new(encoded: Encoded, range: Range<u64>, spent: Arc<Mutex<Duration>>) -> Self {
        let source = match encoded {
            Encoded::Fetched(bytes) => Source::Fetched(bytes),
            Encoded::Local(file) => Source::Local {
                file,
                buffer: Mutex::default(),
                spent,
            },
        };
        Self { range, source }
    }

    /// The bytes from offset `start` on: at least `least`, and as many more as are in memory.
    fn bytes_from(&self, start: u64, least: u64) -> Result<Bytes> {
        let left = if self.range.contains(&start) || start == self.range.end {
            self.range.end - start
        } else {
            return Err(ParquetError::EOF(format!(
                "a page at {start}, outside its column"
            )));
        };
        if least > left {
            return Err(ParquetError::EOF("a page is cut off".into()));
        }
        match &self.source {
            Source::Fetched(bytes) => Ok(bytes.slice((start - self.range.start) as usize..)),
            Source::Local {
                file,
                buffer,
                spent,
            } => {
                let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
                let end = buffer.start + buffer.bytes.len() as u64;
                if start < buffer.start || start + least > end {
                    let begin = Instant::now();
                    let length = left.min(READ_BYTES.max(least)) as usize;
                    buffer
                        .read(file, start, length)
                        .map_err(|error| match error.kind() {
                            std::io::ErrorKind::UnexpectedEof => ParquetError::EOF(format!(
                                "the file ends before byte {}",
                                start + least
                            )),
                            _ => ParquetError::External(error.into()),
                        })?;
                    *spent.lock().unwrap_or_else(PoisonError::into_inner) += begin.elapsed();
                }
                Ok(buffer.bytes.slice((start - buffer.start) as usize..))
            }
        }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.range.end
    }
}

impl ChunkReader for Pages {
    type T = HeaderReader<bytes::buf::Reader<Bytes>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let left = self.range.end.saturating_sub(start);
        let bytes = self.bytes_from(start, left.min(MAX_HEADER_BYTES))?;
        Ok(HeaderReader::new(bytes.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.bytes_from(start, length as u64)?.slice(..length))
    }
}
