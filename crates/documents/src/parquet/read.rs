//! Reads rows of one row group.

use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection, RowSelector};
use ::parquet::arrow::async_reader::AsyncFileReader as _;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::ChunkReader;
use archive::validated_pages::row_bytes::RowBytes;
use archive::validated_pages::{FileParts, ValidatedRowGroups, WholeFile};
use archive::{ArchiveError, ObjectReader};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::error::ArrowError;
use futures::StreamExt as _;

use super::checked::{Checked, catch_panic};
use super::footer::bytes;
use super::leaf;
use super::nested::{JoinedTexts, LeafColumn, named};
use crate::error::{DocumentsError, Result};
use crate::file::{Batches, InputFile, RowRange, Source};
use streams::BATCH_ROWS;

/// Bytes of ids and content in a record batch, on average.
const BATCH_BYTES: u64 = 1 << 20;

/// Rows of the longest values that a record batch may have, of as many bytes as a single row may have.
const LONGEST_ROWS: u64 = 16;

/// Returns a mask of the ids that are accepted; the mask has no nulls.
type AcceptIds = dyn FnMut(&ArrayRef) -> Result<BooleanArray, ArrowError> + Send;

pub(crate) enum WantedRows {
    /// The rows whose ids the function accepts; its answer has no nulls.
    WithIds(Box<AcceptIds>),
    /// The rows whose numbers the function accepts, counted from the first row of the range to
    /// read.
    AtRows(Box<dyn Fn(u64) -> bool + Send>),
}

/// Reads `rows` in the columns that `file` names. Errors name the rows `object`. With `wanted`,
/// reads the contents of wanted rows only; [`WantedRows::WithIds`] reads the ids first.
pub(crate) async fn read(
    file: &Arc<InputFile>,
    rows: &RowRange,
    object: String,
    wanted: Option<WantedRows>,
    memory: usize,
) -> Result<Batches> {
    // A row is read whole, and a few copies are in memory while it is decoded and fingerprinted.
    let longest = memory / 4;
    let slice = RowGroup::new(file, rows, object, longest as u64)?;
    slice.check_row(slice.row_bytes)?;
    let batches = match &file.source {
        Source::Local(local) => {
            let pages = slice.pages(WholeFile(local.open()?));
            let selected = match wanted {
                Some(WantedRows::WithIds(wanted)) => slice.select(&pages, wanted)?,
                Some(WantedRows::AtRows(wanted)) => slice.select_rows(&wanted),
                None => slice.all(),
            };
            if selected.rows == 0 {
                return Ok(futures::stream::empty().boxed());
            }
            slice.read(&pages, &slice.columns, selected)?
        }
        Source::Remote(remote) => {
            let selected = match wanted {
                Some(WantedRows::WithIds(wanted)) => {
                    let ids = slice.fetch(remote, &slice.columns[..1]).await?;
                    slice.select(&ids, wanted)?
                }
                Some(WantedRows::AtRows(wanted)) => slice.select_rows(&wanted),
                None => slice.all(),
            };
            if selected.rows == 0 {
                return Ok(futures::stream::empty().boxed());
            }
            let pages = slice.fetch(remote, &slice.columns).await?;
            slice.read(&pages, &slice.columns, selected)?
        }
        Source::Rows(_) => return Err(file.bad_data("it is no Parquet".into())),
    };
    let (columns, object) = (slice.columns, slice.object);
    let lists = columns.iter().position(|column| column.is_in_lists);
    let rows = batches.flat_map(move |batch| -> Pieces {
        let rows = batch.and_then(|batch| {
            named(&batch, &columns).map_err(|error| ArchiveError::arrow(&object)(error).into())
        });
        let joined = match (rows, lists) {
            (Ok(rows), Some(lists)) => JoinedTexts::new(rows, lists, longest, &object),
            (rows, _) => return one(rows),
        };
        match joined {
            Ok(joined) => Box::new(joined),
            Err(error) => one(Err(error)),
        }
    });
    Ok(futures::stream::iter(rows).boxed())
}

/// Record batches that one record batch became.
type Pieces = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

fn one(rows: Result<RecordBatch>) -> Pieces {
    Box::new(std::iter::once(rows))
}

struct RowGroup {
    /// The name of the rows in errors.
    object: String,
    metadata: ArrowReaderMetadata,
    number: usize,
    /// The columns to read, in the order of `FoundColumns::names`: the ids come first, if there are any.
    columns: Vec<LeafColumn>,
    /// The rows, by their numbers in the row group; `None` for all.
    cut: Option<Range<usize>>,
    rows: u64,
    /// Average bytes of a row, before compression.
    row_bytes: u64,
    /// The most bytes of a row.
    longest: u64,
}

/// Rows that a reader is to return.
struct Selected {
    rows: u64,
    /// `None` for all rows of the row group.
    selection: Option<RowSelection>,
}

