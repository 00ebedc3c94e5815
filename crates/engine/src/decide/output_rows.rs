//! The output of decisions: one row for each document of the batch.

use std::sync::Arc;

use archive::IdType;
use archive::schema::ID;
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    new_null_array,
};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt as _, TryStreamExt as _};

use super::{Decided, Document, Fate, Original};
use crate::error::{EngineError, Result};
use crate::pairs::{DISTANCE, SIMILARITY};
use documents::DocumentId;
use streams::blocking;

/// Column: whether the document is kept.
pub const KEPT: &str = "kept";
/// Column: the id of the kept document that the row's document repeats; null for a kept document.
pub const DUPLICATE_OF: &str = "duplicate_of";
/// Column: the day of the document that `duplicate_of` names; null if that document has no day.
pub const DUPLICATE_DAY: &str = "duplicate_day";
/// Column: the number of documents in the group, which are the kept document and its duplicates in
/// the batch; 0 for a document that is dropped as empty, or as an update.
pub const GROUP_SIZE: &str = "group_size";

/// Column: the id of a document if the archive has another content of it; null for others. Only if the run found updates.
pub const UPDATE_OF: &str = "update_of";
/// Column: the day of the content that `update_of` names.
pub const UPDATE_DAY: &str = "update_day";

/// Rows that are made at once: few, because an id may have a megabyte.
pub(super) const ROWS_AT_ONCE: usize = 1024;

/// The names of the columns that all decisions have, in the order of the output; carried columns come behind them.
pub const LAYOUT: [&str; 7] = [
    ID,
    KEPT,
    DUPLICATE_OF,
    DUPLICATE_DAY,
    DISTANCE,
    SIMILARITY,
    GROUP_SIZE,
];

impl Decided {
    /// The decisions as rows, in the order of the ids; documents that share an id, in the order of the inputs.
    pub(crate) fn rows(
        self: Arc<Self>,
        context: &SessionContext,
        id_type: IdType,
    ) -> SendableRecordBatchStream {
        let schema = self.schema(id_type);
        let of_stream = Arc::clone(&schema);
        let threads = context.state().config().target_partitions();
        let starts = (0..self.by_id.rows.len()).step_by(ROWS_AT_ONCE);
        let rows = futures::stream::iter(starts)
            .map(move |start| {
                let (decided, schema) = (Arc::clone(&self), Arc::clone(&schema));
                blocking(move || {
                    let end = (start + ROWS_AT_ONCE).min(decided.by_id.rows.len());
                    decided.rows_of(&decided.by_id.rows[start..end], &schema)
                })
            })
            .buffered(threads.max(1))
            .err_into();
        Box::pin(RecordBatchStreamAdapter::new(of_stream, rows))
    }

    /// The columns of these decisions, with those of updates if the run finds updates.
    fn schema(&self, id_type: IdType) -> SchemaRef {
        let types = [
            (id_type.data_type(), false),
            (DataType::Boolean, false),
            (id_type.data_type(), true),
            (DataType::Date32, true),
            (DataType::Int32, true),
            (DataType::Float64, true),
            (DataType::Int64, false),
        ];
        let field = |(name, (data_type, nullable))| Field::new(name, data_type, nullable);
        let fields = LAYOUT.into_iter().zip(types).map(field);
        let of_updates = [
            Field::new(UPDATE_OF, id_type.data_type(), true),
            Field::new(UPDATE_DAY, DataType::Date32, true),
        ];
        let of_updates = of_updates.into_iter().filter(|_| self.captures.is_some());
        Arc::new(Schema::new(fields.chain(of_updates).collect::<Vec<_>>()))
    }

    /// The decisions about the documents at `rows` of the batch's file.
    fn rows_of(&self, rows: &[u32], schema: &SchemaRef) -> Result<RecordBatch> {
        let mut kept = Vec::with_capacity(rows.len());
        let mut of = Others::default();
        let mut sizes = Vec::with_capacity(rows.len());
        let mut updates = Vec::with_capacity(rows.len());
        for &row in rows {
            let fate = self.fate(row);
            kept.push(matches!(fate, Fate::Kept(_)));
            updates.push(self.update_of(row, &fate));
            of.push(self.original(&fate).as_ref());
            sizes.push(self.group_size(&fate));
        }
        let arrow_error = EngineError::internal::<ArrowError>;
        let ids = self.batch.ids(rows).map_err(arrow_error)?;
        let of_updates = match self.captures {
            Some(_) => {
                let is_none = updates.iter().map(|update| Some(update.is_none()));
                let is_none: BooleanArray = is_none.collect();
                let days = updates.iter().map(|update| update.as_ref()?.day);
                let of = nullif(&ids, &is_none).map_err(arrow_error)?;
                vec![of, Arc::new(days.collect::<Date32Array>()) as ArrayRef]
            }
            None => Vec::new(),
        };
        let mut columns: Vec<ArrayRef> = vec![
            ids,
            Arc::new(BooleanArray::from(kept)),
            of.ids(self, schema.field(2).data_type())
                .map_err(arrow_error)?,
            Arc::new(Date32Array::from(of.days)),
            Arc::new(Int32Array::from(of.distances)),
            Arc::new(Float64Array::from(of.similarities)),
            Arc::new(Int64Array::from(sizes)),
        ];
        columns.extend(of_updates);
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(arrow_error)
    }

    /// The number of documents in the group of a document of this fate.
    fn group_size(&self, fate: &Fate) -> i64 {
        match fate {
            Fate::Kept(rank) => rank.map_or(1, |rank| i64::from(self.greedy.group_size(rank))),
            Fate::Within { kept, .. } => i64::from(self.greedy.group_size(*kept)),
            Fate::Empty | Fate::Update => 0,
            Fate::OfArchive(rank) => {
                let near = self.of_archive.get(rank);
                let group = near.map(|near| (near.day, near.id.clone()));
                let size = group.and_then(|group| self.archive_group_sizes.get(&group));
                size.map_or(1, |size| size.cast_signed())
            }
        }
    }
}

/// The documents that others are duplicates of.
#[derive(Default)]
struct Others {
    /// Where each id is: the number of an array, and an index in it. Array 0 has one null, array 1
    /// the ids of `batch_rows`, array 2 `archive_ids`.
    places: Vec<(usize, usize)>,
    batch_rows: Vec<u32>,
    archive_ids: Vec<DocumentId>,
    days: Vec<Option<i32>>,
    distances: Vec<Option<i32>>,
    similarities: Vec<Option<f64>>,
}

impl Others {
    fn push(&mut self, original: Option<&Original<'_>>) {
        self.places.push(match original.map(|of| of.document) {
            None => (0, 0),
            Some(Document::Row(row)) => {
                self.batch_rows.push(row);
                (1, self.batch_rows.len() - 1)
            }
            Some(Document::Archived(id)) => {
                self.archive_ids.push(id.clone());
                (2, self.archive_ids.len() - 1)
            }
        });
        self.days.push(original.and_then(|of| of.day));
        self.distances.push(original.map(|of| of.distance));
        let similarity = original.and_then(|of| of.similarity);
        self.similarities.push(similarity);
    }

    fn ids(&self, decided: &Decided, id_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let none = new_null_array(id_type, 1);
        let text = *id_type == DataType::Utf8;
        let of_batch = if self.batch_rows.is_empty() {
            new_null_array(id_type, 0)
        } else {
            decided.batch.ids(&self.batch_rows)?
        };
        let of_archive = DocumentId::array(&self.archive_ids, text);
        arrow::compute::interleave(&[&none, &of_batch, &of_archive], &self.places)
    }
}
