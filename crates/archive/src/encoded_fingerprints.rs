//! The encoded fingerprints of a row group. From a store, or past the system's cache, they are
//! fetched whole; otherwise they are read from a local file while they are decoded.
//!
//! Pages of a local file go through one small buffer: they are decoded while they are in the processor's cache, and do
//! not evict the probe's tables from it.

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use storage::{StorageError, UnchangedFile};

use crate::page_header::HeaderReader;
use crate::read_buffer::{READ_BYTES, ReadBuffer, read_ahead, read_error};

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
        read_ahead(&file, range);
        Ok(Self::Local(Arc::new(file)))
    }
}

/// The pages of a column chunk, addressed by offsets in its file.
pub(crate) struct Pages {
    range: Range<u64>,
    encoded: Encoded,
    buffer: Mutex<ReadBuffer>,
    spent: Arc<Mutex<Duration>>,
}

impl Pages {
    /// The pages at `range` of the file. The time spent reading a local file is added to `spent`.
    pub(crate) fn new(encoded: Encoded, range: Range<u64>, spent: Arc<Mutex<Duration>>) -> Self {
        Self {
            range,
            encoded,
            buffer: Mutex::default(),
            spent,
        }
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
        match &self.encoded {
            Encoded::Fetched(bytes) => Ok(bytes.slice((start - self.range.start) as usize..)),
            Encoded::Local(file) => {
                let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(bytes) = buffer.bytes_from(start, least) {
                    return Ok(bytes);
                }
                let begin = Instant::now();
                let end = start + left.min(READ_BYTES.max(least));
                let range = start..end;
                let read = buffer.read(file, &range);
                read.map_err(|error| read_error(error, &range))?;
                *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += begin.elapsed();
                Ok(buffer.bytes().clone())
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
