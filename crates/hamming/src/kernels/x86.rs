//! AVX2 (bit counts by nibble look-up) and AVX-512 (VPOPCNTQ, VPOPCNTD, VPOPCNTW, gathers).

use std::arch::x86_64::*;

use super::scalar::Scalar;
use super::{Compare, Work};
use crate::scan::{Look, RUN_BITS, TAIL_BITS, WORD_BITS, each};

/// # Safety
/// The machine has AVX2, BMI1, BMI2 and POPCNT.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run::<Avx2>()
}

/// # Safety
/// As [`run_avx2`], and the machine has AVX-512 F, BW, VPOPCNTDQ and BITALG.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vpopcntdq,avx512bitalg")]
pub(super) unsafe fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run::<Avx512>()
}

pub(crate) struct Avx2;

impl Compare for Avx2 {
    #[inline(always)]
    unsafe fn within(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { within_avx2(query, candidates, max_distance) }
    }

    #[inline(always)]
    unsafe fn near<const LANES: usize>(a: &[u16; LANES], x: u16, b: &[u16; LANES], y: u16) -> bool {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { near_avx2(a, x, b, y) }
    }

    #[inline(always)]
    unsafe fn narrow_within(line: &[u16; 32], x: u16, bits: u32) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { narrow_within_avx2(line, x, bits) }
    }

    #[inline(always)]
    unsafe fn wide_within(line: &[u32; 16], x: u32, mask: u32, bits: u32) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { wide_within_avx2(line, x, mask, bits) }
    }
}

/// The ones of each byte of 32.
#[inline]
#[target_feature(enable = "avx2")]
fn ones_of_bytes_avx2(bytes: __m256i) -> __m256i {
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

/// # Safety
/// The machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn narrow_within_avx2(line: &[u16; 32], x: u16, bits: u32) -> u32 {
    let x = _mm256_set1_epi16(x.cast_signed());
    let [low, high] = [0, 1].map(|half| {
        let lanes = &line.as_chunks::<16>().0[half];
        // SAFETY: `lanes` is 32 readable bytes; the load asks for no alignment.
        let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        let ones = ones_of_bytes_avx2(_mm256_xor_si256(lanes, x));
        _mm256_maddubs_epi16(ones, _mm256_set1_epi8(1))
    });
    let distances = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
    let above = _mm256_set1_epi8(bits.min(16) as i8 + 1);
    _mm256_movemask_epi8(_mm256_cmpgt_epi8(above, distances)).cast_unsigned()
}

/// # Safety
/// The machine has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn wide_within_avx2(line: &[u32; 16], x: u32, mask: u32, bits: u32) -> u32 {
    let [x, mask] = [x, mask].map(|value| _mm256_set1_epi32(value.cast_signed()));
    let above = _mm256_set1_epi32(bits.cast_signed() + 1);
    let [low, high] = [0, 1].map(|half| {
        let lanes = &line.as_chunks::<8>().0[half];
        // SAFETY: `lanes` is 32 readable bytes; the load asks for no alignment.
        let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
        let ones = ones_of_bytes_avx2(_mm256_and_si256(_mm256_xor_si256(lanes, x), mask));
        let of_pairs = _mm256_maddubs_epi16(ones, _mm256_set1_epi8(1));
        let distances = _mm256_madd_epi16(of_pairs, _mm256_set1_epi16(1));
        let near = _mm256_cmpgt_epi32(above, distances);
        _mm256_movemask_ps(_mm256_castsi256_ps(near)).cast_unsigned()
    });
    low | high << 8
}

/// # Safety
/// The machine has AVX2 and POPCNT.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn near_avx2<const LANES: usize>(
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
            // SAFETY: `lanes` is 32 readable bytes; the load asks for no alignment.
            let lanes = unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) };
            let difference = _mm256_xor_si256(lanes, query);
            // A power of two or 0 has no bit in common with the number before it.
            let more = _mm256_and_si256(difference, _mm256_sub_epi16(difference, one));
            near = _mm256_or_si256(near, _mm256_cmpeq_epi16(more, zero));
        }
    }
    _mm256_movemask_epi8(near) != 0
}

