//! The pages of some rows' ids, sketches and decisions in a local file. They are read and checked while they are decoded.
//!
//! Read all at once, the pages of a row group would need many MB of new memory, and the system takes longer to provide
//! that memory than to read. [`LocalPages`] reads windows of [`READ_BYTES`] bytes into the same memory.

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::file_checksums::SectorSums;
use crate::page_header::HeaderReader;
use crate::read_buffer::{READ_BYTES, ReadBuffer, read_ahead, read_error};

/// Pages of a local file, addressed by their offsets in it.
pub(crate) struct LocalPages {
    file: File,
    sector_sums: Option<SectorSums>,
    /// By ascending `first_page`.
    windows: Vec<Window>,
    /// For each column.
    last: Vec<Mutex<LastWindow>>,
    read_failure: Arc<ReadFailure>,
}

/// The first error of reading the file. The Parquet reader keeps no more of it than its message.
#[derive(Debug, Default)]
pub(crate) struct ReadFailure(Mutex<Option<std::io::Error>>);

impl ReadFailure {
    pub(crate) fn take(&self) -> Option<std::io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps `error` if it is the first. Returns an error of the Parquet library with its message.
    fn keep(&self, error: std::io::Error) -> ParquetError {
        let message = error.to_string();
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        ParquetError::General(message)
    }
}

/// The window of a column that was read last.
#[derive(Debug, Default)]
struct LastWindow {
    /// Its index among the windows; `None` before the first, and after a failure.
    index: Option<usize>,
    buffer: ReadBuffer,
}

/// Pages of a column that are read at once.
#[derive(Debug)]
struct Window {
    /// Offset of its first page, by which a window is found. The ranges of windows may overlap, because whole sectors are read.
    first_page: u64,
    range: Range<u64>,
    column: usize,
}

impl LocalPages {
    /// The pages of `file` at `columns`: for each column, the ranges of its pages, ascending. Asks the system to read
    /// them ahead. If there are `sector_sums`, whole sectors are read and checked.
    ///
    /// # Errors
    /// When a page is not inside the file, or not inside the row groups.
    pub(crate) fn new(
        file: File,
        sector_sums: Option<SectorSums>,
        columns: &[Vec<Range<u64>>],
    ) -> Result<Self> {
        let size = file.metadata()?.len();
        let mut windows: Vec<Window> = Vec::new();
        for (column, pages) in columns.iter().enumerate() {
            for page in pages {
                // Before memory is taken for it: the file may be forged.
                if page.start > page.end || page.end > size {
                    return Err(ParquetError::EOF(format!(
                        "bytes {}..{} of a file of {size}",
                        page.start, page.end
                    )));
                }
                let range = match &sector_sums {
                    Some(sums) => sums.whole_sectors(page)?,
                    None => page.clone(),
                };
                match windows.last_mut() {
                    Some(last)
                        if last.column == column
                            && range.start <= last.range.end
                            && range.end.saturating_sub(last.range.start) <= READ_BYTES =>
                    {
                        last.range.end = last.range.end.max(range.end);
                    }
                    _ => windows.push(Window {
                        first_page: page.start,
                        range,
                        column,
                    }),
                }
            }
        }
        windows.sort_unstable_by_key(|window| window.first_page);
        for window in &windows {
            read_ahead(&file, &window.range);
        }
        Ok(Self {
            file,
            sector_sums,
            windows,
            last: columns.iter().map(|_| Mutex::default()).collect(),
            read_failure: Arc::default(),
        })
    }

    /// Where the first error of reading the file is kept.
    pub(crate) fn read_failure(&self) -> Arc<ReadFailure> {
        Arc::clone(&self.read_failure)
    }

    /// The bytes from offset `start` to the end of its window: at least `least`.
    fn bytes_from(&self, start: u64, least: u64) -> Result<Bytes> {
        let outside = || {
            ParquetError::EOF(format!(
                "the file's metadata places a page at byte {start}, outside the bytes that were read"
            ))
        };
        let windows = &self.windows;
        let behind = windows.partition_point(|window| window.first_page <= start);
        let index = behind.checked_sub(1).ok_or_else(outside)?;
        let Window { range, column, .. } = &windows[index];
        let mut last = self.last[*column]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.index != Some(index) {
            last.index = None;
            let read = last.buffer.read(&self.file, range);
            read.map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => read_error(error, range),
                _ => self.read_failure.keep(error),
            })?;
            if let Some(sums) = &self.sector_sums {
                sums.check(range.start, last.buffer.bytes())?;
            }
            last.index = Some(index);
        }
        last.buffer.bytes_from(start, least).ok_or_else(outside)
    }
}

impl Length for LocalPages {
    fn len(&self) -> u64 {
        let ends = self.windows.iter().map(|window| window.range.end);
        ends.max().unwrap_or(0)
    }
}

