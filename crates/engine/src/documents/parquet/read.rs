//! Reads rows of one row group.

use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderBuilder, ArrowReaderMetadata, ParquetRecordBatchReaderBuilder,
    RowFilter, RowSelection, RowSelector,
};
use ::parquet::arrow::async_reader::ParquetRecordBatchStreamBuilder;
use archive::ArchiveError;
use arrow::array::{ArrayRef, BooleanArray};
use arrow::error::ArrowError;
use futures::StreamExt as _;

use super::checked::{Checked, damaged};
use super::footer::{bytes, leaves};
use crate::documents::file::{Batches, InputFile, RowRange, Source};
use crate::error::{EngineError, Result};
use crate::stream::BATCH_ROWS;

/// Bytes of ids and content in a batch, on average.
const BATCH_BYTES: u64 = 1 << 20;

/// A filter: tells which of the given ids are wanted.
pub(in crate::documents) type WantedRows =
    Box<dyn FnMut(&ArrayRef) -> Result<BooleanArray, ArrowError> + Send>;

/// Reads rows of a row group: id, then content. Errors call them `object`. With `wanted`, ids are read first, and then the
/// contents of wanted rows only.
pub(in crate::documents) async fn read(
    file: &Arc<InputFile>,
    rows: &RowRange,
    object: String,
    wanted: Option<WantedRows>,
    memory: usize,
) -> Result<Batches> {
    let slice = RowGroup::new(file, rows)?;
    // A row is read whole, and a few copies are in memory while it is decoded and fingerprinted.
    if slice.row_bytes > memory as u64 / 4 {
        return Err(EngineError::OutOfMemory {
            what: format!("{object} has rows of {} bytes", slice.row_bytes),
        });
    }
    let failed = ArchiveError::parquet(object.clone());
    // The reader returns columns in the file's order.
    let order = if slice.leaves[0] < slice.leaves[1] {
        [0, 1]
    } else {
        [1, 0]
    };
    let expected = Some(slice.rows).filter(|_| wanted.is_none());
    let checked = Checked::new(object.clone(), expected);
    let batches = match &file.source {
        Source::Local(local) => {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
                local.open()?,
                slice.metadata.clone(),
            );
            let builder = slice.configure(builder, wanted);
            // With a filter, `build` reads the ids.
            let built = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.build()));
            let reader = built.unwrap_or_else(|_| Err(damaged())).map_err(failed)?;
            checked.local(reader)
        }
        Source::Remote(object) => {
            let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(
                object.clone(),
                slice.metadata.clone(),
            );
            let stream = slice.configure(builder, wanted).build().map_err(failed)?;
            checked.remote(stream)
        }
        Source::Rows { .. } => return Err(file.bad_data("it is no Parquet".into())),
    };
    let ordered = batches.map(move |batch| {
        batch?.project(&order).map_err(|source| {
            let object = object.clone();
            ArchiveError::Arrow { object, source }.into()
        })
    });
    Ok(ordered.boxed())
}

/// What is read of one row group.
struct RowGroup {
    metadata: ArrowReaderMetadata,
    number: usize,
    leaves: [usize; 2],
    /// The rows that are read; `None` for all.
    cut: Option<Range<usize>>,
    /// How many rows are read, before a filter.
    rows: u64,
    /// Average bytes of a row.
    row_bytes: u64,
    batch_rows: usize,
}

impl RowGroup {
    fn new(file: &InputFile, range: &RowRange) -> Result<Self> {
        let Some(metadata) = file.footer.clone() else {
            return Err(file.bad_data("it has no footer".into()));
        };
        let number = range.row_group;
        let rows = metadata.metadata().row_group(number).num_rows();
        let rows = rows.max(0).cast_unsigned();
        let row_bytes = bytes(file, &metadata, number) / rows.max(1);
        let batch_rows = BATCH_BYTES / row_bytes.max(1);
        Ok(Self {
            number,
            leaves: leaves(file, &metadata),
            cut: range.cut.clone(),
            rows: range.cut.as_ref().map_or(rows, |cut| cut.len() as u64),
            row_bytes,
            batch_rows: batch_rows.clamp(1, BATCH_ROWS as u64) as usize,
            metadata,
        })
    }

    fn configure<T>(
        &self,
        builder: ArrowReaderBuilder<T>,
        wanted: Option<WantedRows>,
    ) -> ArrowReaderBuilder<T> {
        let schema = self.metadata.parquet_schema();
        let builder = builder
            .with_row_groups(vec![self.number])
            .with_projection(ProjectionMask::leaves(schema, self.leaves))
            .with_batch_size(self.batch_rows);
        let builder = match self.cut.clone() {
            None => builder,
            Some(Range { start, end }) => builder.with_row_selection(RowSelection::from(vec![
                RowSelector::skip(start),
                RowSelector::select(end - start),
            ])),
        };
        let Some(mut wanted) = wanted else {
            return builder;
        };
        let id = ProjectionMask::leaves(schema, [self.leaves[0]]);
        let predicate = ArrowPredicateFn::new(id, move |ids| wanted(ids.column(0)));
        builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]))
    }
}
