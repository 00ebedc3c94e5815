//! Plain code: the oracle of the other kernels, and the fallback.

use super::{Compare, Limit};
use crate::sketches::LANES;

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

    #[inline(always)]
    unsafe fn near<const LANES: usize>(a: &[u16; LANES], x: u16, b: &[u16; LANES], y: u16) -> bool {
        // A power of two or 0 has no bit in common with the number before it.
        let one_bit = |lane: u16, query: u16| {
            let difference = lane ^ query;
            difference & difference.wrapping_sub(1) == 0
        };
        let near = |lanes: &[u16; LANES], query| {
            lanes
                .iter()
                .fold(false, |near, &lane| near | one_bit(lane, query))
        };
        near(a, x) | near(b, y)
    }

    #[inline(always)]
    unsafe fn sketches(sketches: &[u16], x: u16, limit: Limit, masks: &mut [u32]) {
        let groups = sketches.as_chunks::<LANES>().0;
        for (group, (lanes, mask)) in groups.iter().zip(masks).enumerate() {
            *mask = lanes.iter().enumerate().fold(0, |mask, (i, lane)| {
                let near = (lane ^ x).count_ones() <= limit.of(LANES * group + i);
                mask | u32::from(near) << i
            });
        }
    }
}
