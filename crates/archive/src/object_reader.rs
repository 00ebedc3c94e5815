//! One object in a store as the Parquet library reads it: by byte ranges, checked for length.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
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
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
    /// The checksums of the object's sectors. If present, the Parquet library's reads fetch whole
    /// sectors and check them; `read_range` does not.
    sector_sums: Option<SectorSums>,
}

impl ObjectReader {
    /// A reader of the object of `size` bytes at `location`.
    #[must_use]
    pub fn new(location: &Location, size: u64) -> Self {
        Self {
            store: Arc::clone(location.store()),
            path: location.path().clone(),
            size,
            sector_sums: None,
        }
    }

    /// The same object; checks the Parquet library's reads by the checksums of its sectors.
    #[must_use]
    pub(crate) fn checked_by(self, sector_sums: SectorSums) -> Self {
        Self {
            sector_sums: Some(sector_sums),
            ..self
        }
    }

    /// Size of the object in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Reads the bytes of `range`, and refuses an answer with fewer: stores silently cut off a range that reaches past
    /// the object's end.
    pub(crate) async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        self.check_range(&range)?;
        // Some servers answer a range of the whole object with status 200 instead of 206.
        let bytes = match range == (0..self.size) {
            true => self.store.get(&self.path).await?.bytes().await?,
            false => self.store.get_range(&self.path, range.clone()).await?,
        };
        require_length(bytes, &range)
    }

    /// Reads the footer, without the page index.
    ///
    /// # Errors
    /// [`ParquetError`] when it cannot be read.
    pub async fn metadata(&mut self) -> Result<ParquetMetaData> {
        let size = self.size;
        ParquetMetaDataReader::new()
            .with_prefetch_hint(Some(FOOTER_HINT))
            .load_and_finish(self, size)
            .await
    }

    /// Reads the footer, and checks it by its checksum in the log.
    ///
    /// # Errors
    /// [`ParquetError`] when it is damaged or cannot be read.
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
        let extended: Result<Vec<_>> = ranges
            .iter()
            .map(|range| sums.whole_sectors(range))
            .collect();
        let mut extended = extended?;
        extended.sort_unstable_by_key(|range| range.start);
        let mut united: Vec<Range<u64>> = Vec::new();
        for range in extended {
            match united.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => united.push(range),
            }
        }
        let parts = self.store.get_ranges(&self.path, &united).await?;
        let parts: Result<Vec<(u64, Bytes)>> = parts
            .into_iter()
            .zip(&united)
            .map(|(bytes, range)| {
                let bytes = require_length(bytes, range)?;
                sums.check(range.start, &bytes)?;
                Ok((range.start, bytes))
            })
            .collect();
        let parts = parts?;
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
            ranges
                .iter()
                .try_for_each(|range| self.check_range(range))?;
            if let Some(sums) = &self.sector_sums {
                return self.read_checked_ranges(sums, &ranges).await;
            }
            let parts = self.store.get_ranges(&self.path, &ranges).await?;
            parts
                .into_iter()
                .zip(&ranges)
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
