//! Plain code: the oracle of the other instruction sets, and the fallback.

use super::{Isa, Work};

/// No instructions but those that every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scalar;

impl Isa for Scalar {
    fn execute<W: Work>(self, work: W) -> W::Output {
        work.execute(self)
    }

    #[inline(always)]
    fn within(self, query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        candidates
            .iter()
            .enumerate()
            .fold(0, |mask, (i, candidate)| {
                mask | u64::from((candidate ^ query).count_ones() <= max_distance) << i
            })
    }

    #[inline(always)]
    fn either_within_1<const LANES: usize>(
        self,
        a: &[u16; LANES],
        x: u16,
        b: &[u16; LANES],
        y: u16,
    ) -> bool {
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
    fn line_within_u16(self, line: &[u16; 32], x: u16, limit: u32) -> u32 {
        line.iter().enumerate().fold(0, |mask, (i, lane)| {
            mask | u32::from((lane ^ x).count_ones() <= limit) << i
        })
    }

    #[inline(always)]
    fn line_within_u32(self, line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
        line.iter().enumerate().fold(0, |near, (i, lane)| {
            near | u32::from(((lane ^ x) & mask).count_ones() <= limit) << i
        })
    }
}
