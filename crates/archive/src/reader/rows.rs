//! Reading the ids, sketches and decisions of single rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryArray, BooleanArray, RecordBatch, StringArray,
    new_null_array,
};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::arrow::async_reader::{AsyncFileReader as _, MetadataFetch};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use simhash::SketchBits;
use storage::{StorageError, UnchangedFile};

use super::FingerprintReader;
use crate::error::{ArchiveError, Result};
use crate::file_checksums::SectorSums;
use crate::local_pages::LocalPages;
use crate::schema::{self, IdType, KEPT};
use crate::validated_pages::{FileParts, ValidatedRowGroups};

/// If at least one row in `DENSE` is selected, all pages from the first selected row to the last are read. Of a dense selection,
/// the Parquet library decodes the other rows, too, and then drops them (`RowSelectionPolicy::Auto`: from one row in 64 on).
const DENSE: usize = 128;

/// The columns to read besides the ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowColumns {
    /// The sketches, of this size.
    pub sketch: SketchBits,
    pub kept: bool,
}

/// The columns of the requested rows, in the order of the rows.
#[derive(Debug)]
pub struct ReadRows {
    /// The ids, of the file's id type.
    pub ids: ArrayRef,
    /// The sketches; null where the file has none, and everywhere if none were asked for.
    pub sketches: BinaryArray,
    /// The decisions; null where the file has none, and everywhere if none were asked for.
    pub kept: BooleanArray,
}

/// Positions of a file's pages, and the checksums of its sectors; see
/// [`FingerprintReader::row_pages`].
#[derive(Debug, Clone)]
pub struct RowPages {
    metadata: Arc<ParquetMetaData>,
    sector_sums: Option<SectorSums>,
}

impl FingerprintReader {
    /// Reads the positions of the pages. Keep them only while reading the file: their memory grows with its size.
    ///
    /// # Errors
    /// [`ArchiveError::Parquet`] when the file's offset index cannot be read.
    pub async fn row_pages(&self) -> Result<RowPages> {
        let failed = |error| ArchiveError::parquet(format!("{}, offset index", self.name))(error);
        let mut reader = ParquetMetaDataReader::new_with_metadata(self.metadata.as_ref().clone())
            .with_offset_index_policy(PageIndexPolicy::Optional);
        let sector_sums = match &self.tail {
            Some(tail) => {
                let bytes = self.object.read_range(tail.sums_offset..tail.footer_offset);
                let bytes = bytes.await.map_err(failed)?;
                let sums = tail.sector_sums(&bytes).map_err(failed)?;
                let start = tail.sums_offset;
                let index = reader.load_page_index(Trailing { start, bytes }).await;
                index.map_err(failed)?;
                Some(sums)
            }
            None => {
                let mut object = self.object.clone();
                reader.load_page_index(&mut object).await.map_err(failed)?;
                None
            }
        };
        let metadata = Arc::new(reader.finish().map_err(failed)?);
        Ok(RowPages {
            metadata,
            sector_sums,
        })
    }

