//! Classes of the batch: documents that have the same pairs.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use hamming::{Distinct, EntriesByRow};

use super::Batch;

/// The classes of a batch. The documents of a class have equal fingerprints and, where pairs are verified, equal contents:
/// equal sketches or equal texts, whichever are compared. So they are duplicates of each other, and have the same pairs. A
/// page that is in the batch a million times is one class.
#[derive(Debug)]
pub enum Classes {
    /// Each distinct fingerprint is a class; the class has the index of the fingerprint as its
    /// number.
    ByFingerprint {
        distinct: Arc<Distinct>,
        /// The class of each row of the batch's file that has a fingerprint.
        of_row: EntriesByRow,
    },
    /// Contents tell documents of equal fingerprints apart.
    ByContent {
        /// The class of each row of the batch's file that has a fingerprint.
        of_row: Vec<u32>,
        rows: Vec<u32>,
        /// The classes of the distinct fingerprint `i` are `starts[i]..starts[i + 1]`.
        starts: Vec<u32>,
    },
}

impl Classes {
    /// The classes of `batch` by fingerprint alone.
    pub(super) fn by_fingerprint(batch: &Batch) -> Self {
        Self::ByFingerprint {
            of_row: batch.distinct.entries_by_row(),
            distinct: Arc::clone(&batch.distinct),
        }
    }

    /// The classes of `batch` by fingerprint and content. Calls `content` for the rows of each
    /// fingerprint in turn.
    pub(crate) fn by_content<C: Eq + Hash>(batch: &Batch, content: impl Fn(u32) -> C) -> Self {
        let distinct = &batch.distinct;
        let count = distinct.values().len();
        let mut of_row = vec![0; batch.rows];
        let mut rows: Vec<u32> = Vec::with_capacity(count);
        let mut starts = Vec::with_capacity(count + 1);
        for entry in 0..count as u32 {
            starts.push(rows.len() as u32);
            let of_entry = distinct.rows(entry);
            if of_entry.len() == 1 {
                for row in of_entry {
                    of_row[row as usize] = rows.len() as u32;
                    rows.push(row);
                }
                continue;
            }
            let mut of_content: HashMap<C, u32> = HashMap::with_capacity(of_entry.len());
            for row in of_entry {
                let next = rows.len() as u32;
                let class = *of_content.entry(content(row)).or_insert(next);
                if class == next {
                    rows.push(row);
                }
                of_row[row as usize] = class;
            }
        }
        starts.push(rows.len() as u32);
        Self::ByContent {
            of_row,
            rows,
            starts,
        }
    }

    /// Heap bytes of [`Self::by_content`] for `rows` rows of different contents, without the spare
    /// capacity of its vectors.
    pub(crate) fn by_content_bytes(rows: usize) -> usize {
        // Two lists grow, so they may have twice the rows that they hold.
        20 * rows
    }

    pub fn count(&self) -> usize {
        match self {
            Self::ByFingerprint { distinct, .. } => distinct.values().len(),
            Self::ByContent { rows, .. } => rows.len(),
        }
    }

    /// The class of a row of the batch's file; `None` for a row without a fingerprint.
    pub fn of_row(&self, row: u32) -> Option<u32> {
        match self {
            Self::ByFingerprint { of_row, .. } => of_row.entry(row),
            Self::ByContent { of_row, .. } => of_row.get(row as usize).copied(),
        }
    }

    /// The classes of the distinct fingerprint `entry`, ascending.
    pub(crate) fn of_fingerprint(&self, entry: u32) -> Range<u32> {
        match self {
            Self::ByFingerprint { .. } => entry..entry + 1,
            Self::ByContent { starts, .. } => {
                let entry = entry as usize;
                starts[entry]..starts[entry + 1]
            }
        }
    }

    pub(crate) fn row(&self, class: u32) -> u32 {
        match self {
            Self::ByFingerprint { distinct, .. } => distinct.row(class, 0),
            Self::ByContent { rows, .. } => rows[class as usize],
        }
    }

    pub(crate) fn is_first(&self, row: u32) -> bool {
        self.of_row(row).is_some_and(|class| self.row(class) == row)
    }

    /// Heap bytes held, without those of the batch.
    pub fn bytes(&self) -> usize {
        match self {
            Self::ByFingerprint { of_row, .. } => of_row.bytes(),
            Self::ByContent {
                of_row,
                rows,
                starts,
            } => 4 * (of_row.capacity() + rows.capacity() + starts.capacity()),
        }
    }
}
