//! NEON (aarch64), which counts the bits of bytes in one instruction.
//!
//! The project's checks run on x86-64. `.ci/aarch64` builds this file and runs the crate's tests in an emulator.

use std::arch::aarch64::*;

use super::scalar::Scalar;
use super::{Isa, Work};

/// NEON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neon(());

impl Neon {
    /// The token, or `None` if the machine lacks the instructions.
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

impl Isa for Neon {
    fn execute<W: Work>(self, work: W) -> W::Output {
        // SAFETY: the token exists only where the instructions do.
        unsafe { execute_neon(self, work) }
    }

    #[inline(always)]
    fn within(self, query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        // SAFETY: as in `execute`.
        unsafe { within_neon(query, candidates, max_distance) }
    }

    #[inline(always)]
    fn either_within_1<const LANES: usize>(
        self,
        a: &[u16; LANES],
        x: u16,
        b: &[u16; LANES],
        y: u16,
    ) -> bool {
        // SAFETY: as in `execute`.
        unsafe { either_within_1_neon(a, x, b, y) }
    }

    #[inline(always)]
    fn line_within_u16(self, line: &[u16; 32], x: u16, limit: u32) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { line_within_u16_neon(line, x, limit) }
    }

    #[inline(always)]
    fn line_within_u32(self, line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { line_within_u32_neon(line, x, mask, limit) }
    }
}

#[target_feature(enable = "neon")]
fn execute_neon<W: Work>(isa: Neon, work: W) -> W::Output {
    work.execute(isa)
}

#[inline]
#[target_feature(enable = "neon")]
fn line_within_u16_neon(line: &[u16; 32], x: u16, limit: u32) -> u32 {
    let (x, limit) = (vdupq_n_u16(x), vdupq_n_u16(limit as u16));
    // SAFETY: 16 readable bytes.
    let places = unsafe { vld1q_u16([1, 2, 4, 8, 16, 32, 64, 128].as_ptr()) };
    let mut mask = 0;
    for (at, lanes) in line.as_chunks::<8>().0.iter().enumerate() {
        // SAFETY: `lanes` is 16 readable bytes; the load needs no alignment beyond a lane's.
        let lanes = unsafe { vld1q_u16(lanes.as_ptr()) };
        let distances = vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u16(veorq_u16(lanes, x))));
        let near = vcleq_u16(distances, limit);
        mask |= u32::from(vaddvq_u16(vandq_u16(near, places))) << (8 * at);
    }
    mask
}

#[inline]
#[target_feature(enable = "neon")]
fn line_within_u32_neon(line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
    let [x, counted, limit] = [x, mask, limit].map(|value| vdupq_n_u32(value));
    // SAFETY: 16 readable bytes.
    let places = unsafe { vld1q_u32([1, 2, 4, 8].as_ptr()) };
    let mut mask = 0;
    for (at, lanes) in line.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: `lanes` is 16 readable bytes; the load needs no alignment beyond a lane's.
        let lanes = unsafe { vld1q_u32(lanes.as_ptr()) };
        let of_bytes = vcntq_u8(vreinterpretq_u8_u32(vandq_u32(
            veorq_u32(lanes, x),
            counted,
        )));
        let near = vcleq_u32(vpaddlq_u16(vpaddlq_u8(of_bytes)), limit);
        mask |= vaddvq_u32(vandq_u32(near, places)) << (4 * at);
    }
    mask
}

#[inline]
#[target_feature(enable = "neon")]
fn either_within_1_neon<const LANES: usize>(
    a: &[u16; LANES],
    x: u16,
    b: &[u16; LANES],
    y: u16,
) -> bool {
    let mut near = vdupq_n_u16(0);
    let one = vdupq_n_u16(1);
    for (lanes, query) in [(a, x), (b, y)] {
        let query = vdupq_n_u16(query);
        for lanes in lanes.as_chunks::<8>().0 {
            // SAFETY: `lanes` is 16 readable bytes; the load needs no alignment beyond a lane's.
            let lanes = unsafe { vld1q_u16(lanes.as_ptr()) };
            let difference = veorq_u16(lanes, query);
            // A power of two or 0 has no bit in common with the number before it.
            let more = vtstq_u16(difference, vsubq_u16(difference, one));
            near = vornq_u16(near, more);
        }
    }
    vmaxvq_u16(near) != 0
}

#[inline]
#[target_feature(enable = "neon")]
fn within_neon(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
    let queries = vdupq_n_u64(query);
    let limit = vdupq_n_u64(u64::from(max_distance));
    let (twos, rest) = candidates.as_chunks::<2>();
    let mut mask = 0;
    for (at, two) in twos.iter().enumerate() {
        // SAFETY: `two` is 16 readable bytes; the load needs no alignment beyond a lane's.
        let two = unsafe { vld1q_u64(two.as_ptr()) };
        let difference = vreinterpretq_u8_u64(veorq_u64(two, queries));
        let distances = vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(difference))));
        let near = vcleq_u64(distances, limit);
        let bits = vgetq_lane_u64::<0>(near) & 1 | vgetq_lane_u64::<1>(near) & 2;
        mask |= bits << (2 * at);
    }
    if !rest.is_empty() {
        mask |= Scalar.within(query, rest, max_distance) << (2 * twos.len());
    }
    mask
}
