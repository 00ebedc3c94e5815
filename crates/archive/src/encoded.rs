//! The encoded pages of one column chunk: fetched at once from a store, or read from a local file as they are decoded.
//!
//! Local pages go through one small buffer, so that what is read is decoded while it is in the cache, and what the
//! probe keeps there is not driven out.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::local_file::LocalFile;

/// Bytes that are read from a local file at once.
const BLOCK: u64 = 256 << 10;
/// Bytes that a page header surely fits in.
const HEADER: u64 = 16 << 10;

/// What is needed to decode a column chunk.
#[derive(Debug, Clone)]
pub enum Encoded {
    /// Its bytes.
    Fetched(Bytes),
    /// The file that they are in.
    Local(Arc<File>),
}

impl Encoded {
    /// The bytes at `range` of a file, which the system is asked to bring on.
    pub(crate) fn local(file: &LocalFile, range: &Range<u64>) -> crate::error::Result<Self> {
        let file = file.open()?;
        #[cfg(target_os = "linux")]
        {
            let length = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
            // Without it, reading takes longer, no more.
            let _ = rustix::fs::fadvise(&file, range.start, length, rustix::fs::Advice::WillNeed);
        }
        Ok(Self::Local(Arc::new(file)))
    }
}

/// A column chunk, addressed as in the file.
pub(crate) struct Pages {
    range: Range<u64>,
    source: Source,
}

enum Source {
    Fetched(Bytes),
    Local {
        file: Arc<File>,
        block: Mutex<Block>,
        spent: Arc<Mutex<Duration>>,
    },
}

/// The bytes that were read last, and where they begin.
#[derive(Default)]
struct Block {
    start: u64,
    bytes: Bytes,
    /// Those before, of which no page is in use any more.
    before: Bytes,
}

impl Block {
    fn read(&mut self, file: &File, start: u64, length: usize) -> std::io::Result<()> {
        // Fresh memory would have to be cleared.
        let mut bytes = std::mem::take(&mut self.before)
            .try_into_mut()
            .unwrap_or_default();
        bytes.resize(length, 0);
        file.read_exact_at(&mut bytes, start)?;
        self.before = std::mem::replace(&mut self.bytes, bytes.freeze());
        self.start = start;
        Ok(())
    }
}

impl Pages {
    /// The pages at `range`; the time that reading them takes is added to `spent`.
    pub(crate) fn new(encoded: Encoded, range: Range<u64>, spent: Arc<Mutex<Duration>>) -> Self {
        let source = match encoded {
            Encoded::Fetched(bytes) => Source::Fetched(bytes),
            Encoded::Local(file) => Source::Local {
                file,
                block: Mutex::default(),
                spent,
            },
        };
        Self { range, source }
    }

    /// At least `least` bytes from `start` on, more if there are.
    fn from(&self, start: u64, least: u64) -> Result<Bytes> {
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
            Source::Local { file, block, spent } => {
                let mut block = block.lock().unwrap_or_else(PoisonError::into_inner);
                let end = block.start + block.bytes.len() as u64;
                if start < block.start || start + least > end {
                    let begin = Instant::now();
                    let length = left.min(BLOCK.max(least)) as usize;
                    block
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
                Ok(block.bytes.slice((start - block.start) as usize..))
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
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let left = self.range.end.saturating_sub(start);
        Ok(self.from(start, left.min(HEADER))?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.from(start, length as u64)?.slice(..length))
    }
}
