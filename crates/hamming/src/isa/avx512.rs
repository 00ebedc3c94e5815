//! AVX-512, which counts the bits of all lanes in one instruction, and gathers words from memory.

use std::arch::x86_64::*;

use super::avx2::Avx2;
use super::{Isa, RUN_BITS, RunFilter, TAIL_BITS, Work, passing_mask};
use crate::ball::BIT_INDEX_BITS;

/// AVX-512 F, BW, VPOPCNTDQ and BITALG, and what [`Avx2`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512 {
    avx2: Avx2,
}

impl Avx512 {
    /// The token, or `None` if the machine lacks the instructions.
    pub(crate) fn detect() -> Option<Self> {
        let avx2 = Avx2::detect()?;
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("avx512bitalg");
        detected.then_some(Self { avx2 })
    }
}

impl Isa for Avx512 {
    fn execute<W: Work>(self, work: W) -> W::Output {
        // SAFETY: the token exists only where the instructions do.
        unsafe { execute_avx512(self, work) }
    }

    #[inline(always)]
    fn within(self, query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        // SAFETY: as in `execute`.
        unsafe { within_avx512(query, candidates, max_distance) }
    }

    #[inline(always)]
    fn either_within_1<const LANES: usize>(
        self,
        a: &[u16; LANES],
        x: u16,
        b: &[u16; LANES],
        y: u16,
    ) -> bool {
        if LANES.is_multiple_of(32) {
            // SAFETY: as in `execute`.
            unsafe { either_within_1_avx512(a, x, b, y) }
        } else {
            self.avx2.either_within_1(a, x, b, y)
        }
    }

