//! Detects AVX-512 F, BW and VL with the instructions of [`Avx2`], and runs loops compiled for
//! them.

use super::avx2::Avx2;
use super::{Isa, Work};

/// The token of the instruction set: proof that this machine has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx512(Avx2);

impl Avx512 {
    /// The token, if this machine has the instructions.
    pub(crate) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        Avx2::detect().filter(|_| found).map(Self)
    }

    /// Runs `work` over 8 words at once.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        // SAFETY: only `detect` makes a token, on a machine that has the instructions.
        unsafe { run_avx512(work, self) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<W: Work>(work: W, isa: Avx512) -> W::Output {
    work.run::<8>(isa)
}

impl Isa for Avx512 {
    #[inline(always)]
    fn top_bits(self, bytes: &[u8; 64]) -> u64 {
        self.0.top_bits(bytes)
    }
}
