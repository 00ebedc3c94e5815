//! Plain code: the oracle of the other kernels, and the fallback.

use super::Compare;

pub(crate) struct Scalar;

impl Compare for Scalar {
    #[inline(always)]
    unsafe fn within(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        candidates
            .iter()
            .enumerate()
            .fold(0, |mask, (i, candidate)| {
                mask | u64::from((candidate ^ query).count_ones() <= max_distance) << i
            })
    }
}
