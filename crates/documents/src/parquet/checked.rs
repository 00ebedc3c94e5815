//! Checks the record batches of a Parquet reader.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use ::parquet::errors::ParquetError;
use archive::ArchiveError;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use storage::ErrorKind;

use crate::error::{DocumentsError, Result};

/// The reason of an error for pages at which the Parquet library panics.
pub(super) const DAMAGED: &str = "the pages are damaged";

/// Calls the Parquet library on the file `object`, and turns its panic at a forged footer into an error.
pub(super) fn catch_panic<T>(
    object: &str,
    call: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T> {
    let called = catch_unwind(AssertUnwindSafe(call));
    let called = called.unwrap_or_else(|_| Err(ParquetError::General(DAMAGED.into())));
    Ok(called.map_err(ArchiveError::parquet(object))?)
}

/// The record batches of a reader. Counts their rows, and turns a panic at a forged page into an
/// error of bad data.
pub(super) struct Checked {
    reader: ParquetRecordBatchReader,
    object: String,
    read: u64,
    /// Rows that the reader must return.
    expected: u64,
    done: bool,
}

impl Checked {
    /// The record batches of a reader that must return `expected` rows. Errors name them `object`.
    pub(super) fn new(reader: ParquetRecordBatchReader, object: String, expected: u64) -> Self {
        Self {
            reader,
            object,
            read: 0,
            expected,
            done: false,
        }
    }

    fn bad_data(&self, reason: String) -> DocumentsError {
        DocumentsError::bad_data(&self.object, reason)
    }

    /// An error of the reader. Errors of the disk or the store keep their kind.
    fn failed(&self, source: ArrowError) -> DocumentsError {
        let text = source.to_string();
        let error = DocumentsError::from(ArchiveError::arrow("")(source));
        match error.kind() {
            ErrorKind::Data => self.bad_data(text),
            _ => error,
        }
    }
}

impl Iterator for Checked {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let reader = AssertUnwindSafe(|| self.reader.next());
        let expected = self.expected;
        let item = match catch_unwind(reader) {
            Ok(Some(Ok(batch))) => {
                self.read += batch.num_rows() as u64;
                if self.read <= expected {
                    return Some(Ok(batch));
                }
                Some(self.bad_data(format!("it has more than its {expected} rows")))
            }
            Ok(Some(Err(error))) => Some(self.failed(error)),
            Ok(None) if self.read < expected => {
                let read = self.read;
                Some(self.bad_data(format!("{read} of {expected} rows could be read")))
            }
            Ok(None) => None,
            Err(_) => Some(self.bad_data(DAMAGED.into())),
        };
        self.done = true;
        item.map(Err)
    }
}
