//! What decisions drop, for a look before anything is deleted: by source, and a few documents at random.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use arrow::datatypes::Date32Type;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use serde::Serialize;
use simhash::hash::murmur3_low64;

use super::id_order::id_of;
use super::keys::Keys;
use super::{Decided, Document};
use crate::batch::IdColumn;
use crate::error::{EngineError, Result};
use crate::verify::{DrawnPair, Other};
use documents::positions_and_bytes;

/// The sources that are named.
const NAMED: usize = 10;
/// The documents that are shown.
pub(crate) const SHOWN: usize = 5;
/// The fewest documents of a source whose share is looked at: one duplicate of a source with two pages means nothing.
const LEAST_DOCUMENTS: u64 = 10;
/// Bytes of memory of a source, without its name: an entry of a map that doubles, and one of a list that is sorted.
const SOURCE_BYTES: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceLoss {
    pub source: String,
    /// Its documents in the batch.
    pub documents: u64,
    pub dropped: u64,
}

/// A duplicate that is dropped, with why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dropped {
    /// Its id; an integer id in decimal.
    pub id: String,
    /// The id of the kept document that it repeats.
    pub duplicate_of: String,
    /// The day of that document.
    pub duplicate_day: Option<String>,
    /// Bits in which their fingerprints differ.
    pub distance: i32,
    /// Their similarity, if it is known.
    pub similarity: Option<f64>,
}

impl SourceLoss {
    /// The share of its documents that are dropped, from 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        self.dropped as f64 / self.documents.max(1) as f64
    }
}

/// Counts the documents of each source.
pub(super) struct Sources {
    /// Documents, and those that are dropped.
    counts: HashMap<Box<str>, [u64; 2]>,
    memory: MemoryReservation,
    /// Whether the run ends if they do not fit into memory; else they are not counted then.
    must_fit: bool,
    /// Whether they did not.
    are_too_many: bool,
}

impl Sources {
    pub(super) fn new(pool: &Arc<dyn MemoryPool>, must_fit: bool) -> Self {
        Self {
            counts: HashMap::new(),
            memory: MemoryConsumer::new("sources").register(pool),
            must_fit,
            are_too_many: false,
        }
    }

    pub(super) fn add(&mut self, source: &str, is_dropped: bool) -> Result<()> {
        if self.are_too_many {
            return Ok(());
        }
        let counts = match self.counts.get_mut(source) {
            Some(counts) => counts,
            None => {
                if self.memory.try_grow(source.len() + SOURCE_BYTES).is_err() {
                    return self.give_up();
                }
                self.counts.entry(source.into()).or_default()
            }
        };
        counts[0] += 1;
        counts[1] += u64::from(is_dropped);
        Ok(())
    }

    /// Stops to count, for there is no memory.
    fn give_up(&mut self) -> Result<()> {
        let sources = self.counts.len() + 1;
        if self.must_fit {
            return Err(EngineError::OutOfMemory {
                what: format!("counting {sources} sources of documents, for --max-dropped"),
            });
        }
        tracing::warn!(
            "what each source loses is not counted: {sources} sources are too many for the memory limit"
        );
        self.are_too_many = true;
        self.counts = HashMap::new();
        self.memory.free();
        Ok(())
    }

    /// The sources that lose most documents, and the one of enough documents that loses the greatest share.
    pub(super) fn losses(self) -> (Vec<SourceLoss>, Option<SourceLoss>) {
        let losses = self
            .counts
            .into_iter()
            .map(|(source, [documents, dropped])| SourceLoss {
                source: source.into(),
                documents,
                dropped,
            });
        let mut losses: Vec<SourceLoss> = losses.filter(|loss| loss.dropped > 0).collect();
        let enough = losses
            .iter()
            .filter(|loss| loss.documents >= LEAST_DOCUMENTS);
        let by_share = |a: &&SourceLoss, b: &&SourceLoss| {
            a.share()
                .total_cmp(&b.share())
                .then_with(|| b.source.cmp(&a.source))
        };
        let worst = enough.max_by(by_share).cloned();
        losses.sort_unstable_by(|a, b| {
            b.dropped
                .cmp(&a.dropped)
                .then_with(|| a.source.cmp(&b.source))
        });
        losses.truncate(NAMED);
        (losses, worst)
    }
}

/// Draws duplicates at random: those whose ids have the smallest hashes, the same in every run.
pub(super) struct Sample {
    most: usize,
    /// Hashes, and rows of the batch's file.
    rows: BinaryHeap<(u64, u32)>,
}