    /// Reads the ids of some rows of a row group, and the `wanted` columns; `rows` must be strictly
    /// ascending. Fetches all columns at the same time, and parts that lie close together by one
    /// request.
    ///
    /// If the file has an offset index, only the pages with these rows are read.
    ///
    /// # Errors
    /// [`ArchiveError`] when they cannot be read, an id is null, a sketch has another length than the spec's, or decisions are
    /// not BOOLEAN.
    pub async fn rows(
        &self,
        pages: &RowPages,
        row_group: usize,
        rows: &[u32],
        wanted: RowColumns,
    ) -> Result<ReadRows> {
        let sketch = wanted.sketch;
        let sketch_leaf = self.sketch_leaf.filter(|_| !sketch.is_none());
        let kept_leaf = self.kept_leaf.filter(|_| wanted.kept);
        let columns = [
            Some((self.id_leaf, "id")),
            sketch_leaf.map(|leaf| (leaf, "sketch")),
            kept_leaf.map(|leaf| (leaf, "decision")),
        ];
        let columns: Vec<(usize, &str)> = columns.into_iter().flatten().collect();
        let found = self.columns(pages, row_group, rows, &columns).await?;
        let mut found = found.into_iter();
        let object = || self.object_name(row_group, "id");
        let arrow_error = ArchiveError::arrow(object());
        let ids = found
            .next()
            .ok_or_else(|| ArchiveError::bad_data(object(), "the column was not read"))?;
        if ids.null_count() > 0 {
            return Err(ArchiveError::bad_data(object(), "null ids"));
        }
        let ids = to_id_type(&ids, self.id_type).map_err(&arrow_error)?;
        let sketches = match sketch_leaf.and_then(|_| found.next()) {
            // Delta reads a nullable column that a file lacks as nulls.
            None => new_null_array(&DataType::Binary, ids.len()),
            Some(found) => arrow::compute::cast(&found, &DataType::Binary).map_err(&arrow_error)?,
        };
        let kept = match kept_leaf.and_then(|_| found.next()) {
            None => BooleanArray::new_null(ids.len()),
            Some(found) => {
                let kept = found.as_boolean_opt();
                kept.cloned().ok_or_else(|| {
                    ArchiveError::bad_data(
                        self.object_name(row_group, "decision"),
                        format!("the column {KEPT} is {}, not BOOLEAN", found.data_type()),
                    )
                })?
            }
        };
        let sketches = sketches.as_binary::<i32>().clone();
        schema::check_sketches(&sketches, sketch).map_err(|reason| {
            ArchiveError::bad_data(self.object_name(row_group, "sketch"), reason)
        })?;
        Ok(ReadRows {
            ids,
            sketches,
            kept,
        })
    }

    /// The values of the leaf columns `columns`, each an index and a kind, in the rows `rows` of a
    /// row group.
    async fn columns(
        &self,
        pages: &RowPages,
        row_group: usize,
        rows: &[u32],
        columns: &[(usize, &str)],
    ) -> Result<Vec<ArrayRef>> {
        let object = self.object_name(row_group, "id");
        let failed = |error| ArchiveError::parquet(object.clone())(error);
        let arrow_error = ArchiveError::arrow(&object);
        let group = pages.metadata.row_group(row_group);
        let total = usize::try_from(group.num_rows()).unwrap_or(0);
        let ranges = rows.iter().map(|&row| row as usize..row as usize + 1);
        let selection = RowSelection::from_consecutive_ranges(ranges, total);
        let pages_of = match (rows.first(), rows.last()) {
            (Some(&first), Some(&last)) if rows.len().saturating_mul(DENSE) >= total => {
                let span = first as usize..last as usize + 1;
                RowSelection::from_consecutive_ranges(std::iter::once(span), total)
            }
            _ => selection.clone(),
        };
        let ranges = self.catch_panic(row_group, "id", || {
            let ranges = columns
                .iter()
                .map(|(leaf, kind)| self.page_ranges(pages, row_group, (*leaf, kind), &pages_of));
            ranges.collect::<Result<Vec<_>>>()
        })?;
        let leaves = columns.iter().map(|(leaf, _)| *leaf);
        let mask = ProjectionMask::leaves(group.schema_descr(), leaves);
        let request = (row_group, mask, selection);
        let batches = match &self.local {
            Some(file) => {
                let (file, reader, pages) = (file.clone(), self.clone(), pages.clone());
                // Pages are read from the disk while they are decoded.
                let reading = tokio::task::spawn_blocking(move || {
                    reader.local_rows(&file, &pages, &ranges, request)
                });
                reading
                    .await
                    .map_err(|panic| StorageError::io(&object)(panic.into()))??
            }
            None => {
                let mut reader = match &pages.sector_sums {
                    Some(sums) => self.object.clone().checked_by(sums.clone()),
                    None => self.object.clone(),
                };
                let ranges: Vec<Range<u64>> = ranges.into_iter().flatten().collect();
                let bytes = reader.get_byte_ranges(ranges.clone()).await;
                let source = FileParts::new(&ranges, bytes.map_err(failed)?);
                self.selected_rows(source, pages, request)?
            }
        };
        let read: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if read != rows.len() {
            return Err(ArchiveError::bad_data(
                object,
                format!("{read} of {} rows could be read", rows.len()),
            ));
        }
        // The reader returns columns in the file's order.
        let position = |leaf: usize| columns.iter().filter(|(other, _)| *other < leaf).count();
        let values = columns.iter().map(|(leaf, _)| {
            let parts = batches.iter();
            let parts: Vec<&dyn Array> = parts
                .map(|batch| batch.column(position(*leaf)).as_ref())
                .collect();
            arrow::compute::concat(&parts).map_err(&arrow_error)
        });
        values.collect()
    }

