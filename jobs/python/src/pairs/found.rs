//! [`Pairs`]: the pairs that a join finds, on all its threads.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use engine::pairs::{BASE_ID, DISTANCE, NEW_ID};

use crate::error::Failed;
use crate::lock::lock;
use crate::progress::Progress;

/// Two near rows. The order of the fields is that of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) new: u32,
    pub(super) distance: u32,
    pub(super) base: u32,
}

/// The pairs that all threads find.
pub(super) struct Pairs {
    found: Mutex<Vec<Pair>>,
    most: u64,
}

impl Pairs {
    /// An empty set that takes `most` pairs at most.
    pub(super) fn new(most: u64) -> Self {
        Self {
            found: Mutex::default(),
            most,
        }
    }

    /// Counts pairs before they are made, and refuses more than are allowed.
    pub(super) fn count(&self, count: u64, progress: &Progress) -> Result<(), Failed> {
        let before = progress.add_pairs(count);
        if before.saturating_add(count) <= self.most {
            Ok(())
        } else {
            Err(Failed::usage(format!(
                "there are more than max_pairs={} pairs, and each takes up to 56 bytes of memory: lower k, leave out equal \
                 fingerprints first, raise max_pairs if there is memory, or let dedup_job.run write the pairs to a file",
                self.most
            )))
        }
    }

    /// Adds pairs that were counted.
    pub(super) fn add(&self, mut pairs: Vec<Pair>) {
        lock(&self.found).append(&mut pairs);
    }

    /// The pairs by new row, distance and base row.
    pub(super) fn into_batch(self) -> Result<(Arc<Schema>, RecordBatch), Failed> {
        let mut pairs = self
            .found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        pairs.sort_unstable();
        let ids = |id: fn(&Pair) -> u32| {
            Arc::new(Int64Array::from_iter_values(
                pairs.iter().map(|pair| i64::from(id(pair))),
            ))
        };
        let distances = pairs.iter().map(|pair| pair.distance.cast_signed());
        let schema = Arc::new(Schema::new(vec![
            Field::new(NEW_ID, DataType::Int64, false),
            Field::new(BASE_ID, DataType::Int64, false),
            Field::new(DISTANCE, DataType::Int32, false),
        ]));
        let columns: [ArrayRef; 3] = [
            ids(|pair| pair.new),
            ids(|pair| pair.base),
            Arc::new(Int32Array::from_iter_values(distances)),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.into())?;
        Ok((schema, batch))
    }
}
