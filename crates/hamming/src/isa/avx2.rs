//! AVX2, which counts the bits of each byte by looking up its two nibbles.

use std::arch::x86_64::*;

use super::scalar::Scalar;
use super::{Isa, Work};

/// AVX2, BMI1, BMI2 and POPCNT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The token, or `None` if the machine lacks the instructions.
    pub(crate) fn detect() -> Option<Self> {
        let detected = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        detected.then_some(Self(()))
    }
}

impl Isa for Avx2 {
    fn execute<W: Work>(self, work: W) -> W::Output {
        // SAFETY: the token exists only where the instructions do.
        unsafe { execute_avx2(self, work) }
    }

    #[inline(always)]
    fn within(self, query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        // SAFETY: as in `execute`.
        unsafe { within_avx2(query, candidates, max_distance) }
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
        unsafe { either_within_1_avx2(a, x, b, y) }
    }

    #[inline(always)]
    fn line_within_u16(self, line: &[u16; 32], x: u16, limit: u32) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { line_within_u16_avx2(line, x, limit) }
    }

    #[inline(always)]
    fn line_within_u32(self, line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { line_within_u32_avx2(line, x, mask, limit) }
    }

    #[inline(always)]
    fn any_within_u32<'a, const N: usize>(
        self,
        lines: impl Iterator<Item = &'a [u32; 16]> + Clone,
        xs: [u32; N],
        mask: u32,
        limit: u32,
    ) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { any_within_u32_avx2(lines, xs, mask, limit) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn execute_avx2<W: Work>(isa: Avx2, work: W) -> W::Output {
    work.execute(isa)
}

/// The number of ones in each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn ones_of_bytes(bytes: __m256i) -> __m256i {
    let ones_of_nibble = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3,
        3, 4,
    );
    let low_nibbles = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(bytes, low_nibbles);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low_nibbles);
    _mm256_add_epi8(
        _mm256_shuffle_epi8(ones_of_nibble, low),
        _mm256_shuffle_epi8(ones_of_nibble, high),
    )
}

/// The number of ones in each lane of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn ones_of_lanes(lanes: __m256i) -> __m256i {
    let of_16_bits = _mm256_maddubs_epi16(ones_of_bytes(lanes), _mm256_set1_epi8(1));
    _mm256_madd_epi16(of_16_bits, _mm256_set1_epi16(1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn line_within_u16_avx2(line: &[u16; 32], x: u16, limit: u32) -> u32 {
    let x = _mm256_set1_epi16(x.cast_signed());
    let [low, high] = [0, 1].map(|half| {
        let lanes = &line.as_chunks::<16>().0[half];
        // SAFETY: `lanes` is 32 readable bytes; the load needs no alignment.
        let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        let ones = ones_of_bytes(_mm256_xor_si256(lanes, x));
        _mm256_maddubs_epi16(ones, _mm256_set1_epi8(1))
    });
    let distances = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
    let above = _mm256_set1_epi8(limit.min(16) as i8 + 1);
    _mm256_movemask_epi8(_mm256_cmpgt_epi8(above, distances)).cast_unsigned()
}

#[inline]
#[target_feature(enable = "avx2")]
fn line_within_u32_avx2(line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
    let [x, mask] = [x, mask].map(|value| _mm256_set1_epi32(value.cast_signed()));
    let above = _mm256_set1_epi32(limit.cast_signed() + 1);
    let [low, high] = [0, 1].map(|half| {
        let lanes = &line.as_chunks::<8>().0[half];
        // SAFETY: `lanes` is 32 readable bytes; the load needs no alignment.
        let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        let distances = ones_of_lanes(_mm256_and_si256(_mm256_xor_si256(lanes, x), mask));
        let near = _mm256_cmpgt_epi32(above, distances);
        _mm256_movemask_ps(_mm256_castsi256_ps(near)).cast_unsigned()
    });
    low | high << 8
}

#[inline]
#[target_feature(enable = "avx2")]
fn any_within_u32_avx2<'a, const N: usize>(
    lines: impl Iterator<Item = &'a [u32; 16]>,
    xs: [u32; N],
    mask: u32,
    limit: u32,
) -> u32 {
    let mask = _mm256_set1_epi32(mask.cast_signed());
    let xs = xs.map(|x| _mm256_and_si256(_mm256_set1_epi32(x.cast_signed()), mask));
    // The least distance of each lane: one mask at the end costs less than one of each line.
    let mut least = [_mm256_set1_epi32(i32::MAX); N];
    for line in lines {
        for lanes in line.as_chunks::<8>().0 {
            // SAFETY: `lanes` is 32 readable bytes; the load needs no alignment.
            let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
            let lanes = _mm256_and_si256(lanes, mask);
            for (least, x) in least.iter_mut().zip(xs) {
                let distances = ones_of_lanes(_mm256_xor_si256(lanes, x));
                *least = _mm256_min_epi32(*least, distances);
            }
        }
    }
    let above = _mm256_set1_epi32(limit.cast_signed() + 1);
    let mut any = 0;
    for (i, least) in least.into_iter().enumerate() {
        let near = _mm256_cmpgt_epi32(above, least);
        any |= u32::from(_mm256_movemask_epi8(near) != 0) << i;
    }
    any
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn either_within_1_avx2<const LANES: usize>(
    a: &[u16; LANES],
    x: u16,
    b: &[u16; LANES],
    y: u16,
) -> bool {
    let zero = _mm256_setzero_si256();
    let one = _mm256_set1_epi16(1);
    let mut near = zero;
    for (lanes, query) in [(a, x), (b, y)] {
        let query = _mm256_set1_epi16(query.cast_signed());
        for lanes in lanes.as_chunks::<16>().0 {
            // SAFETY: `lanes` is 32 readable bytes; the load needs no alignment.
            let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
            let difference = _mm256_xor_si256(lanes, query);
            // A power of two or 0 has no bit in common with the number before it.
            let more = _mm256_and_si256(difference, _mm256_sub_epi16(difference, one));
            near = _mm256_or_si256(near, _mm256_cmpeq_epi16(more, zero));
        }
    }
    _mm256_movemask_epi8(near) != 0
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn within_avx2(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
    let queries = _mm256_set1_epi64x(query.cast_signed());
    let above = _mm256_set1_epi64x(i64::from(max_distance) + 1);
    let (fours, rest) = candidates.as_chunks::<4>();
    let mut mask = 0;
    for (at, four) in fours.iter().enumerate() {
        // SAFETY: `four` is 32 readable bytes; the load needs no alignment.
        let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        let difference = _mm256_xor_si256(four, queries);
        let ones = ones_of_bytes(difference);
        let distances = _mm256_sad_epu8(ones, _mm256_setzero_si256());
        let near = _mm256_cmpgt_epi64(above, distances);
        let bits = _mm256_movemask_pd(_mm256_castsi256_pd(near)).cast_unsigned();
        mask |= u64::from(bits) << (4 * at);
    }
    if !rest.is_empty() {
        mask |= Scalar.within(query, rest, max_distance) << (4 * fours.len());
    }
    mask
}
