//! Parquet's view of one object in a store: ranges, checked for length.

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

use crate::location::Location;
use crate::store::short;

/// Bytes that are read from the end of a file at first: enough for most footers.
const FOOTER_HINT: usize = 64 << 10;

/// See the module.
#[derive(Debug, Clone)]
pub struct ObjectReader {
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
}

impl ObjectReader {
    /// A view of the object of `size` bytes at `location`.
    #[must_use]
    pub fn new(location: &Location, size: u64) -> Self {
        Self {
            store: Arc::clone(location.store()),
            path: location.path().clone(),
            size,
        }
    }

    /// Bytes of the object.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Exactly the bytes of `range`: a store may cut a range at the end of an object without a word.
    pub(crate) async fn range(&self, range: Range<u64>) -> Result<Bytes> {
        self.check(&range)?;
        // Some servers answer a range that is the whole object as if none was asked for.
        let bytes = match range == (0..self.size) {
            true => self.store.get(&self.path).await?.bytes().await?,
            false => self.store.get_range(&self.path, range.clone()).await?,
        };
        whole(bytes, &range)
    }

    /// The footer, without the page index.
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

    fn check(&self, range: &Range<u64>) -> Result<()> {
        if range.start > range.end || range.end > self.size {
            return Err(ParquetError::EOF(format!(
                "bytes {}..{} of a file of {}",
                range.start, range.end, self.size
            )));
        }
        Ok(())
    }
}

fn whole(bytes: Bytes, range: &Range<u64>) -> Result<Bytes> {
    if bytes.len() as u64 == range.end - range.start {
        Ok(bytes)
    } else {
        let error = short(bytes.len() as u64, range.end - range.start);
        Err(ParquetError::External(error.into()))
    }
}

impl AsyncFileReader for ObjectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.range(range).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move {
            ranges.iter().try_for_each(|range| self.check(range))?;
            let parts = self.store.get_ranges(&self.path, &ranges).await?;
            parts
                .into_iter()
                .zip(&ranges)
                .map(|(bytes, range)| whole(bytes, range))
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
