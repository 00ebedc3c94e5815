//! One object in a store as the Parquet library reads it: by byte ranges, checked for length.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use storage::{Location, short_body};

use crate::file_checksums::{SectorSums, Tail};

/// Bytes that the first request reads from the end of a file: enough for most footers.
const FOOTER_HINT: usize = 64 << 10;

/// An object that the Parquet library reads by byte ranges.
#[derive(Debug, Clone)]
pub struct ObjectReader {
    location: Location,
    size: u64,
    /// The checksums of the object's sectors. If present, the Parquet library's reads fetch whole
    /// sectors and check them; `read_range` does not.
    sector_sums: Option<SectorSums>,
    /// The bytes of the whole object, if one request has read them; all reads then take theirs from these.
    held: Option<Arc<Held>>,
}

/// Objects in a store of at most this many bytes are read at once.
const SMALL_BYTES: u64 = 64 << 10;
/// The most bytes of small objects that the process holds.
const MOST_HELD: u64 = 32 << 20;
/// Bytes of small objects that the process holds.
static HELD: AtomicU64 = AtomicU64::new(0);

/// The bytes of a small object, counted in [`HELD`].
#[derive(Debug)]
struct Held(Bytes);

impl Held {
    /// Holds `bytes`, unless the process holds too many already.
    fn new(bytes: Bytes) -> Option<Arc<Self>> {
        let size = bytes.len() as u64;
        let before = HELD.fetch_add(size, Ordering::Relaxed);
        let held = Arc::new(Self(bytes));
        // Dropped at once, it no longer counts.
        (before + size <= MOST_HELD).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}

impl ObjectReader {
    /// A reader of the object of `size` bytes at `location`.
    pub fn new(location: &Location, size: u64) -> Self {
        Self {
            location: location.clone(),
            size,
            sector_sums: None,
            held: None,
        }
    }

    /// Reads the whole object now, if it is small; all later reads are of these bytes.
    pub(crate) async fn hold_if_small(&mut self) -> Result<()> {
        if self.size > 0 && self.size <= SMALL_BYTES && HELD.load(Ordering::Relaxed) < MOST_HELD {
            let whole = self.read_range(0..self.size).await?;
            self.held = Held::new(whole);
        }
        Ok(())
    }

    async fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if let Some(held) = &self.held {
            let part = |range: &Range<u64>| held.0.slice(range.start as usize..range.end as usize);
            return Ok(ranges.iter().map(part).collect());
        }
        let (store, path) = (self.location.store(), self.location.path());
        let fetched = store.get_ranges(path, ranges).await;
        fetched.map_err(|error| self.store_error(error))
    }

    /// The same object; checks the Parquet library's reads by the checksums of its sectors.
    pub(crate) fn checked_by(self, sector_sums: SectorSums) -> Self {
        Self {
            sector_sums: Some(sector_sums),
            ..self
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Reads the bytes of `range`, and refuses an answer with fewer: stores silently cut off a range that reaches past
    /// the object's end.
    pub(crate) async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        self.check_range(&range)?;
        if let Some(held) = &self.held {
            return Ok(held.0.slice(range.start as usize..range.end as usize));
        }
        // Some servers answer a range of the whole object with status 200 instead of 206.
        let (store, path) = (self.location.store(), self.location.path());
        let bytes = if range == (0..self.size) {
            let whole = store.get(path).await;
            let whole = whole.map_err(|error| self.store_error(error))?;
            whole.bytes().await?
        } else {
            let part = store.get_range(path, range.clone()).await;
            part.map_err(|error| self.store_error(error))?
        };
        require_length(bytes, &range)
    }

    /// Wraps the error of a request to the store. If the store lacks an object that a list or a log named, the error is
    /// [`StorageError::Gone`](storage::StorageError::Gone).
    fn store_error(&self, error: object_store::Error) -> ParquetError {
        match error {
            object_store::Error::NotFound { .. } if self.location.is_found() => {
                ParquetError::External(self.location.store_error(error).into())
            }
            error => error.into(),
        }
    }

    /// Reads the footer, without the page index.
    pub async fn metadata(&mut self) -> Result<ParquetMetaData> {
        let size = self.size;
        ParquetMetaDataReader::new()
            .with_prefetch_hint(Some(FOOTER_HINT))
            .load_and_finish(self, size)
            .await
    }

    /// Reads the footer, and checks it by its checksum in the log.
    pub(crate) async fn checked_metadata(&self, tail: &Tail) -> Result<ParquetMetaData> {
        let bytes = self.read_range(tail.footer_offset..self.size).await?;
        tail.check_footer(&bytes)?;
        let end = bytes.len().saturating_sub(8);
        ParquetMetaDataReader::decode_metadata(&bytes[..end])
    }

    /// Reads the bytes of `ranges`. Fetches each sector that they touch only once, and checks it.
    async fn read_checked_ranges(
        &self,
        sums: &SectorSums,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>> {
        let extended = ranges.iter().map(|range| sums.whole_sectors(range));
        let mut extended: Vec<Range<u64>> = extended.collect::<Result<_>>()?;
        extended.sort_unstable_by_key(|range| range.start);
        let mut united: Vec<Range<u64>> = Vec::new();
        for range in extended {
            match united.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => united.push(range),
            }
        }
        let parts = self.fetch(&united).await?;
        let parts = parts.into_iter().zip(&united).map(|(bytes, range)| {
            let bytes = require_length(bytes, range)?;
            sums.check(range.start, &bytes)?;
            Ok::<_, ParquetError>((range.start, bytes))
        });
        let parts: Vec<(u64, Bytes)> = parts.collect::<Result<_>>()?;
        let bytes_of = |range: &Range<u64>| {
            let at = parts.partition_point(|(start, _)| *start <= range.start);
            let (start, bytes) = &parts[at.saturating_sub(1)];
            bytes.slice((range.start - start) as usize..(range.end - start) as usize)
        };
        Ok(ranges.iter().map(bytes_of).collect())
    }

    /// Refuses a range outside the object.
    fn check_range(&self, range: &Range<u64>) -> Result<()> {
        if range.start > range.end || range.end > self.size {
            return Err(ParquetError::EOF(format!(
                "bytes {}..{} of a file of {}",
                range.start, range.end, self.size
            )));
        }
        Ok(())
    }
}

/// Refuses fewer or more bytes than `range` has.
fn require_length(bytes: Bytes, range: &Range<u64>) -> Result<Bytes> {
    if bytes.len() as u64 == range.end - range.start {
        Ok(bytes)
    } else {
        let error = short_body(bytes.len() as u64, range.end - range.start);
        Err(ParquetError::External(error.into()))
    }
}

impl AsyncFileReader for ObjectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move {
            match &self.sector_sums {
                Some(sums) => {
                    let ranges = std::slice::from_ref(&range);
                    Ok(self.read_checked_ranges(sums, ranges).await?.swap_remove(0))
                }
                None => self.read_range(range).await,
            }
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move {
            for range in &ranges {
                self.check_range(range)?;
            }
            if let Some(sums) = &self.sector_sums {
                return self.read_checked_ranges(sums, &ranges).await;
            }
            let parts = self.fetch(&ranges).await?.into_iter().zip(&ranges);
            parts
                .map(|(bytes, range)| require_length(bytes, range))
                .collect()
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        async move {
            let size = self.size;
            let reader = ParquetMetaDataReader::new()
                .with_arrow_reader_options(options)
                .with_prefetch_hint(Some(FOOTER_HINT));
            Ok(Arc::new(reader.load_and_finish(self, size).await?))
        }
        .boxed()
    }
}