/// # Safety
/// The machine has AVX2 and POPCNT.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn within_avx2(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
    let queries = _mm256_set1_epi64x(query.cast_signed());
    let above = _mm256_set1_epi64x(i64::from(max_distance) + 1);
    let (fours, rest) = candidates.as_chunks::<4>();
    let mut mask = 0;
    for (at, four) in fours.iter().enumerate() {
        // SAFETY: `four` is 32 readable bytes; the load asks for no alignment.
        let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        let difference = _mm256_xor_si256(four, queries);
        let ones = ones_of_bytes_avx2(difference);
        let distances = _mm256_sad_epu8(ones, _mm256_setzero_si256());
        let near = _mm256_cmpgt_epi64(above, distances);
        let bits = _mm256_movemask_pd(_mm256_castsi256_pd(near)).cast_unsigned();
        mask |= u64::from(bits) << (4 * at);
    }
    if !rest.is_empty() {
        // SAFETY: plain code needs nothing of the machine.
        mask |= unsafe { Scalar::within(query, rest, max_distance) } << (4 * fours.len());
    }
    mask
}

pub(crate) struct Avx512;

impl Compare for Avx512 {
    #[inline(always)]
    unsafe fn within(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { within_avx512(query, candidates, max_distance) }
    }

    #[inline(always)]
    unsafe fn near<const LANES: usize>(a: &[u16; LANES], x: u16, b: &[u16; LANES], y: u16) -> bool {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            if LANES.is_multiple_of(32) {
                near_avx512(a, x, b, y)
            } else {
                near_avx2(a, x, b, y)
            }
        }
    }

    #[inline(always)]
    unsafe fn narrow_within(line: &[u16; 32], x: u16, bits: u32) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { narrow_within_avx512(line, x, bits) }
    }

    #[inline(always)]
    unsafe fn wide_within(line: &[u32; 16], x: u32, mask: u32, bits: u32) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { wide_within_avx512(line, x, mask, bits) }
    }

    #[inline(always)]
    unsafe fn any_wide_within<'a, const N: usize>(
        lines: impl Iterator<Item = &'a [u32; 16]> + Clone,
        xs: [u32; N],
        mask: u32,
        bits: u32,
    ) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { any_wide_within_avx512(lines, xs, mask, bits) }
    }

    #[inline(always)]
    unsafe fn marked(look: &Look<'_>, block: &[u64]) -> u32 {
        let (eights, rest) = block.as_chunks::<8>();
        let mut marks = 0;
        for (at, eight) in eights.iter().enumerate() {
            // SAFETY: the caller vouches for the instruction set.
            marks |= u32::from(unsafe { marked_avx512(look, eight) }) << (8 * at);
        }
        if !rest.is_empty() {
            marks |= each(rest, |fingerprint| look.marks(fingerprint)) << (8 * eights.len());
        }
        marks
    }
}

/// # Safety
/// The machine has AVX-512 F and VPOPCNTDQ.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
unsafe fn wide_within_avx512(line: &[u32; 16], x: u32, mask: u32, bits: u32) -> u32 {
    // SAFETY: `line` is 64 readable bytes; the load asks for no alignment.
    let lanes = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let [x, mask] = [x, mask].map(|value| _mm512_set1_epi32(value.cast_signed()));
    let difference = _mm512_and_si512(_mm512_xor_si512(lanes, x), mask);
    let limit = _mm512_set1_epi32(bits.cast_signed());
    u32::from(_mm512_cmple_epu32_mask(
        _mm512_popcnt_epi32(difference),
        limit,
    ))
}

