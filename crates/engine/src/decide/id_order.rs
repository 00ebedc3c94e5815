//! The order of a batch's documents by their ids, in which decisions are written.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::prelude::SessionContext;

use super::byte_sort::{Entry, sort_by_bytes, sort_by_number};
use super::keys::Keys;
use crate::batch::{Batch, IdColumn};
use crate::error::Result;
use crate::memory::reserve;
use documents::{DocumentId, InputNumbers};
use streams::thread_pool;

/// The rows of the batch's file in the order of their ids; documents that share an id, in the order of the inputs.
#[derive(Debug)]
pub(super) struct IdOrder {
    pub(super) rows: Vec<u32>,
}

/// The threads that sort, and their memory.
#[derive(Debug)]
pub(super) struct Sorting {
    pub(super) threads: rayon::ThreadPool,
    pool: Arc<dyn MemoryPool>,
}

/// Bytes of memory for each document while documents are sorted: its entry (16), and its position or
/// the end of its preference (8).
const SORTED_BYTES: usize = size_of::<Entry>() + 8;

impl Sorting {
    /// Starts as many threads as the session has.
    pub(super) fn new(context: &SessionContext) -> Result<Self> {
        Ok(Self {
            threads: thread_pool(context)?,
            pool: Arc::clone(&context.runtime_env().memory_pool),
        })
    }

    /// Reserves memory to sort `rows` documents, without that of their preferences.
    pub(super) fn reserve(&self, rows: u64) -> Result<MemoryReservation> {
        let memory = MemoryConsumer::new("ordering documents").register(&self.pool);
        let bytes = usize::try_from(rows)
            .unwrap_or(usize::MAX)
            .saturating_mul(SORTED_BYTES);
        grow(&memory, bytes)?;
        Ok(memory)
    }
}

pub(super) fn grow(memory: &MemoryReservation, bytes: usize) -> Result<()> {
    reserve(memory, bytes, || {
        format!("ordering the documents takes {bytes} bytes")
    })
}

impl IdOrder {
    /// Heap bytes of the order of `rows` documents.
    pub(super) fn bytes_for(rows: u64) -> usize {
        usize::try_from(rows)
            .unwrap_or(usize::MAX)
            .saturating_mul(4)
    }

    /// Orders the documents of `batch`, whose keys are `keys`.
    pub(super) fn new(batch: &Batch, keys: &Keys, sorting: &Sorting) -> Result<Self> {
        let _memory = sorting.reserve(keys.rows)?;
        let positions = keys.positions()?;
        let numbers = InputNumbers::new(&positions);
        let number = |position: &i64| numbers.number(*position).unwrap_or_default();
        let rows = (0..).zip(positions.iter().map(number));
        let entries = match batch.id_column() {
            IdColumn::Text(ids) => {
                let entry = |(row, number)| Entry::new(row, number);
                let mut entries: Vec<Entry> = rows.map(entry).collect();
                let sort = || sort_by_bytes(&mut entries, &|row| ids.bytes(row));
                sorting.threads.install(sort);
                entries
            }
            IdColumn::Number(ids) => {
                let entry = |(row, number)| Entry::with_number(row, number, ids.value(row));
                let mut entries: Vec<Entry> = rows.map(entry).collect();
                sorting.threads.install(|| sort_by_number(&mut entries));
                entries
            }
        };
        Ok(Self {
            rows: entries.iter().map(|entry| entry.row).collect(),
        })
    }

    pub(super) fn rows_with(&self, batch: &Batch, id: &DocumentId) -> &[u32] {
        let compare = |row: u32| match (batch.id_column(), id) {
            (IdColumn::Text(ids), DocumentId::Text(id)) => ids.bytes(row).cmp(id.as_bytes()),
            (IdColumn::Number(ids), DocumentId::Number(id)) => ids.value(row).cmp(id),
            // No id is of the other type.
            _ => Ordering::Less,
        };
        let start = self.rows.partition_point(|row| compare(*row).is_lt());
        let rows = &self.rows[start..];
        &rows[..rows.partition_point(|row| compare(*row).is_eq())]
    }
}

pub(super) fn id_of(batch: &Batch, row: u32) -> DocumentId {
    match batch.id_column() {
        IdColumn::Text(ids) => DocumentId::Text(String::from_utf8_lossy(ids.bytes(row)).into()),
        IdColumn::Number(ids) => DocumentId::Number(ids.value(row)),
    }
}
