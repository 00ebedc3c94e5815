//! Detects AVX2 with BMI1, BMI2, LZCNT and POPCNT, and runs loops compiled for them.

use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_movemask_epi8};

use super::{Isa, Work};

/// The token of the instruction set: proof that this machine has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The token, if this machine has the instructions.
    pub(crate) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }

    /// Runs `work` over 4 words at once.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        // SAFETY: only `detect` makes a token, on a machine that has the instructions.
        unsafe { run_avx2(work, self) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<W: Work>(work: W, isa: Avx2) -> W::Output {
    work.run::<4>(isa)
}

impl Isa for Avx2 {
    #[inline(always)]
    fn top_bits(self, bytes: &[u8; 64]) -> u64 {
        let mut gathered = 0;
        for (at, part) in bytes.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: only `detect` makes a token, on a machine that has AVX2, and the load reads the 32 bytes of `part`.
            let bits = unsafe {
                _mm256_movemask_epi8(_mm256_loadu_si256(part.as_ptr().cast::<__m256i>()))
            };
            gathered |= u64::from(bits.cast_unsigned()) << (32 * at);
        }
        gathered
    }
}