    /// The selected rows of a row group of a local file: `ranges` are the pages to read of each column.
    fn local_rows(
        &self,
        file: &UnchangedFile,
        pages: &RowPages,
        ranges: &[Vec<Range<u64>>],
        request: (usize, ProjectionMask, RowSelection),
    ) -> Result<Vec<RecordBatch>> {
        let object = self.object_name(request.0, "id");
        let file = file.open().map_err(ArchiveError::read_file(&object))?;
        let source = LocalPages::new(file, pages.sector_sums.clone(), ranges);
        let source = source.map_err(ArchiveError::parquet(object.clone()))?;
        let failure = source.read_failure();
        self.selected_rows(source, pages, request)
            .map_err(|error| match failure.take() {
                None => error,
                Some(source) => StorageError::io(object)(source).into(),
            })
    }

    /// The selected rows of a row group, whose pages `source` has, in the columns of a mask.
    fn selected_rows<R: ChunkReader + 'static>(
        &self,
        source: R,
        pages: &RowPages,
        (row_group, mask, selection): (usize, ProjectionMask, RowSelection),
    ) -> Result<Vec<RecordBatch>> {
        self.catch_panic(row_group, "id", || {
            let object = self.object_name(row_group, "id");
            let metadata = Arc::clone(&pages.metadata);
            let groups = ValidatedRowGroups::new(source, metadata, row_group..row_group + 1);
            let reader = groups.read(mask, 8192, Some(selection));
            let reader = reader.map_err(ArchiveError::parquet(object.clone()))?;
            let batches: Result<Vec<_>, _> = reader.collect();
            batches.map_err(ArchiveError::arrow(object))
        })
    }

    /// Byte ranges to fetch of a leaf column, given by index and kind: the dictionary, and the
    /// pages that have selected rows; the whole column chunk if the file has no offset index.
    fn page_ranges(
        &self,
        pages: &RowPages,
        row_group: usize,
        (leaf, kind): (usize, &str),
        selection: &RowSelection,
    ) -> Result<Vec<Range<u64>>> {
        let column = pages.metadata.row_group(row_group).column(leaf);
        let chunk = self.chunk_range(row_group, kind, column)?;
        let locations = pages.metadata.offset_index().and_then(|index| {
            let locations = index.get(row_group)?.get(leaf)?.page_locations();
            Some((locations, u64::try_from(locations.first()?.offset).ok()?))
        });
        let Some((locations, first)) = locations else {
            return Ok(vec![chunk]);
        };
        let mut ranges = selection.scan_ranges(locations);
        if chunk.start < first {
            // The dictionary.
            ranges.insert(0, chunk.start..first);
        }
        Ok(ranges)
    }
}

/// The bytes after a file's row groups, addressed by their offsets in the file.
struct Trailing {
    start: u64,
    bytes: Bytes,
}

impl MetadataFetch for Trailing {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        let outside = || ParquetError::EOF(format!("bytes {range:?} of the offset index"));
        let at = |offset: u64| usize::try_from(offset.checked_sub(self.start)?).ok();
        let part = match (at(range.start), at(range.end)) {
            (Some(start), Some(end)) if start <= end && end <= self.bytes.len() => {
                Ok(self.bytes.slice(start..end))
            }
            _ => Err(outside()),
        };
        async { part }.boxed()
    }
}