    #[inline(always)]
    fn line_within_u16(self, line: &[u16; 32], x: u16, limit: u32) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { line_within_u16_avx512(line, x, limit) }
    }

    #[inline(always)]
    fn line_within_u32(self, line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
        // SAFETY: as in `execute`.
        unsafe { line_within_u32_avx512(line, x, mask, limit) }
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
        unsafe { any_within_u32_avx512(lines, xs, mask, limit) }
    }

    #[inline(always)]
    fn passing(self, filter: &RunFilter<'_>, fingerprints: &[u64]) -> u32 {
        let (eights, rest) = fingerprints.as_chunks::<8>();
        let mut passing = 0;
        for (at, eight) in eights.iter().enumerate() {
            // SAFETY: as in `execute`.
            passing |= u32::from(unsafe { passing_avx512(filter, eight) }) << (8 * at);
        }
        if !rest.is_empty() {
            passing |=
                passing_mask(rest, |fingerprint| filter.passes(fingerprint)) << (8 * eights.len());
        }
        passing
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vpopcntdq,avx512bitalg")]
fn execute_avx512<W: Work>(isa: Avx512, work: W) -> W::Output {
    work.execute(isa)
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn line_within_u32_avx512(line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32 {
    // SAFETY: `line` is 64 readable bytes; the load needs no alignment.
    let lanes = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let [x, mask] = [x, mask].map(|value| _mm512_set1_epi32(value.cast_signed()));
    let difference = _mm512_and_si512(_mm512_xor_si512(lanes, x), mask);
    let limit = _mm512_set1_epi32(limit.cast_signed());
    u32::from(_mm512_cmple_epu32_mask(
        _mm512_popcnt_epi32(difference),
        limit,
    ))
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn any_within_u32_avx512<'a, const N: usize>(
    lines: impl Iterator<Item = &'a [u32; 16]>,
    xs: [u32; N],
    mask: u32,
    limit: u32,
) -> u32 {
    let mask = _mm512_set1_epi32(mask.cast_signed());
    let xs = xs.map(|x| _mm512_set1_epi32(x.cast_signed()));
    // The least distance of each lane: a minimum uses another execution port than a comparison, which would compete
    // with the popcounts.
    let mut least = [_mm512_set1_epi32(-1); N];
    for line in lines {
        // SAFETY: `line` is 64 readable bytes; the load needs no alignment.
        let lanes = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        for (least, x) in least.iter_mut().zip(xs) {
            let difference = _mm512_and_si512(_mm512_xor_si512(lanes, x), mask);
            let distances = _mm512_popcnt_epi32(difference);
            *least = _mm512_min_epu32(*least, distances);
        }
    }
    let limit = _mm512_set1_epi32(limit.cast_signed());
    let mut any = 0;
    for (i, least) in least.into_iter().enumerate() {
        any |= u32::from(_mm512_cmple_epu32_mask(least, limit) != 0) << i;
    }
    any
}

/// [`RunFilter::passes`] of eight fingerprints.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn passing_avx512(filter: &RunFilter<'_>, eight: &[u64; 8]) -> u8 {
    let count = |bits: u32| _mm_cvtsi32_si128(bits.cast_signed());
    // SAFETY: `eight` is 64 readable bytes; the load needs no alignment.
    let eight = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
    let behind = _mm512_slli_epi64::<RUN_BITS>(eight);
    let value = _mm512_srl_epi64(behind, count(64 - filter.map_bits));
    let word_index_bits = filter.word_index_bits();
    let word = _mm512_and_si512(eight, _mm512_set1_epi64((1 << word_index_bits) - 1));
    // SAFETY: `value` has `map_bits` bits, at most those of the largest map, and `word` is below
    // the length of `tail`, a power of two: `RunFilter::new` checks both.
    let (marked, tail) = unsafe {
        (
            _mm512_i64gather_epi64::<8>(
                _mm512_srli_epi64::<BIT_INDEX_BITS>(value),
                filter.map.as_ptr().cast(),
            ),
            _mm512_i64gather_epi64::<8>(word, filter.tail.as_ptr().cast()),
        )
    };
    // Rotations take the lower 6 bits of their count.
    let low = _mm512_srl_epi64(eight, count(word_index_bits));
    let high = _mm512_srli_epi64::<{ TAIL_BITS - 6 }>(eight);
    let both = _mm512_xor_si512(low, _mm512_srli_epi64::<{ TAIL_BITS - 7 }>(eight));
    let [low, high, both] = [low, high, both].map(|by| _mm512_rorv_epi64(tail, by));
    let all = _mm512_and_si512(_mm512_and_si512(low, high), both);
    let any = _mm512_or_si512(_mm512_rorv_epi64(marked, value), all);
    _mm512_test_epi64_mask(any, _mm512_set1_epi64(1))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
fn line_within_u16_avx512(line: &[u16; 32], x: u16, limit: u32) -> u32 {
    // SAFETY: `line` is 64 readable bytes; the load needs no alignment.
    let lanes = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let difference = _mm512_xor_si512(lanes, _mm512_set1_epi16(x.cast_signed()));
    let limit = _mm512_set1_epi16(limit as i16);
    _mm512_cmple_epu16_mask(_mm512_popcnt_epi16(difference), limit)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn either_within_1_avx512<const LANES: usize>(
    a: &[u16; LANES],
    x: u16,
    b: &[u16; LANES],
    y: u16,
) -> bool {
    let one = _mm512_set1_epi16(1);
    let mut near = 0;
    for (lanes, query) in [(a, x), (b, y)] {
        let query = _mm512_set1_epi16(query.cast_signed());
        for lanes in lanes.as_chunks::<32>().0 {
            // SAFETY: `lanes` is 64 readable bytes; the load needs no alignment.
            let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
            let difference = _mm512_xor_si512(lanes, query);
            near |= _mm512_testn_epi16_mask(difference, _mm512_sub_epi16(difference, one));
        }
    }
    near != 0
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn within_avx512(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
    let queries = _mm512_set1_epi64(query.cast_signed());
    let limit = _mm512_set1_epi64(i64::from(max_distance));
    let mut mask = 0;
    for (at, eight) in candidates.chunks(8).enumerate() {
        let lanes = 0xff_u8 >> (8 - eight.len());
        // SAFETY: only the lanes of `eight` are read.
        let values = unsafe { _mm512_maskz_loadu_epi64(lanes, eight.as_ptr().cast()) };
        let distances = _mm512_popcnt_epi64(_mm512_xor_si512(values, queries));
        let near = _mm512_mask_cmple_epu64_mask(lanes, distances, limit);
        mask |= u64::from(near) << (8 * at);
    }
    mask
}
