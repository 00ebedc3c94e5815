//! Classes of the batch: documents that have the same pairs.

use std::collections::HashMap;

use super::Batch;

/// The classes of a batch. The documents of a class have equal fingerprints and, where pairs are compared by their
/// sketches, equal sketches: so they are duplicates of each other, and have the same pairs. A page that is in the batch a
/// million times is one class.
#[derive(Debug)]
pub struct Classes {
    /// The class of each row of the batch's file that has a fingerprint.
    of_row: Vec<u32>,
    /// The first row of each class.
    rows: Vec<u32>,
    /// The classes of the distinct fingerprint `i` are `starts[i]..starts[i + 1]`.
    starts: Vec<u32>,
}

impl Classes {
    /// The classes of `batch`, by fingerprint alone or `by_sketch` too.
    pub(super) fn new(batch: &Batch, by_sketch: bool) -> Self {
        let distinct = &batch.distinct;
        let count = distinct.values().len();
        let rows_in_all: usize = batch.ids.iter().map(|chunk| chunk.len()).sum();
        let mut of_row = vec![0; rows_in_all];
        let mut rows: Vec<u32> = Vec::with_capacity(count);
        let mut starts = Vec::with_capacity(count + 1);
        let mut of_sketch: HashMap<Option<&[u8]>, u32> = HashMap::new();
        for entry in 0..count as u32 {
            let start = rows.len() as u32;
            starts.push(start);
            of_sketch.clear();
            for row in distinct.rows(entry) {
                let class = match by_sketch {
                    true => *of_sketch
                        .entry(batch.sketch(row))
                        .or_insert(rows.len() as u32),
                    false => start,
                };
                if class as usize == rows.len() {
                    rows.push(row);
                }
                of_row[row as usize] = class;
            }
        }
        starts.push(rows.len() as u32);
        Self {
            of_row,
            rows,
            starts,
        }
    }

    /// The number of classes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The class of a row of the batch's file; `None` for a row without a fingerprint.
    #[must_use]
    pub fn of_row(&self, row: u32) -> Option<u32> {
        self.of_row.get(row as usize).copied()
    }

    /// The classes of the distinct fingerprint `entry`, each with its first row.
    pub(crate) fn of_fingerprint(
        &self,
        entry: u32,
    ) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        let entry = entry as usize;
        let classes = self.starts[entry]..self.starts[entry + 1];
        classes.map(|class| (class, self.rows[class as usize]))
    }

    /// Heap bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        4 * (self.of_row.capacity() + self.rows.capacity() + self.starts.capacity())
    }
}
