//! Picking the few fingerprints of a chunk that pass a test.

use crate::isa::{Isa, Work, mask_of};

/// Fingerprints whose cache lines are prefetched before they are tested.
const BLOCK: usize = 32;

/// Adds to `indexes` the index of each fingerprint of `run` that passes, counted from `first`.
///
/// `passing` returns the mask of a block's fingerprints that pass. Few do, so there is a branch for each one of the mask, none
/// for each fingerprint. `fetch` prefetches the cache lines of the next block's fingerprints meanwhile.
#[inline(always)]
pub(super) fn pick(
    run: &[u64],
    first: usize,
    indexes: &mut Vec<u32>,
    mut fetch: impl FnMut(u64),
    mut passing: impl FnMut(&[u64]) -> u32,
) {
    run.iter()
        .take(BLOCK)
        .for_each(|&fingerprint| fetch(fingerprint));
    for (at, block) in run.chunks(BLOCK).enumerate() {
        let next = &run[(BLOCK * (at + 1)).min(run.len())..];
        next.iter()
            .take(BLOCK)
            .for_each(|&fingerprint| fetch(fingerprint));
        let mut bits = passing(block);
        while bits != 0 {
            indexes.push((first + BLOCK * at) as u32 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

/// [`pick`] as a [`Work`], because its shifts are faster with BMI2.
pub(super) struct Pick<'a, F, P> {
    pub(super) run: &'a [u64],
    pub(super) indexes: &'a mut Vec<u32>,
    pub(super) fetch: F,
    pub(super) passes: P,
}

impl<F: FnMut(u64), P: FnMut(u64) -> bool> Work for Pick<'_, F, P> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, _isa: I) {
        pick(self.run, 0, self.indexes, self.fetch, |block| {
            mask_of(block, &mut self.passes)
        });
    }
}
