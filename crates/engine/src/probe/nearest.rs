//! Collects the nearest documents of the archive for each fingerprint of the batch, when `max_hits`
//! limits the pairs of a document.
//!
//! It has one list for each fingerprint, not for each document: a text that is in the batch a
//! million times has one list, which is paired with each of its documents at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use super::pair_builder::{ArchiveRow, ArchiveRows, RowMatch};
use crate::batch::Batch;
use crate::memory::reserve;
use crate::pairs::BASE_ID;

/// A document of the archive near a fingerprint of the batch.
struct Neighbour {
    distance: u32,
    row: ArchiveRow,
}

impl Neighbour {
    /// The sort key of neighbours: they have the order of the output.
    fn order(&self) -> (u32, &ArchiveRow) {
        (self.distance, &self.row)
    }

    /// Bytes that it takes in a list.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.row.bytes()
    }
}

/// Bytes of the ids that become one array.
const PIECE_BYTES: usize = 16 << 20;

/// For each distinct fingerprint of the batch, its nearest documents.
pub(super) struct Nearest {
    pub(super) limit: usize,
    kept: BTreeMap<u32, Vec<Neighbour>>,
    memory: MemoryReservation,
}

impl Nearest {
    pub(super) fn new(limit: usize, pool: &Arc<dyn MemoryPool>) -> Self {
        Self {
            limit,
            kept: BTreeMap::new(),
            memory: MemoryConsumer::new("nearest documents").register(pool),
        }
    }

    /// Adds documents; returns the number of pairs that are left out for nearer ones.
    pub(super) fn add(
        &mut self,
        matches: &[RowMatch],
        rows: &ArchiveRows,
        batch: &Batch,
    ) -> Result<u64> {
        let mut left_out = 0;
        for found in matches {
            let kept = self.kept.entry(found.entry).or_default();
            let documents = batch.distinct.rows(found.entry).len() as u64;
            let neighbour = Neighbour {
                distance: found.distance,
                row: rows.row(found.row),
            };
            // A document comes again when a work item is done twice or an id repeats; the nearer one stays.
            if let Some(at) = kept
                .iter()
                .position(|other| other.row.is_same_document(&neighbour.row))
            {
                if kept[at].order() <= neighbour.order() {
                    continue;
                }
                self.memory.shrink(kept.remove(at).bytes());
            }
            let at = kept.partition_point(|other| other.order() < neighbour.order());
            if at < self.limit {
                reserve(&self.memory, neighbour.bytes(), || {
                    format!("the nearest {} documents of each fingerprint", self.limit)
                })?;
                kept.insert(at, neighbour);
                if kept.len() > self.limit
                    && let Some(farthest) = kept.pop()
                {
                    self.memory.shrink(farthest.bytes());
                    left_out += documents;
                }
            } else {
                left_out += documents;
            }
        }
        Ok(left_out)
    }

    /// Returns the collected documents by day, in pieces of about [`PIECE_BYTES`]: matches, and the rows that they refer to.
    pub(super) fn into_matches(
        self,
        schema: &SchemaRef,
    ) -> impl Iterator<Item = (Vec<RowMatch>, ArchiveRows)> + use<> {
        let text_ids = schema
            .field_with_name(BASE_ID)
            .is_ok_and(|field| *field.data_type() == DataType::Utf8);
        let mut days: BTreeMap<Option<i32>, Vec<(u32, Neighbour)>> = BTreeMap::new();
        for (entry, kept) in self.kept {
            for neighbour in kept {
                let of_day = days.entry(neighbour.row.day).or_default();
                of_day.push((entry, neighbour));
            }
        }
        days.into_iter().flat_map(move |(day, neighbours)| {
            let mut neighbours = neighbours.into_iter();
            std::iter::from_fn(move || {
                let (mut matches, mut rows, mut bytes) = (Vec::new(), Vec::new(), 0);
                while bytes < PIECE_BYTES
                    && let Some((entry, Neighbour { distance, row })) = neighbours.next()
                {
                    matches.push(RowMatch {
                        entry,
                        distance,
                        row: rows.len() as u32,
                    });
                    bytes += row.bytes();
                    rows.push(row);
                }
                let rows = (!rows.is_empty()).then_some(rows)?;
                Some((matches, ArchiveRows::from_rows(day, rows, text_ids)))
            })
        })
    }
}
