//! Detects AVX2 with BMI1, BMI2, LZCNT and POPCNT, and runs loops compiled for them.

use super::Work;

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
        unsafe { run_avx2(work) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run::<4>()
}
