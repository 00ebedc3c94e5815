//! [`MechanismTables`], the trait of a mechanism: a way to index a part of the batch and to probe
//! it.

use std::time::Duration;

use crate::cost::Cost;
use crate::design::Design;
use crate::isa::Kernel;
use crate::limits::Limits;
use crate::matches::Matches;
use crate::related::Related;

/// The tables of one mechanism over a part of the batch.
pub(crate) trait MechanismTables: Sized {
    /// Buffers of a probe, reused from chunk to chunk.
    type Buffers: Default;

    /// Predicts the cost of the tables of `design` over `entries` entries, and of probing them as `limits` say.
    fn predict(design: &Design, entries: usize, limits: &Limits) -> Cost;

    /// Nanoseconds that one entry adds to a probed fingerprint because the batch's values are not random. 0 for `halves`, whose scan
    /// lets few fingerprints through, related ones too.
    fn related_ns(_design: &Design, _related: &Related) -> f64 {
        0.0
    }

    /// Describes in one line the layout of the tables of `design` over `entries` entries.
    fn describe(design: &Design, entries: usize) -> String;

    /// Builds the tables of `values`, distinct and ascending, on up to `threads` threads.
    fn build(values: &[u64], design: &Design, threads: usize) -> Self;

    /// Bytes held.
    fn bytes(&self) -> usize;

    /// The best number of fingerprints to probe at once.
    fn chunk_len(&self) -> usize;

    /// Appends all matches of `chunk`, in any order; stops early when `matches` is full.
    fn probe(
        &self,
        kernel: Kernel,
        part: &BatchPart<'_>,
        chunk: &[u64],
        buffers: &mut Self::Buffers,
        matches: &mut Matches<'_>,
    ) -> Times;
}

/// The part of the batch that the tables index, the chunk's place in the batch if it has one, and
/// the largest distance.
#[derive(Debug)]
pub(crate) struct BatchPart<'a> {
    /// The values of the part.
    pub(crate) values: &'a [u64],
    /// The index of `values[0]` in the batch.
    pub(crate) first: usize,
    /// The index of `chunk[0]` in the batch, if the chunk consists of the batch's own values. The
    /// probe then leaves out each value's match with itself.
    pub(crate) self_start: Option<usize>,
    /// The largest distance of a match.
    pub(crate) max_distance: u32,
}

impl BatchPart<'_> {
    /// Whether query `query` of the chunk and entry `index` of the part are the same value of the batch.
    #[inline(always)]
    pub(crate) fn is_self(&self, query: u32, index: u32) -> bool {
        self.self_start
            .is_some_and(|start| start + query as usize == self.first + index as usize)
    }
}

/// How long the stages of a probe took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    /// Picking the fingerprints to look up.
    pub(crate) filtering: Duration,
    /// Partitioning the chunk by a table's keys.
    pub(crate) partitioning: Duration,
    /// Lookups and comparisons.
    pub(crate) comparing: Duration,
}
