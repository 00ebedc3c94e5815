//! Appends the indexes of the few fingerprints of a chunk that pass a test to a list.

use crate::isa::{Isa, Work, passing_mask};

/// Fingerprints of a tile: the cache lines of all are prefetched before the first is tested.
const TILE: usize = 32;

/// Appends to `indexes` the index of each of `fingerprints` that passes, counted from `first`.
///
/// `passing` returns the mask of a tile's fingerprints that pass. Few pass, so the loop branches
/// once for each that passes, not once for each fingerprint. Before a tile is tested, `fetch`
/// prefetches the cache lines of the next tile's fingerprints.
#[inline(always)]
pub(super) fn append_passing(
    fingerprints: &[u64],
    first: usize,
    indexes: &mut Vec<u32>,
    mut fetch: impl FnMut(u64),
    mut passing: impl FnMut(&[u64]) -> u32,
) {
    fingerprints
        .iter()
        .take(TILE)
        .for_each(|&fingerprint| fetch(fingerprint));
    for (at, tile) in fingerprints.chunks(TILE).enumerate() {
        let next = &fingerprints[(TILE * (at + 1)).min(fingerprints.len())..];
        next.iter()
            .take(TILE)
            .for_each(|&fingerprint| fetch(fingerprint));
        let mut bits = passing(tile);
        while bits != 0 {
            indexes.push((first + TILE * at) as u32 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

/// [`append_passing`] as a [`Work`], because its shifts are faster with BMI2.
pub(super) struct AppendPassing<'a, F, P> {
    pub(super) fingerprints: &'a [u64],
    pub(super) indexes: &'a mut Vec<u32>,
    pub(super) fetch: F,
    pub(super) passes: P,
}

impl<F: FnMut(u64), P: FnMut(u64) -> bool> Work for AppendPassing<'_, F, P> {
    type Output = ();

    #[inline(always)]
    fn execute<I: Isa>(mut self, _isa: I) {
        append_passing(self.fingerprints, 0, self.indexes, self.fetch, |tile| {
            passing_mask(tile, &mut self.passes)
        });
    }
}
