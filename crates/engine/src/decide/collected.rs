//! The pairs that are decided about: of classes, sorted by the order in which these are decided, and the nearest documents of the archive.
//! Leaves out what does not count: pairs that are not verified, superseded captures, and what pins deny; adds what pins say.

use std::collections::HashMap;
use std::sync::Arc;

use archive::Rulings;
use arrow::array::{Array as _, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Date32Type, Float64Type, Int32Type, UInt32Type};
use datafusion::execution::memory_pool::MemoryReservation;

use super::captures::{Captures, RowCapture};
use super::greedy::OrderedPair;
use super::id_order::id_of;
use super::order::{NONE, Order};
use super::pins::PinnedClasses;
use super::sorter::PairSorter;
use crate::batch::{Batch, FingerprintsByRow};
use crate::class_pairs::{CLASS, OTHER_CLASS, column, missing};
use crate::error::Result;
use crate::memory;
use crate::pairs::{BASE_DAY, BASE_ID, DISTANCE, SIMILARITY};
use crate::probe::Neighbour;
use documents::DocumentId;

/// Bytes of memory for each class that is a duplicate of a document of the archive: its entries in
/// two maps, and their share of free slots.
const NEIGHBOUR_BYTES: usize = 192;

/// What tells superseded captures among the documents of the archive, and among those of the batch.
pub(super) struct Superseded {
    pub(super) rulings: Arc<Rulings>,
    pub(super) fingerprints: FingerprintsByRow,
    pub(super) batch: Arc<Batch>,
}

impl Superseded {
    /// The document at `row` as a capture of `day`, if the archive has superseded an equal capture of that day.
    pub(super) fn capture(&self, row: u32, day: Option<i32>) -> Option<RowCapture> {
        let fingerprint = self.fingerprints.of_row(row)?;
        let id = id_of(&self.batch, row).to_string();
        let is_superseded = self
            .rulings
            .is_superseded(&id, day, |other| other == fingerprint);
        is_superseded.then_some(RowCapture {
            row,
            day,
            fingerprint,
        })
    }
}

/// The pairs that were added so far.
pub(super) struct Collected {
    pub(super) verified: bool,
    pub(super) classes: Arc<PinnedClasses>,
    /// Says which documents of the archive are superseded; `None` if none is.
    pub(super) superseded: Option<Superseded>,
    pub(super) order: Order,
    /// Pairs of two classes.
    pub(super) sorter: PairSorter,
    /// The nearest document of the archive of each class that has one, by rank.
    pub(super) of_archive: HashMap<u32, Neighbour>,
    pub(super) reserved: MemoryReservation,
}

