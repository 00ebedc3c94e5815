//! The pairs of an output that `show` and `report` choose and show.

use std::collections::BTreeMap;

use engine::output::ReadRow;

/// A pair, or a duplicate and its kept document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    /// The document of the batch.
    pub(super) new_id: String,
    /// The other document.
    pub(super) base_id: String,
    pub(super) distance: i32,
    /// Day of the other document, in days since 1970.
    pub(super) base_day: Option<i32>,
    pub(super) similarity: Option<f64>,
}

impl Pair {
    /// The pair of a row; `None` if the row is a kept document.
    pub(super) fn read(row: &ReadRow<'_>) -> Option<Self> {
        let pair = row.pair?;
        Some(Self {
            new_id: row.id.to_owned(),
            base_id: pair.base_id.to_owned(),
            distance: pair.distance,
            base_day: pair.base_day,
            similarity: pair.similarity,
        })
    }

    pub(super) fn ids(&self) -> [&str; 2] {
        [&self.new_id, &self.base_id]
    }
}

/// Keeps the items with the smallest keys; of equal keys, those that were offered first.
#[derive(Debug)]
pub(super) struct Smallest<K, T> {
    most: usize,
    /// By their keys, and the number of the offer.
    items: BTreeMap<(K, u64), T>,
    next: u64,
}

impl<K: Ord, T> Smallest<K, T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            items: BTreeMap::new(),
            next: 0,
        }
    }

    pub(super) fn offer(&mut self, key: K, item: impl FnOnce() -> Option<T>) {
        let is_full = self.items.len() == self.most;
        let last = self.items.last_key_value();
        if is_full && last.is_none_or(|((last, _), _)| key >= *last) {
            return;
        }
        let Some(item) = item() else { return };
        if is_full {
            self.items.pop_last();
        }
        self.items.insert((key, self.next), item);
        self.next += 1;
    }

    /// The items, the one with the smallest key first.
    pub(super) fn into_items(self) -> Vec<T> {
        self.items.into_values().collect()
    }
}
