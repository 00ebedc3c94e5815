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
    unsafe fn narrow_within(line: &[u16; 32], x: u16, bits: u32) -> u32 {
        line.iter().enumerate().fold(0, |mask, (i, lane)| {
            mask | u32::from((lane ^ x).count_ones() <= bits) << i
        })
    }

    #[inline(always)]
    unsafe fn wide_within(line: &[u32; 16], x: u32, mask: u32, bits: u32) -> u32 {
        line.iter().enumerate().fold(0, |near, (i, lane)| {
            near | u32::from(((lane ^ x) & mask).count_ones() <= bits) << i
        })
    }
}