impl RowGroup {
    fn new(file: &InputFile, range: &RowRange, object: String, longest: u64) -> Result<Self> {
        let Some(metadata) = file.footer.clone() else {
            return Err(file.bad_data("it has no footer".into()));
        };
        let number = range.row_group;
        let rows = metadata.metadata().row_group(number).num_rows();
        let rows = rows.max(0).cast_unsigned();
        let row_bytes = bytes(file, &metadata, number) / rows.max(1);
        let column = |name: &str| {
            let found = leaf::find(metadata.schema(), name);
            let found = found.map(|leaf| LeafColumn::new(name, &leaf));
            found.ok_or_else(|| DocumentsError::Internal(format!("{object}: no column {name:?}")))
        };
        let columns = file.columns.names().into_iter().map(column);
        let columns = columns.collect::<Result<Vec<LeafColumn>>>()?;
        Ok(Self {
            object,
            number,
            columns,
            cut: range.cut.clone(),
            rows: range.cut.as_ref().map_or(rows, |cut| cut.len() as u64),
            row_bytes,
            longest,
            metadata,
        })
    }

    /// Refuses a row of `bytes` bytes if that is more than a row may have.
    fn check_row(&self, bytes: u64) -> Result<()> {
        if bytes > self.longest {
            Err(DocumentsError::OutOfMemory {
                what: format!("{} has rows of up to {bytes} bytes", self.object),
            })
        } else {
            Ok(())
        }
    }

    fn pages<R: ChunkReader + 'static>(&self, source: R) -> ValidatedRowGroups<R> {
        let metadata = Arc::clone(self.metadata.metadata());
        ValidatedRowGroups::new(source, metadata, self.number..self.number + 1)
    }

    /// Fetches the chunks of `columns` from a store.
    async fn fetch(
        &self,
        object: &ObjectReader,
        columns: &[LeafColumn],
    ) -> Result<ValidatedRowGroups<FileParts>> {
        let group = self.metadata.metadata().row_group(self.number);
        // The Parquet library panics at chunks with negative offsets or lengths.
        let ranges: Vec<Range<u64>> = catch_panic(&self.object, || {
            let chunks = columns.iter();
            let chunks = chunks.map(|column| group.column(column.index).byte_range());
            let range = |(start, length): (u64, u64)| Some(start..start.checked_add(length)?);
            let ranges: Option<_> = chunks.map(range).collect();
            ranges
                .ok_or_else(|| ParquetError::General("the byte range of a column overflows".into()))
        })?;
        let bytes = object.clone().get_byte_ranges(ranges.clone()).await;
        let bytes = bytes.map_err(ArchiveError::parquet(&*self.object))?;
        Ok(self.pages(FileParts::new(&ranges, bytes)))
    }

    /// All rows of the cut.
    fn all(&self) -> Selected {
        let selection = self.cut.clone().map(|Range { start, end }| {
            RowSelection::from(vec![
                RowSelector::skip(start),
                RowSelector::select(end - start),
            ])
        });
        Selected {
            rows: self.rows,
            selection,
        }
    }

    /// Reads the ids, and selects the rows whose ids are wanted.
    fn select<R: ChunkReader + 'static>(
        &self,
        pages: &ValidatedRowGroups<R>,
        mut wanted: impl FnMut(&ArrayRef) -> Result<BooleanArray, ArrowError>,
    ) -> Result<Selected> {
        let mut masks = Vec::new();
        let ids = &self.columns[..1];
        for batch in self.read(pages, ids, self.all())? {
            let mask = named(&batch?, ids).and_then(|batch| wanted(batch.column(0)));
            masks.push(mask.map_err(ArchiveError::arrow(&self.object))?);
        }
        Ok(self.of_cut(&masks))
    }

    /// Selects the rows whose numbers, counted from the first of the cut, are wanted.
    fn select_rows(&self, wanted: &dyn Fn(u64) -> bool) -> Selected {
        let mask = (0..self.rows).map(|row| Some(wanted(row)));
        self.of_cut(&[mask.collect()])
    }

    /// The rows of the cut that `masks`, one after the other, select.
    fn of_cut(&self, masks: &[BooleanArray]) -> Selected {
        let of_cut = RowSelection::from_filters(masks);
        Selected {
            rows: of_cut.row_count() as u64,
            selection: Some(match self.all().selection {
                Some(cut) => cut.and_then(&of_cut),
                None => of_cut,
            }),
        }
    }

    /// Reads selected rows of `columns`. Columns in structures and lists come in these; [`named`] and [`JoinedTexts`] take them
    /// out.
    fn read<R: ChunkReader + 'static>(
        &self,
        pages: &ValidatedRowGroups<R>,
        columns: &[LeafColumn],
        selected: Selected,
    ) -> Result<Checked> {
        let Selected { rows, selection } = selected;
        let schema = self.metadata.parquet_schema();
        let leaves = columns.iter().map(|column| column.index);
        let bytes = catch_panic(&self.object, || pages.row_bytes(leaves.clone()))?;
        let longest = bytes.longest;
        self.check_row(longest)?;
        let row_bytes = RowBytes {
            average: self.row_bytes,
            longest,
        };
        let most = self.longest / LONGEST_ROWS;
        let batch_rows = row_bytes.rows_within(BATCH_BYTES, most, BATCH_ROWS as u64);
        let mask = ProjectionMask::leaves(schema, leaves);
        let fields = Some(self.metadata.schema().fields());
        let read = || pages.read_as(fields, mask, batch_rows, selection);
        let reader = catch_panic(&self.object, read)?;
        Ok(Checked::new(reader, self.object.clone(), rows))
    }
}
