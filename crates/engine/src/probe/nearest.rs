//! The nearest documents of the archive, when the pairs of a document of the batch are limited.
//!
//! They are kept by fingerprint, not by document: a text that is in the batch a million times has its nearest documents
//! once, and is multiplied out at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use super::hits::RowMatch;
use crate::batch::{Batch, Id};
use crate::error::EngineError;
use crate::pairs::BASE_ID;

/// A document of the archive: distance, id, day. Ordered as the output is.
type Neighbour = (u32, Id, Option<i32>);

/// For each distinct fingerprint of the batch, its nearest documents.
pub(super) struct Nearest {
    limit: usize,
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

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds documents; returns the number of pairs that are left out for nearer ones.
    pub(super) fn add(
        &mut self,
        found: &[RowMatch],
        ids: &ArrayRef,
        day: Option<i32>,
        batch: &Batch,
    ) -> Result<u64> {
        let mut left_out = 0;
        for hit in found {
            let kept = self.kept.entry(hit.entry).or_default();
            let documents = batch.distinct.rows(hit.entry).len() as u64;
            let neighbour = (hit.distance, Id::read(ids, hit.row as usize), day);
            // A document comes again when a work item is done twice or an id repeats; the nearer one stays.
            if let Some(at) = kept
                .iter()
                .position(|n| n.1 == neighbour.1 && n.2 == neighbour.2)
            {
                if kept[at] <= neighbour {
                    continue;
                }
                kept.remove(at);
            }
            let at = kept.partition_point(|other| *other < neighbour);
            if at < self.limit {
                let bytes = size_of::<Neighbour>() + neighbour.1.bytes();
                self.memory
                    .try_grow(bytes)
                    .map_err(|_| EngineError::OutOfMemory {
                        what: format!("the nearest {} documents of each fingerprint", self.limit),
                    })?;
                kept.insert(at, neighbour);
                if kept.len() > self.limit {
                    kept.truncate(self.limit);
                    left_out += documents;
                }
            } else {
                left_out += documents;
            }
        }
        Ok(left_out)
    }

    /// The documents that were kept, by day: matches, and the ids that their rows are indexes of.
    pub(super) fn into_hits(
        self,
        schema: &SchemaRef,
    ) -> impl Iterator<Item = (Option<i32>, Vec<RowMatch>, Result<ArrayRef>)> + use<> {
        let text = schema
            .field_with_name(BASE_ID)
            .is_ok_and(|field| *field.data_type() == DataType::Utf8);
        let mut days: BTreeMap<Option<i32>, (Vec<RowMatch>, Vec<Id>)> = BTreeMap::new();
        for (entry, kept) in self.kept {
            for (distance, id, day) in kept {
                let (found, ids) = days.entry(day).or_default();
                found.push(RowMatch {
                    entry,
                    distance,
                    row: ids.len() as u32,
                });
                ids.push(id);
            }
        }
        days.into_iter()
            .map(move |(day, (found, ids))| (day, found, Ok(Id::array(&ids, text))))
    }
}
