//! Batches of a Parquet reader, checked.

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use ::parquet::arrow::async_reader::ParquetRecordBatchStream;
use ::parquet::errors::ParquetError;
use archive::{ArchiveError, ObjectReader};
use arrow::array::RecordBatch;
use futures::{FutureExt as _, StreamExt as _};
use storage::ErrorKind;

use crate::documents::file::Batches;
use crate::error::{EngineError, Result};

/// The error of pages at which the reader panics.
pub(super) fn damaged() -> ParquetError {
    ParquetError::General("the pages are damaged".into())
}

/// Checks a reader's batches: counts the rows, and turns panics at forged pages into errors of bad data.
pub(super) struct Checked {
    object: String,
    read: u64,
    /// Rows that the reader must return; `None` with a filter.
    expected: Option<u64>,
    done: bool,
}

/// The next batch of a reader, its end, its error, or its panic.
type Read<E> = std::thread::Result<Option<Result<RecordBatch, E>>>;

impl Checked {
    pub(super) fn new(object: String, expected: Option<u64>) -> Self {
        Self {
            object,
            read: 0,
            expected,
            done: false,
        }
    }

    /// The batches of a reader of a local file.
    pub(super) fn local(mut self, mut reader: ParquetRecordBatchReader) -> Batches {
        let batches = std::iter::from_fn(move || {
            if self.done {
                return None;
            }
            let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.next()));
            self.check(next, |source| {
                EngineError::from(ArchiveError::Arrow {
                    object: String::new(),
                    source,
                })
            })
        });
        futures::stream::iter(batches).boxed()
    }

    /// The batches of a reader of an object in a store.
    pub(super) fn remote(self, stream: ParquetRecordBatchStream<ObjectReader>) -> Batches {
        let batches = futures::stream::unfold((self, stream), |(mut checked, mut stream)| async {
            if checked.done {
                return None;
            }
            let next = std::panic::AssertUnwindSafe(stream.next())
                .catch_unwind()
                .await;
            let object = checked.object.clone();
            let item = checked.check(next, |source| {
                EngineError::from(ArchiveError::Parquet { object, source })
            })?;
            Some((item, (checked, stream)))
        });
        batches.boxed()
    }

    /// Checks what a reader returned, and makes an item of it; `None` at the end.
    fn check<E: std::fmt::Display>(
        &mut self,
        next: Read<E>,
        failed: impl FnOnce(E) -> EngineError,
    ) -> Option<Result<RecordBatch>> {
        let bad_data = |reason: String| EngineError::BadData {
            object: self.object.clone(),
            reason,
        };
        let item = match next {
            Ok(Some(Ok(batch))) => {
                self.read += batch.num_rows() as u64;
                match self.expected {
                    Some(expected) if self.read > expected => Some(Err(bad_data(format!(
                        "it has more than its {expected} rows"
                    )))),
                    _ => return Some(Ok(batch)),
                }
            }
            Ok(Some(Err(error))) => {
                let text = error.to_string();
                // Errors of the disk or the store keep their kind.
                let error = failed(error);
                Some(Err(match error.kind() {
                    ErrorKind::Data => bad_data(text),
                    _ => error,
                }))
            }
            Ok(None) => match self.expected {
                Some(expected) if self.read < expected => {
                    let read = self.read;
                    Some(Err(bad_data(format!(
                        "{read} of {expected} rows could be read"
                    ))))
                }
                _ => None,
            },
            Err(_) => Some(Err(bad_data(damaged().to_string()))),
        };
        self.done = true;
        item
    }
}
