//! The texts of a batch, held in memory while they are fingerprinted, so that whoever compares them afterwards decodes no file again.

use std::sync::{Arc, Mutex};

use archive::IdType;
use archive::schema::ID;
use arrow::array::{Array as _, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::stream;
use streams::{limit_bytes, locked};

use super::table_columns::{BYTES, POSITION, TEXT, TextRows, positions_and_bytes};
use super::wanted_rows::{Rows, are_wanted};
use crate::error::{DocumentsError, Result};

/// The part of the memory that texts may take, an eighth.
const PART: usize = 8;
/// Bytes of a row beside its id and its text.
const ROW_BYTES: usize = 32;

/// The rows of all documents, with their ids, texts and positions; or none of them, if they take too much memory.
#[derive(Debug)]
pub(super) struct HeldTexts {
    held: Mutex<Held>,
    memory: MemoryReservation,
    most: usize,
}

#[derive(Debug)]
enum Held {
    Nothing,
    /// The rows that a pass has read so far.
    Some(Vec<RecordBatch>),
    All(Vec<RecordBatch>),
}

impl HeldTexts {
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        Self {
            held: Mutex::new(Held::Nothing),
            memory: MemoryConsumer::new("texts of the batch").register(pool),
            most: limit_bytes(pool) / PART,
        }
    }

    /// Drops what is held; if about `bytes` bytes find room, holds the rows of the pass that begins.
    pub(super) fn begin(&self, bytes: u64) {
        self.memory.free();
        *locked(&self.held) = if bytes <= self.most as u64 {
            Held::Some(Vec::new())
        } else {
            Held::Nothing
        };
    }

    /// Holds rows that the pass has read.
    pub(super) fn add(&self, rows: &RecordBatch) {
        let mut held = locked(&self.held);
        let Held::Some(all) = &mut *held else {
            return;
        };
        if self.reserve(rows) {
            let schema = rows.schema_ref().fields();
            let columns = schema
                .iter()
                .enumerate()
                .filter(|(_, field)| [ID, TEXT, BYTES, POSITION].contains(&field.name().as_str()));
            let columns: Vec<usize> = columns.map(|(column, _)| column).collect();
            if let Ok(rows) = rows.project(&columns) {
                all.push(rows);
                return;
            }
        }
        *held = Held::Nothing;
        self.memory.free();
    }

    /// Reserves memory for rows; false without texts or without memory.
    fn reserve(&self, rows: &RecordBatch) -> bool {
        let Ok(TextRows { ids, texts }) = TextRows::read(rows) else {
            return false;
        };
        // The pages with the texts are shared by record batches, so their own bytes would count them twice.
        let text_bytes: usize = texts.lengths().map(|length| length as usize).sum();
        let bytes = text_bytes + ids.get_buffer_memory_size() + ROW_BYTES * rows.num_rows();
        self.memory.size() + bytes <= self.most && self.memory.try_grow(bytes).is_ok()
    }

    /// The pass has read all documents.
    pub(super) fn end(&self) {
        let mut held = locked(&self.held);
        if let Held::Some(rows) = &mut *held {
            *held = Held::All(std::mem::take(rows));
        }
    }

    /// The table of the rows with certain ids or at certain positions, if all documents are held.
    pub(super) fn table(
        &self,
        context: &SessionContext,
        rows: &Rows,
        id_type: IdType,
    ) -> Result<Option<DataFrame>> {
        let held = locked(&self.held);
        let (Held::All(held), Rows::Wanted(_) | Rows::At(_)) = (&*held, rows) else {
            return Ok(None);
        };
        let failed = |error: ArrowError| DocumentsError::Internal(error.to_string());
        let selected = |batch: &RecordBatch| {
            let mask = match rows {
                Rows::All | Rows::WithDecisionColumns => return Ok(batch.clone()),
                Rows::Wanted(wanted) => {
                    let ids = TextRows::read(batch)?.ids;
                    are_wanted(ids, id_type, wanted).map_err(failed)?
                }
                Rows::At(set) => {
                    let (positions, _) = positions_and_bytes(batch)?;
                    let positions = positions.values().iter();
                    positions.map(|at| Some(set.has(*at))).collect()
                }
            };
            filter_record_batch(batch, &mask).map_err(failed)
        };
        let selected: Vec<_> = held.iter().map(selected).collect::<Result<_>>()?;
        let Some(first) = selected.first() else {
            return Ok(None);
        };
        let schema = first.schema();
        let rows = stream::iter(selected.into_iter().map(Ok));
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
        let table = streams::table(context, schema, vec![Box::pin(rows)]);
        let failed = DocumentsError::query("the texts of the batch");
        table.map(Some).map_err(failed)
    }
}
