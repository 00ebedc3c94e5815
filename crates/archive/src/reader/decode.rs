//! Fetching and decoding the fingerprints of a row group.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::SerializedPageReader;
use storage::StorageError;

use super::FingerprintReader;
use crate::encoded_fingerprints::{Encoded, Pages};
use crate::error::{ArchiveError, Result};
use crate::row_group_sums::{SEGMENT_ROWS, sum_of};

/// Rows decoded in one step: few enough to stay in the L2 cache until they are probed.
pub const STEP: usize = 1 << 14;

// `decode` sums a row group step by step, so each step must begin where a segment begins.
const _: () = assert!(STEP.is_multiple_of(SEGMENT_ROWS));

/// Consecutive fingerprints of a row group, decoded in one step. The next step reuses its memory.
#[derive(Debug, Default)]
pub struct DecodedStep {
    signed: Vec<i64>,
    levels: Vec<i16>,
    /// The row of each value; empty if there are no nulls.
    rows: Vec<u32>,
    first_row: u32,
    /// Total time spent reading local files.
    pub reading: Duration,
}

impl DecodedStep {
    /// The fingerprints, in the order of their rows, without nulls.
    pub fn values(&self) -> &[u64] {
        bytemuck::cast_slice(&self.signed)
    }

    /// The row, counted from the start of the row group, of the value at `index`.
    pub fn row(&self, index: usize) -> u32 {
        let row = self.rows.get(index).copied();
        row.unwrap_or(self.first_row + index as u32)
    }
}

impl FingerprintReader {
    /// Fetches the encoded fingerprints of a row group from a store, or reads them past the cache.
    /// Otherwise only opens the local file: [`Self::decode`] reads its fingerprints.
    pub async fn fetch(&self, row_group: usize) -> Result<Encoded> {
        let column = self.fingerprint_column(row_group);
        let range = self.chunk_range(row_group, "fingerprint", column)?;
        let object = || self.object_name(row_group, "fingerprint");
        if let Some(file) = self.local.clone() {
            let direct = self.direct.clone();
            let opened = tokio::task::spawn_blocking(move || {
                match direct.and_then(|buffers| buffers.read(&file, &range)) {
                    Some(bytes) => Ok(Encoded::Fetched(bytes)),
                    None => Encoded::local(&file, &range),
                }
            })
            .await;
            let opened =
                opened.unwrap_or_else(|panic| Err(StorageError::io(object())(panic.into())));
            return opened.map_err(ArchiveError::read_file(&object()));
        }
        let bytes = self.object.read_range(range).await;
        bytes
            .map(Encoded::Fetched)
            .map_err(|error| ArchiveError::parquet(object())(error))
    }

    /// Decodes what [`Self::fetch`] returned, and calls `each` after every step, until `each` returns false. Blocks the
    /// thread while it decodes, and while it reads a local file.
    ///
    /// # Errors
    /// [`ArchiveError::Parquet`] or [`ArchiveError::BadData`] when the bytes are damaged.
    pub fn decode(
        &self,
        row_group: usize,
        encoded: Encoded,
        step: &mut DecodedStep,
        mut each: impl FnMut(&DecodedStep) -> bool,
    ) -> Result<()> {
        let group = self.metadata.row_group(row_group);
        let column = group.column(self.fingerprint_leaf);
        let range = self.chunk_range(row_group, "fingerprint", column)?;
        let spent = Arc::default();
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let failed =
            |error| ArchiveError::parquet(self.object_name(row_group, "fingerprint"))(error);
        let mut decoder = self.catch_panic(row_group, "fingerprint", || {
            let pages = Pages::new(encoded, range, Arc::clone(&spent));
            Decoder::new(column, rows, pages).map_err(failed)
        })?;
        let mut sum = 0u64;
        while decoder.row < rows {
            self.catch_panic(row_group, "fingerprint", || {
                decoder.next(step).map_err(failed)
            })?;
            if self.row_group_sums.is_some() {
                sum = sum.wrapping_add(sum_of(&step.signed));
            }
            if !each(step) {
                step.reading += *spent.lock().unwrap_or_else(PoisonError::into_inner);
                return Ok(());
            }
        }
        let sums = self.row_group_sums.as_ref();
        if sums.is_some_and(|sums| sums.get(row_group) != Some(&sum)) {
            return Err(ArchiveError::bad_data(
                self.object_name(row_group, "fingerprint"),
                "damaged: the checksum of its values differs from the recorded one",
            ));
        }
        step.reading += *spent.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }
}

/// Decodes the column chunk of a row group step by step.
struct Decoder {
    reader: ColumnReaderImpl<Int64Type>,
    optional: bool,
    row: usize,
    rows: usize,
}

impl Decoder {
    fn new(
        column: &ColumnChunkMetaData,
        rows: usize,
        pages: Pages,
    ) -> parquet::errors::Result<Self> {
        let descriptor = column.column_descr_ptr();
        let optional = descriptor.max_def_level() > 0;
        let pages = SerializedPageReader::new(Arc::new(pages), column, rows, None)?;
        let reader = ColumnReaderImpl::<Int64Type>::new(descriptor, Box::new(pages));
        Ok(Self {
            reader,
            optional,
            row: 0,
            rows,
        })
    }

    fn next(&mut self, step: &mut DecodedStep) -> parquet::errors::Result<()> {
        step.signed.clear();
        step.levels.clear();
        step.rows.clear();
        step.first_row = self.row as u32;
        let most = (self.rows - self.row).min(STEP);
        let levels = self.optional.then_some(&mut step.levels);
        let (read, present, _) = self
            .reader
            .read_records(most, levels, None, &mut step.signed)?;
        if read == 0 {
            let (row, rows) = (self.row, self.rows);
            return Err(ParquetError::EOF(format!(
                "{row} of {rows} rows could be read"
            )));
        }
        if present < read {
            let levels = step.levels.iter().enumerate();
            let present = levels.filter(|(_, level)| **level > 0);
            step.rows
                .extend(present.map(|(at, _)| (self.row + at) as u32));
        }
        self.row += read;
        Ok(())
    }
}