/// Converts ids to one of the two id types: text of any kind to UTF-8, integers of any width to 64 bits.
///
/// # Errors
/// When the values do not fit, or an id is far too long.
pub fn to_id_type(ids: &ArrayRef, id_type: IdType) -> std::result::Result<ArrayRef, ArrowError> {
    // Views of one long text take no memory before they are copied.
    let views = ids.as_string_view_opt().map(|views| views.lengths().max());
    refuse_long(views.flatten().unwrap_or(0) as usize)?;
    let ids = cast_ids(ids, id_type)?;
    refuse_long(ids.as_string_opt::<i32>().map_or(0, longest))?;
    Ok(ids)
}

/// The most bytes of an id that is stored already, so that such documents can still be found and removed. Documents with ids of more
/// than [`MAX_ID_BYTES`](crate::MAX_ID_BYTES) are not taken any more.
const MAX_STORED_ID: usize = 1 << 20;

/// Refuses ids if the longest of them, of `bytes` bytes, is longer than [`MAX_STORED_ID`].
fn refuse_long(bytes: usize) -> std::result::Result<(), ArrowError> {
    if bytes > MAX_STORED_ID {
        Err(ArrowError::InvalidArgumentError(format!(
            "an id of {bytes} bytes; no id may have more than {MAX_STORED_ID}"
        )))
    } else {
        Ok(())
    }
}

/// Bytes of the longest text.
fn longest(texts: &StringArray) -> usize {
    let ends = texts.value_offsets();
    match ends.last().zip(ends.first()) {
        // None of few bytes is long.
        Some((end, start)) if (end - start) as usize > MAX_STORED_ID => {
            let lengths = ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
            lengths.max().unwrap_or(0)
        }
        _ => 0,
    }
}

fn cast_ids(ids: &ArrayRef, id_type: IdType) -> std::result::Result<ArrayRef, ArrowError> {
    let options = arrow::compute::CastOptions {
        safe: false,
        ..Default::default()
    };
    // Bytes that are not UTF-8 become replacement characters, as in the documents' texts.
    if let DataType::Binary = ids.data_type() {
        let bytes = ids.as_binary::<i32>();
        let lossy = || {
            let ids = bytes.iter();
            ids.map(|id| id.map(String::from_utf8_lossy)).collect()
        };
        // Without such bytes, nothing is copied.
        let text = StringArray::try_from_binary(bytes.clone()).unwrap_or_else(|_| lossy());
        return cast_ids(&(Arc::new(text) as ArrayRef), id_type);
    }
    let is_text = match ids.data_type() {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    if id_type == IdType::Bigint && is_text {
        let text = arrow::compute::cast(ids, &DataType::Utf8)?;
        let mut ids = text.as_string::<i32>().iter().flatten();
        if let Some(id) = ids.find(|id| !is_integer(id.as_bytes())) {
            return Err(ArrowError::CastError(format!(
                "the id {id:?} is not written as an integer is, and the ids are integers"
            )));
        }
        return arrow::compute::cast_with_options(&text, &id_type.data_type(), &options);
    }
    arrow::compute::cast_with_options(ids, &id_type.data_type(), &options)
}

/// Whether an id is written as an integer is: "007" and "7" are two ids.
pub fn is_integer(id: &[u8]) -> bool {
    let digits = id.strip_prefix(b"-").unwrap_or(id);
    !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
        && (!digits.starts_with(b"0") || id == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_never_become_one_integer() {
        let cast = |id: &str| {
            let ids = Arc::new(StringArray::from(vec![id])) as ArrayRef;
            to_id_type(&ids, IdType::Bigint).map(|ids| {
                let ids = ids.as_primitive::<arrow::datatypes::Int64Type>();
                ids.value(0)
            })
        };
        for number in [0, 7, -7, 100, i64::MIN, i64::MAX] {
            assert_eq!(cast(&number.to_string()).unwrap(), number);
        }
        for id in [
            "007",
            "+7",
            " 7",
            "7 ",
            "-0",
            "00",
            "7.0",
            "1e3",
            "",
            "-",
            "9223372036854775808",
        ] {
            assert!(cast(id).is_err(), "{id:?}");
        }
    }
}