impl Sample {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            rows: BinaryHeap::new(),
        }
    }

    pub(super) fn add(&mut self, ids: &IdColumn<'_>, row: u32) {
        let hash = match ids {
            IdColumn::Text(ids) => murmur3_low64(ids.bytes(row), 0),
            IdColumn::Number(ids) => murmur3_low64(&ids.value(row).to_le_bytes(), 0),
        };
        self.rows.push((hash, row));
        if self.rows.len() > self.most {
            self.rows.pop();
        }
    }

    /// The rows of the batch's file that were drawn, in random order.
    pub(super) fn rows(self) -> Vec<u32> {
        let rows = self.rows.into_sorted_vec();
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl Decided {
    /// Some of the duplicates that were drawn at random, with why they are dropped.
    pub(crate) fn shown(&self) -> Vec<Dropped> {
        let shown = |row: &u32| {
            let of = self.original(&self.fate(*row))?;
            let day = of.day.and_then(Date32Type::to_naive_date_opt);
            Some(Dropped {
                id: id_of(&self.batch, *row).to_string(),
                duplicate_of: match of.document {
                    Document::Row(row) => id_of(&self.batch, row).to_string(),
                    Document::Archived(id) => id.to_string(),
                },
                duplicate_day: day.map(|day| day.to_string()),
                distance: of.distance,
                similarity: of.similarity,
            })
        };
        self.drawn.iter().take(SHOWN).filter_map(shown).collect()
    }

    /// The first `most` of the duplicates that were drawn at random, with the documents that they repeat.
    pub(crate) fn drawn_pairs(&self, keys: &Keys, most: usize) -> Result<Vec<DrawnPair>> {
        let drawn = &self.drawn[..self.drawn.len().min(most)];
        let mut positions: HashMap<u32, i64> = HashMap::new();
        for row in drawn {
            positions.insert(*row, 0);
            let original = self.original(&self.fate(*row));
            if let Some(Document::Row(row)) = original.map(|of| of.document) {
                positions.insert(row, 0);
            }
        }
        let mut rows = 0..;
        for batch in keys.read()? {
            let batch = batch?;
            let (of_batch, _) = positions_and_bytes(&batch)?;
            for (position, row) in of_batch.values().iter().zip(&mut rows) {
                positions.entry(row).and_modify(|found| *found = *position);
            }
        }
        let pair = |row: &u32| {
            let of = self.original(&self.fate(*row))?;
            Some(DrawnPair {
                position: positions[row],
                other: match of.document {
                    Document::Row(row) => Other::At(positions[&row]),
                    Document::Archived(id) => Other::InArchive(id.clone()),
                },
                distance: of.distance,
            })
        };
        Ok(drawn.iter().filter_map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    fn loss(source: &str, documents: u64, dropped: u64) -> SourceLoss {
        SourceLoss {
            source: source.into(),
            documents,
            dropped,
        }
    }

    #[test]
    fn the_sources_that_lose_most_come_first() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let mut sources = Sources::new(&pool, false);
        for (source, documents, dropped) in [("a", 20, 5), ("b", 12, 9), ("c", 3, 3), ("d", 40, 0)]
        {
            for number in 0..documents {
                sources.add(source, number < dropped).unwrap();
            }
        }
        let (losses, worst) = sources.losses();
        assert_eq!(
            losses,
            [loss("b", 12, 9), loss("a", 20, 5), loss("c", 3, 3)]
        );
        assert_eq!(worst, Some(loss("b", 12, 9)));
        let small: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(200));
        for must_fit in [false, true] {
            let mut sources = Sources::new(&small, must_fit);
            sources.add("a", true).unwrap();
            sources.add("a", true).unwrap();
            assert_eq!(sources.add("b", true).is_err(), must_fit);
            assert_eq!(sources.losses().0.is_empty(), !must_fit);
        }
    }

    #[test]
    fn every_document_is_drawn_equally_often() {
        let mut drawn = [0_u32; 20];
        for first in 0..2_000 {
            let mut sample = Sample::new(5);
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first * 20..first * 20 + 20));
            let arrays = [ids];
            let ids = IdColumn::new(&arrays, 20);
            (0..20).for_each(|row| sample.add(&ids, row));
            let rows = sample.rows();
            assert_eq!(rows.len(), 5);
            rows.iter().for_each(|row| drawn[*row as usize] += 1);
        }
        // 500 are expected, with a standard deviation of 19.
        assert!(
            drawn.iter().all(|times| (420..580).contains(times)),
            "{drawn:?}"
        );
    }
}