/// # Safety
/// The machine has AVX-512 F and VPOPCNTDQ.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
unsafe fn any_wide_within_avx512<'a, const N: usize>(
    lines: impl Iterator<Item = &'a [u32; 16]>,
    xs: [u32; N],
    mask: u32,
    bits: u32,
) -> u32 {
    let mask = _mm512_set1_epi32(mask.cast_signed());
    let xs = xs.map(|x| _mm512_set1_epi32(x.cast_signed()));
    // The least of each lane: a minimum takes another unit than a comparison does, which the counts need.
    let mut least = [_mm512_set1_epi32(-1); N];
    for line in lines {
        // SAFETY: `line` is 64 readable bytes; the load asks for no alignment.
        let lanes = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        for (least, x) in least.iter_mut().zip(xs) {
            let difference = _mm512_and_si512(_mm512_xor_si512(lanes, x), mask);
            let distances = _mm512_popcnt_epi32(difference);
            *least = _mm512_min_epu32(*least, distances);
        }
    }
    let limit = _mm512_set1_epi32(bits.cast_signed());
    let mut any = 0;
    for (i, least) in least.into_iter().enumerate() {
        any |= u32::from(_mm512_cmple_epu32_mask(least, limit) != 0) << i;
    }
    any
}

/// [`Look::marks`] of eight fingerprints.
///
/// # Safety
/// The machine has AVX-512 F and BMI2.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
unsafe fn marked_avx512(look: &Look<'_>, eight: &[u64; 8]) -> u8 {
    let count = |bits: u32| _mm_cvtsi32_si128(bits.cast_signed());
    // SAFETY: `eight` is 64 readable bytes; the load asks for no alignment.
    let eight = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
    let behind = _mm512_slli_epi64::<RUN_BITS>(eight);
    let value = _mm512_srl_epi64(behind, count(64 - look.bits()));
    let word_bits = look.word_bits();
    let word = _mm512_and_si512(eight, _mm512_set1_epi64((1 << word_bits) - 1));
    // SAFETY: `value` has no more bits than the largest map's, and `word` those of an index to the tail, see `Look::new`.
    let (marked, tail) = unsafe {
        (
            _mm512_i64gather_epi64::<8>(
                _mm512_srli_epi64::<WORD_BITS>(value),
                look.map().as_ptr().cast(),
            ),
            _mm512_i64gather_epi64::<8>(word, look.tail().as_ptr().cast()),
        )
    };
    // Rotations take the lower 6 bits of what they are told.
    let low = _mm512_srl_epi64(eight, count(word_bits));
    let high = _mm512_srli_epi64::<{ TAIL_BITS - 6 }>(eight);
    let both = _mm512_xor_si512(low, _mm512_srli_epi64::<{ TAIL_BITS - 7 }>(eight));
    let [low, high, both] = [low, high, both].map(|by| _mm512_rorv_epi64(tail, by));
    let all = _mm512_and_si512(_mm512_and_si512(low, high), both);
    let any = _mm512_or_si512(_mm512_rorv_epi64(marked, value), all);
    _mm512_test_epi64_mask(any, _mm512_set1_epi64(1))
}

/// # Safety
/// The machine has AVX-512 F, BW and BITALG.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bitalg")]
unsafe fn narrow_within_avx512(line: &[u16; 32], x: u16, bits: u32) -> u32 {
    // SAFETY: `line` is 64 readable bytes; the load asks for no alignment.
    let lanes = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let difference = _mm512_xor_si512(lanes, _mm512_set1_epi16(x.cast_signed()));
    let limit = _mm512_set1_epi16(bits as i16);
    _mm512_cmple_epu16_mask(_mm512_popcnt_epi16(difference), limit)
}

/// # Safety
/// The machine has AVX-512 F and BW.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn near_avx512<const LANES: usize>(
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
            // SAFETY: `lanes` is 64 readable bytes; the load asks for no alignment.
            let lanes = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
            let difference = _mm512_xor_si512(lanes, query);
            near |= _mm512_testn_epi16_mask(difference, _mm512_sub_epi16(difference, one));
        }
    }
    near != 0
}

/// # Safety
/// The machine has AVX-512 F and VPOPCNTDQ.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
unsafe fn within_avx512(query: u64, candidates: &[u64], max_distance: u32) -> u64 {
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