impl ChunkReader for LocalPages {
    type T = HeaderReader<bytes::buf::Reader<Bytes>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(HeaderReader::new(self.bytes_from(start, 0)?.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        Ok(self.bytes_from(start, length as u64)?.slice(..length))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::file_checksums::{SECTOR_BYTES, SectorSummer, Tail};

    /// A file of `length` bytes before its footer, its bytes, and their checksums.
    fn file(length: usize) -> (tempfile::NamedTempFile, Vec<u8>, SectorSums) {
        let mut bytes: Vec<u8> = (0..length).map(|at| (at * at % 251) as u8).collect();
        let mut summer = SectorSummer::default();
        summer.update(&bytes);
        bytes.extend(summer.finish());
        bytes.extend(b"footer\x06\0\0\0PAR1");
        let tail = Tail::from_bytes(length as u64, &bytes[length..]).unwrap();
        let sums = tail.sector_sums(&bytes[length..bytes.len() - 14]).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        (file, bytes, sums)
    }

    /// Pages of two columns, near and far from each other, some larger than a window.
    fn columns() -> Vec<Vec<Range<u64>>> {
        let window = READ_BYTES;
        vec![
            vec![
                4..700,
                700..2_000,
                20_000..20_001,
                20_001..20_001 + 2 * window,
                3 * window..3 * window + 9,
                4 * window..5 * window,
            ],
            vec![5 * window..5 * window + 5, 6 * window - 3..6 * window],
        ]
    }

    #[test]
    fn pages_are_those_of_the_file() {
        let (file, bytes, sums) = file(6 * READ_BYTES as usize + 77);
        for sums in [Some(sums), None] {
            let columns = columns();
            let pages = LocalPages::new(file.reopen().unwrap(), sums, &columns).unwrap();
            // Column by column, and by turns.
            let in_order = columns.iter().flatten();
            let by_turns =
                (0..6).flat_map(|at| columns.iter().filter_map(move |pages| pages.get(at)));
            for page in in_order.chain(by_turns) {
                let length = (page.end - page.start) as usize;
                let found = pages.get_bytes(page.start, length).unwrap();
                assert!(
                    found == bytes[page.start as usize..page.end as usize],
                    "{page:?}"
                );
            }
            for (start, length) in [(0, 1), (4, 3_000_000), (2 * READ_BYTES + 40_000, 8)] {
                assert!(pages.get_bytes(start, length).is_err(), "{start}");
            }
        }
    }

    #[test]
    fn damaged_pages_and_pages_outside_the_row_groups_are_refused() {
        let (file, bytes, sums) = file(3 * SECTOR_BYTES as usize);
        let outside = vec![vec![0..3 * SECTOR_BYTES + 1]];
        let opened = file.reopen().unwrap();
        assert!(LocalPages::new(opened, Some(sums.clone()), &outside).is_err());
        let outside = vec![vec![bytes.len() as u64 - 1..u64::from(u32::MAX)]];
        assert!(LocalPages::new(file.reopen().unwrap(), None, &outside).is_err());
        let mut damaged = bytes.clone();
        damaged[2 * SECTOR_BYTES as usize + 5] ^= 1;
        std::fs::write(file.path(), &damaged).unwrap();
        let columns = vec![vec![10..20, 2 * SECTOR_BYTES + 100..2 * SECTOR_BYTES + 110]];
        let opened = file.reopen().unwrap();
        let pages = LocalPages::new(opened, Some(sums.clone()), &columns).unwrap();
        assert!(pages.get_bytes(10, 10).is_ok());
        // Also when it is asked for again.
        for _ in 0..2 {
            let error = pages.get_bytes(2 * SECTOR_BYTES + 100, 10).unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        }
        assert!(pages.read_failure().take().is_none());
        std::fs::write(file.path(), &bytes[..9_000]).unwrap();
        let error = pages.get_bytes(2 * SECTOR_BYTES + 100, 10).unwrap_err();
        assert!(
            error.to_string().contains("the file ends before"),
            "{error}"
        );
    }
    #[test]
    fn an_error_of_the_disk_is_kept() {
        let (file, _, sums) = file(SECTOR_BYTES as usize);
        // A file that is open for writing only cannot be read.
        let unreadable = File::options().write(true).open(file.path()).unwrap();
        let pages =
            LocalPages::new(unreadable, Some(sums), &[std::iter::once(10..20).collect()]).unwrap();
        let error = pages.get_bytes(10, 10).unwrap_err();
        let kept = pages.read_failure().take().unwrap();
        assert!(error.to_string().contains(&kept.to_string()), "{error}");
        assert!(pages.read_failure().take().is_none());
    }
}
