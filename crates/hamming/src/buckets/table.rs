//! [`SketchTable`]: what a table of sketches provides to its probe.

use super::queries::{Queries, Survivor};
use super::sketch::Sketch;
use super::sketched::Buckets;
use crate::isa::Isa;
use crate::matches::Matches;
use crate::mechanism::BatchPart;

/// The table of a block: buckets of sketches, and the way from a sketch to its entry.
pub(crate) trait SketchTable: Sized {
    /// The sketch that candidates are compared by first.
    type Sketch: Sketch;

    /// The sketches.
    fn buckets(&self) -> &Buckets<Self::Sketch>;

    /// Compares the entries of `survivors` in full, after the second test if it differs from the first, and appends those
    /// within the distance to `matches`. Overwrites `survivors`.
    fn compare<I: Isa>(
        &self,
        isa: I,
        part: &BatchPart<'_>,
        queries: Queries<'_>,
        survivors: &mut Vec<Survivor>,
        matches: &mut Matches<'_>,
    );
}