impl Collected {
    /// Adds the pairs of two classes to the sorter, and keeps the nearest document of the archive of each class.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let of_row = column::<UInt32Type>(batch, CLASS)?;
        let others = column::<UInt32Type>(batch, OTHER_CLASS)?;
        let ids = batch.column_by_name(BASE_ID).ok_or_else(missing)?;
        let days = column::<Date32Type>(batch, BASE_DAY)?;
        let distances = column::<Int32Type>(batch, DISTANCE)?;
        let similarities = column::<Float64Type>(batch, SIMILARITY)?;
        let classes = Arc::clone(&self.classes);
        for row in 0..batch.num_rows() {
            let class = of_row.value(row);
            let distance = distances.value(row).cast_unsigned();
            let similarity = similarities.is_valid(row).then(|| similarities.value(row));
            if self.verified && similarity.is_none() {
                continue;
            }
            if others.is_valid(row) {
                let others = classes.members(others.value(row));
                for class in classes.members(class) {
                    for other in others.clone() {
                        self.add_pair(class, other, (distance as u8, similarity))?;
                    }
                }
                continue;
            }
            let found = Neighbour {
                distance,
                similarity,
                day: days.is_valid(row).then(|| days.value(row)),
                id: DocumentId::read(ids, row),
            };
            if let Some(superseded) = &self.superseded {
                // Of several captures of a day, the fingerprints tell which it is.
                let own = superseded.fingerprints.of_row(classes.row(class));
                let may_be =
                    |other: u64| own.is_none_or(|own| (own ^ other).count_ones() == distance);
                let id = found.id.to_string();
                if superseded.rulings.is_superseded(&id, found.day, may_be) {
                    continue;
                }
            }
            let mut members = classes.members(class);
            let first = members.next();
            for apart in members {
                self.add_neighbour(apart, found.clone())?;
            }
            if let Some(class) = first {
                self.add_neighbour(class, found)?;
            }
        }
        Ok(())
    }

    /// Adds a pair of classes, unless a pin denies it.
    fn add_pair(
        &mut self,
        class: u32,
        other: u32,
        (distance, similarity): (u8, Option<f64>),
    ) -> Result<()> {
        if self.classes.distinct.contains(&(class, other)) {
            return Ok(());
        }
        let (rank, of_other) = (self.order.rank(class), self.order.rank(other));
        let (later, earlier) = (rank.max(of_other), rank.min(of_other));
        let is_dropped = if later == rank {
            !self.classes.is_never_dropped(class)
        } else {
            !self.classes.is_never_dropped(other)
        };
        // All documents of a class may be apart from it.
        if later == NONE || !is_dropped {
            return Ok(());
        }
        self.sorter.add(&OrderedPair {
            later,
            earlier,
            distance,
            similarity,
        })
    }

    /// Adds a pair of a class and a document of the archive, unless a pin denies it.
    fn add_neighbour(&mut self, class: u32, found: Neighbour) -> Result<()> {
        let classes = &self.classes;
        let rank = self.order.rank(class);
        if rank == NONE
            || classes.is_never_dropped(class)
            || classes.is_distinct_of(class, &found.id)
        {
            return Ok(());
        }
        match self.of_archive.get_mut(&rank) {
            Some(known) if known.order(&found).is_le() => {}
            Some(known) => {
                let (old, new) = (2 * known.id.bytes(), 2 * found.id.bytes());
                reserve(&self.reserved, new.saturating_sub(old))?;
                *known = found;
            }
            None => {
                reserve(&self.reserved, NEIGHBOUR_BYTES + 2 * found.id.bytes())?;
                self.of_archive.insert(rank, found);
            }
        }
        Ok(())
    }

    /// Adds what pins say: pairs, and those of documents that are apart from their equals.
    pub(super) fn add_pins(
        &mut self,
        batch: &Batch,
        captures: &Captures,
        within: bool,
        have_content: Option<&BooleanBuffer>,
    ) -> Result<()> {
        let classes = Arc::clone(&self.classes);
        if classes.named == 0 {
            return Ok(());
        }
        let fingerprints = batch.fingerprints_by_row();
        let fingerprint = |class: u32| fingerprints.of_row(classes.row(class));
        let same = if within { &classes.same[..] } else { &[] };
        for (class, other) in same {
            if let Some((a, b)) = fingerprint(*class).zip(fingerprint(*other)) {
                let distance = (a ^ b).count_ones() as u8;
                self.add_pair(*class, *other, (distance, None))?;
            }
        }
        for (id, day, of_archive) in &captures.asked {
            for class in classes.same_of.get(id).into_iter().flatten() {
                let Some(own) = fingerprint(*class) else {
                    continue;
                };
                let found = Neighbour {
                    distance: (own ^ of_archive).count_ones(),
                    similarity: None,
                    day: *day,
                    id: id.clone(),
                };
                self.add_neighbour(*class, found)?;
            }
        }
        for (class, apart) in classes.apart.iter().filter(|_| within) {
            let row = apart.first().and_then(|class| classes.own_row(*class));
            let have_content = have_content.zip(row);
            let is_known = have_content.is_some_and(|(known, row)| known.value(row as usize));
            if self.verified && !is_known {
                continue;
            }
            let similarity = is_known.then_some(1.0);
            // A pair drops one of two, so two that are never dropped need none.
            let is_free = |class: &&u32| !classes.is_never_dropped(**class);
            let (free, never): (Vec<&u32>, Vec<&u32>) = apart.iter().partition(is_free);
            for (at, one) in free.iter().enumerate() {
                for other in free[..at].iter().chain(&never) {
                    self.add_pair(**one, **other, (0, similarity))?;
                }
            }
            for one in apart {
                self.add_pair(*one, *class, (0, similarity))?;
            }
        }
        Ok(())
    }
}

/// Reserves memory for duplicates of documents of the archive.
fn reserve(reserved: &MemoryReservation, bytes: usize) -> Result<()> {
    memory::reserve(reserved, bytes, || {
        "the duplicates of documents of the archive".into()
    })
}
