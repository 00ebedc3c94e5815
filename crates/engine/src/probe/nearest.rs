//! The nearest documents of the history, where only so many a new document are wanted.
//!
//! They are kept by fingerprint, not by document: a page copied a million times into the new day has its nearest
//! ones once, and is multiplied out at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use super::hits::RowMatch;
use crate::batch::{Id, NewBatch};
use crate::error::EngineError;
use crate::probe::columns::BASE_ID;

/// A document of the history: distance, id, day. Ordered as hits are.
type Neighbour = (u32, Id, Option<i32>);

/// For each distinct fingerprint of the batch, its nearest documents.
pub(crate) struct Nearest {
    limit: usize,
    kept: BTreeMap<u32, Vec<Neighbour>>,
    memory: MemoryReservation,
}

impl Nearest {
    pub(crate) fn new(limit: usize, pool: &Arc<dyn MemoryPool>) -> Self {
        Self {
            limit,
            kept: BTreeMap::new(),
            memory: MemoryConsumer::new("nearest documents").register(pool),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Adds documents; gives the number of pairs that were left out for it.
    pub(crate) fn add(
        &mut self,
        found: &[RowMatch],
        ids: &ArrayRef,
        day: Option<i32>,
        batch: &NewBatch,
    ) -> Result<u64> {
        let mut left_out = 0;
        for hit in found {
            let kept = self.kept.entry(hit.entry).or_default();
            let documents = batch.distinct.rows(hit.entry).len() as u64;
            let neighbour = (hit.distance, Id::of(ids, hit.row as usize), day);
            // The same document again, when a work item is done twice or an id repeats: the nearer one stands.
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

    /// What is kept, by day: matches whose rows are indexes of the ids beside them.
    pub(crate) fn into_hits(
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
