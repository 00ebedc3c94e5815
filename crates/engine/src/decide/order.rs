//! The orders of a batch's documents: by their ids, in which decisions are written, and by preference, in which their classes
//! are decided.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::prelude::SessionContext;

use super::byte_sort::{Entry, sort_by_bytes, sort_by_number};
use super::keys::Keys;
use super::pins::PinnedClasses;
use crate::batch::{Batch, IdColumn};
use crate::documents::{DocumentId, InputNumbers, Prefer};
use crate::error::{EngineError, Result};
use crate::threads::thread_pool;

/// A class that has no rank yet.
pub(super) const NONE: u32 = u32::MAX;

/// The rows of the batch's file in the order of their ids; documents that share an id, in the order of the inputs.
#[derive(Debug)]
pub(super) struct IdOrder {
    pub(super) rows: Vec<u32>,
}

/// The classes in the order in which they are decided: that of their most preferred documents.
#[derive(Debug)]
pub(super) struct Order {
    /// The rank of each class.
    ranks: Vec<u32>,
    /// The most preferred document of the class with each rank, as a row of the batch's file.
    rows: Vec<u32>,
}

/// The threads that sort, and their memory.
#[derive(Debug)]
pub(super) struct Sorting {
    threads: rayon::ThreadPool,
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
    fn reserve(&self, rows: u64) -> Result<MemoryReservation> {
        let memory = MemoryConsumer::new("ordering documents").register(&self.pool);
        let bytes = usize::try_from(rows)
            .unwrap_or(usize::MAX)
            .saturating_mul(SORTED_BYTES);
        memory.try_grow(bytes).map_err(|_| out_of_memory(bytes))?;
        Ok(memory)
    }
}

fn out_of_memory(bytes: usize) -> EngineError {
    EngineError::OutOfMemory {
        what: format!("ordering the documents takes {bytes} bytes"),
    }
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
        let _memory = sorting.reserve(keys.rows())?;
        let positions = keys.positions()?;
        let numbers = InputNumbers::new(&positions);
        let number = |position: &i64| numbers.number(*position).unwrap_or_default();
        let rows = (0..).zip(positions.iter().map(number));
        let entries = match batch.id_column() {
            IdColumn::Text(ids) => {
                let mut entries: Vec<Entry> =
                    rows.map(|(row, number)| Entry::new(row, number)).collect();
                sorting
                    .threads
                    .install(|| sort_by_bytes(&mut entries, &|row| ids.bytes(row)));
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

    /// The rows of `batch` with this id.
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

impl Order {
    /// Orders the classes by the preferences of their documents; equally preferred
    /// ones have the order `by_id`. The rows in `last` come last.
    pub(super) fn new(
        prefer: &Prefer,
        by_id: &IdOrder,
        keys: &Keys,
        classes: &PinnedClasses,
        last: &HashSet<u32>,
        sorting: &Sorting,
    ) -> Result<Self> {
        let memory = sorting.reserve(keys.rows())?;
        let preferences = keys.preferences(|bytes| {
            let grown = memory.try_grow(bytes);
            grown.map_err(|_| out_of_memory(bytes))
        })?;
        if *prefer != Prefer::default() && preferences.are_all_missing() {
            tracing::warn!(
                "no document has a value by --prefer {prefer}: of near-duplicates, the one with the smallest id is kept"
            );
        }
        let rows = by_id.rows.iter().zip(0..);
        let mut entries: Vec<Entry> = rows.map(|(&row, rank)| Entry::new(row, rank)).collect();
        sorting
            .threads
            .install(|| sort_by_bytes(&mut entries, &|row| preferences.bytes(row)));
        drop(preferences);
        let mut order = Self {
            ranks: vec![NONE; classes.count()],
            rows: Vec::with_capacity(classes.count()),
        };
        let rows = || entries.iter().map(|entry| entry.row);
        let first = rows().filter(|row| !last.contains(row));
        let last = rows().filter(|row| last.contains(row));
        for row in first.chain(last) {
            if let Some(class) = classes.of_row(row)
                && order.ranks[class as usize] == NONE
            {
                order.ranks[class as usize] = order.rows.len() as u32;
                order.rows.push(row);
            }
        }
        Ok(order)
    }

    /// The rank of a class.
    pub(super) fn rank(&self, class: u32) -> u32 {
        self.ranks[class as usize]
    }

    /// The most preferred document of the class with a rank, as a row of the batch's file.
    pub(super) fn row(&self, rank: u32) -> u32 {
        self.rows[rank as usize]
    }

    /// Heap bytes of the order of `count` classes.
    pub(super) fn bytes_for(count: usize) -> usize {
        8 * count
    }
}
