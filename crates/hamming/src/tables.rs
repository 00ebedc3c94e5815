//! The batch, or a part of it, indexed for probing.

use std::ops::Range;
use std::sync::Arc;

use crate::any_tables::AnyTables;
use crate::design::Design;
use crate::distinct::Distinct;

/// The batch, or a part of it, ready to be probed: one table for each block of a design.
#[derive(Debug)]
pub struct Tables {
    batch: Arc<Distinct>,
    part: Range<usize>,
    by_mechanism: AnyTables,
    design: Design,
}

impl Tables {
    /// Builds the tables of the batch's values with indexes in `part`, for `design`, on up to `threads` threads.
    ///
    /// # Panics
    /// When `part` reaches beyond the values.
    #[must_use]
    pub fn build(batch: Arc<Distinct>, part: Range<usize>, design: Design, threads: usize) -> Self {
        let values = &batch.values()[part.clone()];
        let by_mechanism = AnyTables::build(values, &design, threads);
        Self {
            batch,
            part,
            by_mechanism,
            design,
        }
    }

    /// Builds the tables of a whole batch, on one thread.
    #[must_use]
    pub fn new(batch: Distinct, design: Design) -> Self {
        let part = 0..batch.values().len();
        Self::build(Arc::new(batch), part, design, 1)
    }

    /// The whole batch; the tables may index only a part of it.
    #[must_use]
    pub fn batch(&self) -> &Distinct {
        &self.batch
    }

    /// The design that the tables were built for.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Bytes held by the tables, without those of [`Self::batch`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.by_mechanism.bytes()
    }

    /// The best number of fingerprints to probe at once: a short chunk stays in the cache; a long one can be
    /// partitioned, so that large tables are read nearly in order.
    #[must_use]
    pub fn chunk_len(&self) -> usize {
        self.by_mechanism.chunk_len()
    }

    /// The indexes of the batch's values that the tables index.
    pub(crate) fn part(&self) -> Range<usize> {
        self.part.clone()
    }

    /// The batch's values that the tables index.
    pub(crate) fn values(&self) -> &[u64] {
        &self.batch.values()[self.part.clone()]
    }

    /// The tables of the design's mechanism.
    pub(crate) fn by_mechanism(&self) -> &AnyTables {
        &self.by_mechanism
    }
}
