//! The order of a batch's documents by preference, in which their classes are decided.

use std::collections::HashSet;

use super::byte_sort::{Entry, sort_by_bytes};
use super::id_order::{IdOrder, Sorting, grow};
use super::keys::Keys;
use super::pins::PinnedClasses;
use crate::error::Result;
use documents::Prefer;

/// A class that has no rank yet.
pub(super) const NONE: u32 = u32::MAX;

/// The classes in the order in which they are decided: that of their most preferred documents.
#[derive(Debug)]
pub(super) struct Order {
    ranks: Vec<u32>,
    /// The most preferred document of the class with each rank, as a row of the batch's file.
    rows: Vec<u32>,
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
        let memory = sorting.reserve(keys.rows)?;
        let preferences = keys.preferences(|bytes| grow(&memory, bytes))?;
        if *prefer != Prefer::default() && preferences.are_all_missing() {
            let hint = prefer.hint(|_| true);
            tracing::warn!(
                "no document has a value by --prefer {prefer}{hint}: of near-duplicates, the one with the smallest id is kept"
            );
        }
        let rows = by_id.rows.iter().zip(0..);
        let mut entries: Vec<Entry> = rows.map(|(&row, rank)| Entry::new(row, rank)).collect();
        let sort = || sort_by_bytes(&mut entries, &|row| preferences.bytes(row));
        sorting.threads.install(sort);
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
